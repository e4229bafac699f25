"""By which a model shows that it is what its family says, and earns what makes it fast; on tokens of the job.

Two passes over the same tokens but a few show what depends on what, in any dtype: what does not see a token is the
same to the bit. What batches change by themselves is rounding, and the measure for all else.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

import torch

from stereoset_scoring.engines.budget import free_memory, ran_out_of_memory
from stereoset_scoring.planning.packing import Pack, pack
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.refusal import Refusal, in_short

if TYPE_CHECKING:
    from stereoset_scoring.engines.base import Engine, Inputs
    from stereoset_scoring.engines.bidirectional import BidirectionalEngine
    from stereoset_scoring.engines.causal import CausalEngine
    from stereoset_scoring.engines.language_model import LanguageModelEngine

FEW = 4
# What counts parts, names tokens or speaks of other tasks is no length.
_NO_LENGTH = re.compile("layer|head|expert|vocab|token_id|task_specific|id2label|label2id")
_OF_DTYPE = re.compile("dtype|scalar type|BFloat16|Half|Double")  # in torch's errors
FULL = 3e-5  # relative, of a hidden state in float32: rounding stays below, and one in the wrong place does not
ALIKE = 0.05  # relative, of logits that are computed in another order
MOST = 0.7  # of the places: rounding sends a token to another expert here and there
PLACES = 2  # at which a projection is asked alone, as it is at many
HALF = 4  # units of a half-precision dtype's last place; or three times what a batch changes, if that is more


@dataclass(frozen=True)
class Trial:
    """What a model has shown.

    Attributes:
        reach: up to how many tokens it is known to go on as tried; 0 where nothing was tried.
        packs: whether rows that share their beginnings may be computed as one tree.
        pads: whether a row may stand beside longer ones.
        selects: whether its projection may be asked at the places that are read, and nowhere else.
        projects: whether its output is its projection's and no more.
        virtual: how many outputs stand before that of the first token (prompt tuning).
    """

    reach: int = 0
    packs: bool = False
    pads: bool = False
    selects: bool = False
    projects: bool = False
    virtual: int = 0


def same_up_to(config: Any) -> float:
    """Up to how many tokens a model treats all lengths alike; infinitely many where nothing says otherwise.

    Beyond, it attends to a choice of tokens, which a few rows need not show, or has other rotary frequencies, which
    half precision hides from a short one.
    """
    text = config.get_text_config()
    limits = [getattr(text, "index_topk", None)]
    rope = getattr(text, "rope_parameters", None) or {}
    for part in (rope, *rope.values()):  # of the whole model, or of each kind of layer
        if isinstance(part, dict) and part.get("rope_type") in ("longrope", "dynamic"):
            known = part.get("original_max_position_embeddings")
            limits.append(known or getattr(text, "original_max_position_embeddings", text.max_position_embeddings))
    return min(filter(None, limits), default=math.inf)


def may_change_between(config: Any, tried: int, needed: int) -> bool:
    """Whether a number of a configuration may be the length at which something begins that was not tried.

    A window, a chunk, or what positions were trained on: many names, but a number between the two lengths, or twice it
    where a window reaches to both sides.
    """
    return needed > tried and any(tried < number <= 2 * needed for number in _numbers(config.to_dict()))


def _numbers(found) -> Iterator[float]:
    if isinstance(found, dict):
        found = [value for name, value in found.items() if not _NO_LENGTH.search(str(name))]
    if isinstance(found, (list, tuple)):
        for one in found:
            yield from _numbers(one)
    elif isinstance(found, (int, float)) and not isinstance(found, bool):
        yield found


def sketch(rows: Sequence[Row]) -> list[Row]:
    """Short made-up rows of a causal model, of the tokens of the given ones: two that share a beginning, and one more.

    They stand so close that a convolution of a layer reaches from one to the next.
    """
    known = list(dict.fromkeys(token for row in rows[:16] for token in row.ids))
    words = list(islice(cycle(dict.fromkeys([*known, *range(12)]) if len(known) < 6 else known), 12))
    made = (words[:6], [*words[:2], *words[5:9]], words[3:6])
    return [Row(rows[0].head, tuple(ids), ()) for ids in made]


def hardest(groups: Sequence[Sequence[Row]]) -> list[Row]:
    """Of the rows of each example: all of the example with most tokens, the longest of all first, a short one last."""
    largest = max(groups, key=lambda group: sum(len(row.ids) for row in group))
    rows = sorted((row for group in groups for row in group), key=length_of)
    middle = rows[len(rows) // 2 :: max(1, len(rows) // 4)]
    longest, shortest = rows[-1], short_one(rows)
    between = sorted([*largest, *middle], key=length_of, reverse=True)
    distinct = {row.ids: row for row in between if row.ids not in (longest.ids, shortest.ids)}
    last = [] if shortest.ids == longest.ids else [shortest]
    return [longest, *distinct.values(), *last]


def short_one(rows: Sequence[Row]) -> Row:
    """Of rows by length, the first that has a few tokens: where one stands matters little to so few as one or two."""
    return next((row for row in rows if len(row.ids) >= FEW), rows[-1])


def length_of(row: Row) -> int:
    """How many tokens a row has."""
    return len(row.ids)


@torch.no_grad()
def try_causal_at_once(engine: "CausalEngine", rows: Sequence[Row]) -> Trial | None:
    """What a causal model shows on some rows in two passes; None where that says nothing, and `try_causal` must.

    In full precision, rows that say in a tree, where nothing sees what follows or another branch, what they say in a
    plain batch, show all at once: that the plain way is causal, that padding is not seen, and that trees may be used.
    """
    if not _is_full(engine) or "position_ids" not in engine.accepts:
        return None
    tree = pack([row.ids for row in rows])
    plain, logits = engine.observed(engine.inputs(rows))
    if logits is None or plain.shape[:2] != (len(rows), len(rows[0].ids)):
        return None
    try:
        found, selects, projects = engine.told(engine.packed_inputs([tree]), logits[0, :PLACES])
    except Exception:  # of any make: this architecture, or its attention, takes no mask of ours
        return None
    if found is None or not selects:
        return None
    equal = (
        not _differ(engine, found[0, list(path)], states[: len(path)], FULL)
        for path, states in zip(tree.paths, plain, strict=True)
    )
    return Trial(len(rows[0].ids), True, True, True, projects) if all(equal) else None


@torch.no_grad()
def try_causal(engine: "CausalEngine", rows: Sequence[Row], packing: bool = True) -> Trial:
    """What a causal model shows on some rows, the longest of them first and another length last.

    Args:
        rows: rows of a job, or a `sketch` of them.
        packing: whether to try trees, too.

    Raises:
        Refusal: if its output at a token depends on what follows, or is not to be found; or if it fails.
    """
    tree = pack([row.ids for row in rows])
    own = sorted(set(tree.paths[0]).difference(*tree.paths[1:]))  # at the longest row's end, nobody else's
    own = own[len(own) // 2 :]
    other = replace(tree, ids=_exchanged(tree.ids, own))
    changed = rows[0]._replace(ids=tuple(other.ids[node] for node in tree.paths[0]))
    states = engine.states(engine.inputs([*rows, changed]))  # (B, T, H)
    alone, selects, projects = _lone_states(engine, rows)
    virtual = len(alone[len(rows) - 1]) - len(rows[-1].ids)
    if states.shape[1] - len(rows[0].ids) != virtual or virtual < 0:
        raise Refusal(_unaligned(engine, len(alone[len(rows) - 1]), len(rows[-1].ids)))
    border = len(rows[0].ids) - len(own) + virtual
    limit = _limit(engine, states[0], rows[0])
    _must_be_causal(engine, states[0], states[-1], border, virtual, limit)
    pads = not any(_differ(engine, states[i][: len(one)], one, limit) for i, one in alone.items())
    if not (packing and virtual == 0 and "position_ids" in engine.accepts):
        return Trial(len(rows[0].ids), False, pads, selects, projects, virtual)
    each = [*states[: len(rows)]] if pads else [_alone(engine, row) for row in rows]
    packs = _packs(engine, tree, other, own, each, limit)
    return Trial(len(rows[0].ids), packs, pads, selects, projects, virtual)


def _packs(engine, tree: Pack, other: Pack, own: list[int], each: list[torch.Tensor], limit: float) -> bool:
    """Whether a tree gives what its rows give each, and the same to the bit where another branch has other tokens."""
    try:
        found, again = _trees(engine, tree, other)
    except Exception:  # of any make: this architecture, or its attention, takes no mask of ours; or memory is short
        free_memory()
        return False
    rest = sorted(set(range(len(tree.ids))).difference(own))
    leak = _differences(again[rest], found[rest]).max().item()
    if not leak <= (FULL if _is_full(engine) else 0.0):
        return False
    for path, states in zip(tree.paths, each, strict=True):
        moved = [i for i, node in enumerate(path) if node != i]  # elsewhere in the tree than in its row
        if moved and _differ(engine, found[[path[i] for i in moved]], states[moved], limit):
            return False
    return True


def _trees(engine, *trees: Pack) -> list[torch.Tensor]:
    """The states (T, H) of trees of equal size, in one pass where they are small."""
    if len(trees[0].ids) <= 64:
        return list(engine.states(engine.packed_inputs(trees)))
    return [engine.states(engine.packed_inputs([tree]))[0] for tree in trees]


@torch.no_grad()
def try_bidirectional(engine: "BidirectionalEngine", long: Row, short: Row) -> Trial:
    """What a model that looks both ways shows on two rows, and on a third that is a token longer than the short one.

    Raises:
        Refusal: if its output does not depend on what follows, or is not to be found; or if it fails.
    """
    middle, width = len(long.ids) // 2, len(short.ids)
    changed = long._replace(ids=_exchanged(long.ids, range(middle, len(long.ids))))
    alone, logits = engine.observed(engine.inputs([short]))
    by_place = alone.dim() == 3
    if by_place and alone.shape[1] != width:
        raise Refusal(_unaligned(engine, alone.shape[1], width))
    # What pools tokens by twos or fours hides its padding behind a whole number of them, but not behind one more.
    other = cut(long, min(width + 1, len(long.ids)))
    inputs = engine.inputs([short, short, long, changed, other])
    inputs["input_ids"][1, width:] = long.ids[0]  # other tokens under the padding
    some = None if logits is None else logits[0, :PLACES]
    states, selects, projects = engine.told(inputs, some)
    if states is None or states.shape[-1] != alone.shape[-1]:
        states = engine.states(inputs)
    if by_place and engine.sees_all and torch.equal(states[2, :middle], states[3, :middle]):
        raise Refusal(
            f"A {engine.name} is asked as a masked model, and what stands at a place does not depend on what follows: "
            "give a model with bidirectional attention, or ask it as the causal model that it is."
        )
    limit = _limit(engine, states[2], long)
    padded, filled = states[:2, :width] if by_place else states[:2]
    pads = torch.equal(padded, filled) and _all_alike(padded, alone[0], limit)
    if pads:
        beside = states[4, : len(other.ids)] if by_place else states[4]
        pads = _all_alike(beside, _alone(engine, other), limit)
    if not (pads or selects):
        _, selects, projects = engine.told(engine.inputs([short]), some)
    return Trial(len(long.ids), False, pads, selects, projects)


def cut(row: Row, length: int) -> Row:
    """A row of so many tokens: the first ones and the last."""
    first = length - 1
    segments = row.segments and (*row.segments[:first], row.segments[-1])
    return row._replace(ids=(*row.ids[:first], row.ids[-1]), segments=segments)


def stretched(row: Row, count: int) -> Row:
    """A row with the tokens in its middle said again, count of them."""
    middle = len(row.ids) // 2
    again = list(islice(cycle(range(max(1, middle - 3), max(2, middle))), count))
    order = [*range(middle), *(i for i in again if i < len(row.ids)), *range(middle, len(row.ids))]
    segments = row.segments and tuple(row.segments[i] for i in order)
    return row._replace(ids=tuple(row.ids[i] for i in order), segments=segments)


@torch.no_grad()
def must_compute(engine: "Engine", rows: Sequence[Row]) -> None:
    """Refuse a model that is not computed in its dtype; in float32 there is no other to be named.

    Raises:
        Refusal: if a short, the middle and the longest of the rows each fail, and not for want of memory; or one of
            them by an error that speaks of dtypes, as where texts are computed in another way from some length on.
    """
    if engine.model.dtype == torch.float32:
        return
    ordered = sorted(rows, key=length_of)
    errors = [_error_of(engine, row) for row in (short_one(ordered), ordered[len(ordered) // 2], ordered[-1])]
    failed = [
        error for error in errors if isinstance(error, (RuntimeError, TypeError)) and not ran_out_of_memory(error)
    ]
    blamed = [error for error in failed if len(failed) == len(errors) or _OF_DTYPE.search(str(error))]
    if blamed:
        dtype = str(engine.model.dtype).removeprefix("torch.")
        raise Refusal(
            f"A {engine.name} cannot be computed in {dtype} on {engine.device.type}: choose another dtype, such as "
            f"float32 ({in_short(blamed[0])})."
        ) from blamed[0]


def _error_of(engine, row: Row) -> Exception | None:
    """The error with which a model answers a row; None where it answers it."""
    try:
        engine.states(engine.inputs([row]))
    except Exception as error:  # of any make: the model's code may be anybody's
        return error
    return None


def _exchanged(ids: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    """Ids with another one of them at each of some places."""
    known = list(dict.fromkeys(ids))
    following = dict(zip(known, [*known[1:], known[0]], strict=True)) if len(known) > 1 else {known[0]: known[0] + 1}
    chosen = set(places)
    return tuple(following[token] if i in chosen else token for i, token in enumerate(ids))


def _must_be_causal(engine, states, changed, border: int, virtual: int, limit: float) -> None:
    """Refuse a model whose states before the first changed token moved, or did not move at it."""
    # What sees any of what follows sees the next, and most of what stands before it sees something.
    before = slice(0 if _is_full(engine) else max(0, border - 3), border)
    if torch.isfinite(changed).all() and _differ(engine, changed[before], states[before], limit):
        raise Refusal(
            f"A {engine.name} is asked as a causal model, and what it says of a token depends on those after it: load "
            "it with causal attention (is_decoder=True, is_causal=True), or ask it as the masked model that it is."
        )
    if torch.equal(changed[border], states[border]):
        raise Refusal(
            f"The outputs of a {engine.name} do not answer its inputs one by one ({len(states)} for "
            f"{len(states) - virtual}): merge or remove its adapter."
        )


def _unaligned(engine, outputs: int, inputs: int) -> str:
    return (
        f"A {engine.name} gives {outputs} outputs for {inputs} tokens, so whose is which cannot be told: give a "
        "language model with an output for every token."
    )


def _lone_states(engine, rows: Sequence[Row]) -> tuple[dict[int, torch.Tensor], bool, bool]:
    """({index: states (T, H)} of a few of the rows, each alone, selects, projects).

    The last, and others shorter than the first: for what padding changes may need some length to show.
    """
    last, selects, projects = lone_states(engine, engine.inputs([rows[-1]]))
    shorter = [i for i, row in enumerate(rows[:-1]) if len(rows[-1].ids) < len(row.ids) < len(rows[0].ids)]
    chosen = {shorter[0], shorter[len(shorter) // 2]} if len(rows) > 3 and shorter else set()
    return {len(rows) - 1: last} | {i: _alone(engine, rows[i]) for i in chosen}, selects, projects


def lone_states(engine: "LanguageModelEngine", inputs: "Inputs") -> tuple[torch.Tensor, bool, bool]:
    """(the states (T, H) of one row, whether its projection may be asked at some places alone, and is its end)."""
    states, logits = engine.observed(inputs)
    _, selects, projects = engine.told(inputs, logits[0, :PLACES])
    return states[0], selects, projects


def _alone(engine, row: Row) -> torch.Tensor:
    """The states (T, H) of a row alone."""
    return engine.states(engine.inputs([row]))[0]


def alike(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether tensors of equal shape are the same but for rounding in any dtype."""
    return bool((_differences(found, expected) < ALIKE).all())


