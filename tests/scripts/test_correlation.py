"""Spearman's rank correlation, against hand-computed values and against scipy."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stereoset_report import correlation

NUMBERS = st.integers(-3, 3)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1, 2, 3], [10, 200, 3000], 1.0),  # ranks alone count
        ([1, 2, 3], [3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 3, 2, 4], 0.8),  # 1 - 6·2 / (4·15)
        ([1, 2, 2, 3], [1, 2, 3, 4], 0.9486832980505138),  # a tie: ranks 1, 2.5, 2.5, 4; 4.5 / √(4.5·5)
        ([1, 2], [1, 2], None),
        ([1, 1, 1], [1, 2, 3], None),
    ],
)
def test_values_computed_by_hand(first, second, expected):
    found = correlation.spearman(first, second)
    assert found == (expected if expected is None else pytest.approx(expected, abs=1e-12))


def test_equal_values_share_their_mean_rank():
    assert correlation.ranks([5, 1, 5, 7]) == [2.5, 1, 2.5, 4]


@settings(deadline=None)  # the first example imports scipy
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=3, max_size=20))
def test_scipy_agrees(pairs):
    first, second = zip(*pairs, strict=True)
    found = correlation.spearman(first, second)
    if found is not None:
        assert found == pytest.approx(pytest.importorskip("scipy.stats").spearmanr(first, second).statistic, abs=1e-12)
