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


class _Tree:
    """A tree that grows by one token after the other; each distinct beginning stands in it once."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.parents: list[int] = []
        self._nodes: dict[tuple[int | None, int], int] = {}  # (parent or None, token) -> its index

    def node(self, parent: int | None, token: int) -> int:
        """The index of a token that follows a parent, or begins a row; it is added where the tree lacks it."""
        found = self._nodes.setdefault((parent, token), len(self.ids))
        if found == len(self.ids):
            self.ids.append(token)
            self.positions.append(0 if parent is None else self.positions[parent] + 1)
            self.parents.append(found if parent is None else parent)
        return found

    def with_paths(self, paths: Iterable[Iterable[int]]) -> Pack:
        """The tree as a Pack."""
        return Pack(tuple(self.ids), tuple(self.positions), tuple(self.parents), tuple(map(tuple, paths)))


def pack(sequences: Iterable[Sequence[int]]) -> Pack:
    """The Pack of some rows' ids."""
    tree, paths = _Tree(), []
    for sequence in sequences:
        path: list[int] = []
        for token in sequence:
            path.append(tree.node(path[-1] if path else None, token))
        paths.append(path)
    return tree.with_paths(paths)


def joined(packs: Sequence[Pack]) -> Pack:
    """The Pack of all rows of some packs, in order: what `pack` makes of them, without looking at each row again."""
    if len(packs) == 1:
        return packs[0]
    tree, paths = _Tree(), []
    for one in packs:
        moved: list[int] = []  # by index in the one, the index in the tree
        for node, (token, parent) in enumerate(zip(one.ids, one.parents, strict=True)):
            moved.append(tree.node(None if parent == node else moved[parent], token))
        paths += [map(moved.__getitem__, path) for path in one.paths]
    return tree.with_paths(paths)
