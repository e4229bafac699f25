"""stereoset items: every example, and the target terms."""

import csv
import io
import json

import pytest

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_report.comparison import Manner, Named
from stereoset_report.items import Wanted, make_items, make_terms, select
from stereoset_report.items_text import as_json_lines, as_text, items_as_csv, terms_table
from stereoset_report.saved import Saved, read_saved

LABELS = ("anti-stereotype", "stereotype", "unrelated")


def row(i, target="baker", bias_type="profession", texts=LABELS):
    options = [{"id": f"{i}-{k}", "gold_label": k, "sentence": text} for k, text in enumerate(texts)]
    return {"id": f"e{i}", "target": target, "bias_type": bias_type, "context": "A BLANK.", "sentences": options}


def named(name, *scores, rows=None, scale="log"):
    rows = rows or [row(i) for i in range(len(scores))]
    record = {"scale": scale, "tasks": {"intrasentence": {"method": "likelihood"}}}
    return Named(name, Saved({"intrasentence": (rows, list(scores))}, None, "validation", "causal", record))


@pytest.mark.parametrize(
    ("scores", "preferred", "side", "margin", "related", "flags"),
    [
        ([-2.0, -1.0, -5.0], "stereotype", "stereotype", 1.0, 4.0, []),
        ([-1.0, -3.0, -2.0], "anti-stereotype", "anti-stereotype", -2.0, 1.0, []),
        ([-2.0, -3.0, -1.0], "unrelated", "anti-stereotype", -1.0, -1.0, ["unrelated"]),
        ([-1.0, -1.0, -2.0], "tie", "tie", 0.0, 1.0, ["tie"]),
        ([-1.0, -2.0, -2.0], "anti-stereotype", "anti-stereotype", -1.0, 1.0, ["tie"]),
    ],
)
def test_an_item_says_what_is_preferred_and_by_how_much(scores, preferred, side, margin, related, flags):
    (item,) = make_items(named("a", scores))
    found = item.verdict
    assert (found.preferred, found.side, found.margin, found.related_margin) == (preferred, side, margin, related)
    assert item.flags == flags


def test_options_of_one_text_that_tie_are_flagged():
    (item,) = make_items(named("a", [-1.0, -1.0, -2.0], rows=[row(0, texts=("Same.", "same. ", "x"))]))
    assert item.flags == ["tie", "equal"]


def test_margins_of_probabilities_are_in_nats_too():
    (item,) = make_items(named("a", [0.1, 0.2, 0.05], scale="probability"))
    assert item.verdict.margin == pytest.approx(0.6931, abs=1e-4)
    assert item.verdict.related_margin == pytest.approx(1.3863, abs=1e-4)


ONE = ([-2.0, -1.0, -5.0], [-1.0, -4.0, -5.0], [-1.0, -1.0, -5.0])
OTHER = ([-1.0, -3.0, -5.0], [-1.0, -2.0, -5.0], [-1.0, -2.0, -5.0])


def test_flips_are_against_the_other_model():
    items = make_items(named("a", *ONE), named("b", *OTHER))
    assert ["flip" in item.flags for item in items] == [True, False, True]
    assert [item.shift for item in items] == [3.0, -2.0, 1.0]


@pytest.mark.parametrize(
    ("wanted", "sort", "reverse", "ids"),
    [
        (Wanted(), None, False, ["e0", "e1", "e2"]),
        (Wanted(), None, True, ["e2", "e1", "e0"]),
        (Wanted(), "margin", False, ["e0", "e2", "e1"]),
        (Wanted(), "size", False, ["e1", "e0", "e2"]),
        (Wanted(), "shift", False, ["e0", "e1", "e2"]),
        (Wanted(flags=["flip"]), "shift", True, ["e2", "e0"]),
        (Wanted(flags=["tie", "unrelated"]), None, False, ["e2"]),
        (Wanted(margins=(0, 2)), None, False, ["e0", "e2"]),
        (Wanted(bias_types=["race"]), None, False, []),
        (Wanted(targets=["baker"], tasks=["intrasentence"], languages=["en"]), "target", False, ["e0", "e1", "e2"]),
    ],
)
def test_items_are_filtered_and_sorted(wanted, sort, reverse, ids):
    items = make_items(named("a", *ONE), named("b", *OTHER))
    assert [item.id for item in select(items, wanted, sort, reverse)] == ids


