"""Portions: how data are cut into what is planned, read and handed out at once. Knows counts, nothing else."""

from collections.abc import Mapping
from typing import NamedTuple

OF_BUDGET = 4  # tokens of a batch for every example of a portion: some batches, each of rows of similar length
MOST = 1024  # examples, whatever the budget
TAPER = 8  # the last portions are this part of what is left, so that nobody waits long for the last one,
LEAST = 1 / 16  # but no smaller than this part of the largest


class Portion(NamedTuple):
    """Some examples of a data set, one after the other.

    Attributes:
        config: the data set's.
        start, stop: as of a range of its examples.
    """

    config: str
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many examples it has."""
        return self.stop - self.start


def in_portions(sizes: Mapping[str, int], max_tokens: int | None) -> list[Portion]:
    """Data sets in portions, the same on every process, however many there are.

    Args:
        sizes: {config: how many examples}.
        max_tokens: how many tokens a batch holds; None where nothing is read.
    """
    most = MOST if max_tokens is None else max(1, min(MOST, max_tokens // OF_BUDGET))
    least, left = max(1, int(most * LEAST)), sum(sizes.values())
    portions = []
    for config, size in sizes.items():
        start = 0
        while start < size:
            stop = min(size, start + max(least, min(most, left // TAPER)))
            portions.append(Portion(config, start, stop))
            left -= stop - start
            start = stop
    return portions
