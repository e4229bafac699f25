"""What is read of the rows of a batch, and where: as arrays, for there are many reads in a batch."""

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import numpy as np
import torch

from stereoset_scoring.planning.packing import Pack
from stereoset_scoring.planning.rows import Row


class Reads(NamedTuple):
    """R reads at N places.

    Attributes:
        places: (N, 2) the distinct (row, position) of a model's output at which anything is read, in order.
        at: (R,) the index of each read's place.
        tokens: (R,) the token that is read there.
        counts: how many reads each row has; they stand one row after the other.
    """

    places: torch.Tensor
    at: torch.Tensor
    tokens: torch.Tensor
    counts: list[int]

    def by_row(self, values: torch.Tensor) -> list[list[float]]:
        """Values (R,) in a list for each row."""
        together = values.tolist()
        return [together[start:stop] for start, stop in pairwise(accumulate(self.counts, initial=0))]


def reads_of(rows: Sequence[Row]) -> Reads:
    """What is read of rows that stand one below the other."""
    positions, tokens, counts = _asked(rows)
    return _reads(np.repeat(np.arange(len(rows)), counts), positions, tokens, counts)


def reads_in_trees(rows: Sequence[Row], trees: Sequence[Pack]) -> Reads:
    """What is read of rows that are packed in trees, which stand one below the other."""
    positions, tokens, counts = _asked(rows)
    paths = list(chain.from_iterable(tree.paths for tree in trees))
    nodes, begins = _array(chain.from_iterable(paths)), [0, *accumulate(map(len, paths))][:-1]
    numbers = np.repeat(np.arange(len(trees)), [len(tree.paths) for tree in trees])  # of each row's tree
    return _reads(np.repeat(numbers, counts), nodes[np.repeat(begins, counts) + positions], tokens, counts)


def _asked(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """(the positions (R,), the tokens (R,), how many of them are each row's)."""
    pairs = chain.from_iterable(row.reads for row in rows)
    asked = _array(chain.from_iterable(pairs)).reshape(-1, 2)
    return asked[:, 0], asked[:, 1], [len(row.reads) for row in rows]


def _reads(numbers: np.ndarray, positions: np.ndarray, tokens: np.ndarray, counts: list[int]) -> Reads:
    width = 1 + int(positions.max(initial=0))
    places, at = np.unique(numbers * width + positions, return_inverse=True)
    together = np.stack(np.divmod(places, width), axis=1)
    return Reads(torch.from_numpy(together), torch.from_numpy(at), torch.from_numpy(tokens.copy()), counts)


def _array(numbers: Iterable[int]) -> np.ndarray:
    return np.fromiter(numbers, dtype=np.int64)
