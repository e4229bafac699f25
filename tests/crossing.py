"""Tables of cases that are crossed: every line of each in the quick tests, every pair of lines in the thorough ones."""

from collections.abc import Iterable
from itertools import cycle, islice
from typing import Any

import pytest


def crossed(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """The parameters of a test for all pairs of lines of two tables; a line of several parameters is a tuple.

    As many pairs as the longer table has lines hold each line of either; the others are thorough.
    """
    first, second = list(first), list(second)
    longer = max(len(first), len(second))
    quick = set(zip(*(islice(cycle(range(len(table))), longer) for table in (first, second)), strict=True))
    return [
        pytest.param(*_parameters(one), *_parameters(other), marks=() if (i, j) in quick else pytest.mark.thorough)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
    ]


def _parameters(line: Any) -> tuple[Any, ...]:
    return line if isinstance(line, tuple) else (line,)
