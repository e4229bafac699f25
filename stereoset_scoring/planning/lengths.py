"""Lengths: whether a model can read what is asked of it, and what is left out of a given context where it cannot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from stereoset_scoring.planning.rows import Recipe, Row
from stereoset_scoring.questions.examples import Example, Option
from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class Limits:
    """How many tokens a model reads at most.

    Attributes:
        model: what is called so in a message.
        input: the tokens of a text, or of what an encoder reads; None where there is no limit.
        decoder: those that its decoder reads, the start token included; None where there is no limit or none.
    """

    model: str
    input: int | None = None
    decoder: int | None = None

    @cached_property
    def least(self) -> float:
        """How many tokens the model reads wherever they stand."""
        return min(self.input or inf, self.decoder or inf)


def fitted(
    example: Example, recipes: Sequence[Recipe], max_tokens: int, limits_of: Callable[[str], Limits]
) -> list[Recipe]:
    """The recipes of an example, such that the model can read them.

    Of a given context the beginning is left out where the whole is too long, as much for every option of the
    example; what is scored is never cut.

    Args:
        example: whose options they are of.
        recipes: one of each option.
        max_tokens: how many tokens a batch may hold.
        limits_of: from a head's name to its limits.

    Raises:
        Refusal: if nothing is read of an option, or what is scored is longer than the model.
    """
    if all(_has_room(recipe, max_tokens, limits_of) for recipe in recipes):
        return list(recipes)  # as most have
    excess = 0
    for option, recipe in zip(example.options, recipes, strict=True):
        which = f"Option {option.id!r} of example {example.id!r}"
        _check_not_empty(recipe, option, which)
        for row in recipe.rows:
            _check_budget(row, max_tokens, which)
            limits = limits_of(row.head)
            _check_decoder(row, limits, which)
            excess = max(excess, _excess(row, limits, which))
    return [_shortened(recipe, excess) for recipe in recipes] if excess else list(recipes)


def _has_room(recipe: Recipe, max_tokens: int, limits_of: Callable[[str], Limits]) -> bool:
    """Whether a recipe has rows, and none of them is too long for anything."""
    for row in recipe.rows:
        tokens = row.tokens
        if tokens > max_tokens or tokens > limits_of(row.head).least:
            return False
    return bool(recipe.rows)


def _check_not_empty(recipe: Recipe, option: Option, which: str) -> None:
    if not recipe.rows:
        raise Refusal(f"{which} has no token to read ({option.sentence!r}): mend or drop the example.")


def _check_budget(row: Row, max_tokens: int, which: str) -> None:
    if row.tokens > max_tokens:
        raise Refusal(f"{which} has {row.tokens} tokens, more than max_tokens={max_tokens}: give a larger budget.")


def _check_decoder(row: Row, limits: Limits, which: str) -> None:
    if limits.decoder is not None and row.decoder_tokens > limits.decoder:
        raise Refusal(
            f"{which} has {row.decoder_tokens} tokens for a decoder and that of {limits.model} reads "
            f"{limits.decoder}: shorten or drop it."
        )


def _excess(row: Row, limits: Limits, which: str) -> int:
    """How many tokens a row has that the model cannot read; all of them can be left out."""
    if limits.input is None:
        return 0
    excess = len(row.ids) - limits.input
    if excess > len(row.optional):
        raise Refusal(
            f"{which} has {len(row.ids)} tokens and {limits.model} reads {limits.input}: shorten or drop the example."
        )
    return max(0, excess)


def _shortened(recipe: Recipe, count: int) -> Recipe:
    return replace(recipe, rows=tuple(row.without(count) for row in recipe.rows), truncated=True)
