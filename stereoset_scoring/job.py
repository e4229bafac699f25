"""A job: the recipes of many options turned into distinct rows and batches, and readings back into scores."""

from dataclasses import dataclass

from stereoset_scoring.batching import by_tokens
from stereoset_scoring.rows import Recipe, Row


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
            (_input(row), read): value
            for i, row in enumerate(self.rows)
            for read, value in zip(row.reads, values[i], strict=True)
        }
        return [
            [
                recipe.combine([[found[_input(row), read] for read in row.reads] for row in recipe.rows])
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
            merged.setdefault(_input(row), {}).update(dict.fromkeys(row.reads))
    rows = [Row(head, ids, tuple(sorted(reads)), segments) for (head, ids, segments), reads in merged.items()]
    batches = []
    for head in dict.fromkeys(row.head for row in rows):
        of_head = [i for i, row in enumerate(rows) if row.head == head]
        plan = by_tokens([len(rows[i].ids) for i in of_head], max_tokens)
        batches += [[of_head[i] for i in batch] for batch in plan]
    return Job(recipes, rows, batches)


def _input(row):
    return row.head, row.ids, row.segments
