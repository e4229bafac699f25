"""StereosetCallback in trainings with transformers' Trainer, read back from what they leave."""

import json
import math
import subprocess
import sys
import warnings
from collections import Counter
from copy import deepcopy
from pathlib import Path

import peft
import pytest
import torch
from transformers import EarlyStoppingCallback, TrainerCallback

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_scoring import StereosetCallback, load_scorer
from stereoset_scoring.callback import drawn
from tests.scoring.trainers import as_batch, learned, make_trainer, numbers_of, train

SCRIPT = Path(__file__).with_name("two_trainers.py")
LABELS = ("stereotype", "anti-stereotype", "unrelated")
NAMES = ("ss", "lms", "icat")


@pytest.fixture(scope="module")
def examples():
    """Labelled examples of two target terms and bias types."""
    words = [("kind", "quiet", "long"), ("calm", "tall", "green"), ("thoughtful", "kind", "watered")] * 3
    rows = []
    for i, some in enumerate(words):
        target, bias_type = (("gardener", "profession"), ("teacher", "gender"))[i % 2]
        tail = " and calm" * (i // 3)
        options = [
            {"id": f"{i}-{j}", "sentence": f"The {target} was {word}{tail}.", "gold_label": label}
            for j, (word, label) in enumerate(zip(some, LABELS, strict=True))
        ]
        context = f"The {target} was BLANK{tail}."
        rows.append({"id": str(i), "target": target, "bias_type": bias_type, "context": context, "sentences": options})
    return rows


def counted(place, examples, tokenizer=None, **options):
    """[ss, lms, icat] of a checkpoint in a folder, or of a model, by the ordinary way."""
    scorer = load_scorer(model=place, tokenizer=tokenizer) if tokenizer else load_scorer(place, device="cpu")
    result = compute_score(scorer.score(examples), flat_references(examples), **options)
    return [result[name] for name in NAMES]


@pytest.mark.parametrize(("name", "kind"), [("gpt2", "causal"), ("bert", "masked")])
def test_the_curves_are_in_the_event_files_and_choose_the_best_model(name, kind, folder, tmp_path, examples):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    best = {"metric_for_best_model": "eval_icat", "load_best_model_at_end": True, "greater_is_better": True}
    saved = {"save_strategy": "steps", "save_steps": 1, "report_to": "tensorboard"}
    trainer = train(folder(name), tmp_path, [StereosetCallback(examples, strict=True)], kind=kind, **saved, **best)
    expected = [counted(tmp_path / f"checkpoint-{step}", examples) for step in (1, 2, 3)]
    assert numbers_of(trainer) == expected
    (events,) = tmp_path.glob("runs/*/events*")
    curves = EventAccumulator(str(events)).Reload()
    for i, number in enumerate(NAMES):
        found = [(event.step, event.value) for event in curves.Scalars(f"eval/{number}")]
        assert found == [(step, pytest.approx(expected[step - 1][i])) for step in (1, 2, 3)]
    icats = [icat for _, _, icat in expected]
    assert trainer.state.best_metric == max(icats)
    assert trainer.state.best_model_checkpoint.endswith(f"checkpoint-{1 + icats.index(max(icats))}")


def adapted(model):
    """The model with an adapter that drops out."""
    return peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.3, init_lora_weights=False))


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("gpt2", {}),
        ("bert", {"kind": "masked"}),
        ("llama", {"gradient_checkpointing": True}),
        ("gpt2", {"bf16": True, "gradient_accumulation_steps": 2}),
        ("gpt2", {"change": adapted, "gradient_checkpointing": True}),
    ],
    ids=["gpt2", "bert", "checkpointing", "mixed precision", "adapter"],
)
def test_a_training_makes_the_same_weights_to_the_bit_with_the_callback_and_without(
    name, more, folder, tmp_path, examples
):
    usual = {"per_device_train_batch_size": 2, "eval_on_start": True} | more
    scored = train(folder(name), tmp_path, [StereosetCallback(examples, strict=True)], **usual)
    plain = train(folder(name), tmp_path, [], **usual)
    assert len(numbers_of(scored)) == 4
    for one, other in zip(scored.model.parameters(), plain.model.parameters(), strict=True):
        assert torch.equal(one, other)
    without = [{**entry, **dict.fromkeys(("eval_ss", "eval_lms", "eval_icat"))} for entry in plain.state.log_history]
    for entry, other in zip(scored.state.log_history, without, strict=True):
        assert entry.get("loss") == other.get("loss")
        assert entry.get("eval_loss") == other.get("eval_loss")


