"""A finished run is not computed again, nor overwritten by another one's; nobody else's files are touched."""

import json
import re
import runpy
import sys

import pytest

from stereoset_scoring.files.finished import FILES
from stereoset_scoring.files.store import claimed
from stereoset_scoring.scorer import Scorer

BASELINE = ["--sample", "--model", "baseline:random"]


def contents(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture
def finished(score_here, tmp_path):
    """The folder of a finished run."""
    score_here(*BASELINE, "--output-dir", tmp_path)
    return tmp_path


def test_a_finished_run_prints_its_table_and_computes_nothing(score_here, sample_model, tmp_path, monkeypatch):
    options = ["--sample", "--model", sample_model, "--tasks", "intrasentence", "--output-dir", tmp_path / "run"]
    first = score_here(*options)
    before = contents(tmp_path / "run")
    monkeypatch.setattr(Scorer, "log_probs", lambda self, units: pytest.fail("the model was asked"))
    assert score_here(*options, "--max-tokens", "300") == first
    assert contents(tmp_path / "run") == before
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(FILES)


def test_it_says_that_it_was_finished(finished, monkeypatch, capsys, repository):
    monkeypatch.setattr(sys, "argv", ["score.py", *BASELINE, "--output-dir", str(finished)])
    runpy.run_path(str(repository / "scripts" / "score.py"), run_name="__main__")
    assert "holds this run, finished: nothing is computed" in capsys.readouterr().err


OTHERS = [
    (["--seed", "1"], "options, seed: 0 there, 1 here"),
    (["--model", "baseline:ideal"], "method: random there, ideal here"),
    (["--tasks", "intrasentence"], "it scores intrasentence, intersentence; this one intrasentence"),
    (["--limit", "5"], "data: [0-9a-f]{16} there, [0-9a-f]{16} here"),
]


@pytest.mark.parametrize(("changes", "words"), OTHERS)
def test_another_finished_run_is_refused_and_the_difference_named(score_here, finished, changes, words):
    before = contents(finished)
    words = words if "[0-9" in words else re.escape(words)
    with pytest.raises(SystemExit, match=rf"holds another finished run \({words}"):
        score_here(*BASELINE, *changes, "--output-dir", finished)
    assert contents(finished) == before


def test_restart_sets_the_finished_run_aside_whole(score_here, finished):
    before = contents(finished)
    score_here(*BASELINE, "--seed", "1", "--output-dir", finished, "--restart")
    assert contents(finished / "run-1") == before
    assert contents(finished) != before


def test_what_is_refused_sets_nothing_aside(score_here, finished):
    files = ",".join([str(finished / "scores.json")] * 3)
    with pytest.raises(SystemExit, match="holds log-scores"):
        score_here("--sample", "--model", f"baseline:ensemble={files}", "--output-dir", finished, "--restart")
    assert not (finished / "run-1").exists()


@pytest.mark.parametrize("name", FILES)
def test_scores_of_ones_own_are_not_overwritten(score_here, tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(SystemExit, match="--restart"):
        score_here(*BASELINE, "--output-dir", tmp_path)
    assert (tmp_path / name).read_text() == "{}"


def test_files_of_two_models_never_make_one_table(score_here, finished, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    score_here(*BASELINE, "--seed", "1", "--output-dir", other)
    (other / "scores.json").replace(finished / "scores.json")
    with pytest.raises(SystemExit, match=r"is not the file that run\.json beside it was written with"):
        score_here(finished, script="evaluate_scores.py")
    with pytest.raises(SystemExit, match=r"is not the file that run\.json beside it was written with"):
        score_here(*BASELINE, "--output-dir", finished)


def test_a_run_leaves_nothing_but_its_files_and_what_is_not_its_own(score_here, tmp_path):
    (tmp_path / "progress").mkdir()
    (tmp_path / "progress" / "notes.jsonl").write_text('{"my": "notes"}\n')
    score_here(*BASELINE, "--output-dir", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*FILES, "progress"])
    assert (tmp_path / "progress" / "notes.jsonl").read_text() == '{"my": "notes"}\n'


def test_progress_that_is_a_link_is_refused_before_anything_is_computed(score_here, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "progress").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SystemExit, match="progress is a link where a run keeps its progress") as end:
        score_here("--sample", "--output-dir", tmp_path)
    assert isinstance(end.value.code, str)  # status 1
    assert not (tmp_path / "sample-model").exists()


def test_presets_that_are_compared_claim_every_folder(score_here, tmp_path):
    options = ["--sample", "--compare-presets", "defaults", "stereoset", "--output-dir", tmp_path]
    with claimed(tmp_path / "stereoset"), pytest.raises(SystemExit, match=r"Another run is writing to .*stereoset"):
        score_here(*options)
    assert not (tmp_path / "sample-model").exists()


def test_the_label_stands_in_record_and_tables(score_here, tmp_path):
    printed = score_here(*BASELINE, "--name", "a baseline", "--output-dir", tmp_path)
    assert "\na baseline, en\n" in printed
    assert json.loads((tmp_path / "run.json").read_text())["label"] == "a baseline"
    assert score_here(tmp_path, script="evaluate_scores.py").startswith("a baseline, en\n")
    assert score_here(tmp_path, "--name", "other", script="evaluate_scores.py").startswith("other, en\n")
