"""Making a plan: the recipes of many options turned into distinct rows, units of rows, and batches of units."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from operator import lt

from stereoset_scoring.planning.batching import LARGE_ENOUGH, by_tokens, in_passes, side_by_side
from stereoset_scoring.planning.job import Asked, Job
from stereoset_scoring.planning.rows import GREEDY, Input, Recipe, Row
from stereoset_scoring.planning.units import Unit, joined_units, unit_of

WIDTH = 128  # tokens up to which trees stand side by side: attention, which looks at all of them, still costs little


Kind = tuple[Hashable, ...]  # what the rows of one batch have in common: the head, and how it is asked


def make_job(
    recipes: list[list[Recipe]],
    max_tokens: int,
    shares_prefixes: Callable[[str], bool] = lambda head: False,
    ids: tuple[str, ...] = (),
) -> Job:
    """A Job from recipes[i][j], option j of example i: equal inputs become one row, rows become batches.

    Args:
        recipes: as in Job.
        max_tokens: how many tokens, padding included, a batch may hold.
        shares_prefixes: whether a head computes the shared beginnings of the rows of a unit once.
        ids: the examples' ids.

    Raises:
        ValueError: if a row alone is longer than max_tokens.
    """
    rows, asked, examples = distinct_rows(recipes)
    batches: list[list[Unit]] = []
    for units in _units_by_kind(rows, examples, max_tokens, shares_prefixes):
        if shares_prefixes(units[0].rows[0].head):
            units = _side_by_side(units, min(WIDTH, max_tokens))
        # Encoder-decoders are padded in passes of their own, and may stand beside any others.
        large = 1 if units[0].rows[0].decoder is not None else LARGE_ENOUGH
        for batch in by_tokens([unit.tokens for unit in units], max_tokens, large):
            batches.append([units[i] for i in batch])
    counts = [computed_tokens(batch) for batch in batches]
    computed, padded = sum(computed for computed, _ in counts), sum(padded for _, padded in counts)
    return Job(recipes, asked, rows, batches, computed, padded, ids)


def distinct_rows(recipes: Sequence[Sequence[Recipe]]) -> tuple[list[Row], list[list[Asked]], list[int]]:
    """The distinct inputs, each a row with all that anybody reads from it.

    Returns:
        (those rows; asked[i][j], the indices of the rows that option j of example i reads; the first example that asks
        each row).
    """
    numbers: dict[Input, int] = {}
    alike: list[list[Row]] = []
    examples: list[int] = []

    def number_of(row: Row, example: int) -> int:
        number = numbers.setdefault(row.input, len(alike))
        if number == len(alike):
            alike.append([])
            examples.append(example)
        alike[number].append(row)
        return number

    asked: list[list[Asked]] = []
    for i, of_example in enumerate(recipes):
        of_options = []
        for recipe in of_example:
            of_options.append(tuple([number_of(row, i) for row in recipe.rows]))
        asked.append(of_options)
    return list(map(_together, alike)), asked, examples


def _together(rows: Sequence[Row]) -> Row:
    """One row for some of equal input, with all that they read, in order."""
    first = rows[0]
    if len(rows) == 1 and all(map(lt, first.reads, first.reads[1:])):  # as nearly always
        return first.reading(first.reads)
    return first.reading(tuple(sorted(set(chain.from_iterable(row.reads for row in rows)))))


def computed_tokens(units: Sequence[Unit]) -> tuple[int, int]:
    """(tokens that the model reads in a batch of units, the same with padding): what is shared counts once.

    Of encoder-decoders, the tokens of every distinct encoder's input and of every row's decoder.
    """
    if units[0].rows[0].decoder is None:
        lengths = [unit.tokens for unit in units]
        return sum(lengths), len(lengths) * max(lengths)
    rows = [row for unit in units for row in unit.rows]
    encoders = list(map(len, {row.ids for row in rows}))
    decoders = [row.decoder_tokens for row in rows]
    return sum(encoders) + sum(decoders), _padded_in_passes(encoders) + _padded_in_passes(decoders)


def _padded_in_passes(lengths: Sequence[int]) -> int:
    return sum(len(some) * max(map(lengths.__getitem__, some)) for some in in_passes(lengths))


def _units_by_kind(
    rows: Sequence[Row], examples: Sequence[int], max_tokens: int, shares_prefixes: Callable[[str], bool]
) -> Iterable[list[Unit]]:
    """All rows in units, in lists of those that a batch may hold together."""
    by_kind: dict[Hashable, list[Unit]] = defaultdict(list)
    for indices in _sharing(rows, examples, shares_prefixes):
        first = rows[indices[0]]
        unit = unit_of([rows[i] for i in indices], indices, shares_prefixes(first.head))
        for part in [unit] if unit.tokens <= max_tokens else unit.alone():
            # Units of different numbers of decoders are kept apart: each decoder holds all that its encoder says.
            decoders = 1 if first.decoder is None else len(part.rows)
            by_kind[_kind(first), decoders].append(part)
    return by_kind.values()


def _sharing(
    rows: Sequence[Row], examples: Sequence[int], shares_prefixes: Callable[[str], bool]
) -> Iterable[list[int]]:
    """Groups of indices of rows of one kind that share something.

    Decoders share their encoder's input; rows of one example share their beginnings, where the model computes them
    once; all others stand alone.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    heads = set(filter(shares_prefixes, dict.fromkeys(row.head for row in rows)))
    for i, row in enumerate(rows):
        shared: Hashable = ~i  # with no other, nor with an example
        if row.decoder is not None:
            shared = row.ids
        elif row.head in heads:
            shared = examples[i]
        groups[_kind(row), shared].append(i)
    return groups.values()


def _side_by_side(units: Sequence[Unit], width: int) -> list[Unit]:
    """Packed units joined to units of about equal size: nothing is padded, and no tree sees another."""
    groups = side_by_side([unit.tokens for unit in units], width)
    return [joined_units(list(map(units.__getitem__, group))) for group in groups]


def _kind(row: Row) -> Kind:
    return row.head, row.among, row.weighted, row.query, row.decoder is not None and GREEDY in row.decoder
