"""Rows of one batch as tensors."""

import torch


def pad(sequences, filler, device):
    """(B, T) int64 tensor of sequences, padded on the right with filler."""
    width = max(map(len, sequences))
    padded = [[*sequence, *[filler] * (width - len(sequence))] for sequence in sequences]
    return torch.tensor(padded, dtype=torch.long, device=device)
