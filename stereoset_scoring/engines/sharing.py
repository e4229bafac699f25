"""What the rows of an encoder-decoder may share, tried on made-up rows."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from math import inf, isnan
from typing import Any

import torch

from stereoset_scoring.planning.rows import Row
from stereoset_scoring.questions.tokens import start_of
from stereoset_scoring.refusal import Refusal

Closeness = Callable[[Sequence[float], Sequence[float]], bool]

FLOAT32 = 1e-4  # nats, of a log-probability of -1: what batching may change
HALF = 3  # units in the last place of a log-probability, in the mean: what batching may change in half precision
ENCODER, DECODER = 40, 20  # tokens of the longest row, where a job does not say more
HALF_ALONE = 1  # what anything may change that adds no rows


class Sharing(IntEnum):
    """What rows share; each level includes those before it."""

    NOTHING = 0  # a pass of the whole model for every row
    ENCODER = 1  # rows with the same input, the encoder's pass
    LENGTHS = 2  # rows of equal lengths, a pass
    PASSES = 3  # rows of any lengths, padded


def decoder_of(row: Row) -> tuple[int, ...]:
    """What the decoder of a row of an encoder-decoder reads after its start token."""
    assert row.decoder is not None, "a row for an encoder-decoder has a decoder's ids"
    return row.decoder


def longest_side(config: Any, side: str) -> int | None:
    """How many tokens the "encoder" or the "decoder" reads at most; None where positions are not counted."""
    for part in (getattr(config, side, None), config):
        text = (part and getattr(part, "text_config", None)) or part  # an encoder that can also see
        for name in (f"max_{side}_position_embeddings", "max_position_embeddings"):
            longest = getattr(text, name, None)
            if isinstance(longest, int) and longest > 0:
                return longest
    return None


@torch.no_grad()
def tried_sharing(engine: Any, encoder: int, decoder: int) -> Sharing:
    """How much the rows of a batch may share such that none has other numbers for it: a Sharing.

    Tried on four made-up rows, two of them of equal lengths and one as long as said, against the model's own pass over
    each row alone. In float32 nothing may differ by more than 1e-4. Coarser numbers hide what leaks, so there, too, the
    ids of the other rows and those under the padding are changed, which must change nothing at all. Expert capacity
    that is counted over a batch fails there, and encoders that mix positions by other means than attention.

    Raises:
        Refusal: if the model cannot be asked in its dtype, is not the same when it is asked again, has a decoder that
            sees later tokens, or has more outputs than inputs.
    """
    rows = _made_up_rows(engine, encoder, decoder)
    engine.sharing = Sharing.NOTHING
    alone = [_values_alone(engine, row) for row in rows]
    _check_promises(engine, rows[-1], alone[-1])
    close = _closeness(engine.model, HALF)
    for level in (Sharing.ENCODER, Sharing.LENGTHS, Sharing.PASSES):
        some = slice(None) if level == Sharing.PASSES else slice(2)
        try:
            shares = _shares(engine, level, rows[some], alone[some], close)
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
            shares = False  # what is computed apart does not fit together in this architecture
        if not shares:
            return Sharing(level - 1)
    return Sharing.PASSES


def _shares(engine: Any, level: Sharing, rows: Sequence[Row], alone: Sequence[list[float]], close: Closeness) -> bool:
    """Whether rows that share as much as a level says have the values that each has alone."""
    engine.sharing, engine.pass_cost = level, inf  # all rows of any lengths in one pass: what is tried is padding
    try:
        return _says_the_same(engine, rows, alone, close)
    finally:
        del engine.pass_cost


def _says_the_same(engine: Any, rows: Sequence[Row], alone: Sequence[list[float]], close: Closeness) -> bool:
    values = engine._log_probs(rows)
    if not all(map(close, values, alone)) or _is_exact(engine.model):
        return all(map(close, values, alone))
    changed = [rows[0], *(row._replace(ids=row.ids[::-1], decoder=decoder_of(row)[::-1]) for row in rows[1:])]
    filler, engine.pad_token_id = engine.pad_token_id, rows[0].ids[0]
    try:
        return engine._log_probs(changed)[0] == values[0]
    finally:
        engine.pad_token_id = filler


def _values_alone(engine: Any, row: Row) -> list[float]:
    """The values of a row in a pass of its own; refuses a model that gives none, or more than there are inputs."""
    what = f"{type(engine.model).__name__} in {str(engine.model.dtype).removeprefix('torch.')}"
    try:
        outputs = engine.model(**engine.inputs([row])).logits.shape[1]
        values = engine._log_probs([row])[0] if outputs == row.decoder_tokens else []
    except torch.OutOfMemoryError:
        raise
    except (TypeError, ValueError, RuntimeError, IndexError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise Refusal(
            f"A {what} does not read a text and predict another: give another dtype or model ({reason})."
        ) from error
    if outputs != row.decoder_tokens:
        raise Refusal(f"This {what} gives {outputs} outputs for {row.decoder_tokens} inputs: give one that adds none.")
    if any(map(isnan, values)):
        raise Refusal(f"A {what} gives no numbers (NaN): give another dtype or model.")
    return values


def _check_promises(engine: Any, row: Row, values: Sequence[float]) -> None:
    """Refuse a model that is not what the family of encoder-decoders promises, by a row and its values."""
    name, close = type(engine.model).__name__, _closeness(engine.model, HALF_ALONE)
    if not close(engine._log_probs([row])[0], values):
        raise Refusal(
            f"This {name} gives other numbers when it is asked a second time, for it draws random ones or remembers "
            "what it read: no score would hold."
        )
    decoder = decoder_of(row)
    earlier = tuple((position, token) for position, token in row.reads if position < len(decoder))
    for last in ((decoder[0],), ()):  # another token, or none
        later = row._replace(decoder=(*decoder[:-1], *last), reads=earlier)
        if not close(engine._log_probs([later])[0], values[: len(earlier)]):
            raise Refusal(
                f"The decoder of this {name} predicts a token otherwise when others follow, so it gives no "
                "likelihoods: give a model whose decoder is causal, or another dtype."
            )


def _made_up_rows(engine: Any, longest_encoder: int, longest_decoder: int) -> list[Row]:
    """Four rows, the first two of equal lengths, that read eight tokens at every position of the decoder."""
    config, size = engine.model.config, engine.model.get_input_embeddings().weight.shape[0]
    count = min(size, 95) - 5  # of tokens that are special nowhere

    def ids(row: int, length: int, side: str) -> tuple[int, ...]:
        length = min(length, longest_side(config, side) or length)
        return tuple(5 + (row * 31 + i * i * 7 + i * (row + 3)) % count for i in range(length))

    lengths = [(24, 9), (24, 9), (7, 4), (longest_encoder, longest_decoder)]
    rows = []
    for i, (encoder, decoder) in enumerate(lengths):
        whole = ids(i + 4, decoder + 1, "decoder")[1:]
        reads = tuple((position, 5 + k * count // 8) for position in range(len(whole) + 1) for k in range(8))
        rows.append(Row("seq2seq", ids(i, encoder, "encoder"), reads, decoder=whole, start=_any_start(config)))
    return rows


def _any_start(config: Any) -> int:
    start = start_of(config)
    return 5 if start is None else start


def _is_exact(model: Any) -> bool:
    """Whether numbers are fine enough to tell what leaks from what is rounded."""
    return model.dtype in (torch.float32, torch.float64) and torch.get_float32_matmul_precision() == "highest"


def _closeness(model: Any, half: float) -> Closeness:
    """A function of two lists of values: whether they differ by no more than rounding makes.

    In half precision that may move a single value far, but all of them by no more than half units in the last place in
    the mean; what leaks moves them all.
    """
    eps, exact = torch.finfo(model.dtype).eps, _is_exact(model)

    def close(some: Sequence[float], others: Sequence[float]) -> bool:
        differences = [0 if a == b else abs(a - b) for a, b in zip(some, others, strict=True)]  # two of -inf are equal
        if exact:
            return all(d <= FLOAT32 * max(1, abs(b)) for d, b in zip(differences, others, strict=True))
        return sum(differences) <= half * eps * sum(map(abs, others))

    return close
