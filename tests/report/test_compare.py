"""stereoset compare: what stands in its tables, and what it says when models were asked different questions."""

import csv
import io
import json
import re
import sys
import time
from contextlib import redirect_stdout
from dataclasses import replace

import numpy as np
import pytest

from stereoset_cli import compare as command
from stereoset_cli.compare import show
from stereoset_metric.compute_score import compare_scores, compute_score, flat_references
from stereoset_report.comparison import BY, Manner, Named, compare
from stereoset_report.formats import Cell
from stereoset_report.judged import LOGS, PROBABILITIES, judge_part, margin, scale_of
from stereoset_report.resampling import Resampling
from stereoset_report.saved import Saved, read_saved
from stereoset_scoring.sample import load_sample

STEREOSET = "predictions/stereoset/predictions_{}.json"
NINE = (
    "bert-base-cased_BertNextSentence_BertLM",
    "bert-large-cased_BertNextSentence_BertLM",
    "gpt2_ModelNSP_GPT2LM",
    "gpt2-medium_ModelNSP_GPT2LM",
    "gpt2-large_ModelNSP_GPT2LM",
    "xlnet-base-cased_ModelNSP_XLNetLM",
    "roberta-large_ModelNSP_RoBERTaLM",
    "SentimentModel",
    "EnsembleModel_",
)
NAMES = ("BERT base", "BERT large", "GPT-2", "GPT-2 medium", "GPT-2 large", "XLNet base", "RoBERTa large")
MULTILINGUAL = {
    "mBERT": "bert-base-multilingual-cased_BertLM_BertNextSentence_en",
    "BERT:tr": "dbmdz_bert-base-turkish-cased_BertLM_BertNextSentence_tr",
    "mT5:tr": "google_mt5-base_mT5LM_ModelNSP_tr",
    "GPT-2": "gpt2_GPT2LM_GPT2LM_d_en",
}


@pytest.fixture(scope="module")
def released(shared, upstream):
    """The released scores of BERT base and GPT-2."""
    files = [shared / STEREOSET.format(name) for name in (NINE[0], NINE[2])]
    return [
        Named(name, read_saved(file, data_dir=upstream)) for name, file in zip(("BERT", "GPT-2"), files, strict=True)
    ]


@pytest.fixture(scope="module")
def compared(released):
    """Both, by task, bias type and overall: {(model, task, group): Entry}."""
    found = compare(released, Manner(by=BY))
    return {(entry.model, entry.cell.task, entry.cell.group): entry for entry in found.entries}


@pytest.fixture(scope="module")
def nine(shared, upstream):
    """The nine released files by everything: (processor seconds of the command, what it prints, what it compared)."""
    names = (*NAMES, "SentimentLM", "Ensemble")
    words = [f"{name}={shared / STEREOSET.format(file)}" for name, file in zip(names, NINE, strict=True)]
    shown = []
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.setattr(sys, "argv", ["stereoset compare", *words, "--data-dir", str(upstream), "--by", *BY])
        patch.setattr(command, "show", lambda comparison, layout: shown.append(comparison) or show(comparison, layout))
        start = time.process_time()  # the command runs in this process; what else a machine computes does not count
        command.main()
    return time.process_time() - start, printed.getvalue(), *shown


# Nadeem et al. 2021, arXiv 2004.09456, Table 7
@pytest.mark.parametrize(
    ("model", "task", "group", "published"),
    [
        ("BERT", "intrasentence", "all", (58.68, 83.02, 68.61)),
        ("BERT", "intersentence", "all", (60.43, 88.53, 70.06)),
        ("GPT-2", "intrasentence", "all", (61.93, 91.11, 69.37)),
        ("GPT-2", "intersentence", "all", (52.28, 76.26, 72.79)),
    ],
)
def test_the_published_table_stands_within_its_intervals(compared, model, task, group, published):
    figures = compared[model, task, group].figures
    assert [figures[name].value for name in ("ss", "lms", "icat")] == pytest.approx(published, abs=0.005)
    assert all(figures[name].low < figures[name].value < figures[name].high for name in ("ss", "lms", "icat"))


