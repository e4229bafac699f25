"""Rows and packs of one batch as tensors."""

from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
import torch

from stereoset_scoring.planning.packing import Pack


def pad(sequences: Sequence[Sequence[int]], filler: int, device: torch.device | str) -> torch.Tensor:
    """(B, T) int64 tensor of sequences, padded on the right with filler."""
    lengths = np.fromiter(map(len, sequences), dtype=np.int64)
    padded = np.full((len(lengths), lengths.max()), filler, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = np.fromiter(chain.from_iterable(sequences), dtype=np.int64)
    return torch.from_numpy(padded).to(device)


def visibility(packs: Sequence[Pack]) -> torch.Tensor:
    """(B, T, T) bool tensor: whether the first token sees the second, itself or an ancestor in its tree."""
    width = max(len(tree.ids) for tree in packs)
    visible = np.repeat(np.eye(width, dtype=bool)[None], len(packs), 0)  # padding sees itself: no row is empty
    before = np.tri(width, dtype=bool)
    for seen, tree in zip(visible, packs, strict=True):
        for start, stop in pairwise([*_begun(tree), len(tree.ids)]):  # a token, and those that follow one by one
            seen[start:stop] = seen[tree.parents[start]]
            seen[start:stop, start:stop] = before[: stop - start, : stop - start]
    return torch.from_numpy(visible)


def _begun(tree: Pack) -> list[int]:
    """The tokens of a tree whose parent is not the token before: its roots, and the first of each branch."""
    return [node for node, parent in enumerate(tree.parents) if parent != node - 1]
