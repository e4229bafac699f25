"""The arithmetic: tables of scores and percentages worked out by hand, models whose result is known, and laws."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stereoset_metric.compute_score import (
    LABELS,
    compare_scores,
    compute_score,
    flat_reference,
    flat_references,
    icat,
)

ANTI, PRO, OFF = LABELS
INF = math.inf
FIGURES = ("ss", "lms", "icat", "icat_macro")


def reference(target="baker", bias_type="profession", labels=(PRO, ANTI, OFF)):
    return {"target": target, "bias_type": bias_type, "gold_label": list(labels)}


def references(*targets, **fields):
    return [reference(target, **fields) for target in targets]


def figures(result, *names):
    return tuple(result[name] for name in names or FIGURES)


# Scores of stereotype, anti-stereotype, unrelated, one example: ss, lms, number of ties, each under strict and half.
# Source of "strict": evaluation.py of StereoSet (pro > anti; pro > unrelated and anti > unrelated, each for itself).
ONE_EXAMPLE = [
    ([3, 2, 1], (100, 100), (100, 100), 0),
    ([2, 3, 1], (0, 100), (0, 100), 0),
    ([3, 1, 2], (100, 50), (100, 50), 0),
    ([1, 3, 2], (0, 50), (0, 50), 0),
    ([2, 1, 3], (100, 0), (100, 0), 0),
    ([1, 2, 3], (0, 0), (0, 0), 0),
    ([2, 2, 1], (0, 100), (50, 100), 1),  # no preference between the two related options
    ([2, 1, 1], (100, 50), (100, 75), 1),  # the anti-stereotype ties with the unrelated option
    ([1, 2, 1], (0, 50), (0, 75), 1),
    ([1, 1, 2], (0, 0), (50, 0), 1),
    ([1, 1, 1], (0, 0), (50, 50), 1),  # three equal scores are one tie: examples are counted, not pairs
    ([-INF, -INF, -INF], (0, 0), (50, 50), 1),  # what underflowed probabilities leave
    ([INF, 0, -INF], (100, 100), (100, 100), 0),
    ([0, -INF, -5], (100, 50), (100, 50), 0),
    ([0.0, -0.0, -1], (0, 100), (50, 100), 1),
]


@pytest.mark.parametrize(("scores", "strict", "half", "ties"), ONE_EXAMPLE)
def test_one_example(scores, strict, half, ties):
    for rule, expected in (("strict", strict), ("half", half)):
        result = compute_score([scores], [reference()], ties=rule)
        assert (result["ss"], result["lms"], result["count"], result["ties"]) == (*expected, 1, ties)
        assert result["icat"] == icat(result["lms"], result["ss"])


# Three examples of one term won by the stereotype, one of another won by the anti-stereotype against a lms of 50.
UNEVEN = ([[2, 1, 0]] * 3 + [[0, 2, 1]], references("baker", "baker", "baker", "tailor"))


def test_the_mean_over_terms_weighs_terms_alike():
    assert figures(compute_score(*UNEVEN)) == (50, 75, 75, 0)


def test_the_mean_over_examples_weighs_examples_alike():
    assert figures(compute_score(*UNEVEN, average="example")) == (75, 87.5, 87.5 * 25 / 50, 0)


@pytest.mark.parametrize(
    ("lms", "ss", "expected"), [(100, 50, 100), (100, 0, 0), (100, 100, 0), (80, 60, 64), (80, 40, 64), (0, 50, 0)]
)
def test_icat(lms, ss, expected):
    assert icat(lms, ss) == expected


def test_terms_are_told_apart_by_case():
    assert compute_score([[2, 1, 0]] * 2, references("Baker", "baker"), signature=True)["signature"] == (
        "average:target|ties:strict|n:2|terms:2|version:1.0.0"
    )


def many_references(terms=40, examples=10):
    return [reference(f"term {term}") for term in range(terms) for _ in range(examples)]


def test_the_ideal_model():
    scores = [[2, 1, 0] if i % 2 else [1, 2, 0] for i in range(400)]
    assert figures(compute_score(scores, many_references())) == (50, 100, 100, 100)


@pytest.mark.parametrize(("scores", "ss"), [([2, 1, 0], 100), ([1, 2, 0], 0)])
def test_a_fully_biased_model_either_way(scores, ss):
    assert figures(compute_score([scores] * 400, many_references())) == (ss, 100, 0, 0)


def test_random_scores_are_at_chance():
    draw = random.Random(0)
    scores = [[draw.random() for _ in range(3)] for _ in range(20_000)]
    result = compute_score(scores, many_references(200, 100))
    assert figures(result, "ss", "lms", "icat") == pytest.approx((50, 50, 50), abs=1.5)


def test_pairs_have_a_stereotype_score_only():
    pairs = references("", "", "", "", labels=(PRO, ANTI))
    result = compute_score([[2, 1], [1, 2], [0, 0], [5, 4]], pairs, confidence_level=0.9)
    assert figures(result) == (50, None, None, None)  # the neutral pair counts in the denominator (Nangia et al. 2020)
    assert result["lms_low"] is None
    assert result["ss_low"] < 50 < result["ss_high"]


BROKEN = [
    ([[1, 2, 3]], [], "1 predictions for 0 references"),
    ([[1, 2, 3]] * 2, references("a"), "2 predictions for 1 references"),
    ([], [], "no example to judge"),
    ([[1, 2]], references("a"), r"Example 0 \(target 'a'\) has 2 scores for 3 options"),
    ([[1, 2, 3], [1, 2, 3, 4]], references("a", "b"), r"Example 1 \(target 'b'\) has 4 scores for 3 options"),
    ([[1, math.nan, 3]], references("a"), r"Example 0 \(target 'a'\) has the score nan"),
    ([[1, 2, 3], [1, None, 3]], references("a", "b"), r"Example 1 \(target 'b'\) has the score None"),
    ([["1", 2, 3]], references("a"), "has the score '1'"),
    ([[1, [2], 3]], references("a"), r"has the score \[2\]"),
    ([3.0], references("a"), "has the prediction 3.0"),
    (["123"], references("a"), "has the prediction '123'"),
    (
        [[1, 2, 3]],
        references("a", labels=(PRO, PRO, OFF)),
        r"\(target 'a'\) has the gold labels stereotype, stereotype",
    ),
    ([[1, 2]], references("a", labels=(PRO, OFF)), "has the gold labels stereotype, unrelated"),
    ([[1]], references("a", labels=(PRO,)), "has the gold labels stereotype:"),
    ([[]], references("a", labels=()), "has the gold labels none"),
    ([[1, 2, 3, 4]], references("a", labels=(PRO, ANTI, OFF, OFF)), "unrelated, unrelated"),
    ([[1, 2, 3]], references("a", labels=(PRO, ANTI, "related")), "has the gold label 'related'"),
    ([[1, 2, 3]], references("a", labels=(0, 1, 3)), "has the gold label 3"),
    ([[1, 2, 3]], references("a", labels=(0, 1, -1)), "has the gold label -1"),  # how `datasets` writes "no label"
    ([[1, 2, 3]], references("a", labels=(0, 1, None)), "has the gold label None"),
    (
        [[1, 2, 3]],
        [{"target": "a", "bias_type": "b", "gold_label": PRO}],
        "has the gold label 'stereotype': give a list",
    ),
    ([[1, 2, 3]], [{"target": "a", "bias_type": "b"}], r"Example 0 \(target 'a'\) has no gold_label"),
    ([[1, 2, 3]], [{"target": "a", "gold_label": [0, 1, 2]}], "has no bias_type"),
    ([[1, 2, 3]], [{"bias_type": "a", "gold_label": [0, 1, 2]}], "has no target"),
    ([[1, 2, 3], [1, 2]], [reference(), reference(labels=(PRO, ANTI))], "Example 1 has no unrelated option"),
]


@pytest.mark.parametrize(("predictions", "golds", "message"), BROKEN)
def test_what_cannot_be_judged_is_refused_by_name(predictions, golds, message):
    with pytest.raises(ValueError, match=message):
        compute_score(predictions, golds)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": "macro"}, "average is 'macro': choose one of target, example"),
        ({"ties": "random"}, "ties is 'random': choose one of strict, half"),
        ({"breakdown": "language"}, "breakdown is 'language': choose one of bias_type, target"),
        ({"breakdown": ["target", "id"]}, "breakdown is 'id'"),
        ({"confidence_level": 95}, "confidence_level is 95: give a share"),
        ({"confidence_level": 0}, "confidence_level is 0"),
        ({"confidence_level": 1.0}, "confidence_level is 1.0"),
        ({"confidence_level": math.nan}, "confidence_level is nan"),
        ({"confidence_level": 0.9, "n_resamples": 0}, "n_resamples is 0"),
    ],
)
def test_unknown_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        compute_score([[1, 2, 3]], [reference()], **options)


SENTENCES = {
    "a row of the data set": {"sentences": {"id": ["x", "y", "z"], "gold_label": [1, 0, 2]}},
    "the same, by name": {"sentences": {"gold_label": [PRO, ANTI, OFF]}},
    "StereoSet's JSON": {"sentences": [{"gold_label": PRO, "id": "x"}, {"gold_label": ANTI}, {"gold_label": OFF}]},
    "flat, names": {"gold_label": [PRO, ANTI, OFF]},
    "flat, numpy": {"gold_label": np.array([1, 0, 2])},
    "with fields that nobody asked for": {"gold_label": (1, 0, 2), "context": "…", "id": "e"},
}


@pytest.mark.parametrize("layout", SENTENCES)
def test_every_layout_of_references_says_the_same(layout):
    row = {"target": "baker", "bias_type": "profession", **SENTENCES[layout]}
    assert compute_score([[3, 1, 2]], [flat_reference(row)]) == compute_score([[3, 1, 2]], [reference()])


def test_a_mapping_of_columns_is_a_list_of_rows():
    columns = {
        "target": ["a", "b"],
        "bias_type": ["c", "c"],
        "sentences": [{"gold_label": [0, 1]}] * 2,
        "id": ["1", "2"],
    }
    assert flat_references(columns) == references("a", "b", bias_type="c", labels=(0, 1))


@pytest.mark.parametrize("row", [reference(), [1, 2, 3], "baker"])
def test_what_is_no_list_of_rows_is_refused(row):
    with pytest.raises(ValueError, match="give"):
        flat_references(row)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int64, int])
def test_numbers_of_any_kind_are_scores(kind):
    assert compute_score([[kind(3), kind(2), kind(1)]], [reference()])["lms"] == 100
    assert compute_score(np.array([[3, 2, 1]], dtype=kind), [reference()])["lms"] == 100


def test_breakdowns_hold_the_same_figures_for_each_value():
    golds = [reference("baker"), reference("tailor"), reference("sofa", "furniture")]
    scores = [[2, 1, 0], [1, 2, 0], [1, 1, 1]]
    result = compute_score(scores, golds, breakdown=["bias_type", "target"], confidence_level=0.9, n_resamples=20)
    assert list(result)[:6] == [*FIGURES, "count", "ties"]
    assert result["bias_type"].keys() == {"profession", "furniture"}
    assert result["target"].keys() == {"baker", "tailor", "sofa"}
    alone = compute_score(scores[:2], golds[:2], confidence_level=0.9, n_resamples=20)
    assert result["bias_type"]["profession"] == alone
    assert sum(part["count"] for part in result["target"].values()) == result["count"] == 3
    assert compute_score(scores, golds, breakdown="target").keys() == {*FIGURES, "count", "ties", "target"}


def test_the_signature_says_what_was_resampled():
    result = compute_score(*UNEVEN, confidence_level=0.9, n_resamples=50, seed=7, average="example", signature=True)
    assert result["signature"] == (
        "average:example|ties:strict|n:4|terms:2|confidence:0.9|resamples:50|seed:7|version:1.0.0"
    )


def noisy(seed, terms=30, examples=8):
    """Scores whose terms lean differently: each term has its own share of stereotypes, 60 percent in the mean."""
    draw = random.Random(seed)
    scores = []
    for _ in range(terms):
        share = draw.betavariate(3, 2)
        scores += [[2, 1, 0] if draw.random() < share else [1, 2, 0] for _ in range(examples)]
    return scores, many_references(terms, examples)


def test_intervals_depend_on_the_seed_and_nothing_else():
    scores, golds = noisy(1)
    once = compute_score(scores, golds, confidence_level=0.95, seed=3)
    order = random.Random(0).sample(range(len(scores)), len(scores))
    shuffled = compute_score([scores[i] for i in order], [golds[i] for i in order], confidence_level=0.95, seed=3)
    assert once == pytest.approx(shuffled)
    assert once != compute_score(scores, golds, confidence_level=0.95, seed=4)


def test_intervals_cover_the_truth_as_often_as_they_say():
    truth, runs = 60, 120
    found = [compute_score(*noisy(seed), confidence_level=0.9, n_resamples=200) for seed in range(runs)]
    covered = sum(one["ss_low"] <= truth <= one["ss_high"] for one in found) / runs
    assert 0.80 <= covered <= 0.97  # 0.9, give or take three standard errors


def test_intervals_agree_with_a_bootstrap_in_numpy():
    scores, golds = noisy(5)
    per_term = np.array([100 * (pro > anti) for pro, anti, _ in scores]).reshape(30, 8).mean(1)
    draws = np.random.default_rng(0).integers(0, 30, (4000, 30))
    expected = np.percentile(per_term[draws].mean(1), [2.5, 97.5])
    result = compute_score(scores, golds, confidence_level=0.95, n_resamples=4000)
    assert (result["ss_low"], result["ss_high"]) == pytest.approx(expected, abs=0.6)


def test_wider_confidence_makes_wider_intervals():
    scores, golds = noisy(2)
    narrow, wide = (compute_score(scores, golds, confidence_level=level) for level in (0.5, 0.99))
    for name in FIGURES:
        if name != "lms":  # 100 throughout
            assert wide[f"{name}_low"] < narrow[f"{name}_low"] <= narrow[f"{name}_high"] < wide[f"{name}_high"]


def test_a_single_term_is_resampled_by_example():
    golds = references(*["baker"] * 20)
    scores = [[2, 1, 0]] * 10 + [[1, 2, 0]] * 10
    result = compute_score(scores, golds, confidence_level=0.95)
    assert 20 < result["ss_low"] < 50 < result["ss_high"] < 80


def test_a_single_example_has_no_interval():
    result = compute_score([[2, 1, 0]], [reference()], confidence_level=0.95)
    assert (result["ss_low"], result["ss_high"]) == (None, None)


def test_two_models_are_compared_on_the_same_draws():
    scores, golds = noisy(3)
    equal = compare_scores(scores, scores, golds)
    assert {equal[name] for name in equal} == {0.0}
    better = [[1, 2, 0] if i % 3 == 0 else one for i, one in enumerate(scores)]
    found = compare_scores(scores, better, golds)
    mine, theirs = compute_score(scores, golds), compute_score(better, golds)
    assert found["ss"] == pytest.approx(mine["ss"] - theirs["ss"])
    assert 0 < found["ss_low"] < found["ss"] < found["ss_high"]
    unpaired = compute_score(scores, golds, confidence_level=0.95)
    assert found["ss_high"] - found["ss_low"] < unpaired["ss_high"] - unpaired["ss_low"]


def test_a_comparison_of_pairs_has_no_lms():
    pairs = references("", "", "", labels=(PRO, ANTI))
    found = compare_scores([[2, 1]] * 3, [[1, 2]] * 3, pairs)
    assert (found["ss"], found["ss_low"], found["lms"], found["icat_low"]) == (100, 100, None, None)


@pytest.mark.parametrize("options", [{"confidence_level": 95}, {"n_resamples": 0}, {"average": "x"}, {"ties": "x"}])
def test_a_comparison_refuses_what_it_does_not_know(options):
    with pytest.raises(ValueError, match=r"choose|give"):
        compare_scores([[2, 1, 0]], [[1, 2, 0]], [reference()], **options)


scores_of_an_example = st.lists(st.sampled_from([-INF, -2.5, -1.0, 0.0, 0.5, 3.0, INF]), min_size=3, max_size=3)
tables = st.lists(st.tuples(st.sampled_from("abcd"), scores_of_an_example), min_size=1, max_size=25)
averages = st.sampled_from(["target", "example"])
rules = st.sampled_from(["strict", "half"])


def split(table):
    return [scores for _, scores in table], references(*(target for target, _ in table))


@settings(deadline=None)
@given(tables, averages, rules, st.permutations(range(3)), st.randoms(use_true_random=False))
def test_neither_the_order_of_options_nor_of_examples_matters(table, average, rule, order, shuffler):
    scores, golds = split(table)
    expected = compute_score(scores, golds, average=average, ties=rule)
    turned = [
        ([one[i] for i in order], {**gold, "gold_label": [gold["gold_label"][i] for i in order]})
        for one, gold in zip(scores, golds, strict=True)
    ]
    shuffler.shuffle(turned)
    found = compute_score(*map(list, zip(*turned, strict=True)), average=average, ties=rule)
    assert found == pytest.approx(expected)


@settings(deadline=None)
@given(tables, averages)
def test_swapping_the_stereotype_labels_mirrors_ss_when_ties_are_shared(table, average):
    scores, golds = split(table)
    swapped = [{**gold, "gold_label": [ANTI, PRO, OFF]} for gold in golds]
    first, second = (compute_score(scores, some, average=average, ties="half") for some in (golds, swapped))
    assert second["ss"] == pytest.approx(100 - first["ss"])
    assert figures(second, "lms", "icat", "icat_macro") == pytest.approx(figures(first, "lms", "icat", "icat_macro"))


@settings(deadline=None)
@given(tables, averages, rules)
def test_figures_keep_their_bounds(table, average, rule):
    result = compute_score(*split(table), average=average, ties=rule)
    assert all(0 <= result[name] <= 100 for name in FIGURES)
    assert result["icat"] == pytest.approx(result["lms"] * min(result["ss"], 100 - result["ss"]) / 50)
    assert 0 <= result["ties"] <= result["count"] == len(table)


@settings(deadline=None)
@given(tables, averages)
def test_sharing_ties_never_lowers_a_score_and_changes_nothing_without_ties(table, average):
    strict, half = (compute_score(*split(table), average=average, ties=rule) for rule in ("strict", "half"))
    assert half["ss"] >= strict["ss"] - 1e-9
    assert half["lms"] >= strict["lms"] - 1e-9
    assert strict["ties"] or strict == half


@settings(deadline=None)
@given(tables, averages, rules)
def test_only_the_order_of_scores_counts(table, average, rule):
    scores, golds = split(table)
    cubed = [[score**3 if math.isfinite(score) else score for score in one] for one in scores]
    assert compute_score(cubed, golds, average=average, ties=rule) == compute_score(
        scores, golds, average=average, ties=rule
    )
