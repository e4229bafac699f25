"""lm-eval: the tasks that are written for it, its own run of them, and what is read from its log."""

import importlib.util
import json
import random
import subprocess
import sys

import pytest
import yaml
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_report.saved import read_saved
from stereoset_scoring import load_scorer
from stereoset_scoring.methods.causal import with_full_stop
from stereoset_scoring.sample import load_sample
from stereoset_scoring.sample.model import make_tokenizer

NUMBERS = ("ss", "lms", "icat")
TASKS = ("intrasentence", "intersentence")
MOMENT = "2026-01-31T12-00-00.000000"


@pytest.fixture
def tasks(stereoset, tmp_path):
    """The folder of the sample's tasks."""
    stereoset("export", "lm-eval", tmp_path / "tasks", "--sample")
    return tmp_path / "tasks"


class FunctionsByName(yaml.SafeLoader):
    """Reads lm-eval's !function as its name."""


FunctionsByName.add_constructor("!function", lambda loader, node: loader.construct_scalar(node))


def read_task(path):
    """A task's file, with what it includes, as lm-eval reads it."""
    found = yaml.load(path.read_text(encoding="utf-8"), FunctionsByName)
    return yaml.load((path.parent / found.pop("include")).read_text(encoding="utf-8"), FunctionsByName) | found


