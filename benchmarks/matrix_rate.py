"""How fast the machine multiplies matrices of the shapes that a model has: what efficiency is measured against."""

from collections import Counter
from statistics import median
from time import perf_counter

import torch

REPEATS = 5


@torch.no_grad()
def matrix_rate(matrices, load, batches, model):
    """Multiply-adds per second of a batch's matrix products, one after the other and nothing between them.

    Args:
        matrices: the model's Matrices.
        load: the Load of all batches.
        batches: how many they are; each product has the average batch's tokens, or places.
        model: for its dtype and device.
    """
    tokens, places = (max(1, round(all_of_them / batches)) for all_of_them in (load.tokens, load.places))
    shapes = Counter((tokens, *matrix) for matrix in matrices.body)
    shapes.update((places, *matrix) for matrix in matrices.head)
    done = sum(count * rows * inputs * outputs for (rows, inputs, outputs), count in shapes.items())
    return done / sum(count * _seconds(*shape, model.dtype, model.device) for shape, count in shapes.items())


def _seconds(rows, inputs, outputs, dtype, device):
    """Of one product, the median of several, written into memory that is there already."""
    left = torch.ones(rows, inputs, dtype=dtype, device=device)
    weight = torch.ones(outputs, inputs, dtype=dtype, device=device)
    product = torch.mm(left, weight.T)
    return median(_timed(lambda: torch.mm(left, weight.T, out=product), device) for _ in range(REPEATS))


def _timed(work, device):
    start = perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter() - start