def test_what_a_terminal_would_obey_is_spelled_out():
    hostile = "\x1b[2J\u202e<script>" + "x" * 10_000
    rows = [row(0, hostile, hostile, (hostile, "b", "c"))]
    items = make_items(named("a", [-1.0, -2.0, -3.0], rows=rows))
    for text in (as_text(items), items_as_csv(items), as_json_lines(items)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "<script>" in text
    assert len(as_json_lines(items).splitlines()) == 1
    (line,) = list(csv.DictReader(io.StringIO(items_as_csv(items))))
    assert line["text_anti-stereotype"].startswith(r"\x1b[2J\u202e<script>")


def test_terms_have_the_metrics_numbers_from_the_most_stereotyped_on(make_run):
    run = Named("a", read_saved(make_run("a")))
    terms = [term for term in make_terms(run, None, Manner()) if term.task == "intrasentence"]
    rows, scores = run.saved.parts["intrasentence"]
    expected = compute_score(scores, flat_references(rows), breakdown="target", confidence_level=0.95)["target"]
    assert {term.target: term.count for term in terms} == {name: numbers["count"] for name, numbers in expected.items()}
    assert [term.figures["ss"].value for term in terms] == sorted((n["ss"] for n in expected.values()), reverse=True)
    for term in terms:
        found, numbers = term.figures["ss"], expected[term.target]
        assert (found.value, found.low, found.high) == (numbers["ss"], numbers["ss_low"], numbers["ss_high"])


def test_terms_are_set_against_another_model():
    rows = [row(i, "baker" if i < 3 else "nurse") for i in range(6)]
    found = make_terms(named("a", *ONE, *ONE, rows=rows), named("b", *OTHER, *ONE, rows=rows), Manner())
    by_name = {term.target: term.against for term in found}
    assert by_name["nurse"].flips.to_stereotype == 0
    assert by_name["baker"].flips.to_stereotype == 1
    assert by_name["baker"].differences["ss"].value == pytest.approx(100 / 3)
    assert by_name["baker"].differences["ss"].p_holm == 1
    assert list(terms_table(found).sections) == ["intrasentence, en, validation: difference minus b"]


def test_the_command_shows_examples_in_three_formats(stereoset, make_run):
    words = ("items", make_run("a"), make_run("b", 1), "--sort", "size", "--limit", "7")
    lines = [json.loads(line) for line in stereoset(*words, "--format", "jsonl").splitlines()]
    rows = list(csv.DictReader(io.StringIO(stereoset(*words, "--format", "csv"))))
    text = stereoset(*words)
    assert len(lines) == len(rows) == 7
    assert text.count("\na: prefers") + text.count("  a: prefers") == 7
    for line, record in zip(lines, rows, strict=True):
        assert record["id"] == line["id"]
        assert float(record["margin"]) == line["verdict"]["margin"]
        assert float(record["other_margin"]) == line["other"]["margin"]
        assert all(sentence in text for sentence in line["texts"].values())
    sizes = [abs(line["verdict"]["margin"]) for line in lines]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("layout", ["terminal", "csv", "jsonl"])
def test_the_command_shows_terms(stereoset, make_run, layout):
    printed = stereoset("items", make_run("a"), "--by", "target", "--tasks", "intersentence", "--format", layout)
    assert "intersentence" in printed
    assert "intrasentence" not in printed
    assert len(printed.splitlines()) > 5


@pytest.mark.parametrize("words", [("--flag", "flip"), ("--sort", "shift")])
def test_flips_need_another_model(stereoset, make_run, words):
    assert "give a second run or prediction file" in stereoset("items", make_run("a"), *words)


def test_models_without_a_task_in_common_have_no_flips(stereoset, make_run):
    runs = [make_run(task, methods={task: "likelihood"}) for task in ("intrasentence", "intersentence")]
    assert "score no task in common" in stereoset("items", *runs)


def test_texts_of_the_published_data_come_with_their_context(stereoset, shared, upstream):
    path = shared / "predictions/stereoset/predictions_gpt2_ModelNSP_GPT2LM.json"
    words = (
        "items",
        path,
        "--data-dir",
        upstream,
        "--tasks",
        "intersentence",
        "--target",
        "Ethiopia",
        "--format",
        "jsonl",
    )
    found = [json.loads(line) for line in stereoset(*words).splitlines()]
    assert found
    assert all(one["context"] and set(one["texts"]) == set(LABELS) for one in found)
    assert {one["target"] for one in found} == {"Ethiopia"}
