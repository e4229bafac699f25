"""A job: the recipes of many options turned into distinct rows and batches, and readings back into scores."""

import hashlib
from dataclasses import dataclass, fields, replace
from functools import cached_property

from stereoset_scoring.planning.batching import by_tokens, in_passes, side_by_side
from stereoset_scoring.planning.packing import pack
from stereoset_scoring.planning.rows import GREEDY, Recipe, Row

FOREST = 128  # tokens in which trees stand side by side: attention, which looks at all of them, still costs little


@dataclass(frozen=True)
class Job:
    """What one run computes, the same on every process.

    Attributes:
        recipes: recipes[i][j] is option j of example i.
        rows: the distinct inputs, each with all that anybody reads from it.
        batches: lists of units, which are lists of indices into rows; every batch asks one head, and a unit is one
            row, or rows of which what they share is computed once: their beginnings, or an encoder's input.
        forward_tokens: tokens that the model reads, padding left out; see `computed_tokens`.
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

    @property
    def heads(self):
        """The heads that are asked."""
        return tuple(dict.fromkeys(row.head for row in self.rows))

    @property
    def equal_options(self):
        """Examples of which two options are the same to the model: equal rows are read of them."""
        asked = [[recipe.rows for recipe in recipes if recipe.rows] for recipes in self.recipes]
        return sum(len(set(of_example)) < len(of_example) for of_example in asked)

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
    groups = {}
    for i, inputs in enumerate(reads):
        if inputs.decoder is not None:
            shared = inputs.ids
        else:
            shared = examples[inputs] if shares_prefixes(inputs.head) else f"row {i}"
        groups.setdefault((_kind(inputs), shared), []).append(i)
    kinds = {}
    for (kind, _), group in groups.items():
        for unit in _units(group, rows, max_tokens):
            # Units of different numbers of decoders are kept apart: each decoder holds all that its encoder says.
            kinds.setdefault((kind, len(unit) if rows[unit[0]].decoder is not None else 1), []).append(unit)
    batches, forward_tokens, padded_tokens = [], 0, 0
    for (kind, _), units in kinds.items():
        if shares_prefixes(kind[0]):
            units = _planted(units, rows, min(FOREST, max_tokens))
        plan = by_tokens([_size([rows[i] for i in unit]) for unit in units], max_tokens)
        for batch in plan:
            batches.append([units[i] for i in batch])
            computed, padded = computed_tokens([[rows[i] for i in unit] for unit in batches[-1]])
            forward_tokens += computed
            padded_tokens += padded
    return Job(recipes, rows, batches, forward_tokens, padded_tokens)


def computed_tokens(units):
    """(tokens that the model reads in a batch of units, the same with padding): what is shared counts once.

    Of encoder-decoders, the tokens of every distinct encoder's input and of every row's decoder.
    """
    rows = [row for unit in units for row in unit]
    if rows[0].decoder is None:
        lengths = [_size(unit) for unit in units]
        return sum(lengths), len(lengths) * max(lengths)
    encoders, decoders = [len(ids) for ids in {row.ids for row in rows}], [row.decoder_tokens for row in rows]
    padded = sum(len(some) * lengths[some[0]] for lengths in (encoders, decoders) for some in in_passes(lengths))
    return sum(encoders) + sum(decoders), padded


def _units(group, rows, max_tokens):
    """A group of rows as one unit, or each row as one where together they are larger than a batch may be."""
    return [group] if _size([rows[i] for i in group]) <= max_tokens else [[i] for i in group]


def _planted(units, rows, width):
    """Units side by side in units of about equal size: nothing is padded, and no tree sees another."""
    forests = side_by_side([_size([rows[i] for i in unit]) for unit in units], width)
    return [[i for tree in forest for i in units[tree]] for forest in forests]


def _size(unit):
    """What a unit takes of a batch's budget: the tokens of its tree; for decoders, also those that each looks at."""
    if unit[0].decoder is not None:
        return len(unit) * max(row.tokens for row in unit)
    return len(pack([row.ids for row in unit]).ids) if len(unit) > 1 else len(unit[0].ids)


def _kind(row):
    """What the rows of one batch have in common: the head, and how it is asked."""
    return row.head, row.among, row.weighted, row.query, row.decoder is not None and GREEDY in row.decoder
