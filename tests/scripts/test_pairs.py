"""Pairs in the launch script and in the report, presets side by side, options and the table of methods."""

import json
import re

import pytest

import stereoset_report
from stereoset_cli import arguments
from stereoset_scoring.methods.registry import METHODS, methods_table

TASKS = ("crows_pairs", "intrasentence_pairs")


@pytest.fixture
def bert(shared):
    """The arguments that score the first three examples with the tiny BERT."""
    return ["--model", shared / "oracles" / "models" / "bert", "--data-dir", shared / "upstream", "--limit", "3"]


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def pair(direction, bias_type):
    labels = ("stereotype", "anti-stereotype")
    sentences = [{"id": f"{direction}-{label}", "gold_label": label} for label in labels]
    return {"target": "", "bias_type": bias_type, "direction": direction, "sentences": sentences}


PAIRS = [pair("stereo", "age"), pair("stereo", "race"), pair("stereo", "age"), pair("antistereo", "age")]
# Preferred with confidence 50, 75 and none; the other with 20 %.
SCORES = [[-1.0, -2.0], [-1.0, -4.0], [-3.0, -3.0], [-5.0, -4.0]]


def test_pairs_are_counted_by_bias_type_and_direction_in_one_pool():
    numbers = stereoset_report.make_results({"crows_pairs": (PAIRS, SCORES)})["en"]["crows_pairs"]
    found = {group: (one["ss"], one["count"], one["ties"]) for group, one in numbers.items()}
    assert found == {
        "age": (pytest.approx(100 / 3), 3, 1),
        "race": (100, 1, 0),
        "stereo": (100, 2, 0),
        "antistereo": (0, 1, 0),
        "all": (50, 4, 1),
    }
    confidence = numbers["all"]["confidence"]
    assert confidence["stereotype"] == pytest.approx({"count": 2, "low": 56.25, "median": 62.5, "high": 68.75})
    assert confidence["anti-stereotype"] == pytest.approx({"count": 1, "low": 20, "median": 20, "high": 20})


def test_a_task_that_one_of_two_results_lacks_has_no_difference():
    report = stereoset_report
    both = report.make_results({"crows_pairs": (PAIRS, SCORES), "intrasentence_pairs": (PAIRS, SCORES)})
    one = report.make_results({"intrasentence_pairs": (PAIRS, SCORES)})
    for first, second in ((both, one), (one, both)):
        lines = report.render_difference(first, second, "one", "other").strip().splitlines()
        assert [line.split()[0] for line in lines[2:]] == ["intrasentence_pairs"]


def test_confidences_stand_under_the_block_of_pairs():
    report = stereoset_report
    lines = report.render(report.make_results({"crows_pairs": (PAIRS, SCORES)}), "x").splitlines()
    assert lines[-2:] == [
        "  prefers the stereotype 2 times, with confidence 62.50 % (median; quartiles 56.25 to 68.75)",
        "  prefers the anti-stereotype 1 times, with confidence 20.00 % (median; quartiles 20.00 to 20.00)",
    ]
    groups = [line.split()[1] for line in lines if line.startswith("crows_pairs")]
    assert groups == ["age", "race", "antistereo", "stereo", "all"]


def test_a_sentence_that_is_never_preferred_is_said_to_be():
    report = stereoset_report
    table = report.render(report.make_results({"intrasentence_pairs": (PAIRS[:2], SCORES[:2])}), "x")
    assert table.splitlines()[-1] == "  never prefers the anti-stereotype"


def test_a_difference_is_the_second_less_the_first():
    report = stereoset_report
    first, second = (report.make_results({"crows_pairs": (PAIRS, some)}) for some in (SCORES, [*SCORES[:3], [-4, -5]]))
    lines = report.render_difference(first, second, "one", "other").strip().splitlines()
    assert lines[0] == "other minus one, percentage points"
    assert [line.split() for line in lines[1:]] == [
        ["task", "language", "ss", "lms", "icat"],
        ["crows_pairs", "en", "+25.00", "-", "-"],
    ]


def test_pairs_of_both_kinds_are_scored(score_here, bert, tmp_path):
    printed = score_here(*bert, "--tasks", *TASKS, "--output-dir", tmp_path)
    scores = read(tmp_path, "scores.json")
    assert {task: len(scores[task]) for task in TASKS} == dict.fromkeys(TASKS, 6)
    record = read(tmp_path, "run.json")
    assert [record["tasks"][task]["method"] for task in TASKS] == ["pseudo_likelihood"] * 2
    assert set(read(tmp_path, "results.json")["results"]["en"]) == set(TASKS)
    assert len(re.findall(r"prefers the (?:anti-)?stereotype", printed)) == 4
    assert "overall" not in printed
    assert "WARNING" not in printed


@pytest.mark.parametrize(("option", "decimals"), [("decimals=0", 0), ("decimals=2", 2), ("decimals=none", None)])
def test_an_option_reaches_the_method_and_the_record(score_here, bert, tmp_path, option, decimals):
    score_here(*bert, "--tasks", "crows_pairs", "--option", option, "--output-dir", tmp_path)
    values = [entry["score"] for entry in read(tmp_path, "scores.json")["crows_pairs"]]
    assert (values == [round(value, 2) for value in values]) == (decimals is not None)
    options = read(tmp_path, "run.json")["tasks"]["crows_pairs"]["options"]
    assert options == ({} if decimals is None else {"decimals": decimals})