def _differences(found: torch.Tensor, expected: torch.Tensor) -> torch.Tensor:
    """(N,) sizes of the differences at N places, relative to the states'."""
    found, expected = (tensor.reshape(-1, tensor.shape[-1]) for tensor in (found, expected))
    sizes = expected.norm(dim=-1).clamp(min=torch.finfo(expected.dtype).tiny)
    return (found - expected).norm(dim=-1) / sizes


def _all_alike(found: torch.Tensor, expected: torch.Tensor, limit: float) -> bool:
    """Whether states differ at no place by more than a limit: some models pool the last places, and no others."""
    return _differences(found, expected).max().item() <= limit


def _differ(engine, found: torch.Tensor, expected: torch.Tensor, limit: float) -> bool:
    """Whether states at some places differ by more than a limit, or by NaN.

    At any of them; in half precision at more than a few.
    """
    if not len(found):
        return False
    differences = _differences(found, expected)
    return not differences.quantile(1.0 if _is_full(engine) else MOST, interpolation="lower").item() <= limit


def _is_full(engine) -> bool:
    on_gpu = engine.device.type == "cuda" and torch.get_float32_matmul_precision() != "highest"
    return engine.model.dtype in (torch.float32, torch.float64) and not on_gpu


def _limit(engine, in_batch: torch.Tensor, row: Row) -> float:
    """What rounding may change, relative; in half precision it is measured, by a row that stands in a batch."""
    if _is_full(engine):
        return FULL
    noise = _differences(in_batch, _alone(engine, row)).median().item()
    return max(HALF * torch.finfo(engine.model.dtype).eps, 3 * noise)
