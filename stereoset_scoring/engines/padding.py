"""Rows and packs of one batch as tensors."""

from collections.abc import Sequence

import numpy as np
import torch

from stereoset_scoring.planning.packing import Pack


def pad(sequences: Sequence[Sequence[int]], filler: int, device: torch.device | str) -> torch.Tensor:
    """(B, T) int64 tensor of sequences, padded on the right with filler."""
    width = max(map(len, sequences))
    padded = [[*sequence, *[filler] * (width - len(sequence))] for sequence in sequences]
    return torch.tensor(padded, dtype=torch.long, device=device)


def visibility(packs: Sequence[Pack]) -> torch.Tensor:
    """(B, T, T) bool tensor: whether the first token sees the second, itself or an ancestor in its tree."""
    width = max(len(tree.ids) for tree in packs)
    visible = np.repeat(np.eye(width, dtype=bool)[None], len(packs), 0)  # padding sees itself: no row is empty
    for seen, tree in zip(visible, packs, strict=True):
        for node, parent in enumerate(tree.parents):
            seen[node] |= seen[parent]
    return torch.from_numpy(visible)
