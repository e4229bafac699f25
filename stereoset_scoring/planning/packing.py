"""Rows that share their beginnings, packed so that every distinct beginning is computed once. Knows ids, no more.

A pack is a tree of tokens written down as one sequence: each token stands once, at the position that it has in its
rows, and sees its own ancestors only. What a causal model computes there is what it computes in each row alone.
"""

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


def pack(sequences):
    """The Pack of some rows' ids."""
    ids, positions, parents, paths = [], [], [], []
    nodes = {}
    for sequence in sequences:
        node, path = None, []
        for position, token in enumerate(sequence):
            parent, node = node, nodes.setdefault((node, token), len(ids))
            if node == len(ids):
                ids.append(token)
                positions.append(position)
                parents.append(node if parent is None else parent)
            path.append(node)
        paths.append(tuple(path))
    return Pack(tuple(ids), tuple(positions), tuple(parents), tuple(paths))