@pytest.mark.parametrize("reentrant", [False, True])
def test_scoring_inside_the_loops_own_autocast_leaves_its_gradients(reentrant, model_of, tokenizer_of, examples):
    tokenizer = tokenizer_of("gpt2")
    batch = as_batch(learned(tokenizer, "causal"))

    def gradients(score):
        model = deepcopy(load_scorer(model=model_of("gpt2", "causal"), tokenizer=tokenizer).source.model).float().eval()
        model.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            if score:
                load_scorer(model=model, tokenizer=tokenizer).score(examples, everywhere=reentrant)
            model(**batch).loss.backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    assert all(torch.equal(one, other) for one, other in zip(gradients(True), gradients(False), strict=True))


class Reporter(TrainerCallback):
    """Keeps what is logged."""

    def __init__(self):
        self.logged = []

    def on_log(self, args, state, control, logs, **kwargs):
        self.logged.append(dict(logs))


def test_whoever_was_added_before_sees_the_numbers_and_may_stop_by_them(folder, tmp_path, examples):
    reporter, stopping = Reporter(), EarlyStoppingCallback(early_stopping_patience=1, early_stopping_threshold=1000)
    best = {"metric_for_best_model": "icat", "load_best_model_at_end": True, "save_strategy": "steps", "save_steps": 1}
    callbacks = [reporter, stopping, StereosetCallback(examples, strict=True)]
    trainer = train(folder("gpt2"), tmp_path, callbacks, max_steps=9, greater_is_better=True, **best)
    assert [
        [logs[f"eval_{name}"] for name in NAMES] for logs in reporter.logged if "eval_runtime" in logs
    ] == numbers_of(trainer)
    assert trainer.state.global_step == 2  # nothing is better by 1000


def test_a_callback_that_is_added_later_is_seen_at_an_evaluation_without_training(folder, tmp_path, examples):
    reporter = Reporter()
    trainer = make_trainer(folder("gpt2"), tmp_path, [reporter])
    trainer.add_callback(StereosetCallback(examples, strict=True))
    metrics = trainer.evaluate(metric_key_prefix="test")
    expected = counted(trainer.model, examples, trainer.processing_class)
    assert [metrics[f"test_{name}"] for name in NAMES] == expected
    assert [reporter.logged[0][f"test_{name}"] for name in NAMES] == expected


def test_several_sets_of_evaluation_data_are_one_evaluation_and_another_one_scores_anew(folder, tmp_path, examples):
    callback = StereosetCallback(examples, strict=True)
    trainer = train(folder("gpt2"), tmp_path, [callback], eval_sets=["news", "books"])
    assert len(numbers_of(trainer)) == 3
    with torch.no_grad():
        trainer.model.transformer.wte.weight.mul_(-1)  # at the same step, as where the best model was loaded
    metrics = trainer.evaluate()
    assert [metrics[f"eval_{name}"] for name in NAMES] == counted(trainer.model, examples, trainer.processing_class)


def test_plan_and_tokens_are_made_once_and_nothing_is_printed(folder, tmp_path, examples, monkeypatch, capfd):
    plans, plan = [], StereosetCallback._plan
    monkeypatch.setattr(StereosetCallback, "_plan", lambda self, *args: plans.append(args) or plan(self, *args))
    quiet = {"log_level": "error", "logging_strategy": "no"}
    trainer = make_trainer(folder("gpt2"), tmp_path, [StereosetCallback(examples, strict=True)], **quiet)
    trainer.callback_handler.callbacks = [
        one for one in trainer.callback_handler.callbacks if type(one).__name__ != "PrinterCallback"
    ]
    capfd.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trainer.train()
    assert len(plans) == 1
    assert len(numbers_of(trainer)) == 3
    assert capfd.readouterr() == ("", "")


def test_every_nth_evaluation_is_scored_the_first_among_them(folder, tmp_path, examples):
    trainer = train(folder("gpt2"), tmp_path, [StereosetCallback(examples, every=2, strict=True)])
    assert [entry["step"] for entry in trainer.state.log_history if "eval_icat" in entry] == [1, 3]


def test_names_and_breakdowns_are_those_of_the_metric(folder, tmp_path, examples):
    data = {"first": examples[:6], "all": examples}
    trainer = train(
        folder("gpt2"), tmp_path, [StereosetCallback(data, breakdown="bias_type", strict=True)], max_steps=1
    )
    names = [name for name in trainer.state.log_history[1] if name.rpartition("_")[2] in NAMES]
    groups = ("first", "first_gender", "first_profession", "all", "all_gender", "all_profession")
    assert names == [f"eval_{group}_{name}" for group in groups for name in NAMES]