def functions(folder):
    """The module that the tasks name, from its file, as lm-eval imports it."""
    spec = importlib.util.spec_from_file_location("some_tasks", folder / "stereoset_tasks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def log(folder, docs, answers, arguments=None):
    """Write a log in the layout of lm-eval 0.4.13, and the results beside it.

    Args:
        folder: where.
        docs: the examples.
        answers: for each example, an answer for each option.
        arguments: (before, after) of each option of each example; None for what the tasks say.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for number, (doc, of_doc) in enumerate(zip(docs, answers, strict=True)):
        before = with_full_stop(doc["context"]) if doc["task"] == "intersentence" else ""
        given = [(before, f"{' ' if before else ''}{one['sentence']}") for one in doc["sentences"]]
        given = arguments or given
        line = {
            "doc_id": number,
            "doc": doc,
            "target": "0",
            "arguments": {f"gen_args_{i}": {"arg_0": one[0], "arg_1": one[1]} for i, one in enumerate(given)},
            "resps": [[answer] for answer in of_doc],
            "filtered_resps": of_doc,
            "filter": "none",
            "metrics": list(NUMBERS),
        }
        lines.append(json.dumps(line))
    path = folder / f"samples_stereoset_{docs[0]['config']}_sample_{MOMENT}.jsonl"
    path.write_text("".join(f"{line}\n" for line in reversed(lines)), encoding="utf-8")
    (folder / f"results_{MOMENT}.json").write_text(json.dumps({"model_name": "org/served"}), encoding="utf-8")
    return path


def docs_of(folder, task):
    return json.loads((folder / f"stereoset_{task}_sample.json").read_text(encoding="utf-8"))["rows"]


def drawn(docs, seed=0):
    """Scores, with ties among them, and how lm-eval writes them."""
    generator = random.Random(seed)
    scores = [[-float(generator.randint(1, 4)) for _ in doc["sentences"]] for doc in docs]
    return scores, [[[str(score), "False"] for score in of_doc] for of_doc in scores]


def test_the_folder_holds_all_that_its_tasks_name(tasks):
    module = functions(tasks)
    assert {path.stem for path in tasks.glob("*.yaml")} == {f"stereoset_{task}_sample" for task in TASKS}
    for task, delimiter in zip(TASKS, ("", " "), strict=True):
        found = read_task(tasks / f"stereoset_{task}_sample.yaml")
        named = [value for value in found.values() if str(value).startswith("stereoset_tasks.")]
        named += [one["aggregation"] for one in found["metric_list"]]
        assert len(named) == 8
        assert all(callable(getattr(module, name.partition(".")[2])) for name in named)
        assert [one["metric"] for one in found["metric_list"]] == list(NUMBERS)
        assert (found["task"], found["output_type"]) == (f"stereoset_{task}_sample", "multiple_choice")
        assert (found["target_delimiter"], found["num_fewshot"]) == (delimiter, 0)
        rows = module.load(**found["dataset_kwargs"], **found["metadata"], pretrained="gpt2")[found["test_split"]]
        assert [row["id"] for row in rows] == [row["id"] for row in load_sample(task)]
        assert rows[0]["examples"] == len(rows)


def test_the_licence_of_the_examples_is_named(tasks, stereoset, upstream, tmp_path):
    words = ["--data-dir", upstream, "--languages", "en", "pt", "--tasks", "intrasentence", "--splits", "validation"]
    stereoset("export", "lm-eval", tmp_path / "published", *words)
    for folder, license in ((tasks, "Apache-2.0"), (tmp_path / "published", "CC BY-SA 4.0")):
        assert license in (folder / "README.md").read_text(encoding="utf-8")
        assert {json.loads(path.read_text(encoding="utf-8"))["license"] for path in folder.glob("*.json")} == {license}
    names = {path.stem for path in (tmp_path / "published").glob("*.yaml")}
    assert names == {"stereoset_intrasentence", "stereoset_intrasentence_pt"}


def test_a_split_that_there_is_not_is_refused(stereoset, upstream, tmp_path):
    words = ["--data-dir", upstream, "--languages", "de", "--splits", "test"]
    assert "test" in stereoset("export", "lm-eval", tmp_path / "none", *words)
    assert not (tmp_path / "none").exists()


def test_the_folder_is_not_written_over(stereoset, tasks):
    assert "is there already" in stereoset("export", "lm-eval", tasks, "--sample")


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("seed", range(5))
def test_the_functions_count_as_the_metric(tasks, task, seed):
    module, docs = functions(tasks), docs_of(tasks, task)
    docs += [{**doc, "target": docs[0]["target"]} for doc in docs[:5]]  # terms of unequal size
    scores, _ = drawn(docs, seed)
    items = [
        module.process_results(doc, [(score, False) for score in of_doc])
        for doc, of_doc in zip(docs, scores, strict=True)
    ]
    expected = compute_score(scores, flat_references(docs))
    for number in NUMBERS:
        assert getattr(module, number)([item[number] for item in items]) == expected[number]


def test_a_model_that_gives_no_number_is_told(tasks):
    doc = docs_of(tasks, "intrasentence")[0]
    with pytest.raises(ValueError, match=f"{doc['id']} no number"):
        functions(tasks).process_results(doc, [(-1.0, False), (float("nan"), False), (-2.0, False)])


@pytest.mark.parametrize("context", ["He came", "He came.", "Did he?", "He came. ", "Oh!"])
def test_options_are_given_what_our_own_methods_give_them(tasks, context):
    assert functions(tasks).before({"task": "intersentence", "context": context}) == with_full_stop(context)
    assert functions(tasks).before({"task": "intrasentence", "context": context}) == ""


def test_the_table_of_a_log_is_that_of_its_scores(tasks, stereoset, tmp_path):
    for task in TASKS:
        docs = docs_of(tasks, task)
        _, answers = drawn(docs)
        log(tmp_path / "logged" / "org__served", docs, answers)
    saved = read_saved(tmp_path / "logged")
    assert (saved.partial, saved.split, saved.label) == (None, "sample", "org/served")
    assert list(saved.parts) == list(TASKS)
    for task in TASKS:
        rows, scores = saved.parts[task]
        assert [row["id"] for row in rows] == [row["id"] for row in load_sample(task)]
        assert scores == drawn(docs_of(tasks, task))[0]
    found = json.loads(stereoset("table", tmp_path / "logged", "--json"))
    for task in TASKS:
        expected = compute_score(saved.parts[task][1], flat_references(load_sample(task)))
        assert {number: found["results"]["en"][task]["all"][number] for number in NUMBERS} == {
            number: expected[number] for number in NUMBERS
        }
    assert "org/served, en" in stereoset("table", tmp_path / "logged")


def test_a_log_says_what_was_asked(tasks, stereoset, tmp_path, make_run):
    docs = docs_of(tasks, "intrasentence")
    _, answers = drawn(docs)
    plain = log(tmp_path / "plain", docs, answers)
    changed = log(tmp_path / "changed", docs, answers, [("<user>", one) for one in "abc"])
    assert "asked with more" not in stereoset("table", plain)
    assert "NOTE: intrasentence: asked with more than the example" in stereoset("table", changed)
    found = stereoset("compare", make_run("a", methods={"intrasentence": "likelihood"}), plain)
    assert "lm-eval likelihood" in found
    part = log(tmp_path / "part", docs[:7], answers[:7])
    assert "PARTIAL" in stereoset("table", part)
    assert read_saved(part).partial == f"7 of {len(docs)} examples of intrasentence"


def test_a_report_takes_the_folder_of_the_logs_of_many_models(tasks, stereoset, tmp_path):
    pytest.importorskip("matplotlib")
    docs = docs_of(tasks, "intrasentence")
    for seed, model in enumerate(("one", "other")):
        log(tmp_path / "logged" / model, docs, drawn(docs, seed)[1])
    stereoset("report", tmp_path / "logged", "--output", tmp_path / "page.html", "--resamples", "20")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "org/served (one)" in page
    assert "org/served (other)" in page
    assert "again: give the folder" in stereoset("table", tmp_path / "logged")


def spoil(**change):
    """A change to the first line of a log."""
    return lambda lines: [{**lines[0], **change}, *lines[1:]]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda lines: [*lines, lines[0]], "again: give the folder, or the file, of a single run"),
        (spoil(filtered_resps=[["nan", "False"]] * 3), "there must be a number for each option"),
        (spoil(filtered_resps=[["-1.0", "False"]] * 2), "none of lm-eval's log of these tasks"),
        (spoil(filtered_resps=["", "", ""]), "there must be a number for each option"),
        (spoil(doc={"question": "?"}), "none of lm-eval's log of these tasks"),
        (spoil(doc=None), "none of lm-eval's log of these tasks"),
        (lambda lines: [], "holds no examples"),
        (lambda lines: ["a text"], "none of lm-eval's log of these tasks"),
    ],
)
def test_what_is_no_log_is_refused(tasks, stereoset, tmp_path, change, words):
    docs = docs_of(tasks, "intrasentence")
    path = log(tmp_path / "logged", docs, drawn(docs)[1])
    lines = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in change(lines)), encoding="utf-8")
    assert words in stereoset("table", path)


def make_model(folder, habit):
    """A tiny causal model, whose tokenizer puts BOS before every text or does not."""
    texts = [one["sentence"] for task in TASKS for row in load_sample(task) for one in row["sentences"]]
    tokenizer = make_tokenizer(texts)
    if not habit:
        plain = tokenizer.backend_tokenizer
        plain.post_processor = None
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, bos_token=tokenizer.bos_token)
    tokenizer.save_pretrained(folder)
    shape = {"vocab_size": len(tokenizer), "n_positions": 64, "n_embd": 32, "n_layer": 2, "n_head": 2}
    GPT2LMHeadModel(GPT2Config(**shape, initializer_range=0.5)).save_pretrained(folder)


@pytest.mark.parametrize("habit", [True, False], ids=["bos", "no bos"])
def test_lm_eval_itself_gives_our_numbers(tasks, stereoset, one_thread_each, tmp_path, habit):
    pytest.importorskip("lm_eval", reason="lm-eval==0.4.13 is not installed: its own run cannot be set beside ours")
    make_model(tmp_path / "model", habit)
    command = [sys.executable, "-m", "lm_eval", "--include_path", tasks, "--tasks", "stereoset", "--model", "hf"]
    command += ["--model_args", f"pretrained={tmp_path / 'model'},dtype=float32", "--device", "cpu"]
    command += ["--batch_size", "8", "--log_samples", "--output_path", tmp_path / "logged"]
    env = one_thread_each | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    done = subprocess.run(list(map(str, command)), cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (results,) = (tmp_path / "logged").rglob("results_*.json")
    theirs = json.loads(results.read_text(encoding="utf-8"))["results"]
    table = json.loads(stereoset("table", tmp_path / "logged", "--json"))["results"]["en"]
    logged = read_saved(tmp_path / "logged")
    asked = {"intrasentence": {"bos": "context"}, "intersentence": {"border": "length"}}
    for task in TASKS:
        rows = load_sample(task)
        scores = load_scorer(tmp_path / "model", reduction="sum", **asked[task]).score(rows)
        assert [one for of_row in logged.parts[task][1] for one in of_row] == pytest.approx(
            [one for of_row in scores for one in of_row], abs=1e-4
        )
        ours = compute_score(scores, flat_references(rows))
        for number in NUMBERS:
            assert theirs[f"stereoset_{task}_sample"][f"{number},none"] == ours[number]
            assert table[task]["all"][number] == ours[number]
