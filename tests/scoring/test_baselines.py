"""The baselines: what they prefer, that their tables are the paper's, and that they run like any model."""

import json
import re
import runpy
import sys
from itertools import chain

import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

from stereoset_dataset import load_stereoset
from stereoset_metric.compute_score import compute_score, flat_reference
from stereoset_scoring import load_scorer
from stereoset_scoring.baselines import ENSEMBLE_WEIGHTS, Ensemble, Ideal, Random, Stereotyped, load_baseline
from stereoset_scoring.engines.classifiers import negative_class
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.reading import score_here
from stereoset_scoring.roles import Origin, Scores
from stereoset_scoring.sample import load_sample

TASKS = ("intrasentence", "intersentence")
LABELS = ("stereotype", "anti-stereotype", "unrelated")


@pytest.fixture(scope="module")
def data(upstream):
    """{task: rows} of the English development set."""
    return {task: load_stereoset(task, split="validation", data_dir=upstream).to_list() for task in TASKS}


@pytest.fixture(scope="module")
def sample():
    """{task: rows} of the sample."""
    return {task: load_sample(task) for task in TASKS}


def numbers(data, scores, **options):
    """The metric's numbers of all tasks of some data together."""
    rows = list(chain.from_iterable(data.values()))
    return compute_score(
        list(chain.from_iterable(scores[config] for config in data)), list(map(flat_reference, rows)), **options
    )


def row(name, target, task="intrasentence"):
    """An example, with one option for each label."""
    context = "The gardener is BLANK." if task == "intrasentence" else "This is the gardener."
    options = [{"id": f"{name}-{label}", "sentence": f"{label}.", "gold_label": label} for label in LABELS]
    return {"id": name, "target": target, "bias_type": "profession", "context": context, "sentences": options}


@pytest.mark.parametrize("tasks", [TASKS[:1], TASKS[1:], TASKS])
def test_the_ideal_baseline_is_at_50_and_100(data, tasks):
    scores = Ideal().scores(data)
    some = {task: data[task] for task in tasks}
    found = numbers(some, scores, breakdown=["bias_type", "target"])
    assert found["lms"] == 100
    assert found["ss"] == pytest.approx(50, abs=0.05)  # prints as the paper's 50.0
    assert found["icat"] == pytest.approx(100, abs=0.05)
    assert all(part["ss"] == pytest.approx(50, abs=0.6) for part in found["bias_type"].values())
    for term in found["target"].values():
        # Half an example off where the number of examples is odd, and not at all where it is even.
        assert abs(term["ss"] - 50) * term["count"] / 100 == pytest.approx(term["count"] % 2 / 2)


@pytest.mark.parametrize(
    ("intra", "inter", "off"),
    [
        (2, 2, (0, 0, 0)),
        (3, 3, (0.5, 0.5, 0)),  # against each other, so that both together are even
        (3, 2, (0.5, 0, 0.5)),
        (1, 0, (0.5, None, 0.5)),
    ],
)
def test_a_term_of_the_ideal_baseline_is_at_most_half_an_example_off(intra, inter, off):
    data = {
        task: [row(f"{task}{i}", "gardener", task) for i in range(count)]
        for task, count in zip(TASKS, (intra, inter), strict=True)
    }
    scores = Ideal().scores(data)
    stereotyped = {task: sum(one[0] > one[1] for one in scores[task]) for task in TASKS}
    for task, count, expected in zip(TASKS, (intra, inter), off, strict=False):
        assert abs(stereotyped[task] - count / 2) == (expected or 0)
    assert abs(sum(stereotyped.values()) - (intra + inter) / 2) == off[2]


def test_each_language_of_the_ideal_baseline_is_balanced_by_itself(sample):
    both = {**sample, **{f"{task}_de": rows for task, rows in sample.items()}}
    scores = Ideal().scores(both)
    assert all(scores[task] == scores[f"{task}_de"] for task in TASKS)


def test_the_stereotyped_baseline_is_at_100_and_100(data):
    found = numbers(data, Stereotyped().scores(data))
    assert (found["ss"], found["lms"], found["icat"]) == (100, 100, 0)


def test_the_random_baseline_is_near_50(data):
    found = [numbers(data, Random(seed).scores(data)) for seed in range(5)]
    for name in ("ss", "lms"):
        assert sum(one[name] for one in found) / len(found) == pytest.approx(50, abs=1)


def test_a_random_score_depends_on_seed_and_option_alone(sample):
    rows = sample["intrasentence"]
    scores = Random(3).scores({"intrasentence": rows})["intrasentence"]
    assert Random(3).scores({"intrasentence_de": rows[::-1][:5]})["intrasentence_de"] == scores[::-1][:5]
    assert Random(4).scores({"intrasentence": rows})["intrasentence"] != scores
    assert len(set(chain.from_iterable(scores))) == 3 * len(rows)
    # Pinned: the same on any machine and with any version.
    assert Random(0).scores({"": [row("a", "gardener")]})[""][0] == pytest.approx(
        [-0.687068615863046, -2.505193496575802, -0.636746711045457], abs=1e-15
    )


