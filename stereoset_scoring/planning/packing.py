"""Rows that share their beginnings, packed so that every distinct beginning is computed once. Knows ids, no more.

A pack is a tree of tokens written down as one sequence: each token stands once, at the position that it has in its
rows, and sees its own ancestors only. What a causal model computes there is what it computes in each row alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress, count
from operator import ne


@dataclass(frozen=True)
class Pack:
    """Some rows as one tree.

    Attributes:
        ids: the tokens of the tree, parents before children.
        positions: how far each token is from its root, which is its position in its rows.
        parents: the index of each token's parent; its own for a root.
        paths: of each row, the index in the tree of each of its tokens.
    """

    ids: tuple[int, ...]
    positions: tuple[int, ...]
    parents: tuple[int, ...]
    paths: tuple[tuple[int, ...], ...]


Shared = tuple[int, int]  # which row before it a row shares its longest beginning with, and how long that is


def pack(sequences: Sequence[Sequence[int]], beginnings: Iterable[Shared] | None = None) -> Pack:
    """The Pack of some rows' ids: each goes along the row before it that it shares most with, and then its own way.

    Args:
        sequences: the rows' ids.
        beginnings: their `shared_beginnings`; None to find them.
    """
    ids: list[int] = []
    positions: list[int] = []
    parents: list[int] = []
    paths: list[tuple[int, ...]] = []
    for sequence, (other, shared) in zip(sequences, beginnings or shared_beginnings(sequences), strict=True):
        path = paths[other][:shared] if shared else ()
        own = range(len(ids), len(ids) + len(sequence) - shared)
        if own:
            ids += sequence[shared:]
            positions += range(shared, len(sequence))
            parents += [path[-1] if path else own[0], *own[:-1]]
        paths.append((*path, *own))
    return Pack(tuple(ids), tuple(positions), tuple(parents), tuple(paths))


def shared_beginnings(sequences: Iterable[Sequence[int]]) -> list[Shared]:
    """What each of some rows shares with those before it."""
    by_first: dict[int, list[tuple[int, Sequence[int]]]] = {}  # rows that share anything begin with the same token
    found = []
    for number, sequence in enumerate(sequences):
        alike = by_first.setdefault(sequence[0], []) if sequence else []
        best, most = 0, 0
        for other, known in alike:
            if most and known[: most + 1] != sequence[: most + 1]:  # no longer beginning, and told in less time
                continue
            shared = _common(sequence, known)
            if shared > most:
                best, most = other, shared
        alike.append((number, sequence))
        found.append((best, most))
    return found


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two rows have in common from the beginning."""
    return next(compress(count(), map(ne, first, second)), min(len(first), len(second)))
