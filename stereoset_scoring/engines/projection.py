"""The projection to the vocabulary: only at the places that are read, and of a bounded number of them at a time."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import Linear, Parameter

from stereoset_scoring.engines.base import Inputs
from stereoset_scoring.engines.sharded import is_fully_sharded

LOGITS = 2**25  # at a time: 128 MiB in float32, and more than enough to keep a device busy

Model = Any  # a language model of transformers, which gives its projection by get_output_embeddings()
Where = tuple[torch.Tensor, torch.Tensor]  # index tensors (N,), (N,) into its output
States = Callable[[torch.Tensor], torch.Tensor]  # from the hidden states before a projection to others


@contextmanager
def seen_by(projection: torch.nn.Module | None, states_of: States) -> Iterator[list[bool]]:
    """Let a projection to the vocabulary see other hidden states than it is given, on any architecture.

    Yields a list that is empty unless that was done: a head of an unusual make computes everything.

    Args:
        projection: the module; None for a model that has none.
        states_of: from the hidden states (B, T, H) that it is given to those (N, H) that it shall see.
    """
    done: list[bool] = []

    def only_those(module: torch.nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        hidden, *others = inputs
        if hidden.dim() != 3 or done:
            return None
        done.append(True)
        return states_of(hidden), *others

    handle = projection.register_forward_pre_hook(only_those) if projection is not None else None
    try:
        yield done
    finally:
        if handle is not None:
            handle.remove()


def logits_of(output: Any) -> torch.Tensor:
    """(B, T, V) of a model's output, or (N, V) where its projection saw N places."""
    return output.prediction_logits if "prediction_logits" in output else output.logits


def logits_at(model: Model, inputs: Inputs, where: Where) -> torch.Tensor:
    """(N, V) logits at the N places of a batch, whatever the model does after its projection.

    Args:
        model: a language model.
        inputs: its inputs.
        where: index tensors (N,), (N,) into its output.
    """
    logits, _ = _first_logits(model, inputs, where, len(where[0]))
    return logits


def logits_in_chunks(
    model: Model, inputs: Inputs, where: Where, at_once: int, room: torch.Tensor | None = None
) -> Iterator[torch.Tensor]:
    """Yield (n, V) logits at the N places of a batch, at_once of them at a time; one's memory may be the next one's.

    Args:
        model: a language model that does nothing after its projection, see `told`.
        inputs: its inputs.
        where: index tensors (N,), (N,) into its output.
        at_once: how many places are projected at a time, fewer than N.
        room: (at_once, V) memory for them, where the projection `is_plain`; None for new memory.
    """
    projection = model.get_output_embeddings()
    logits, states = _first_logits(model, inputs, where, at_once if room is None else 0)
    if states is None:
        yield logits
        return
    if room is None:
        yield logits
    del logits
    for some in states.tensor_split(math.ceil(len(states) / at_once)):
        yield projection(some) if room is None else _projected_into(room, projection, some)


def _first_logits(model: Model, inputs: Inputs, where: Where, count: int) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(logits (count, V) at the first of N places, states (N - count, H) at the others, which the model leaves out).

    Where the model has no one projection to look into, it computes all logits, and None stands for the states.
    """
    rest: torch.Tensor | None = None

    def first_places(hidden: torch.Tensor) -> torch.Tensor:
        nonlocal rest
        states = hidden[on(hidden, where)]  # (B, T, H) -> (N, H)
        rest = states[count:]
        return states[:count]

    with seen_by(model.get_output_embeddings(), first_places) as done:
        logits = logits_of(model(**inputs))
    return (logits, rest) if done else (logits[on(logits, where)], rest)


def is_plain(projection: Any) -> bool:
    """Whether a projection is a matrix on the CPU, maybe with a bias, and nothing else that looks at it."""
    if not is_bare(projection, Linear):
        return False
    hooked = any(map(len, (projection._forward_hooks, projection._forward_pre_hooks)))
    return not hooked and not torch.is_autocast_enabled("cpu")


def is_bare(module: Any, *kinds: type) -> bool:
    """Whether a module is of one of these very kinds, computes as they do, and has its weight on the CPU."""
    if type(module) not in kinds or type(module.weight) is not Parameter or "forward" in vars(module):
        return False
    return bool(module.weight.device.type == "cpu")


def _projected_into(room: torch.Tensor, projection: Linear, states: torch.Tensor) -> torch.Tensor:
    """The (n, V) logits of (n, H) states, in memory that is there: new memory costs a CPU as much as a softmax."""
    logits = room[: len(states)]
    if projection.bias is None:
        return torch.mm(states, projection.weight.t(), out=logits)
    return torch.addmm(projection.bias, states, projection.weight.t(), out=logits)


def observed(model: Model, inputs: Inputs) -> tuple[torch.Tensor | None, torch.Tensor]:
    """(hidden states (B, T, H) before the projection, None where none are seen; logits (B, T, V)) of a plain pass."""
    seen: list[torch.Tensor] = []

    def unchanged(hidden: torch.Tensor) -> torch.Tensor:
        seen.append(hidden)
        return hidden

    with seen_by(model.get_output_embeddings(), unchanged):
        logits = logits_of(model(**inputs))
    return next(iter(seen), None), logits


def told(model: Model, inputs: Inputs, count: int) -> tuple[torch.Tensor | None, torch.Tensor | None, bool]:
    """What a model makes of other states before its projection than its own.

    Args:
        model: a language model.
        inputs: its inputs.
        count: of how many tokens of the first row.

    Returns:
        (hidden states (B, T, H), logits (count, V) of the first row's first tokens, whether the output is that of the
        projection, to the bit). It is not where logits are scaled, capped or given a bias afterwards, or computed in
        another way, nor where the projection may lack its weights without the model. (None, None, False) where the
        projection cannot be told anything.
    """
    seen: list[torch.Tensor] = []
    given: list[torch.Tensor] = []

    def telling(hidden: torch.Tensor) -> torch.Tensor:
        seen.append(hidden)
        # None shows a bias, large ones a cap, and all of them a scale.
        return torch.cat([hidden[0, :count] * factor for factor in (1, 0, 50)])

    projection = model.get_output_embeddings()
    with seen_by(projection, telling) as done, giving(projection, given):
        logits = logits_of(model(**inputs))
    if not done or logits.dim() != 2:
        return None, None, False
    ends = not is_fully_sharded(model) and torch.equal(logits, given[0].to(logits.dtype))
    return seen[0], logits[:count], ends


@contextmanager
def giving(projection: Any, given: list[torch.Tensor]) -> Iterator[None]:
    """Put copies of what a projection gives into a list: what follows it may write over its output."""
    handle = None
    if projection is not None:
        handle = projection.register_forward_hook(lambda module, inputs, output: given.append(output.clone()))
    try:
        yield
    finally:
        if handle is not None:
            handle.remove()


def on(tensor: torch.Tensor, where: Where) -> Where:
    """Index tensors on the device of the tensor that they index."""
    rows, places = where
    return rows.to(tensor.device), places.to(tensor.device)
