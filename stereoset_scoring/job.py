"""A job: the recipes of many options turned into distinct rows and batches, and readings back into scores."""

from dataclasses import dataclass, replace

from stereoset_scoring.batching import by_tokens
from stereoset_scoring.rows import GREEDY, Recipe, Row


@dataclass(frozen=True)
class Job:
    """What one run computes, the same on every process.

    Attributes:
        recipes: recipes[i][j] is option j of example i.
        rows: the distinct inputs, each with all that anybody reads from it.
        batches: indices into rows; every batch asks one head.
    """

    recipes: list[list[Recipe]]
    rows: list[Row]
    batches: list[list[int]]

    @property
    def forward_tokens(self):
        """Tokens that the model reads, padding left out."""
        return sum(len(row.ids) for row in self.rows)

    @property
    def padded_tokens(self):
        """Tokens that the model reads, padding included."""
        return sum(len(batch) * len(self.rows[batch[0]].ids) for batch in self.batches)

    @property
    def straddling(self):
        """Tokens that span a border between what is scored and what is given, over all options."""
        return sum(recipe.straddling for recipes in self.recipes for recipe in recipes)

    @property
    def truncated(self):
        """Examples whose given context was cut from the left, because the model cannot read it all."""
        return sum(any(recipe.truncated for recipe in recipes) for recipes in self.recipes)

    def scores(self, values):
        """From the values of each row, aligned with its reads, to scores[i][j] of option j of example i.

        Raises:
            RuntimeError: if a row came back without values.
        """
        lost = [i for i in range(len(self.rows)) if values.get(i) is None]
        if lost:
            raise RuntimeError(f"{len(lost)} of {len(self.rows)} rows came back without values, first row {lost[0]}.")
        found = {
            (row.input, read): value
            for i, row in enumerate(self.rows)
            for read, value in zip(row.reads, values[i], strict=True)
        }
        return [
            [
                recipe.combine([[found[row.input, read] for read in row.reads] for row in recipe.rows])
                for recipe in recipes
            ]
            for recipes in self.recipes
        ]


def make_job(recipes, max_tokens):
    """A Job from recipes[i][j], option j of example i: equal inputs become one row, rows become batches.

    Raises:
        ValueError: if a row alone is longer than max_tokens.
    """
    merged = {}
    for recipe in (recipe for options in recipes for recipe in options):
        for row in recipe.rows:
            merged.setdefault(row.input, {}).update(dict.fromkeys(row.reads))
    rows = [replace(inputs, reads=tuple(sorted(reads))) for inputs, reads in merged.items()]
    batches = []
    for kind in dict.fromkeys(_kind(row) for row in rows):
        of_kind = [i for i, row in enumerate(rows) if _kind(row) == kind]
        plan = by_tokens([len(rows[i].ids) for i in of_kind], max_tokens)
        batches += [[of_kind[i] for i in batch] for batch in plan]
    return Job(recipes, rows, batches)


def _kind(row):
    """What the rows of one batch have in common: the head, and how it is asked."""
    return row.head, row.among, row.weighted, row.query, row.decoder is not None and GREEDY in row.decoder
