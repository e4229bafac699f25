"""The words that methods, engines and runner share: a row, and a recipe. No tensors, no device, no batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Values = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Row:
    """One input of a model, and what is read from its output.

    Attributes:
        head: the model's head that is asked: "masked", "causal" or "next_sentence".
        ids: token ids, special tokens included.
        reads: (position, token) pairs; each reads ln P(token), in nats, from the output at that position.
            A next-sentence head has one position, 0, and its tokens are its classes.
        segments: token types, one per id, where the tokenizer gives them.
    """

    head: str
    ids: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    segments: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Recipe:
    """How one option gets its score.

    Attributes:
        rows: what must be read.
        combine: from values[r][k], the reading k of row r in nats, to the option's score.
        straddling: how many tokens spanned the border between what is scored and what is given.
    """

    rows: tuple[Row, ...]
    combine: Callable[[Values], float]
    straddling: int = 0
