"""The command line as a whole: help, the first line, progress, narrow terminals, poor encodings, closed pipes, ends."""

import io
import os
import re
import subprocess
import sys

import pytest

from stereoset_cli import arguments, ending, telling
from stereoset_metric import compute_score
from stereoset_report.formats import Cell, Table, render
from stereoset_report.results import make_results
from stereoset_report.text import render as render_results
from stereoset_report.text import render_difference
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.sample import load_sample

COMMANDS = ("score", "table", "reproduce", "methods")


@pytest.fixture(scope="module")
def stereoset(repository):
    """stereoset(*words, **environment): the finished process of a command."""

    def run(*words, **environment):
        command = [sys.executable, "-m", "stereoset_cli", *map(str, words)]
        env = os.environ | {"PYTHONPATH": str(repository)} | environment
        return subprocess.run(command, env=env, capture_output=True, check=False)

    return run


def test_help_and_the_first_line_come_before_torch(repository):
    code = "\n".join(
        [
            "import sys",
            "from stereoset_cli import score",
            "heavy = {'torch', 'transformers', 'accelerate', 'datasets'}",
            "score.score = lambda args: sys.exit(bool(heavy & set(sys.modules)))",
            "sys.argv = ['score.py', '--model', 'm', '--output-dir', 'o']",
            "score.door()",
        ]
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "loading m ...\n")


@pytest.fixture
def help_text(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["stereoset score", "--help"])
    with pytest.raises(SystemExit):
        arguments.parse_args("Score.")
    return capsys.readouterr().out


def test_help_is_grouped_by_concern(help_text):
    headings = re.findall(r"^(\S.*):$", help_text, re.M)
    assert headings == ["options", "what is scored", "how it is asked", "how it is computed", "files"]


@pytest.mark.parametrize(
    "words", ["default: intrasentence intersentence", "(default: validation)", "(default: log)", "(default: auto)"]
)
def test_help_shows_defaults(help_text, words):
    assert words in " ".join(help_text.split())


def test_help_never_shows_that_there_is_no_default(help_text):
    assert "None" not in help_text
    assert "False" not in help_text


LABELS = [
    (None, "sample model"),
    ("gpt2", "gpt2"),
    ("EleutherAI/pythia-70m", "EleutherAI/pythia-70m"),
    ("/models/bert/best/", "best"),
    ("./bert", "bert"),
    ("baseline:random", "baseline:random"),
    ("baseline:sentiment=/models/sst", "baseline:sentiment=sst"),
    ("baseline:ensemble=a.json,b/c.json,d.json", "baseline:ensemble"),
]


