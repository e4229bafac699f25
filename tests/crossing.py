"""Tables of cases that are crossed: every line of each in the quick tests, every pair of lines in the thorough ones."""

from collections.abc import Container, Iterable
from itertools import cycle, islice
from typing import Any

import pytest


def crossed(first: Iterable[Any], second: Iterable[Any]) -> list[Any]:
    """The parameters of a test for all pairs of lines of two tables.

    A line of several parameters is a tuple, or a `pytest.param`, whose marks and id its pairs have too. As many pairs
    as the longer table has lines hold each line of either; the others are thorough.
    """
    first, second = list(map(_line, first)), list(map(_line, second))
    quick = _every_line_of_each(_unmarked(first), _unmarked(second))
    return [_pair(one, other, quick=(i, j) in quick) for i, one in enumerate(first) for j, other in enumerate(second)]


def thorough(*line: Any) -> Any:
    """A line of a table that another one, like it, stands for in the quick tests."""
    return pytest.param(*line, marks=pytest.mark.thorough)


def thorough_where(alike: Container[Any], lines: Iterable[Any]) -> list[Any]:
    """The lines of a table; thorough are those that begin with what another one, like it, stands for."""
    return [thorough(*line.values) if line.values[0] in alike else line for line in map(_line, lines)]


def _line(line: Any) -> Any:
    if hasattr(line, "marks"):
        return line
    return pytest.param(*line) if isinstance(line, tuple) else pytest.param(line)


def _unmarked(table: list[Any]) -> list[int]:
    return [i for i, line in enumerate(table) if not line.marks]


def _every_line_of_each(first: list[int], second: list[int]) -> set[tuple[int, int]]:
    longer = max(len(first), len(second))
    return set(zip(*(islice(cycle(table), longer) for table in (first, second)), strict=True))


def _pair(one: Any, other: Any, quick: bool) -> Any:
    marks = [*one.marks, *other.marks] or ([] if quick else [pytest.mark.thorough])
    named = one.id or other.id
    name = "-".join(line.id or "-".join(map(str, line.values)) for line in (one, other)) if named else None
    return pytest.param(*one.values, *other.values, marks=marks, id=name)
