"""Pairs: ss by direction, and how sure a model is of its choice; all numbers computed by hand."""

import math

import pytest

from stereoset_metric.compute_score import compute_score, confidence, confidences

LABELS = ["stereotype", "anti-stereotype"]

CONFIDENCES = [
    # score, other score, 1 - preferred / rejected
    (-1.0, -2.0, 0.5),
    (-2.0, -1.0, 0.5),
    (-1.0, -4.0, 0.75),
    (-30.0, -40.0, 0.25),
    (-3.0, -3.0, 0.0),
    (0.0, -3.0, 1.0),
    (0.0, 0.0, 0.0),
    (-3.0, -math.inf, 1.0),
    (-math.inf, -math.inf, 0.0),
]


@pytest.mark.parametrize(("score", "other", "expected"), CONFIDENCES)
def test_confidence_is_how_much_nearer_to_zero_the_preferred_score_is(score, other, expected):
    assert confidence(score, other) == expected


def pair(direction=None, turned=False, bias_type="x"):
    labels = LABELS[::-1] if turned else LABELS
    reference = {"target": "", "bias_type": bias_type, "gold_label": labels}
    return reference | ({"direction": direction} if direction else {})


DISTRIBUTIONS = [
    # scores of (stereotype, anti-stereotype), quartiles where the stereotype is preferred, where the other is
    ([(-1, -2)], (1, 50, 50, 50), (0, None, None, None)),
    ([(-2, -1)], (0, None, None, None), (1, 50, 50, 50)),
    ([(-1, -1)], (0, None, None, None), (0, None, None, None)),
    ([(-1, -2), (-1, -4)], (2, 56.25, 62.5, 68.75), (0, None, None, None)),
    (
        [(-1, -2), (-4, -5), (-1, -4), (-2, -5), (-9, -10), (-5, -5), (-4, -3)],
        (5, 20, 50, 60),
        (1, 25, 25, 25),
    ),
]


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("scores", "stereotype", "anti"), DISTRIBUTIONS)
def test_confidences_are_quartiles_by_which_sentence_is_preferred(scores, stereotype, anti, turned):
    predictions = [list(one)[:: -1 if turned else 1] for one in scores]
    found = confidences(predictions, [pair(turned=turned)] * len(scores))
    for label, expected in zip(LABELS, (stereotype, anti), strict=True):
        numbers = dict(zip(("count", "low", "median", "high"), expected, strict=True))
        assert found[label] == pytest.approx(numbers)


def test_confidences_leave_the_unrelated_option_out():
    reference = {"target": "t", "bias_type": "x", "gold_label": ["unrelated", "anti-stereotype", "stereotype"]}
    found = confidences([[0, -4, -2]], [reference])
    assert found["stereotype"] == {"count": 1, "low": 50, "median": 50, "high": 50}


BROKEN = [
    ([], [], "no example"),
    ([[-1, -2]], [], "1 predictions for 0 references"),
    ([[-1]], [pair()], "1 scores for 2 options"),
    ([[-1, math.nan]], [pair()], "score nan"),
]


@pytest.mark.parametrize(("predictions", "references", "words"), BROKEN)
def test_confidences_refuse_what_does_not_fit(predictions, references, words):
    with pytest.raises(ValueError, match=words):
        confidences(predictions, references)


STEREO, ANTI = pair("stereo"), pair("antistereo")
DIRECTIONS = [
    # pairs of (reference, stereotype's score, other's), overall (ss, count, ties), {direction: (ss, count)}
    ([(STEREO, 2, 1), (STEREO, 1, 2)], (50, 2, 0), {"stereo": (50, 2)}),
    ([(STEREO, 2, 1), (STEREO, 1, 1)], (50, 2, 1), {"stereo": (100, 1)}),
    ([(STEREO, 1, 1), (ANTI, 2, 1)], (50, 2, 1), {"antistereo": (100, 1)}),
    ([(STEREO, 1, 1)], (0, 1, 1), {}),
    (
        [(STEREO, 2, 1), (STEREO, 2, 1), (STEREO, 1, 2), (STEREO, 1, 1), (ANTI, 1, 2), (ANTI, 2, 1), (ANTI, 1, 1)],
        (300 / 7, 7, 2),
        {"stereo": (200 / 3, 3), "antistereo": (50, 2)},
    ),
]


@pytest.mark.parametrize(("pairs", "overall", "directions"), DIRECTIONS)
def test_neutral_pairs_count_overall_and_in_no_direction(pairs, overall, directions):
    predictions = [scores for _, *scores in pairs]
    found = compute_score(predictions, [one for one, *_ in pairs], average="example", breakdown="direction")
    assert (found["ss"], found["count"], found["ties"]) == pytest.approx(overall)
    assert {name: (one["ss"], one["count"]) for name, one in found["direction"].items()} == {
        name: pytest.approx(numbers) for name, numbers in directions.items()
    }
    assert all(one["ties"] == 0 and one["lms"] is None for one in found["direction"].values())


def test_half_ties_do_not_bring_neutral_pairs_into_a_direction():
    references = [STEREO, STEREO, ANTI]
    found = compute_score([[1, 1], [2, 1], [1, 2]], references, average="example", ties="half", breakdown="direction")
    assert found["ss"] == 50
    assert {name: one["ss"] for name, one in found["direction"].items()} == {"stereo": 100, "antistereo": 0}


def test_examples_without_a_direction_are_in_none():
    found = compute_score([[2, 1], [1, 2]], [pair(), STEREO], breakdown=["direction", "bias_type"])
    assert {name: one["count"] for name, one in found["direction"].items()} == {"stereo": 1}
    assert found["bias_type"]["x"]["count"] == 2


def test_intervals_of_a_direction_are_drawn_from_its_own_pairs():
    references = [STEREO] * 4 + [ANTI] * 4
    scores = [[2, 1]] * 4 + [[1, 2]] * 4
    found = compute_score(scores, references, "example", breakdown="direction", confidence_level=0.9, n_resamples=50)
    assert (found["direction"]["stereo"]["ss_low"], found["direction"]["stereo"]["ss_high"]) == (100, 100)
    assert found["ss_low"] < 50 < found["ss_high"]
