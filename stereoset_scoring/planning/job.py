"""A job: what one run computes, and how its readings become scores. `stereoset_scoring.planning.plan` makes it."""

import hashlib
import marshal
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from stereoset_scoring.planning.rows import Recipe, Row, Values
from stereoset_scoring.planning.units import Unit

KEY = 20  # digits, such that no two of a billion rows are likely to share them
PLAIN = 2  # the version of marshal in which equal values are equal bytes, and which takes a third of the time of repr

Asked = tuple[int, ...]  # of an option, the indices of the rows that it reads


@dataclass(frozen=True)
class Job:
    """What one run computes, the same on every process.

    Attributes:
        recipes: recipes[i][j] is option j of example i.
        asked: asked[i][j], the indices of the rows that it reads, in the order of the recipe's.
        rows: the distinct inputs, each with all that anybody reads from it.
        batches: lists of units, in which every row stands once; every batch asks one head, in one way.
        forward_tokens: tokens that the model reads, padding left out; what is shared counts once.
        padded_tokens: tokens that the model reads, padding included.
        ids: the examples' ids.
    """

    recipes: list[list[Recipe]]
    asked: list[list[Asked]]
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
        return sum(map(_asks_twice, self.recipes, self.asked))

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
        if not failures:  # as nearly always
            return {}
        unscored: dict[int, str] = {}
        for i, asked in enumerate(self.asked):
            for row in chain.from_iterable(asked):
                if row in failures:
                    unscored.setdefault(i, failures[row])
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
        self._check_nothing_is_lost(values, unscored)
        values_of = self._reader(values)

        def score(recipe: Recipe, asked: Asked) -> float:
            return recipe.combine(values_of(recipe, asked))

        scores: list[list[float] | None] = []
        for i, (recipes, asked) in enumerate(zip(self.recipes, self.asked, strict=True)):
            scores.append(None if i in unscored else list(map(score, recipes, asked)))
        return scores

    def observed(self, values: Mapping[int, Sequence[float]], unscored: Container[int] = ()) -> dict[str, list[float]]:
        """All that recipes observe beside the scores, by its name; see `scores` for what is given."""
        seen: dict[str, list[float]] = defaultdict(list)
        values_of = self._reader(values)
        for recipe, asked in self._options(unscored):
            if recipe.observe:
                for name, value in recipe.observe(values_of(recipe, asked)).items():
                    seen[name].append(value)
        return dict(seen)

    def _options(self, unscored: Container[int]) -> Iterator[tuple[Recipe, Asked]]:
        """The recipes of all options of the examples that are scored, each with the rows that it reads."""
        for i, (recipes, asked) in enumerate(zip(self.recipes, self.asked, strict=True)):
            if i not in unscored:
                yield from zip(recipes, asked, strict=True)

    def _reader(self, values: Mapping[int, Sequence[float]]) -> Callable[[Recipe, Asked], Values]:
        """What gives the values of each row of a recipe, of those of the rows that read them for all."""
        by_read: dict[int, dict[tuple[int, int], float]] = {}

        def of_row(row: Row, number: int) -> Sequence[float]:
            of_all, found = self.rows[number].reads, values[number]
            if row.reads is of_all and len(found) == len(of_all):  # as of nearly all
                return found
            if number not in by_read:
                by_read[number] = dict(zip(of_all, found, strict=True))
            return list(map(by_read[number].__getitem__, row.reads))

        def of_recipe(recipe: Recipe, asked: Asked) -> Values:
            return list(map(of_row, recipe.rows, asked))

        return of_recipe

    def _check_nothing_is_lost(self, values: Container[int], unscored: Container[int]) -> None:
        if all(map(values.__contains__, range(len(self.rows)))):  # as nearly always
            return
        needed = set(chain.from_iterable(asked for _, asked in self._options(unscored)))
        lost = [row for row in sorted(needed) if row not in values]
        if lost:
            raise RuntimeError(f"{len(lost)} of {len(self.rows)} rows came back without values, first row {lost[0]}.")


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


def _is_truncated(recipes: Sequence[Recipe]) -> bool:
    """Whether the context of an example was cut."""
    return any(recipe.truncated for recipe in recipes)


def _asks_twice(recipes: Sequence[Recipe], rows: Sequence[Asked]) -> bool:
    """Whether two options of an example, which read the rows of these indices, are the same to the model."""
    if len(set(rows)) == len(rows):
        return False
    asked = [(recipe.rows, recipe.part) for recipe in recipes if recipe.rows]
    return len(set(asked)) < len(asked)
