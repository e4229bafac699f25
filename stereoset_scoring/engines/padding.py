"""Rows and packs of one batch as tensors."""

import numpy as np
import torch


def pad(sequences, filler, device):
    """(B, T) int64 tensor of sequences, padded on the right with filler."""
    width = max(map(len, sequences))
    padded = [[*sequence, *[filler] * (width - len(sequence))] for sequence in sequences]
    return torch.tensor(padded, dtype=torch.long, device=device)


def visibility(packs):
    """(B, T, T) bool tensor: whether the first token sees the second, itself or an ancestor in its tree."""
    width = max(len(tree.ids) for tree in packs)
    visible = np.repeat(np.eye(width, dtype=bool)[None], len(packs), 0)  # padding sees itself: no row is empty
    for seen, tree in zip(visible, packs, strict=True):
        for node, parent in enumerate(tree.parents):
            seen[node] |= seen[parent]
    return torch.from_numpy(visible)
