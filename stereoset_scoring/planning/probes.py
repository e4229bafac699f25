"""Which examples tell most of how a model takes the rest: the longest ones, the shortest, and a few as they come."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest, nsmallest
from typing import Any

from stereoset_scoring.questions.examples import options_of

FIRST = LONGEST = 6  # examples


def telling(rows: Iterable[Mapping[str, Any]]) -> Sequence[int]:
    """The indices of the examples that a model is tried on, in order."""
    lengths = list(map(_length, rows))
    by_length = lengths.__getitem__
    indices = range(len(lengths))
    return sorted({*indices[:FIRST], *nlargest(LONGEST, indices, by_length), *nsmallest(2, indices, by_length)})


def _length(row: Mapping[str, Any]) -> int:
    """Of the text of an example, in bytes: what most tokenizers make more tokens of where it is more."""
    sentences = sum(len(option["sentence"].encode()) for option in options_of(row))
    return 3 * len(row["context"].encode()) + sentences
