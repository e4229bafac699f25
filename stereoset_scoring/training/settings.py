"""What a training is asked for; without torch."""

import math
from dataclasses import dataclass

from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class Settings:
    """What decides the weights that come out, beside model and corpus. Defaults: the papers'.

    Attributes:
        epochs: how often the corpus is read [S: 10].
        max_steps: how many updates of the weights to make at most; None for all of the epochs.
        batch_size: pairs in one update, over all processes [S: 80].
        pairs_at_once: pairs in one forward pass of one process; more are accumulated.
        max_length: tokens of a pair; the rest is cut [S: 256].
        learning_rate: of the core model [M: 5e-6].
        head_learning_rate: of the head, and of a pooler that the checkpoint lacks [M: 1e-3].
        warm_up: updates until the full rates are reached, at most a tenth of all; then they fall to 0 [S: 500].
        weight_decay: of AdamW.
        max_norm: gradients are clipped to it.
        seed: draws the head, the order of pairs and the dropout.
    """

    epochs: float = 10
    max_steps: int | None = None
    batch_size: int = 80
    pairs_at_once: int = 8
    max_length: int = 256
    learning_rate: float = 5e-6
    head_learning_rate: float = 1e-3
    warm_up: int = 500
    weight_decay: float = 0.01
    max_norm: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "pairs_at_once", "max_length"):
            if getattr(self, name) <= 0:
                raise Refusal(f"{name} cannot be {getattr(self, name)}: give more than 0.")

    def steps(self, pairs: int) -> int:
        """How many updates a corpus of so many pairs gets."""
        steps = math.ceil(self.epochs * pairs / self.batch_size)
        return min(steps, self.max_steps) if self.max_steps else steps

    def share_of_rate(self, step: int, steps: int) -> float:
        """What part of the full learning rates an update gets, counted from 0: a linear rise, then a linear fall."""
        warm_up = min(self.warm_up, steps // 10)
        return (step + 1) / warm_up if step < warm_up else (steps - step) / (steps - warm_up)