OPTIONS = {
    "decimals=3": 3,
    "decimals=none": None,
    "lowercase=true": True,
    "sentence_space=False": False,
    "text=ids": "ids",
    "bos=none": "none",
    "bos_text=7": "7",
    "bos_text=x=y": "x=y",
    "unknown=": "",
}


@pytest.mark.parametrize(("word", "value"), OPTIONS.items())
def test_an_option_is_read_by_the_type_that_its_methods_declare(word, value):
    assert arguments.options([word]) == {word.partition("=")[0]: value}


def test_no_options_are_none():
    assert arguments.options(None) == {}


@pytest.mark.parametrize("task", TASKS)
def test_a_method_can_be_chosen_for_one_kind_of_pairs(score_here, bert, tmp_path, task):
    score_here(*bert, "--tasks", task, "--method", f"{task}=pll", "--output-dir", tmp_path)
    assert read(tmp_path, "run.json")["tasks"][task]["method"] == "pll"


def test_two_kinds_of_pairs_cannot_have_two_methods(score_here, bert, tmp_path):
    methods = ["crows_pairs=pll", "intrasentence_pairs=aul"]
    with pytest.raises(SystemExit, match="gives pairs two methods"):
        score_here(*bert, "--tasks", *TASKS, "--method", *methods, "--output-dir", tmp_path)


def test_presets_side_by_side_are_two_runs_and_their_difference(score_here, bert, tmp_path):
    presets = ["crows-pairs", "bias-bench"]
    printed = score_here(*bert, "--tasks", "crows_pairs", "--compare-presets", *presets, "--output-dir", tmp_path)
    found = [read(tmp_path / preset, "run.json")["tasks"]["crows_pairs"]["method"] for preset in presets]
    assert found == ["pseudo_likelihood", "differing_tokens"]
    first, second = (
        read(tmp_path / one, "results.json")["results"]["en"]["crows_pairs"]["all"]["ss"] for one in presets
    )
    last = printed.strip().splitlines()[-3:]
    assert last[0] == "bias-bench minus crows-pairs, percentage points"
    assert last[2].split() == ["crows_pairs", "en", f"{second - first:+.2f}", "-", "-"]


def test_defaults_can_be_compared_with_a_preset(score_here, bert, tmp_path):
    score_here(*bert, "--compare-presets", "defaults", "stereoset", "--output-dir", tmp_path)
    assert [read(tmp_path / one, "run.json")["preset"] for one in ("defaults", "stereoset")] == [None, "stereoset"]


def test_the_list_of_methods_is_the_table_and_nothing_else(score_here):
    printed = score_here("--list-methods")
    assert printed.strip() == methods_table()
    assert printed.count("\n") == 2 + sum(map(len, METHODS.values()))


REFUSED = [
    (["--tasks", "crows_pairs", "--option", "decimal=3"], "option 'decimal': choose one of"),
    (["--tasks", "crows_pairs", "--option", "decimals=few"], "Option decimals cannot be 'few'"),
    (
        ["--tasks", "crows_pairs", "--preset", "stereoset"],
        "Preset 'stereoset' has no method for a masked model on pairs",
    ),
    (
        ["--tasks", "crows_pairs", "--method", "likelihood"],
        "Method 'likelihood' is not defined for a masked model on pairs",
    ),
    (["--compare-presets", "defaults", "crows-pairs"], "Preset 'crows-pairs' has no method"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_what_has_no_meaning_is_refused_in_a_sentence(score_here, bert, tmp_path, options, words):
    with pytest.raises(SystemExit, match=re.escape(words)):
        score_here(*bert, *options, "--output-dir", tmp_path)


USAGE = [
    ["--sample", "--tasks", "crows_pairs"],
    ["--model", "x", "--tasks", "crows_pairs", "--languages", "de"],
    ["--model", "x", "--compare-presets", "defaults"],
    ["--model", "x", "--compare-presets", "defaults", "none"],
    ["--model", "x", "--tasks", "pairs"],
]


@pytest.mark.parametrize("options", USAGE, ids=" ".join)
def test_a_command_line_that_makes_no_sense_is_refused(score_here, tmp_path, options):
    with pytest.raises(SystemExit) as refusal:
        score_here(*options, "--output-dir", tmp_path)
    assert refusal.value.code == 2


def test_pairs_that_a_method_cannot_score_are_left_out_and_listed_on_request(score_here, bert, tmp_path):
    # The pair 43 differs by an insertion only: one of its sentences has no token of its own.
    options = [*bert[:4], "--limit", "45", "--tasks", "crows_pairs", "--preset", "bias-bench", "--output-dir", tmp_path]
    with pytest.raises(SystemExit, match=re.escape("'43:more'")):
        score_here(*options)
    table = score_here(*options, "--keep-going")
    assert "PARTIAL: first 45 examples of each task, 1 of crows_pairs left out" in table
    assert list(read(tmp_path, "run.json")["left_out"]["crows_pairs"]) == ["43"]
    assert {entry["id"].partition(":")[0] for entry in read(tmp_path, "scores.json")["crows_pairs"]}.isdisjoint({"43"})
