"""Batches of rows of similar length under a budget of tokens. Knows lengths, nothing else."""

from stereoset_scoring.refusal import Refusal

SIMILAR = 0.93  # of the longest: where a batch is large enough to keep a device busy, no shorter row joins it
LARGE_ENOUGH = 1 / 8  # of the budget
PASS_ENOUGH = 1 / 20  # of a batch that is computed in several passes
PASS_TOKENS = 64  # or so many tokens


def by_tokens(lengths, max_tokens, large_enough=LARGE_ENOUGH):
    """Batches of indices into lengths, longest first, each with len(batch) * longest <= max_tokens.

    Longest first: running out of memory happens in the first second, and the time estimate errs on the safe
    side. The plan depends on the lengths alone, so every process can make it for itself.

    Raises:
        ValueError: if one row alone is longer than max_tokens.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    if order and lengths[order[0]] > max_tokens:
        raise Refusal(f"A row has {lengths[order[0]]} tokens, more than max_tokens={max_tokens}: give a larger budget.")
    batches = []
    for i in order:
        if batches and _fits(lengths[i], len(batches[-1]), lengths[batches[-1][0]], max_tokens, large_enough):
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def side_by_side(lengths, width):
    """Groups of indices into lengths, each of which adds up to no more than a width, where one alone is not longer.

    The longest that fits is always taken next, so that short ones fill what long ones leave.
    """
    waiting = {}
    for i in sorted(range(len(lengths)), reverse=True):
        waiting.setdefault(lengths[i], []).append(i)
    groups = []
    while waiting:
        group, room = [], max(width, max(waiting))
        while fitting := [length for length in waiting if length <= room]:
            length = max(fitting)
            group.append(waiting[length].pop())
            room -= length
            if not waiting[length]:
                del waiting[length]
        groups.append(group)
    return groups


def in_passes(lengths):
    """Batches of indices into the lengths of what one batch holds, to be computed one after the other.

    For encoders and decoders, whose lengths have little to do with each other: few passes, and little padding.
    """
    whole = len(lengths) * max(lengths)
    return by_tokens(lengths, whole, max(PASS_ENOUGH, PASS_TOKENS / whole))


def _fits(length, count, longest, max_tokens, large_enough):
    """Whether a row joins a batch of count rows: under the budget, and without much padding."""
    similar = length >= SIMILAR * longest or count * longest < large_enough * max_tokens
    return similar and (count + 1) * longest <= max_tokens