@pytest.mark.parametrize("average", ["target", "example"])
def test_numbers_and_differences_are_the_metrics(released, average):
    entries = compare(released, Manner(average)).entries
    first, second = (model.saved.parts["intrasentence"] for model in released)
    references = flat_references(first[0])
    alone = compute_score(second[1], references, average, confidence_level=0.95)
    paired = compare_scores(second[1], first[1], references, average)
    found = next(one for one in entries if (one.model, one.cell.task) == ("GPT-2", "intrasentence"))
    for name in ("ss", "lms", "icat", "icat_macro"):
        for figure, expected in ((found.figures[name], alone), (found.against.differences[name], paired)):
            bounds = (expected[name], expected[f"{name}_low"], expected[f"{name}_high"])
            assert (figure.value, figure.low, figure.high) == pytest.approx(bounds, abs=1e-9)


def test_there_are_differences_by_bias_type_and_overall(compared):
    groups = {(task, group) for model, task, group in compared if compared[model, task, group].against}
    wanted = {"gender", "profession", "race", "religion", "all", "agreement 3", "agreement 4", "agreement 5"}
    assert groups == {(task, one) for task in ("intrasentence", "intersentence", "overall") for one in wanted}
    few = compared["GPT-2", "intrasentence", "religion"]
    assert few.terms == 3
    assert few.against.differences["ss"].p >= 0.25  # of three terms: 2 of 2**3 swaps at least


def test_flips_are_counted_one_by_one(released, compared):
    first, second = (model.saved.parts["intersentence"] for model in released)

    def preferred(rows, scores):
        votes = {}
        for row, of_row in zip(rows, scores, strict=True):
            by_label = dict(zip(row["sentences"]["gold_label"], of_row, strict=True))
            votes[row["id"]] = by_label[1] > by_label[0]
        return votes

    before, after = preferred(*first), preferred(*second)
    flips = compared["GPT-2", "intersentence", "all"].against.flips
    assert flips.to_stereotype == sum(after[one] > before[one] for one in before)
    assert flips.to_anti_stereotype == sum(after[one] < before[one] for one in before)


def test_graded_figures_are_means_over_terms_of_means_over_examples(released, compared):
    rows, scores = released[1].saved.parts["intrasentence"]
    terms = {}
    for row, of_row in zip(rows, scores, strict=True):
        by_label = dict(zip(row["sentences"]["gold_label"], of_row, strict=True))
        terms.setdefault(row["target"], []).append((by_label[1], by_label[0]))
    shares = [np.mean([100 * pro / (pro + anti) for pro, anti in some]) for some in terms.values()]
    log_odds = [np.mean([np.log(pro) - np.log(anti) for pro, anti in some]) for some in terms.values()]
    figures = compared["GPT-2", "intrasentence", "all"].figures
    assert figures["share"].value == pytest.approx(np.mean(shares))
    assert figures["log_odds"].value == pytest.approx(np.mean(log_odds))
    assert "share" not in compared["GPT-2", "overall", "all"].figures  # two tasks, two methods


@pytest.mark.parametrize(
    ("record", "scores", "scale"),
    [
        ({}, [[0.1, 0.0], [1, 0.5]], PROBABILITIES),
        ({}, [[-0.1, 0.0], [-7, -3]], LOGS),
        ({}, [[-0.1, 0.1], [-7, -3]], None),
        ({}, [[0.1, 1.1]], None),
        ({"scale": "log"}, [[0.1, 1.1]], LOGS),
        ({"scale": "probability"}, [[0.1, 0.1]], PROBABILITIES),
        ({"scale": "log", "tasks": {"intersentence": {"method": "quotient"}}}, [[0.1, 0.1]], None),
        ({"scale": "log", "model": {"family": "baseline"}}, [[0.1, 0.1]], None),
    ],
)
def test_the_scale_of_scores_is_what_the_record_says_or_their_range(record, scores, scale):
    family = record.get("model", {}).get("family")
    saved = Saved({"intersentence": ([], scores)}, None, "validation", family, record)
    assert scale_of(saved, "intersentence") == scale


@pytest.mark.parametrize(
    ("scores", "scale", "expected"),
    [
        ([0.2, 0.1], PROBABILITIES, np.log(2)),
        ([-1.0, -3.5], LOGS, 2.5),
        ([0.2, 0.0], PROBABILITIES, np.inf),
        ([0.0, 0.0], PROBABILITIES, 0.0),
        ([7.0, 5.0], None, 2.0),
    ],
)
def test_a_margin_is_in_nats(scores, scale, expected):
    assert margin(scores, ["stereotype", "anti-stereotype"], scale) == pytest.approx(expected)


