"""Whether what is asked of a model lies within its tables: token ids, token types, and the tokens that are read."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class Tables:
    """How many rows the tables of a model have, or must have; None where there is no table, or nothing asked of it.

    Attributes:
        ids: the token ids that the model reads; of an encoder-decoder, its encoder.
        decoder: the token ids that its decoder reads.
        outputs: the tokens that it gives a probability.
        types: the token types that it reads.
    """

    ids: int | None = None
    decoder: int | None = None
    outputs: int | None = None
    types: int | None = None

    @property
    def of_tokens(self) -> tuple[int | None, ...]:
        """All but that of the types."""
        return self.ids, self.decoder, self.outputs


def tables_of(model: Any) -> Tables:
    """The Tables that a transformers model has, be it inside a NextSentenceModel."""
    model = getattr(model, "core_model", model)
    decoder = model.get_decoder() if model.config.is_encoder_decoder else None
    known, written = (_length(_asked(model, f"get_{side}_embeddings")) for side in ("input", "output"))
    return Tables(
        known,
        _length(_asked(decoder, "get_input_embeddings")),
        # A projection to less than what is read is no projection to a vocabulary, but a part of one of another make.
        None if known and written and 2 * written < known else written,
        _length(_token_types(model)),
    )


def tables_for(rows: Sequence[Any]) -> Tables:
    """The Tables that some rows need."""
    return Tables(
        _above(row.ids for row in rows),
        _above(row.decoder for row in rows),
        _above(map(_tokens_read, rows)),
        _above(row.segments for row in rows),
    )


def _tokens_read(row: Any) -> list[int]:
    return [token for _, token in row.reads]


def check_fit(rows: Sequence[Any], model_of: Callable[[str], Any], name: str, largest: int | None = None) -> None:
    """Refuse rows that ask of a model what it does not hold: the tokenizer is not the model's.

    What counts is what the rows hold, not all that the tokenizer could give: many a checkpoint has tokens that nothing
    uses beyond the last row of its tables.

    Args:
        rows: all that is asked.
        model_of: from the head that a row asks to the transformers model; to None where its tables are elsewhere.
        name: the checkpoint's.
        largest: no id is larger, whatever is asked; None where that is not known.

    Raises:
        Refusal: if an id, or a token type, is beyond the last row of its table.
    """
    for head in dict.fromkeys(row.head for row in rows):
        model = model_of(head)
        if model is None:
            continue
        given = tables_of(model)
        if not getattr(model, "reads_segments", True):
            given = replace(given, types=None)
        of_head = [row for row in rows if row.head == head]
        if largest is not None and all(size is None or largest < size for size in given.of_tokens):
            needed = Tables(types=_above(row.segments for row in of_head))
        else:
            needed = tables_for(of_head)
        for part, needs in vars(needed).items():
            _refuse_beyond(part, needs, getattr(given, part), name)


def _refuse_beyond(part: str, needs: int | None, has: int | None, name: str) -> None:
    if needs is None or has is None or needs <= has:
        return
    what = "token types" if part == "types" else "tokens"
    raise Refusal(
        f"The tokenizer does not fit the model: the texts have {what} up to id {needs - 1}, and {name} has a table of "
        f"{has} {what}: give the tokenizer that belongs to the model."
    )


def _above(some: Iterable[Sequence[int] | None]) -> int | None:
    """One more than the largest number in some lists; None if there is none in them."""
    known: set[int] = set()
    known.update(*filter(None, some))
    return max(known) + 1 if known else None


def _asked(model: Any, question: str) -> Any:
    """What a model answers; None if it cannot."""
    try:
        return getattr(model, question)()
    except (AttributeError, NotImplementedError):
        return None


def _token_types(model: Any) -> Any:
    """The table that a model looks token types up in; None if it has none."""
    modules = (module for path, module in model.named_modules() if path.split(".")[-1] == "token_type_embeddings")
    return next(modules, None)


def _length(table: Any) -> int | None:
    """How many rows a table has, also where its weights are elsewhere; None if it is none."""
    for count in ("num_embeddings", "out_features"):
        if hasattr(table, count):
            return getattr(table, count)
    shape: Sequence[int] = getattr(getattr(table, "weight", None), "shape", ())
    return shape[0] if len(shape) == 2 else None
