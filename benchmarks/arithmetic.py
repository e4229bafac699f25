"""How many multiply-adds a forward pass takes, counted from what goes through it."""

from dataclasses import dataclass

from stereoset_scoring.planning.packing import pack


@dataclass(frozen=True)
class Matrices:
    """The weight matrices of a model, each as (inputs, outputs).

    Attributes:
        body: those that every token passes, all layers together.
        head: those that lead to the vocabulary, which only a place that is read has to pass.
        attention: layers times width: what one token costs that sees another, once for its score and once for its
            value.
    """

    body: tuple[tuple[int, int], ...]
    head: tuple[tuple[int, int], ...]
    attention: int


@dataclass(frozen=True)
class Load:
    """What goes through a model.

    Attributes:
        tokens: through its body.
        pairs: of a token and one that it sees.
        places: through its head.
    """

    tokens: int = 0
    pairs: int = 0
    places: int = 0

    def __add__(self, other):
        return Load(self.tokens + other.tokens, self.pairs + other.pairs, self.places + other.places)


def multiply_adds(matrices, load):
    """Multiply-adds of a load: the matrices that its tokens and places pass, and what its tokens see."""
    body, head = (sum(inputs * outputs for inputs, outputs in some) for some in (matrices.body, matrices.head))
    return load.tokens * body + load.places * head + load.pairs * 2 * matrices.attention


def useful_load(job):
    """The Load that a job cannot do without: distinct tokens without padding, the head where something is read."""
    return sum((_load_of_unit(unit) for batch in job.batches for unit in batch), Load())


def _load_of_unit(unit):
    """The Load of rows that share their beginnings: as a tree of tokens where a token sees its ancestors only."""
    if unit.rows[0].head != "causal":
        return sum((Load(len(row.ids), len(row.ids) ** 2, len(_places(row))) for row in unit.rows), Load())
    tree = unit.pack or pack([row.ids for row in unit.rows])
    read = {path[place] for row, path in zip(unit.rows, tree.paths, strict=True) for place in _places(row)}
    return Load(len(tree.ids), sum(position + 1 for position in tree.positions), len(read))


def _places(row):
    return {position for position, _ in row.reads}
