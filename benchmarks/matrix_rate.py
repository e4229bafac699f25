"""How fast the machine multiplies a model's matrices: what efficiency is measured against."""

from time import perf_counter

import torch
from meter import weights_of

REPEATS = 3


@torch.no_grad()
def matrix_rate(model, load, batches):
    """Multiply-adds per second of a batch's matrix products, one after the other and nothing between them.

    The model's own weights in their order, since a machine that meets one matrix again and again has it in its cache;
    and of all repeats the mean, since what disturbs the machine disturbs a model that runs on it as well.

    Args:
        model: whose weights, on its device.
        load: the Load of all batches.
        batches: how many they are; each product has the average batch's tokens, places, or tokens of decoders.
    """
    passing = {"body": load.tokens, "head": load.places, "decoder": load.decoded}
    products = [
        (max(1, round(passing[part] / batches)), weight)
        for part, weights in weights_of(model).items()
        for weight in weights
    ]
    states, results = {}, {}
    for rows, weight in products:
        new, (inputs, outputs) = weight.detach().new_empty, weight.shape
        states.setdefault((rows, inputs), new(rows, inputs).normal_())
        results.setdefault((rows, outputs), new(rows, outputs))

    def multiply():
        for rows, weight in products:
            inputs, outputs = weight.shape
            torch.mm(states[rows, inputs], weight, out=results[rows, outputs])

    seconds = [_timed(multiply, model.device) for _ in range(1 + REPEATS)][1:]
    return REPEATS * sum(rows * weight.numel() for rows, weight in products) / sum(seconds)


def between_rates(name, work, rate):
    """Works to do in turn: one, and the machine's rate before and after it, which may differ from minute to minute."""
    return {"rate before": rate, name: work, "rate after": rate}


def products_meanwhile(seconds, found):
    """How many multiply-adds matrix products alone would have done in each turn's seconds.

    Args:
        seconds: of each turn.
        found: what `between_rates` found: {"rate before": one a turn, "rate after": one a turn}.
    """
    return [
        taken * (before + after) / 2
        for taken, before, after in zip(seconds, found["rate before"], found["rate after"], strict=True)
    ]


def _timed(work, device):
    start = perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return perf_counter() - start