@pytest.mark.parametrize(("model", "label"), LABELS)
def test_a_model_is_labelled_by_its_name_and_not_by_its_path(model, label, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bert").mkdir()
    assert arguments.label_of(model) == label


@pytest.mark.parametrize("label", ["", " ", "two\nlines", "\x1b[2J"])
def test_a_label_is_one_line_of_text(monkeypatch, capsys, label):
    monkeypatch.setattr(sys, "argv", ["score.py", "--sample", "--output-dir", "o", "--name", label])
    with pytest.raises(SystemExit):
        arguments.parse_args("Score.")
    assert "is no label" in capsys.readouterr().err


def test_without_a_terminal_progress_is_a_line_every_tenth_of_the_work():
    lines = []
    count = telling.Lines(200, lines.append, lambda: 0.0).count
    for _ in range(200):
        count(1)
    assert [line.split(",")[0] for line in lines] == [f"scoring: {10 * i}%" for i in range(1, 11)]


def test_without_a_terminal_the_end_is_told_however_near_the_line_before_it():
    lines = []
    count = telling.Lines(200, lines.append, lambda: 0.0).count
    for number in (184, 14, 2):
        count(number)
    assert [line.split(",")[0] for line in lines] == ["scoring: 92%", "scoring: 100%"]


def test_slow_work_is_heard_of_every_half_minute():
    lines, times = [], iter(range(0, 10_000, 10))
    count = telling.Lines(1000, lines.append, lambda: next(times)).count
    for _ in range(9):
        count(1)
    assert lines == [
        "scoring: 0%, 3 of 1000 examples, 0:30 gone, 2:46:10 left",
        "scoring: 1%, 6 of 1000 examples, 1:00 gone, 2:45:40 left",
        "scoring: 1%, 9 of 1000 examples, 1:30 gone, 2:45:10 left",
    ]


def test_one_progress_counts_over_all_tasks(score_here, sample_model, tmp_path, monkeypatch, capsys):
    counted = []
    progress = telling.progress
    monkeypatch.setattr("stereoset_cli.score.progress", lambda total: counted.append(total) or progress(total))
    monkeypatch.setattr("stereoset_cli.telling.note", lambda line: counted.append(line))
    score_here("--sample", "--model", sample_model, "--max-tokens", "256", "--output-dir", tmp_path)
    assert len(counted) == 1


@pytest.fixture(scope="module")
def results():
    tasks = ("intrasentence", "intersentence")
    rows = {task: load_sample(task) for task in tasks}
    return make_results({task: (some, [[-1.0, -2.0, -3.0]] * len(some)) for task, some in rows.items()})


@pytest.mark.parametrize("width", [60, 72, 80, 105])
def test_a_table_fits_its_terminal_by_whole_columns(results, width):
    lines = render_results(results, "model", width=width, alarms=[]).splitlines()
    assert max(map(len, lines)) <= width
    wide = render_results(results, "model", alarms=[]).splitlines()
    # Every number of the wide table stands in the narrow one, in the row of its task and bias type.
    narrow = [line.split() for line in lines]
    for row in map(str.split, wide):
        if len(row) == 8:
            parts = [cells[2:] for cells in narrow if cells[:2] == row[:2]]
            assert [cell for cells in parts for cell in cells] == row[2:]


@pytest.mark.parametrize("width", [None, 106, 200])
def test_with_room_enough_a_table_is_as_wide_as_ever(results, width):
    lines = render_results(results, "model", width=width, alarms=[]).splitlines()
    assert max(map(len, lines)) == 106


def test_differences_fit_too(results):
    assert max(map(len, render_difference(results, results, "one", "other", width=60).splitlines())) <= 60


def test_tables_of_the_papers_wrap_by_whole_columns():
    columns = [(group, name) for group in ("gender", "race") for name in ("lms", "ss", "icat")]
    row = ["bert-base-cased", *(Cell(float(i)) for i in range(6))]
    lines = render(Table("Title", ["model"], columns, {"Test set": [row]}), "terminal", 40).splitlines()
    assert max(map(len, lines)) <= 40
    numbers = [cell for line in lines if line.startswith("bert") for cell in line.split()[1:]]
    assert numbers == [f"{i}.00" for i in range(6)]


def test_tables_of_the_papers_are_as_ever_where_there_is_room():
    table = Table("Title", ["model"], [("", "lms")], {"": [["bert", Cell(1.0)]]})
    assert render(table, "terminal", 40) == render(table, "terminal") == "Title\n\nmodel   lms\n\nbert   1.00"


def raising(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize("kind", [Refusal, compute_score.Refusal, OSError, MemoryError])
def test_a_refusal_is_one_line(kind):
    with pytest.raises(SystemExit, match=r": no$"):
        ending.run(raising(kind("no")))


@pytest.mark.parametrize("kind", [ValueError, RuntimeError, KeyError])
def test_any_other_error_keeps_its_traceback(kind):
    with pytest.raises(kind):
        ending.run(raising(kind("a bug")))


def test_what_the_terminal_cannot_show_is_spelled_out(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    ending.run(lambda: print("Öztürk …"))
    assert stream.buffer.getvalue() == rb"\xd6zt\xfcrk \u2026" + b"\n"


@pytest.mark.parametrize("words", [["--help"], ["methods"], ["score", "--help"]])
@pytest.mark.parametrize("environment", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}], ids=str)
def test_commands_end_well_where_only_ascii_is_shown(stereoset, words, environment):
    done = stereoset(*words, **environment)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("words", ["--help", "methods", "score --help", "score --list-methods"])
def test_a_pipe_that_is_closed_ends_a_command_without_a_word(repository, words):
    command = f"{sys.executable} -m stereoset_cli {words} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], cwd=repository, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


UNREAD = """
import os, runpy
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
runpy.run_module("stereoset_cli", run_name="__main__", alter_sys=True)
"""


def test_a_run_whose_lines_nobody_reads_writes_its_files(warm_python, tmp_path):
    words = ["score", "--sample", "--model", "baseline:random", "--output-dir", tmp_path]
    done = warm_python.run([sys.executable, "-c", UNREAD, *words])
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run.json").is_file()