def test_a_failure_is_a_warning_and_the_training_goes_on(folder, tmp_path, examples):
    callback = StereosetCallback(examples, method="next_sentence")
    best = {"metric_for_best_model": "eval_icat", "greater_is_better": True}
    with pytest.warns(UserWarning, match=r"StereoSet is not scored at step 1 \(Refusal: "):
        trainer = train(folder("gpt2"), tmp_path, [callback], **best)
    assert trainer.state.global_step == 3
    assert numbers_of(trainer) == []
    assert trainer.state.best_metric == -math.inf  # nothing was better than nothing
    assert not any(math.isnan(value) for entry in trainer.state.log_history for value in entry.values())


def test_a_strict_callback_lets_a_failure_end_the_training(folder, tmp_path, examples):
    with pytest.raises(ValueError, match="next_sentence"):
        train(folder("gpt2"), tmp_path, [StereosetCallback(examples, method="next_sentence", strict=True)])


def test_a_best_model_cannot_be_chosen_by_what_is_there_at_every_second_evaluation(folder, tmp_path, examples):
    with pytest.raises(ValueError, match="leave every=2 out"):
        train(folder("gpt2"), tmp_path, [StereosetCallback(examples, every=2)], metric_for_best_model="icat")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"every": 0}, "every is 0"),
        ({"draw": 0}, "draw is 0"),
        ({"breakdown": "age"}, "breakdown is 'age'"),
        ({"average": "median"}, "average is 'median'"),
        ({"examples": []}, "no examples"),
        ({"examples": [{"id": "a", "context": "", "sentences": []}]}, "no target"),
    ],
)
def test_what_cannot_be_counted_is_refused_before_the_training(arguments, words, examples):
    with pytest.raises(ValueError, match=words):
        StereosetCallback(**{"examples": examples, **arguments})


@pytest.mark.parametrize(
    ("count", "expected"), [(1, [0, 0, 1]), (10, [1, 3, 6]), (50, [5, 15, 30]), (100, [10, 30, 60])]
)
def test_examples_are_drawn_once_by_seed_each_bias_type_with_its_share(count, expected):
    rows = [
        {"id": i, "bias_type": ("race", "gender", "gender", "gender", *["profession"] * 6)[i % 10]} for i in range(100)
    ]
    found, again, other = (drawn(rows, count, seed) for seed in (0, 0, 1))
    assert sorted(Counter(row["bias_type"] for row in found).values()) == [size for size in expected if size]
    assert found == again == sorted(found, key=lambda row: row["id"])
    assert (found != other) is (count < 100)


def test_without_a_tokenizer_of_the_trainer_one_has_to_be_given(folder, tmp_path, examples, tokenizer_of):
    trainer = make_trainer(folder("gpt2"), tmp_path, [StereosetCallback(examples, strict=True)])
    trainer.callback_handler.processing_class = None
    with pytest.raises(ValueError, match="give StereosetCallback a tokenizer"):
        trainer.evaluate()
    trainer = make_trainer(folder("gpt2"), tmp_path, [StereosetCallback(examples, tokenizer=tokenizer_of("gpt2"))])
    trainer.callback_handler.processing_class = None
    assert "eval_icat" in trainer.evaluate()


@pytest.fixture(scope="module")
def seen(torchrun, warm_python, folder, tmp_path_factory):
    """What each of two processes saw."""
    output = tmp_path_factory.mktemp("two")
    done = warm_python.run([*torchrun(2), SCRIPT, folder("gpt2"), output])
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads((output / f"seen-{rank}.json").read_text()) for rank in (0, 1)]


@pytest.mark.thorough
def test_two_processes_share_the_rows_and_have_the_numbers_of_one(seen):
    for one in seen:
        assert one["trainer"]["numbers"][-1] == one["trainer"]["alone"]
        assert one["trainer"]["numbers"] == seen[0]["trainer"]["numbers"]
        assert one["trainer"]["same weights"]
    (first, rows), (second, _) = (one["trainer"]["rows"] for one in seen)
    assert first + second == rows
    assert abs(first - second) < rows / 4


@pytest.mark.thorough
def test_a_fully_sharded_model_is_scored_by_all_and_learns_what_it_would(seen):
    for one in seen:
        assert one["sharded"]["same weights"]
        assert one["sharded"]["difference"] < 1e-5


@pytest.mark.thorough
def test_a_process_that_fails_fails_the_others(seen):
    assert [one["failure"] for one in seen] == ["Lost", "Unreadable"]


def test_the_callback_costs_nothing_until_it_is_asked_for():
    code = "import sys, stereoset_scoring; assert not {'torch', 'transformers', 'stereoset_metric'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=SCRIPT.parents[2])
