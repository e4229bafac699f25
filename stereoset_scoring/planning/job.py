"""A job: what one run computes, and how its readings become scores. `stereoset_scoring.planning.plan` makes it."""

import hashlib
import marshal
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from stereoset_scoring.planning.rows import Input, Recipe, Row
from stereoset_scoring.planning.units import Unit

KEY = 20  # digits, such that no two of a billion rows are likely to share them
PLAIN = 2  # the version of marshal in which equal values are equal bytes, and which takes a third of the time of repr

Found = Mapping[Input, Mapping[tuple[int, int], float]]  # a row's input -> (position, token) -> ln P


@dataclass(frozen=True)
class Job:
    """What one run computes, the same on every process.

    Attributes:
        recipes: recipes[i][j] is option j of example i.
        rows: the distinct inputs, each with all that anybody reads from it.
        batches: lists of units, in which every row stands once; every batch asks one head, in one way.
        forward_tokens: tokens that the model reads, padding left out; what is shared counts once.
        padded_tokens: tokens that the model reads, padding included.
        ids: the examples' ids.
    """

    recipes: list[list[Recipe]]
    rows: list[Row]
    batches: list[list[Unit]]
    forward_tokens: int = 0
    padded_tokens: int = 0
    ids: tuple[str, ...] = ()

    @property
    def straddling(self) -> int:
        """Tokens that span a border between what is scored and what is given, over all options."""
        return sum(recipe.straddling for recipes in self.recipes for recipe in recipes)

    @property
    def truncated(self) -> int:
        """Examples whose given context was cut from the left, because the model cannot read it all."""
        return sum(map(_is_truncated, self.recipes))

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads that are asked."""
        return tuple(dict.fromkeys(row.head for row in self.rows))

    @property
    def equal_options(self) -> int:
        """Examples of which two options are the same to the model: equal rows are read of them."""
        return sum(map(_asks_twice, self.recipes))

    @cached_property
    def keys(self) -> list[str]:
        """Of each row, the first digits of the sha256 over all that it asks: equal for equal questions in any job."""
        return list(map(_key, self.rows))

    @cached_property
    def digest(self) -> str:
        """sha256, as hex, over what the rows ask."""
        return hashlib.sha256("".join(self.keys).encode()).hexdigest()

    def without(self, known: Container[int]) -> list[list[Unit]]:
        """The batches without the rows whose indices are known."""
        batches = []
        for batch in self.batches:
            rest = [unit.without(known) for unit in batch]
            if any(rest):
                batches.append([unit for unit in rest if unit])
        return batches

    def unscored(self, failures: Mapping[int, str]) -> dict[int, str]:
        """The examples that cannot be scored for want of some rows: {index of the example: why}.

        Args:
            failures: {index of the row: why it cannot be read}.
        """
        reasons = {self.rows[i].input: reason for i, reason in failures.items()}
        unscored: dict[int, str] = {}
        for i, recipes in enumerate(self.recipes):
            for row in _rows_of(recipes):
                if row.input in reasons:
                    unscored.setdefault(i, reasons[row.input])
        return unscored

    def name_of(self, index: int) -> str:
        """What a row belongs to, for a message."""
        example = next(iter(self.unscored({index: ""})))
        return f"Example {self.ids[example]!r}" if self.ids else f"Example {example} (counted from 0)"

    def scores(self, values: Mapping[int, Sequence[float]], unscored: Container[int] = ()) -> list[list[float] | None]:
        """From the values of each row, aligned with its reads, to scores[i][j] of option j of example i.

        Args:
            values: {index of the row: its values}.
            unscored: indices of examples for which None stands instead of scores.

        Raises:
            RuntimeError: if a row came back without values.
        """
        found = self._found(values)
        scored = [recipes for i, recipes in enumerate(self.recipes) if i not in unscored]
        self._check_nothing_is_lost(found, scored)
        scores: list[list[float] | None] = []
        for i, recipes in enumerate(self.recipes):
            scores.append(None if i in unscored else [_score(recipe, found) for recipe in recipes])
        return scores

    def observed(self, values: Mapping[int, Sequence[float]], unscored: Container[int] = ()) -> dict[str, list[float]]:
        """All that recipes observe beside the scores, by its name; see `scores` for what is given."""
        scored = (recipes for i, recipes in enumerate(self.recipes) if i not in unscored)
        observing = [(recipe, recipe.observe) for recipe in chain.from_iterable(scored) if recipe.observe]
        found, seen = self._found(values) if observing else {}, defaultdict(list)
        for recipe, observe in observing:
            for name, value in observe(_values_of(recipe, found)).items():
                seen[name].append(value)
        return dict(seen)

    def _found(self, values: Mapping[int, Sequence[float]]) -> Found:
        return {self.rows[i].input: dict(zip(self.rows[i].reads, of_row, strict=True)) for i, of_row in values.items()}

    def _check_nothing_is_lost(self, found: Found, scored: Sequence[Sequence[Recipe]]) -> None:
        lost = {row.input for recipes in scored for row in _rows_of(recipes)} - found.keys()
        if lost:
            first = next(i for i, row in enumerate(self.rows) if row.input in lost)
            raise RuntimeError(f"{len(lost)} of {len(self.rows)} rows came back without values, first row {first}.")


class Questions(NamedTuple):
    """What some rows of a data set ask of a model, whichever it is.

    Attributes:
        recipes: of those that are scored.
        refused: why the others are left out: {index: the reason}.
    """

    recipes: list[list[Recipe]]
    refused: dict[int, str]


class Planned(NamedTuple):
    """What comes of some rows of a data set.

    Attributes:
        job: what is read of those that are scored.
        refused: why the others are left out: {index: the reason}.
    """

    job: Job
    refused: dict[int, str]


def _key(row: Row) -> str:
    asked: Any = (*row.input, row.reads)
    return hashlib.sha256(marshal.dumps(asked, PLAIN)).hexdigest()[:KEY]


def _score(recipe: Recipe, found: Found) -> float:
    """The score of an option, of what was found for the inputs of its rows."""
    return recipe.combine(_values_of(recipe, found))


def _values_of(recipe: Recipe, found: Found) -> list[list[float]]:
    """What was read of each row of a recipe."""
    return [_of_row(row, found[row.input]) for row in recipe.rows]


def _of_row(row: Row, found: Mapping[tuple[int, int], float]) -> list[float]:
    return [found[read] for read in row.reads]


def _rows_of(recipes: Sequence[Recipe]) -> Iterator[Row]:
    """All rows of the options of an example."""
    return chain.from_iterable(recipe.rows for recipe in recipes)


def _is_truncated(recipes: Sequence[Recipe]) -> bool:
    """Whether the context of an example was cut."""
    return any(recipe.truncated for recipe in recipes)


def _asks_twice(recipes: Sequence[Recipe]) -> bool:
    """Whether two options of an example are the same to the model."""
    asked = [(recipe.rows, recipe.part) for recipe in recipes if recipe.rows]
    return len(set(asked)) < len(asked)
