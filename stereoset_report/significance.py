"""Is it a difference? Tests for two models on the same examples, and what such data could have shown.

Plain numpy and math: each is a few lines, and the tests hold them to scipy and statsmodels.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from stereoset_report.alarms import at_least
from stereoset_report.resampling import LMS, Array, Units, with_icat

FLIPS = 9999  # random ones; with the observed one, 10,000
AT_ONCE = 1000  # sets of swaps: as floats, those of 2,000 examples take 16 MB
LEVEL, POWER = 0.05, 0.8
ROUNDING = 1e-9  # percentage points: sums of the same numbers in another order are equal


def sign_flip_p(ours: Units, theirs: Units, flips: int = FLIPS, seed: int = 0) -> dict[str, float]:
    """Two-sided p-values of paired differences, by swapping the two models in whole target terms.

    Under the null hypothesis the models are exchangeable: within each term t, which of the two results is whose is as
    good as a coin. Each of B random sets of swaps e (e_t = ±1) gives the difference D_e that it would have shown, and
    p = (1 + #{e: |D_e| >= |D|}) / (B + 1) (Noreen 1989; Phipson & Smyth 2010). Where there are no more than B sets of
    swaps, all of them are taken and p = #{e: |D_e| >= |D|} / 2^U: of three terms, never under 0.25. For a mean over
    terms D_e = Σ e_t d_t / U, the sign-flip test; icat is computed anew from the swapped lms and ss.

    Args:
        ours, theirs: the same examples, judged twice.
        flips: B.
        seed: of the swaps.

    Returns:
        {number: p}, of the numbers that both have; none where there is but one unit.
    """
    count = len(ours.sizes)
    if count < 2:
        return {}
    exact = 2**count <= flips
    signs = _all_signs(count) if exact else _random_signs(count, flips, seed)
    parts = [_differences(ours, theirs, some) for some in np.array_split(signs, len(signs) // AT_ONCE + 1)]
    seen = _differences(ours, theirs, np.ones((1, count), dtype=np.int8))
    return {name: _p(_joined(parts, name), abs(seen[name][0]), exact) for name in seen}


def _joined(parts: Sequence[dict[str, Array]], name: str) -> Array:
    return np.concatenate([part[name] for part in parts])


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the adjusted p of each, max over those no larger of (m - rank) * p, at most 1 (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted


def mcnemar_p(one_way: int, other_way: int) -> float:
    """McNemar's exact test of examples that changed sides: 2 P(X >= the more frequent way), X ~ Bin(both, 1/2).

    It takes examples as independent, though those of one term are alike: beside `sign_flip_p`, it is optimistic.
    """
    return min(1.0, 2 * at_least(max(one_way, other_way), one_way + other_way, 0.5))


def smallest_difference(standard_error: float, level: float = LEVEL, power: float = POWER) -> float:
    """The true difference that a two-sided test at a level finds with a power: (z[1 - level/2] + z[power]) * SE.

    That is 2.80 SE at 5 % and 80 %. SE is the standard deviation of the difference over bootstrap resamples, in whose
    unit the answer is. A smaller difference is more likely missed than the power promises (Card et al. 2020).
    """
    normal = NormalDist()
    return (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(power)) * standard_error


def _differences(ours: Units, theirs: Units, signs: NDArray[np.int8]) -> dict[str, Array]:
    """{number: the differences (B,)} where the models' results in the units with a sign of -1 are swapped."""
    first, second = {}, {}
    for name in [name for name in ours.means if name in theirs.means]:
        one, other = ours.means[name], theirs.means[name]
        first[name], second[name] = _swapped(one, other, ours.weights, signs)
    if LMS not in first:
        return {name: first[name] - second[name] for name in first}
    macros = [None, None] if ours.alone else _swapped(ours.own_icat, theirs.own_icat, np.ones(len(ours.sizes)), signs)
    first, second = with_icat(first, macros[0]), with_icat(second, macros[1])
    return {name: first[name] - second[name] for name in first}


def _swapped(one: Array, other: Array, weights: Array, signs: NDArray[np.int8]) -> tuple[Array, Array]:
    """The means (B,) of both models after swaps."""
    share = weights / weights.sum()
    middle, half = share @ (one + other) / 2, signs @ (share * (one - other)) / 2
    return middle + half, middle - half


def _all_signs(count: int) -> NDArray[np.int8]:
    return np.array(list(product((1, -1), repeat=count)), dtype=np.int8)


@lru_cache(maxsize=32)
def _random_signs(count: int, flips: int, seed: int) -> NDArray[np.int8]:
    return np.random.default_rng(seed).integers(0, 2, (flips, count), dtype=np.int8) * 2 - 1


def _p(values: Array, seen: float, exact: bool) -> float:
    extreme = int((np.abs(values) >= seen - ROUNDING).sum())
    return extreme / len(values) if exact else (extreme + 1) / (len(values) + 1)
