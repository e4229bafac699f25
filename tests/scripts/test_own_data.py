"""Examples of one's own, from a file: scored, recorded by its sum, tabulated; and what is refused."""

import hashlib
import json

import pytest

from stereoset_report.own_data import read_data_file
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.sample import load_sample

TASKS = ("intrasentence", "intersentence")
LINES = tuple(f"{task} " for task in TASKS)  # of a table


@pytest.fixture
def write(tmp_path):
    """write(content): a file of JSON."""

    def make(content, name="mine.json"):
        path = tmp_path / name
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return make


def sample(count=4):
    return {task: load_sample(task)[:count] for task in TASKS}


LAYOUTS = {
    "as dev.json": (lambda rows: {"version": "1.0", "data": rows}, TASKS),
    "one task": (lambda rows: {"data": {"intersentence": rows["intersentence"]}}, TASKS[1:]),
    "a plain list": (lambda rows: rows["intersentence"] + rows["intrasentence"], TASKS),
}


@pytest.mark.parametrize(("layout", "tasks"), LAYOUTS.values(), ids=LAYOUTS)
def test_both_layouts_are_read(write, layout, tasks):
    found = read_data_file(write(layout(sample()))).rows
    ids = {task: [row["id"] for row in rows] for task, rows in found.items()}
    assert ids == {task: [row["id"] for row in sample()[task]] for task in tasks}


def test_a_language_names_the_configs(write):
    assert list(read_data_file(write(sample()["intrasentence"]), "it").rows) == ["intrasentence_it"]


def changed(change):
    row = json.loads(json.dumps(load_sample("intrasentence")[0]))
    change(row)
    return [row]


NO_LAYOUT = r'give \{"data":'
REFUSED = {
    "nothing": ([], "holds no examples"),
    "a text": ("rows", NO_LAYOUT),
    "no task": ({"data": {}}, NO_LAYOUT),
    "another task": ({"data": {"crows_pairs": [1]}}, NO_LAYOUT),
    "no examples": ({"data": {"intrasentence": []}}, "holds no examples"),
    "no list": ({"data": {"intrasentence": {"id": "x"}}}, "holds no examples"),
    "a row of text": (["row"], "the example 1 is 'row'"),
    "no target": (changed(lambda row: row.pop("target")), "has None as target: give a text"),
    "an id of numbers": (changed(lambda row: row.update(id=7)), "the example 1 has 7 as id"),
    "no options": (changed(lambda row: row.update(sentences="x")), "has no list of sentences"),
    "an option of text": (changed(lambda row: row["sentences"].append("x")), "option 4 of example"),
    "an option too few": (changed(lambda row: row["sentences"].pop()), "gold labels"),
    "a label unknown": (changed(lambda row: row["sentences"][0].update(gold_label="related")), "gold labels"),
    "a sentence empty": (changed(lambda row: row["sentences"][0].update(sentence="")), "has an empty sentence"),
    "no context": (changed(lambda row: row.update(context="")), "has an empty context"),
    "doubled": (sample()["intrasentence"] * 2, "has 2 examples with the id"),
    "another's context": ({"data": {"intersentence": sample()["intrasentence"]}}, "has BLANK in its context"),
    "no BLANK": ({"data": {"intrasentence": sample()["intersentence"]}}, "has no BLANK in its context"),
}


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_file_of_examples_is_refused_and_named(write, content, words):
    path = write(content)
    with pytest.raises(Refusal, match=words) as refusal:
        read_data_file(path)
    assert str(refusal.value).startswith(str(path))


def test_examples_with_and_without_an_unrelated_option_are_not_scored_together(write):
    rows = sample()["intrasentence"]
    pair = {**rows[0], "sentences": [one for one in rows[0]["sentences"] if one["gold_label"] != "unrelated"]}
    with pytest.raises(Refusal, match="score them apart"):
        read_data_file(write([pair, *rows[1:]]))
    assert len(read_data_file(write([pair])).rows["intrasentence"]) == 1


@pytest.fixture
def run(score_here, write, tmp_path):
    """(file, folder, what was printed) of a run on one's own examples in Italian."""
    path = write({"data": sample()})
    options = ["--data-file", path, "--language", "it", "--model", "baseline:stereotyped"]
    return path, tmp_path / "run", score_here(*options, "--output-dir", tmp_path / "run")


def test_they_are_scored_and_the_sum_of_their_file_is_recorded(run):
    path, folder, printed = run
    record = json.loads((folder / "run.json").read_text())
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert record["data_file"] == {"path": str(path), "sha256": sha256, "language": "it"}
    assert list(record["tasks"]) == ["intrasentence_it", "intersentence_it"]
    assert "\nbaseline:stereotyped, it\n" in printed
    assert f"|split:file|data:{sha256[:8]}|" in printed


def test_the_saved_scores_give_their_table(run, score_here, write):
    path, folder, printed = run
    table = [line for line in printed.splitlines() if line.startswith(LINES)]
    for options in ([folder], [folder, "--data-file", path], [folder / "scores.json", "--data-file", path]):
        found = score_here(*options, "--language", "it", script="evaluate_scores.py").splitlines()
        assert [line for line in found if line.startswith(LINES)] == table


def test_another_file_is_refused(run, score_here, write):
    path, folder, _ = run
    other = write({"data": sample(3)}, "other.json")
    with pytest.raises(SystemExit, match="give the file that was scored as --data-file"):
        score_here(folder, "--data-file", other, script="evaluate_scores.py")
    path.unlink()
    with pytest.raises(SystemExit, match=r"mine\.json, which is not there: give --data-file"):
        score_here(folder, script="evaluate_scores.py")


@pytest.mark.parametrize(
    "options",
    [
        ["--language", "it"],
        ["--data-file", "f", "--languages", "de"],
        ["--data-file", "f", "--language", "italian"],
        ["--data-file", "f", "--sample"],
        ["--data-file", "f", "--tasks", "crows_pairs"],
    ],
)
def test_a_command_line_that_makes_no_sense_is_refused(score_here, tmp_path, options):
    with pytest.raises(SystemExit) as refusal:
        score_here("--model", "baseline:ideal", *options, "--output-dir", tmp_path)
    assert refusal.value.code == 2


def test_a_task_that_the_file_lacks_is_refused(score_here, write, tmp_path):
    path = write(sample()["intrasentence"])
    options = ["--model", "baseline:ideal", "--data-file", path, "--tasks", "intersentence"]
    with pytest.raises(SystemExit, match="has no intersentence examples"):
        score_here(*options, "--output-dir", tmp_path / "run")
