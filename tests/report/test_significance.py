"""Tests of differences: held to scipy, statsmodels and counting by hand; as often wrong as they say, and no more."""

from itertools import product

import numpy as np
import pytest

from stereoset_report.comparison import differences
from stereoset_report.resampling import Resampling, Units
from stereoset_report.significance import holm, mcnemar_p, sign_flip_p, smallest_difference

TERMS, EACH, TIMES = 79, 27, 500


def units(ss, lms=None, by_example=False, sizes=None):
    """Units of such means."""
    means = {"ss": np.array(ss, dtype=float)} | ({} if lms is None else {"lms": np.array(lms, dtype=float)})
    sizes = np.full(len(ss), 10.0) if sizes is None else np.array(sizes, dtype=float)
    return Units([f"{i}" for i in range(len(ss))], sizes, means, by_example)


def models(generator, gain=0.0):
    """ss per term of two models that share what is hard in a term, the second more biased by a gain."""
    bias, own = generator.beta(6, 4, TERMS), generator.normal(0, 0.05, (2, TERMS))
    chance = np.clip(bias + own + np.array([[0.0], [gain]]), 0, 1)
    return [units(100 * generator.binomial(EACH, of_model) / EACH) for of_model in chance]


def test_the_p_value_of_few_terms_is_counted_out():
    ours, theirs = units([90, 80, 70, 40], [95, 90, 85, 80]), units([50, 60, 65, 45], [90, 91, 70, 60])
    p = sign_flip_p(ours, theirs)
    seen, count = np.mean([40, 20, 5, -5]), 0
    for signs in product((1, -1), repeat=4):
        count += abs(np.mean(np.multiply(signs, [40, 20, 5, -5]))) >= abs(seen) - 1e-9
    assert p["ss"] == count / 16
    assert p.keys() == {"ss", "lms", "icat", "icat_macro"}


def test_the_p_value_of_icat_swaps_both_of_its_parts():
    ss, lms = np.array([[90, 80, 70], [50, 60, 65]]), np.array([[95, 90, 85], [90, 91, 70]])

    def icat(which):
        mean_ss, mean_lms = (some[which, range(3)].mean() for some in (ss, lms))
        return mean_lms * min(mean_ss, 100 - mean_ss) / 50

    found = [icat(np.array(which)) - icat(1 - np.array(which)) for which in product((0, 1), repeat=3)]
    expected = np.mean(np.abs(found) >= abs(found[0]) - 1e-9)
    assert sign_flip_p(units(ss[0], lms[0]), units(ss[1], lms[1]))["icat"] == expected


def test_examples_count_for_themselves_where_they_are_averaged():
    stats = pytest.importorskip("scipy.stats")
    ours, theirs, sizes = np.array([90.0, 10, 50, 80, 60]), np.array([50.0, 20, 40, 60, 70]), np.array([1, 5, 2, 9, 3])
    found = sign_flip_p(units(ours, sizes=sizes, by_example=True), units(theirs, sizes=sizes, by_example=True))
    other = stats.permutation_test(
        (ours * sizes, theirs * sizes), lambda a, b: np.sum(a - b), permutation_type="samples", n_resamples=np.inf
    )
    assert found["ss"] == pytest.approx(other.pvalue)


def test_the_p_value_of_many_terms_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    ours, theirs = models(np.random.default_rng(5), gain=0.02)
    other = stats.permutation_test(
        (ours.means["ss"], theirs.means["ss"]),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=9999,
        vectorized=True,
        rng=0,
    )
    assert sign_flip_p(ours, theirs)["ss"] == pytest.approx(other.pvalue, abs=0.02)


@pytest.mark.parametrize(("one", "other"), [(0, 0), (1, 0), (3, 9), (9, 3), (5, 5), (40, 71), (350, 283), (0, 30)])
def test_mcnemars_test_is_scipys_and_statsmodels(one, other):
    stats = pytest.importorskip("scipy.stats")
    expected = stats.binomtest(one, one + other).pvalue if one + other else 1.0
    assert mcnemar_p(one, other) == pytest.approx(expected, abs=1e-9)
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    if one + other:
        assert mcnemar_p(one, other) == pytest.approx(tables.mcnemar([[7, one], [other, 7]]).pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("p_values", "adjusted"),
    [
        ([], []),
        ([0.03], [0.03]),
        ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
        ([0.5, 0.6], [1.0, 1.0]),
        ([0.02, 0.02, 0.001], [0.04, 0.04, 0.003]),
    ],
)
def test_holms_correction(p_values, adjusted):
    assert holm(p_values) == pytest.approx(adjusted)


def test_holms_correction_is_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(2).random(20).tolist()
    assert holm(p_values) == pytest.approx(multitest.multipletests(p_values, method="holm")[1])


def test_the_smallest_difference_is_2_8_standard_errors():
    assert smallest_difference(1.0) == pytest.approx(2.8016, abs=1e-4)
    assert smallest_difference(2.0, level=0.1, power=0.5) == pytest.approx(2 * 1.6449, abs=1e-3)


@pytest.fixture(scope="module")
def of_equal_models():
    """Differences of 500 pairs of equally biased models."""
    generator = np.random.default_rng(1)
    return [differences(*models(generator), Resampling(seed=seed % 5))["ss"] for seed in range(TIMES)]


def test_equal_models_are_told_apart_as_rarely_as_the_test_says(of_equal_models):
    wrong = np.mean([found.p <= 0.05 for found in of_equal_models])
    assert 0.03 <= wrong <= 0.07  # 5 %, give or take 2 standard errors of the simulation


def test_intervals_of_differences_hold_the_true_one_as_often_as_they_say(of_equal_models):
    held = np.mean([found.low <= 0 <= found.high for found in of_equal_models])
    assert 0.925 <= held <= 0.97


def test_what_is_called_detectable_is_found_four_times_of_five(of_equal_models):
    gain = np.mean([found.detectable for found in of_equal_models])  # percentage points
    generator = np.random.default_rng(3)
    found = [differences(*models(generator, gain / 100), Resampling())["ss"] for _ in range(TIMES)]
    assert 0.75 <= np.mean([one.p <= 0.05 for one in found]) <= 0.86
    assert np.mean([one.low <= -gain <= one.high for one in found]) >= 0.925