def test_a_probability_of_zero_leaves_a_share_and_no_log_odds():
    rows = [
        {
            "target": str(i),
            "bias_type": "race",
            "sentences": [{"id": f"{i}{j}", "gold_label": j} for j in range(2)],
        }
        for i in range(3)
    ]
    judged = judge_part(rows, [[0.0, 0.5], [0.2, 0.2], [0.25, 0.75]], "strict", PROBABILITIES)
    whole = judged.units().whole
    assert whole["share"] == pytest.approx((100 + 50 + 75) / 3)
    assert "log_odds" not in whole
    assert judged.zeros == 1


def test_equal_questions_are_not_called_different(stereoset, make_run):
    printed = stereoset("compare", make_run("a"), make_run("b", seed=1, bias=1.0))
    assert "DIFFERENT" not in printed
    assert re.search(r"^Differences$", printed, re.M)
    assert "intrasentence, en, sample: minus a" in printed


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"methods": {"intersentence": "joint"}}, "intersentence (en): method causal joint / causal conditional."),
        ({"of_task": {"options": {"bos": True}}}, "intrasentence (en), intersentence (en): options bos=True / none."),
        ({"preset": "multilingual"}, "intrasentence (en), intersentence (en): preset multilingual / none."),
        ({"limit": 3}, "partial first 3 examples of each task / all; examples 3 / 24, of which 3 are the same"),
    ],
)
def test_different_questions_are_named_above_the_table(stereoset, make_run, other, words):
    printed = stereoset("compare", make_run("a"), make_run("b", seed=1, **other))
    (line,) = [line for line in printed.partition("\nScores\n")[0].splitlines() if line.startswith("DIFF")]
    assert line.startswith("DIFFERENT QUESTIONS: b and a, ")
    assert words in line


def test_a_table_names_different_questions_below_its_differences(stereoset, make_run):
    other = make_run("b", seed=1, methods={"intersentence": "joint"}, preset="multilingual")
    printed = stereoset("table", make_run("a"), "--compare", other)
    assert [line for line in printed.splitlines() if line.startswith("DIFF")] == [
        "DIFFERENT QUESTIONS: intersentence: method causal conditional / causal joint; preset none / multilingual.",
    ]


def test_without_differences_the_numbers_and_questions_are_the_same(make_run):
    models = [Named(name, read_saved(make_run(name, limit=limit))) for name, limit in (("a", None), ("b", 3))]
    found, plain = (compare(models, Manner(by=BY, differences=wanted)) for wanted in (True, False))
    assert [replace(entry, against=None) for entry in found.entries] == plain.entries != found.entries
    assert found.questions == plain.questions


def test_margins_of_different_methods_are_not_subtracted(make_run):
    models = [
        Named(name, read_saved(make_run(name, methods={"intersentence": method})))
        for name, method in (("a", "conditional"), ("b", "joint"), ("c", "conditional"))
    ]
    entries = compare(models).entries
    assert ["share" in entry.figures for entry in entries] == [True] * 3
    assert [entry.against and "share" in entry.against.differences for entry in entries] == [None, False, True]


def test_different_splits_are_named_and_nothing_is_subtracted(make_run):
    first, second = read_saved(make_run("a")), read_saved(make_run("b"))
    other = Saved(second.parts, None, "test", second.family, second.record)
    found = compare([Named("a", first), Named("b", other)])
    assert found.questions == ["DIFFERENT SPLITS (en): sample: a; test: b. Nothing is subtracted across them."]
    assert all(entry.against is None for entry in found.entries)


def test_partial_runs_are_stamped_and_compared_on_what_both_have(make_run):
    models = [Named(name, read_saved(make_run(name, limit=limit))) for name, limit in (("a", 9), ("b", 5))]
    found = compare(models)
    assert "PARTIAL: b, first 5 examples of each task" in found.notes
    assert [entry.against.examples for entry in found.entries if entry.against] == [5, 5]


