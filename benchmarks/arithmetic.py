"""How many multiply-adds a forward pass takes, counted from what goes through it."""

from dataclasses import dataclass, fields

from stereoset_scoring.planning.packing import pack


@dataclass(frozen=True)
class Matrices:
    """The weight matrices of a model, each as (inputs, outputs).

    Attributes:
        body: those that every token passes, all layers together.
        head: those that lead to the vocabulary, which only a place that is read has to pass.
        attention: layers times width: what one token costs that sees another, once for its score and once for its
            value.
        decoder: those that every token of a decoder passes; the body is then the encoder, and what a decoder makes of
            its output.
    """

    body: tuple[tuple[int, int], ...]
    head: tuple[tuple[int, int], ...]
    attention: int
    decoder: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Load:
    """What goes through a model.

    Attributes:
        tokens: through its body.
        pairs: of a token and one that it sees.
        places: through its head.
        decoded: tokens through its decoder.
    """

    tokens: int = 0
    pairs: int = 0
    places: int = 0
    decoded: int = 0

    def __add__(self, other):
        return Load(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


def multiply_adds(matrices, load):
    """Multiply-adds of a load: the matrices that its tokens and places pass, and what its tokens see."""
    parts = (matrices.body, load.tokens), (matrices.head, load.places), (matrices.decoder, load.decoded)
    passed = sum(count * sum(inputs * outputs for inputs, outputs in some) for some, count in parts)
    return passed + load.pairs * 2 * matrices.attention


def useful_load(job):
    """The Load that a job cannot do without: distinct tokens without padding, the head where something is read."""
    return sum((_load_of_unit(unit) for batch in job.batches for unit in batch), Load())


def _load_of_unit(unit):
    """The Load of rows that share their beginnings: as a tree of tokens where a token sees its ancestors only."""
    if unit.rows[0].decoder is not None:
        return sum(map(_load_of_decoder, unit.rows), _load_of_encoders({row.ids for row in unit.rows}))
    if unit.rows[0].head != "causal":
        return sum((Load(len(row.ids), len(row.ids) ** 2, len(_places(row))) for row in unit.rows), Load())
    tree = unit.pack or pack([row.ids for row in unit.rows])
    read = {path[place] for row, path in zip(unit.rows, tree.paths, strict=True) for place in _places(row)}
    return Load(len(tree.ids), sum(position + 1 for position in tree.positions), len(read))


def _load_of_encoders(inputs):
    return Load(tokens=sum(map(len, inputs)), pairs=sum(len(ids) ** 2 for ids in inputs))


def _load_of_decoder(row):
    """The Load of a decoder, whose tokens see those before them and all of their encoder's."""
    count = row.decoder_tokens
    return Load(0, count * (count + 1) // 2 + count * len(row.ids), len(_places(row)), count)


def _places(row):
    return {position for position, _ in row.reads}
