"""Batches of rows of similar length under a budget of tokens. Knows lengths, nothing else."""

from collections.abc import Sequence

SIMILAR = 0.93  # of the longest: where a batch is large enough to keep a device busy, no shorter row joins it
LARGE_ENOUGH = 1 / 8  # of the budget
PASS_COST = 8  # tokens: what one of the passes takes in which a batch is computed, beside its own


def by_tokens(lengths: Sequence[int], max_tokens: int, large_enough: float = LARGE_ENOUGH) -> list[list[int]]:
    """Batches of indices into lengths, longest first, each with len(batch) * longest <= max_tokens.

    Longest first: running out of memory happens in the first second, and the time estimate errs on the safe
    side. The plan depends on the lengths alone, so every process can make it for itself.

    Raises:
        ValueError: if one row alone is longer than max_tokens.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    if order and lengths[order[0]] > max_tokens:
        raise ValueError(
            f"A row has {lengths[order[0]]} tokens, more than max_tokens={max_tokens}: give a larger budget."
        )
    batches: list[list[int]] = []
    for i in order:
        if batches and _fits(lengths[i], len(batches[-1]), lengths[batches[-1][0]], max_tokens, large_enough):
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def side_by_side(lengths: Sequence[int], width: int) -> list[list[int]]:
    """Groups of indices into lengths, each of which adds up to no more than a width, where one alone is not longer.

    The longest that fits is always taken next, so that short ones fill what long ones leave.
    """
    waiting: dict[int, list[int]] = {}
    for i in sorted(range(len(lengths)), reverse=True):
        waiting.setdefault(lengths[i], []).append(i)
    groups = []
    while waiting:
        group: list[int] = []
        room = max(width, max(waiting))
        while fitting := [length for length in waiting if length <= room]:
            length = max(fitting)
            group.append(waiting[length].pop())
            room -= length
            if not waiting[length]:
                del waiting[length]
        groups.append(group)
    return groups


def in_passes(lengths: Sequence[int], cost: float = PASS_COST) -> list[list[int]]:
    """Batches of indices into the lengths of what one batch holds, longest first, to be computed one after the other.

    For encoders and decoders, whose lengths have little to do with each other: those passes that take least in all,
    padding and a cost of every pass counted, in tokens; all in one pass where that is infinite.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    borders = [k for k, i in enumerate(order) if k == 0 or lengths[i] != lengths[order[k - 1]]]  # each length begins
    # Of all before a border: what they take, and where the last pass of them begins.
    least: dict[int, float] = {0: 0}
    last: dict[int, int] = {}
    for end in [*borders[1:], len(order)]:
        taken = {k: least[k] + (end - k) * lengths[order[k]] + cost for k in borders if k < end}
        last[end] = min(taken, key=taken.__getitem__)
        least[end] = taken[last[end]]
    passes, end = [], len(order)
    while end:
        passes.append(order[last[end] : end])
        end = last[end]
    return passes[::-1]


def _fits(length: int, count: int, longest: int, max_tokens: int, large_enough: float) -> bool:
    """Whether a row joins a batch of count rows: under the budget, and without much padding."""
    similar = length >= SIMILAR * longest or count * longest < large_enough * max_tokens
    return similar and (count + 1) * longest <= max_tokens