def test_holms_correction_is_over_the_models_of_a_cell(make_run):
    models = [
        Named(name, read_saved(make_run(name, seed, bias)))
        for name, seed, bias in (("a", 1, 0), ("b", 2, 1), ("c", 3, 2))
    ]
    found = [entry.against.differences["ss"] for entry in compare(models).entries if entry.against][:2]
    small, large = sorted(found, key=lambda one: one.p)
    assert small.p_holm == pytest.approx(min(1, 2 * small.p))
    assert large.p_holm == pytest.approx(max(large.p, small.p_holm))


def test_the_baseline_may_be_named(stereoset, make_run):
    runs = [make_run(name, seed) for seed, name in enumerate(("a", "b", "c"))]
    assert "minus c" in stereoset("compare", *runs, "--baseline", "c")
    assert "choose one of a, b, c" in stereoset("compare", *runs, "--baseline", "d")


def test_a_model_is_called_what_the_command_line_says(stereoset, make_run):
    run, scores = make_run("a"), make_run("b")
    names = [
        entry["model"]
        for entry in json.loads(stereoset("compare", f"new name={run}", scores, "--format", "json"))["entries"]
    ]
    assert names == ["new name", "b"] * 2


def test_runs_that_call_themselves_the_same_are_told_apart_by_their_folders(stereoset, make_run):
    printed = stereoset("compare", make_run("x", label="same"), make_run("y", label="same"))
    assert "same (x)" in printed
    assert "same (y)" in printed


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("=x.json", "is not NAME=PATH"),
        ("a=", "is not NAME=PATH"),
        ("a:xx=x.json", "names the language 'xx': choose one of en, "),
        ("\x1b[2J=x.json", "'\\x1b[2J' is no label"),
        ("nowhere", "nor a file or folder"),
        ("a=nowhere", "No such file"),
    ],
)
def test_what_is_no_input_is_refused_in_a_line(stereoset, word, message):
    refusal = stereoset("compare", word)
    assert message in refusal
    assert "\x1b" not in refusal
    assert "\n" not in refusal


def test_the_same_thing_twice_needs_two_names(stereoset, make_run):
    run = make_run("a")
    assert "give one of them a name of its own" in stereoset("compare", f"x={run}", f"x={run}")


def test_csv_has_a_line_for_each_model_and_cell_in_full_precision(stereoset, make_run):
    words = (make_run("a"), make_run("b", 1), "--by", *BY)
    rows = list(csv.DictReader(io.StringIO(stereoset("compare", *words, "--format", "csv"))))
    entries = json.loads(stereoset("compare", *words, "--format", "json"))["entries"]
    assert len(rows) == len(entries)
    for row, entry in zip(rows, entries, strict=True):
        assert (row["model"], row["task"], row["group"]) == (
            entry["model"],
            entry["cell"]["task"],
            entry["cell"]["group"],
        )
        assert float(row["ss"]) == entry["figures"]["ss"]["value"]
        assert (row["ss_difference_p_holm"] == "") == (entry["against"] is None)


@pytest.mark.parametrize("layout", ["terminal", "markdown", "latex"])
def test_columns_that_nobody_fills_are_left_out(stereoset, make_run, layout):
    runs = [make_run("a", scale=None, of_task={"method": "quotient"}), make_run("b", 1, of_task={"method": "quotient"})]
    printed = stereoset("compare", *runs, "--format", layout).replace("\\", "")
    assert "log-odds |" not in printed
    assert not re.search(r"(share|log-odds) +[|&]?", printed.partition("ss, lms")[0])
    assert "icat" in printed


def test_pairs_have_an_ss_and_are_counted_by_example(upstream, shared):
    rows = read_saved(shared / STEREOSET.format(NINE[2]), data_dir=upstream).parts["intrasentence"][0][:50]
    pairs = [
        {
            **row,
            "target": "",
            "direction": "stereo",
            "sentences": [{"id": f"{row['id']}{i}", "gold_label": i} for i in range(2)],
        }
        for row in rows
    ]
    generator = np.random.default_rng(0)
    models = [
        Named(name, Saved({"crows_pairs": (pairs, generator.normal(-20, 2, (50, 2)).tolist())}, None, "test", None, {}))
        for name in "ab"
    ]
    first, second = compare(models, Manner(by=["task"])).entries
    assert first.figures.keys() == {"ss", "share", "log_odds"}
    assert second.against.differences["ss"].p > 0
    assert first.figures["ss"].low < first.figures["ss"].value


