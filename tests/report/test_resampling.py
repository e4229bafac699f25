"""Intervals: those of the metric, number for number, and as often right as they say."""

import numpy as np
import pytest

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_report.judged import judge_part
from stereoset_report.resampling import Resampling, draw, interval, resampled, units_of

LABELS = ("stereotype", "anti-stereotype", "unrelated")


def examples(count, terms, options=3, seed=0):
    """Rows and random scores, of so many terms."""
    generator = np.random.default_rng(seed)
    rows = [
        {
            "target": f"term {i % terms}",
            "bias_type": "profession",
            "sentences": [{"id": f"{i}-{label}", "gold_label": label} for label in LABELS[:options]],
        }
        for i in range(count)
    ]
    return rows, generator.integers(-9, 0, (count, options)).astype(float).tolist()


@pytest.mark.parametrize("average", ["target", "example"])
@pytest.mark.parametrize("ties", ["strict", "half"])
@pytest.mark.parametrize(("terms", "options"), [(7, 3), (1, 3), (30, 3), (7, 2), (1, 2)])
@pytest.mark.parametrize("seed", [0, 3])
def test_numbers_and_intervals_are_the_metrics(average, ties, terms, options, seed):
    rows, scores = examples(60, terms, options)
    expected = compute_score(
        scores, flat_references(rows), average=average, ties=ties, confidence_level=0.9, n_resamples=200, seed=seed
    )
    units = judge_part(rows, scores, ties, scale=None).units(by_example=average == "example")
    draws = resampled(units, Resampling(0.9, 200, seed))
    for name in ("ss", "lms", "icat", "icat_macro"):
        if expected[name] is None:
            assert name not in units.whole
            continue
        assert units.whole[name] == pytest.approx(expected[name], abs=1e-9)
        bounds = (expected[f"{name}_low"], expected[f"{name}_high"])
        assert interval(draws[name], 0.9) == pytest.approx(bounds, abs=1e-9)


def test_one_example_alone_has_no_interval():
    rows, scores = examples(1, 1)
    assert resampled(judge_part(rows, scores, "strict", None).units(), Resampling()) == {}


def test_draws_are_of_as_many_units_and_the_same_again():
    drawn = draw(5, 100, 1)
    assert drawn.shape == (100, 5)
    assert (drawn.sum(axis=1) == 5).all()
    draw.cache_clear()
    assert (draw(5, 100, 1) == drawn).all()
    assert (draw(5, 100, 2) != drawn).any()


# 79 terms of 27 examples, as StereoSet's development set has them; each term has a bias of its own.
def test_intervals_hold_the_true_number_as_often_as_they_say():
    generator, held, times = np.random.default_rng(0), 0, 600
    targets = [f"{i}" for i in range(79) for _ in range(27)]
    for seed in range(times):
        bias = generator.beta(6, 4, 79)  # of terms whose mean is 60 %
        votes = 100.0 * (generator.random((79, 27)) < bias[:, None]).ravel()
        low, high = interval(resampled(units_of(targets, {"ss": votes}), Resampling(seed=seed % 7))["ss"], 0.95)
        held += low <= 60 <= high
    assert 0.925 <= held / times <= 0.97  # 95 %, give or take 2.5 standard errors of the simulation
