"""Spearman's rank correlation. Standard library only."""

from collections.abc import Sequence
from statistics import StatisticsError, correlation


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """The correlation of the ranks of two equally long lists, between -1 and 1; equal values share their mean rank.

    None where it is not defined: under three pairs, or where one list holds one value only.
    """
    if len(first) < 3:
        return None
    try:
        return correlation(ranks(first), ranks(second))
    except StatisticsError:
        return None


def ranks(values: Sequence[float]) -> list[float]:
    """The rank of each value, from 1 for the smallest; equal values share their mean rank."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) + 1) / 2 for value in values]