def test_alarms_stand_above_the_table(stereoset, make_run):
    printed = stereoset("compare", make_run("a", bias=-9.0), make_run("b"))
    assert re.search(r"^a: WARNING: lms", printed.partition("\nScores\n")[0], re.M)


def test_nine_models_by_everything_take_seconds(nine):
    seconds, printed, _ = nine
    assert seconds < 20  # 5 s where the data are prepared
    assert len(re.findall(r"^GPT-2 large +497 ", printed, re.M)) == 1  # overall, gender
    assert "no share and no log-odds" in printed


def test_the_table_of_the_metric_card_is_what_the_command_computes(nine, repository):
    entries = [entry for entry in json.loads(show(nine[2], "json"))["entries"] if entry["cell"]["group"] == "all"]
    card = (repository / "stereoset_metric" / "README.md").read_text(encoding="utf-8")
    for task in ("intrasentence", "intersentence"):
        table = card.partition(f"| {task} | lms | ss | icat |\n")[2].partition("\n\n")[0]
        found = {entry["model"]: entry["figures"] for entry in entries if entry["cell"]["task"] == task}
        for model, figures in found.items():
            shown = [
                Cell(one["value"], None, one["low"], one["high"]) for one in map(figures.get, ("lms", "ss", "icat"))
            ]
            assert f"| {model} | {' | '.join(map(str, shown))} |" in table
        assert len(table.splitlines()) == 1 + len(found) == 10


def test_languages_stand_apart_each_with_a_baseline_of_its_own(stereoset, shared, upstream):
    words = [f"{name}={shared}/predictions/multilingual/{file}.json" for name, file in MULTILINGUAL.items()]
    words += ["--resamples", "20"]
    entries = json.loads(stereoset("compare", *words, "--data-dir", upstream, "--format", "json"))["entries"]
    found = {(e["model"], e["cell"]["language"]): e["against"] and e["against"]["baseline"] for e in entries}
    assert found == {
        ("mBERT", "en"): None,
        ("GPT-2", "en"): "mBERT",
        ("BERT", "tr"): None,
        ("mT5", "tr"): "BERT",
    }
    printed = stereoset("compare", *words, "--data-dir", upstream, "--baseline", "GPT-2")
    assert "NOTE: the baseline GPT-2 has no scores of intrasentence (tr), intersentence (tr)" in printed


def test_examples_are_left_out_by_flags_of_ones_own_and_it_is_said(stereoset, make_run, tmp_path):
    flagged = [row["id"] for row in load_sample("intrasentence")[:3]]
    (tmp_path / "own.csv").write_text("id,flag\n" + "".join(f"{name},doubtful\n" for name in flagged))
    chosen = ["--flags", tmp_path / "own.csv", "--without", "doubtful"]
    runs = [make_run("a"), make_run("b", seed=1)]
    printed = json.loads(stereoset("compare", *runs, *chosen, "--format", "json"))
    counts = {(entry["cell"]["task"], entry["count"]) for entry in printed["entries"]}
    assert counts == {
        ("intrasentence", len(load_sample("intrasentence")) - 3),
        ("intersentence", len(load_sample("intersentence"))),
    }
    assert "PARTIAL: a, without doubtful" in stereoset("compare", *runs, *chosen)
    assert "'nonsense' is no flag" in stereoset("compare", *runs, "--without", "nonsense")
    items = stereoset("items", runs[0], *chosen, "--format", "jsonl").splitlines()
    assert not set(flagged) & {json.loads(line)["id"] for line in items}


def test_agreement_has_rows_of_its_own():
    rows = [{**row, "agreement": 3 + i % 3} for i, row in enumerate(load_sample("intersentence"))]
    scores = [[-float(i + j) for j in range(3)] for i in range(len(rows))]
    saved = Saved({"intersentence": (rows, scores)}, None, "sample", None, {}, "label")
    found = compare([Named("a", saved)], Manner(by=["agreement"], resampling=Resampling(resamples=20)))
    assert [entry.cell.group for entry in found.entries] == ["agreement 3", "agreement 4", "agreement 5"]
    assert sum(entry.count for entry in found.entries) == len(rows)