@pytest.mark.parametrize("rule", [Ideal(), Stereotyped()])
def test_rows_of_the_data_set_and_of_its_json_files_score_the_same(rule):
    nested = [row(f"e{i}", target) for i, target in enumerate("aabbb")]
    indices = {"anti-stereotype": 0, "stereotype": 1, "unrelated": 2}  # of the data set's ClassLabel
    columns = [
        one
        | {
            "sentences": {
                "id": [option["id"] for option in one["sentences"]],
                "gold_label": [indices[option["gold_label"]] for option in one["sentences"]],
            }
        }
        for one in nested
    ]
    assert rule.scores({"x": nested}) == rule.scores({"x": columns})


def test_pairs_without_an_unrelated_option_are_ranked_too():
    pairs = [{**one, "sentences": one["sentences"][:2]} for one in [row(f"e{i}", "gardener") for i in range(4)]]
    found = numbers({"crows_pairs": pairs}, Ideal().scores({"crows_pairs": pairs}))
    assert (found["ss"], found["lms"]) == (50, None)


def test_a_row_without_gold_labels_is_refused():
    one = row("e0", "gardener")
    del one["sentences"][0]["gold_label"]
    with pytest.raises(ValueError, match="Example 'e0' has no field 'gold_label'"):
        Stereotyped().scores({"x": [one]})


# The ensemble


def write(path, by_id, task="intrasentence"):
    path.write_text(json.dumps({task: [{"id": option, "score": score} for option, score in by_id.items()]}))
    return str(path)


@pytest.fixture
def three_files(shared):
    """The released prediction files of the ensemble's models."""
    names = ("gpt2-large_ModelNSP_GPT2LM", "bert-large-cased_BertNextSentence_BertLM", "gpt2-medium_ModelNSP_GPT2LM")
    return tuple(f"{shared}/predictions/stereoset/predictions_{name}.json" for name in names)


def test_the_ensemble_is_the_released_one_to_the_last_digit(data, shared, three_files):
    scores = Ensemble(three_files).scores(data)
    released = json.loads((shared / "predictions/stereoset/predictions_EnsembleModel_.json").read_text())
    for task, rows in data.items():
        ours = {
            option: score
            for one, of_row in zip(rows, scores[task], strict=True)
            for option, score in zip(one["sentences"]["id"], of_row, strict=True)
        }
        assert ours == {entry["id"]: entry["score"] for entry in released[task]}


def test_in_the_ensemble_winners_add_their_own_weighted_scores_and_ties_nothing(tmp_path):
    ids = [f"e0-{label}" for label in LABELS]
    files = [
        write(tmp_path / f"{i}.json", dict(zip(ids, scores, strict=True)))
        for i, scores in enumerate([(0.25, 0.125, 0.125), (0.5, 0.5, 0.75), (0.0, 0.0, 0.0)])
    ]
    ((first, second, third),) = Ensemble(tuple(files)).scores({"intrasentence": [row("e0", "gardener")]})[
        "intrasentence"
    ]
    assert (first, second, third) == (2 * 10000 * 0.25, 0, 2 * 0.75)
    assert ENSEMBLE_WEIGHTS["intrasentence"] == (10000, 1, 10000)


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([-1.0, -2.0, -3.0], "0.json holds log-scores: write it again with --scale probability"),
        ([0.1, 0.2], "0.json has no score for option 'e0-unrelated' of intrasentence"),
    ],
)
def test_files_that_the_ensemble_cannot_weigh_are_refused(tmp_path, scores, words):
    file = write(tmp_path / "0.json", dict(zip([f"e0-{label}" for label in LABELS], scores, strict=False)))
    with pytest.raises(ValueError, match=re.escape(words)):
        Ensemble((file,) * 3).scores({"intrasentence": [row("e0", "gardener")]})


# As scorers


def test_a_baseline_runs_like_a_model(sample):
    baseline = load_baseline("baseline:random", seed=7)
    baseline.try_out(sample)
    whole = {task: Portion(task, 0, len(rows)) for task, rows in sample.items()}
    jobs = {task: baseline.plan_part(portion, sample[task]).job for task, portion in whole.items()}
    assert {task: score_here(baseline, job) for task, job in jobs.items()} == Random(7).scores(sample)


@pytest.mark.parametrize(
    "text",
    ["baseline:perfect", "baseline:ideal=x", "baseline:ensemble=a.json,b.json", "baseline:sentiment", "baseline:"],
)
def test_what_is_no_baseline_is_refused_with_the_choices(text):
    with pytest.raises(ValueError, match="is no baseline: choose baseline:ideal, baseline:stereotyped"):
        load_baseline(text)


# Sentiment


