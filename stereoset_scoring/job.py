"""A job: the recipes of many options turned into distinct rows and batches, and readings back into scores."""

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cached_property

from stereoset_scoring.batching import by_tokens
from stereoset_scoring.packing import pack
from stereoset_scoring.rows import GREEDY, Recipe, Row


@dataclass(frozen=True)
class Job:
    """What one run computes, the same on every process.

    Attributes:
        recipes: recipes[i][j] is option j of example i.
        rows: the distinct inputs, each with all that anybody reads from it.
        batches: lists of units, which are lists of indices into rows; every batch asks one head, and a unit is one
            row, or the rows of one example that share their beginnings.
        forward_tokens: tokens that the model reads, padding left out.
        padded_tokens: tokens that the model reads, padding included.
        ids: the examples' ids.
    """

    recipes: list[list[Recipe]]
    rows: list[Row]
    batches: list[list[list[int]]]
    forward_tokens: int = 0
    padded_tokens: int = 0
    ids: tuple[str, ...] = ()

    @property
    def straddling(self):
        """Tokens that span a border between what is scored and what is given, over all options."""
        return sum(recipe.straddling for recipes in self.recipes for recipe in recipes)

    @property
    def truncated(self):
        """Examples whose given context was cut from the left, because the model cannot read it all."""
        return sum(any(recipe.truncated for recipe in recipes) for recipes in self.recipes)

    @cached_property
    def digest(self):
        """sha256, as hex, over the rows: of equal jobs, a row's index names the same question."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(repr(tuple(getattr(row, field.name) for field in fields(Row))).encode())
        return digest.hexdigest()

    def without(self, known):
        """The batches without the rows that are known."""
        batches = [[[i for i in unit if i not in known] for unit in batch] for batch in self.batches]
        return [batch for batch in ([unit for unit in batch if unit] for batch in batches) if batch]

    def unscored(self, failures):
        """The examples that cannot be scored for want of some rows: {index of the example: why}.

        Args:
            failures: {index of the row: why it cannot be read}.
        """
        reasons = {self.rows[i].input: reason for i, reason in failures.items()}
        lacking = (
            (i, [reasons[row.input] for recipe in recipes for row in recipe.rows if row.input in reasons])
            for i, recipes in enumerate(self.recipes)
        )
        return {i: found[0] for i, found in lacking if found}

    def name_of(self, index):
        """What a row belongs to, for a message."""
        example = next(iter(self.unscored({index: ""})))
        return f"Example {self.ids[example]!r}" if self.ids else f"Example {example} (counted from 0)"

    def scores(self, values, unscored=()):
        """From the values of each row, aligned with its reads, to scores[i][j] of option j of example i.

        Args:
            values: {index of the row: its values}.
            unscored: indices of examples for which None stands instead of scores.

        Raises:
            RuntimeError: if a row came back without values.
        """
        found = {self.rows[i].input: dict(zip(self.rows[i].reads, of_row, strict=True)) for i, of_row in values.items()}
        scored = [recipes for i, recipes in enumerate(self.recipes) if i not in unscored]
        lost = {row.input for recipes in scored for recipe in recipes for row in recipe.rows} - found.keys()
        if lost:
            first = next(i for i, row in enumerate(self.rows) if row.input in lost)
            raise RuntimeError(f"{len(lost)} of {len(self.rows)} rows came back without values, first row {first}.")
        return [
            None
            if i in unscored
            else [
                recipe.combine([list(map(found[row.input].__getitem__, row.reads)) for row in recipe.rows])
                for recipe in recipes
            ]
            for i, recipes in enumerate(self.recipes)
        ]


def make_job(recipes, max_tokens, shares_prefixes=lambda head: False):
    """A Job from recipes[i][j], option j of example i: equal inputs become one row, rows become batches.

    Args:
        recipes: as in Job.
        max_tokens: how many tokens, padding included, a batch may hold.
        shares_prefixes: whether a head computes the shared beginnings of the rows of a unit once.

    Raises:
        ValueError: if a row alone is longer than max_tokens.
    """
    reads, examples = {}, {}
    for i, of_example in enumerate(recipes):
        for row in (row for recipe in of_example for row in recipe.rows):
            inputs = row.input
            reads.setdefault(inputs, {}).update(dict.fromkeys(row.reads))
            examples.setdefault(inputs, i)
    rows = [replace(inputs, reads=tuple(sorted(found))) for inputs, found in reads.items()]
    kinds = {}
    for i, inputs in enumerate(reads):
        unit = examples[inputs] if shares_prefixes(inputs.head) else f"row {i}"
        kinds.setdefault(_kind(inputs), {}).setdefault(unit, []).append(i)
    batches, forward_tokens, padded_tokens = [], 0, 0
    for grouped in kinds.values():
        units, lengths = zip(
            *(unit for group in grouped.values() for unit in _units(group, rows, max_tokens)), strict=True
        )
        plan = by_tokens(lengths, max_tokens)
        batches += [[units[i] for i in batch] for batch in plan]
        forward_tokens += sum(lengths)
        padded_tokens += sum(len(batch) * lengths[batch[0]] for batch in plan)
    return Job(recipes, rows, batches, forward_tokens, padded_tokens)


def _units(group, rows, max_tokens):
    """[(unit, its length)]: a group of rows as one, or each row as one where it is larger than a batch may be."""
    length = len(pack([rows[i].ids for i in group]).ids) if len(group) > 1 else len(rows[group[0]].ids)
    if length <= max_tokens or len(group) == 1:
        return [(group, length)]
    return [([i], len(rows[i].ids)) for i in group]


def _kind(row):
    """What the rows of one batch have in common: the head, and how it is asked."""
    return row.head, row.among, row.weighted, row.query, row.decoder is not None and GREEDY in row.decoder
