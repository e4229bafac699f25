"""Rows that share their beginnings, packed so that every distinct beginning is computed once. Knows ids, no more.

A pack is a tree of tokens written down as one sequence: each token stands once, at the position that it has in its
rows, and sees its own ancestors only. What a causal model computes there is what it computes in each row alone.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


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


def pack(sequences: Iterable[Sequence[int]]) -> Pack:
    """The Pack of some rows' ids: each goes along the row before it that it shares most with, and then its own way."""
    ids: list[int] = []
    positions: list[int] = []
    parents: list[int] = []
    done: list[tuple[Sequence[int], tuple[int, ...]]] = []  # rows with their paths
    for sequence in sequences:
        path = _known_beginning(sequence, done)
        own = range(len(ids), len(ids) + len(sequence) - len(path))
        if own:
            ids += sequence[len(path) :]
            positions += range(len(path), len(sequence))
            parents += [path[-1] if path else own[0], *own[:-1]]
        done.append((sequence, (*path, *own)))
    return Pack(tuple(ids), tuple(positions), tuple(parents), tuple(path for _, path in done))


def _known_beginning(sequence: Sequence[int], done: Iterable[tuple[Sequence[int], tuple[int, ...]]]) -> tuple[int, ...]:
    """The path, in a tree, of the longest beginning of a row that other rows have; they come with their paths."""
    known: tuple[int, ...] = ()
    for other, path in done:
        count = _common(sequence, other)
        if count > len(known):
            known = path[:count]
    return known


def _common(first: Sequence[int], second: Sequence[int]) -> int:
    """How many tokens two rows have in common from the beginning."""
    for count, (one, other) in enumerate(zip(first, second)):  # noqa: B905 - the shorter one ends it
        if one != other:
            return count
    return min(len(first), len(second))
