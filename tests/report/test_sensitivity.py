"""stereoset compare --methods: one model by several methods, within and between."""

import json
from statistics import stdev

import pytest

from stereoset_report.comparison import Named
from stereoset_report.saved import Saved
from stereoset_report.sensitivity import marks_of

METHODS = ("conditional", "joint", "gain")


@pytest.fixture
def runs(make_run):
    """Three runs of one model, and one of another."""
    same = {"model": {"name": "some/model", "family": "causal", "commit": "0123456789"}}
    of_one = [make_run(name, seed, methods={"intersentence": name}, **same) for seed, name in enumerate(METHODS)]
    return [*of_one, make_run("other", 9)]


def test_a_model_has_a_row_for_each_method_and_their_spread_below(stereoset, runs):
    printed = stereoset("compare", *runs, "--methods")
    section = printed.partition("some/model@01234567, intersentence, en, sample\n")[2].partition("\n\n")[0]
    firsts = [" ".join(line.split()[:2]) for line in section.splitlines()]
    assert firsts[:3] == [f"causal {name}" for name in METHODS]
    assert [first.split()[0] for first in firsts[3:]] == ["within", "between", "range"]
    assert "other, intersentence, en, sample" in printed


def test_the_spreads_are_of_the_numbers_above_them(stereoset, runs):
    found = json.loads(stereoset("compare", *runs, "--methods", "--format", "json"))
    (one,) = [one for one in found if one["model"].startswith("some/model")]
    values = [asked["figures"]["ss"]["value"] for asked in one["asked"]]
    spread = one["spreads"]["ss"]
    assert spread["between"] == pytest.approx(stdev(values))
    assert spread["range"] == pytest.approx(max(values) - min(values))
    widths = [asked["figures"]["ss"]["high"] - asked["figures"]["ss"]["low"] for asked in one["asked"]]
    assert spread["within"] == pytest.approx(sum(widths) / 3 / 3.92, rel=0.15)  # of about normal draws
    assert 0 <= one["agree"] <= 100


def test_a_method_agrees_with_itself(stereoset, make_run):
    same = {"model": {"name": "m", "family": "causal"}}
    words = [make_run(name, 1, **same) for name in "ab"]
    found = json.loads(stereoset("compare", *words, "--methods", "--format", "json"))
    assert [one["agree"] for one in found] == [100, 100]
    assert all(spread["between"] == 0 for one in found for spread in one["spreads"].values())


@pytest.mark.parametrize(
    ("name", "record", "mark"),
    [
        ("x", {"model": {"name": "hub/m", "commit": "c0ffee"}}, "hub/m c0ffee"),
        ("x", {"model": {"name": "best", "commit": None, "heads": {"causal": {"weights_sha256": "ab"}}}}, "ab"),
        ("x", {"model": {"name": "baseline:random", "commit": None, "heads": {}}}, "baseline:random"),
        ("BERT/pll", {}, "BERT"),
        ("BERT", {}, "BERT"),
    ],
)
def test_a_model_is_known_by_its_commit_its_weights_or_its_name(name, record, mark):
    assert marks_of(Named(name, Saved({}, None, "sample", None, record))) == {mark}
