"""Units: the rows that are computed together, with the tree of what they share. What planning hands to engines."""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

from stereoset_scoring.planning.packing import Pack, Shared, pack, shared_beginnings
from stereoset_scoring.planning.rows import Row


@dataclass(frozen=True)
class Unit:
    """One row, or rows of which what they share is computed once: their beginnings, or an encoder's input.

    Attributes:
        rows: the rows; all of them ask one head, in one way.
        indices: where each of them stands in its job.
        packed: whether their beginnings are shared.
    """

    rows: tuple[Row, ...]
    indices: tuple[int, ...]
    packed: bool = False

    @cached_property
    def pack(self) -> Pack | None:
        """The tree of their tokens, where their beginnings are shared; None where each is computed for itself."""
        return pack([row.ids for row in self.rows], self._beginnings) if self.packed else None

    @cached_property
    def _beginnings(self) -> list[Shared]:
        """What the rows share, where their beginnings are shared."""
        return shared_beginnings([row.ids for row in self.rows])

    @cached_property
    def tokens(self) -> int:
        """What the unit takes of a batch: its tokens, or its tree's; of decoders, also those that each looks at."""
        if self.rows[0].decoder is not None:
            return len(self.rows) * max(row.tokens for row in self.rows)
        lengths = sum(len(row.ids) for row in self.rows)
        return lengths - sum(shared for _, shared in self._beginnings) if self.packed else lengths

    def unpacked(self) -> "Unit":
        """The unit without its tree."""
        return replace(self, packed=False) if self.packed else self

    def without(self, known: Container[int]) -> "Unit | None":
        """The unit without the rows whose indices are known; None where nothing is left."""
        kept = [place for place, i in enumerate(self.indices) if i not in known]
        if len(kept) == len(self.rows):
            return self
        rows, indices = [self.rows[place] for place in kept], [self.indices[place] for place in kept]
        return unit_of(rows, indices, self.packed) if kept else None

    def alone(self) -> list["Unit"]:
        """Each row as a unit of its own."""
        return [unit_of([row], [i], self.packed) for row, i in zip(self.rows, self.indices, strict=True)]


def unit_of(rows: Sequence[Row], indices: Sequence[int] | None = None, packed: bool = False) -> Unit:
    """Some rows as a Unit.

    Args:
        rows: one or more.
        indices: where they stand in a job; by default, where they stand here.
        packed: whether their beginnings are shared.
    """
    return Unit(tuple(rows), tuple(range(len(rows)) if indices is None else indices), packed)


def joined_units(units: Sequence[Unit]) -> Unit:
    """Packed units as one, their trees side by side."""
    if len(units) == 1:
        return units[0]
    rows = chain.from_iterable(unit.rows for unit in units)
    indices = chain.from_iterable(unit.indices for unit in units)
    return unit_of(tuple(rows), tuple(indices), packed=True)