@pytest.fixture(scope="module")
def classifier(shared):
    """A function that builds a tiny classifier with classes of some names: (model, tokenizer)."""

    def build(*labels):
        tokenizer = AutoTokenizer.from_pretrained(shared / "oracles" / "models" / "bert")
        torch.manual_seed(0)
        config = BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=256,
            id2label=dict(enumerate(labels)),
            initializer_range=0.5,
            architectures=["BertForSequenceClassification"],
        )
        return BertForSequenceClassification(config).eval(), tokenizer

    return build


def negative_log_probs(model, tokenizer, texts, negative):
    """The definition: one text at a time, no padding."""
    found = []
    for text in texts:
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        found.append(float(logits.log_softmax(-1)[negative]))
    return found


@pytest.mark.parametrize(
    ("labels", "negative"),
    [(("NEGATIVE", "POSITIVE"), 0), (("pos", "neg"), 1), (("neutral", "positive", "Negative"), 2)],
)
def test_sentiment_is_the_probability_of_the_negative_class_of_the_filled_context(classifier, labels, negative):
    model, tokenizer = classifier(*labels)
    rows = [row("e0", "gardener"), row("e1", "gardener", "intersentence")]
    for option, word in zip(rows[0]["sentences"], ("kind", "tall and green", "of"), strict=True):
        option["sentence"] = f"the gardener is {word}."  # in lower case: the context's own case is read
    scores = load_scorer(model=model, tokenizer=tokenizer).score(rows)
    texts = [f"The gardener is {word}." for word in ("kind", "tall and green", "of")]
    texts += [option["sentence"] for option in rows[1]["sentences"]]
    expected = negative_log_probs(model, tokenizer, texts, negative)
    assert [*scores[0], *scores[1]] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(
    "labels", [("LABEL_0", "LABEL_1"), ("1 star", "5 stars"), ("negative",), ("negative", "neg"), ("non-negative", "x")]
)
def test_a_classifier_that_does_not_say_what_is_negative_is_refused(labels):
    with pytest.raises(ValueError, match=re.escape(f"Which of the classes {', '.join(labels)} is negative")):
        negative_class(dict(enumerate(labels)))


# The command


@pytest.fixture
def run_score(repository, monkeypatch, tmp_path):
    """Run score.py on the sample in this process; (record, results, what was printed)."""

    def run(*options, capsys):
        monkeypatch.syspath_prepend(str(repository / "scripts"))
        words = ["score.py", "--sample", *map(str, options), "--output-dir", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", words)
        runpy.run_path(str(repository / "scripts" / "score.py"), run_name="__main__")
        record, results = (json.loads((tmp_path / name).read_text()) for name in ("run.json", "results.json"))
        return record, results, capsys.readouterr().out

    return run


def test_the_record_and_the_signature_say_which_baseline_and_which_seed(run_score, capsys):
    record, results, printed = run_score("--model", "baseline:random", "--seed", "5", capsys=capsys)
    assert (record["model"]["name"], record["model"]["family"]) == ("baseline:random", "baseline")
    assert record["tasks"]["intrasentence"]["options"] == {"seed": 5}
    assert record["tasks"]["intrasentence"]["forward_rows"] == 0
    assert results["signature"].startswith("intrasentence:random(seed=5)|intersentence:random(seed=5)|preset:none|")
    assert printed.splitlines()[-1] == results["signature"]


def test_the_ideal_baseline_flows_into_the_table(run_score, capsys):
    _, results, _ = run_score("--model", "baseline:ideal", capsys=capsys)
    assert results["results"]["en"]["overall"]["all"]["lms"] == 100


def test_a_sentiment_model_is_scored_and_recorded_as_any_model(run_score, classifier, tmp_path_factory, capsys):
    folder = tmp_path_factory.mktemp("classifier")
    for part in classifier("negative", "positive"):
        part.save_pretrained(folder)
    record, _, _ = run_score("--model", f"baseline:sentiment={folder}", capsys=capsys)
    assert record["model"]["family"] == "sentiment"
    assert record["tasks"]["intersentence"]["method"] == "sentiment"
    assert re.fullmatch("[0-9a-f]{64}", record["model"]["heads"]["sentiment"]["weights_sha256"])


def test_a_language_model_is_no_sentiment_model(run_score, shared, capsys):
    model = shared / "oracles" / "models" / "gpt2"
    with pytest.raises(SystemExit, match="Method 'sentiment' is not defined for a causal model"):
        run_score("--model", f"baseline:sentiment={model}", capsys=capsys)


def test_a_baselines_scores_are_no_probabilities(run_score, capsys):
    with pytest.raises(SystemExit):
        run_score("--model", "baseline:ideal", "--scale", "probability", capsys=capsys)
    assert "leave --scale out" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["ideal", "stereotyped", "random"])
def test_a_baseline_answers_all_that_a_run_asks_of_a_scorer(name, scorer_of):
    asked = {one for one in vars(Scores) if not one.startswith("_")}
    for scorer in (load_baseline(f"baseline:{name}"), scorer_of("bert")):
        assert {one for one in asked if not hasattr(scorer, one)} == set()
        assert {one for one in vars(Origin) if not one.startswith("_") and not hasattr(scorer.source, one)} == set()
