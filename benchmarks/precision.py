"""bfloat16 beside float32: what it gains, and what it does to the scores."""

import copy
from dataclasses import dataclass, field
from functools import partial

import torch
from arithmetic import multiply_adds, useful_load
from comparisons import largest_difference
from matrix_rate import between_rates, matrix_rate, products_meanwhile
from meter import matrices_of
from rounds import alternate

from stereoset_scoring import load_scorer
from stereoset_scoring.runs.record import NEAR


@dataclass(frozen=True)
class Precision:
    """What bfloat16 gains and costs.

    Attributes:
        work: in words.
        seconds: of "float32" and "bfloat16", one figure a round.
        shares: of each round, bfloat16's useful multiply-adds over what bfloat16 matrix products would do.
        difference: the largest between the scores, in nats.
        near_ties: pairs of options of an example that are closer than NEAR, ties among them, of each dtype.
        changed: share of the pairs of options whose order changes.
    """

    work: str
    seconds: dict = field(repr=False)
    shares: list
    difference: float
    near_ties: dict
    changed: float


def compare_precisions(comparison, model, tokenizer, rows, rounds):
    """The Precision of one work of ours, the model as it is against a copy of it in bfloat16."""
    models = {"float32": model, "bfloat16": copy.deepcopy(model).to(torch.bfloat16)}
    scorers = {
        name: load_scorer(model=one, tokenizer=tokenizer, method=comparison.method, **comparison.options)
        for name, one in models.items()
    }
    job, matrices = scorers["bfloat16"].plan(rows), matrices_of(model)
    load = useful_load(job)
    rate = partial(matrix_rate, models["bfloat16"], load, len(job.batches))
    works = {
        "float32": partial(scorers["float32"].score, rows),
        **between_rates("bfloat16", partial(scorers["bfloat16"].score, rows), rate),
    }
    seconds, found = alternate(works, rounds)
    exact, rough = found["float32"][-1], found["bfloat16"][-1]
    gaps = {"float32": gaps_between_options(exact), "bfloat16": gaps_between_options(rough)}
    return Precision(
        comparison.work,
        seconds,
        [multiply_adds(matrices, load) / possible for possible in products_meanwhile(seconds["bfloat16"], found)],
        largest_difference(exact, rough),
        {name: sum(abs(gap) <= NEAR for gap in some) for name, some in gaps.items()},
        sum((a > 0) != (b > 0) for a, b in zip(*gaps.values(), strict=True)) / len(gaps["float32"]),
    )


def gaps_between_options(scores):
    """The difference of every pair of options of every example, in nats."""
    return [a - b for options in scores for i, a in enumerate(options) for b in options[i + 1 :]]
