"""How much this process computes at a time, and what it splits a batch into where memory is short."""

import gc
import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

from stereoset_scoring.planning.units import Unit

T = TypeVar("T")

# What the libraries below torch say; torch has a class of its own for CUDA's allocator only.
_SAID = (
    "out of memory",
    "can't allocate memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_NOT_SUPPORTED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "Invalid buffer size",
    "Allocation failed",
)


class Budget:
    """How many tokens, padding included, one forward pass of this process may hold; it only ever shrinks.

    What is computed together with what changes no number, so that each process may find its own budget, without a
    word to the others, while the plan of batches stays the same for all.

    Args:
        tokens: the budget to begin with; by default, whatever a batch holds.
        shrinks: whether it shrinks where memory runs out; not where processes have to make every pass together.
    """

    def __init__(self, tokens: float = math.inf, shrinks: bool = True):
        self.tokens = tokens
        self._shrinks = shrinks

    def lower(self, tokens: float) -> None:
        """Allow no more than this many tokens from now on."""
        self.tokens = min(self.tokens, max(1, tokens))

    def spend(self, units: Iterable[Unit], compute: Callable[[list[Unit]], Sequence[T]]) -> list[T]:
        """The values of all rows of some units, in order, computed in as many passes as the budget demands.

        Where memory runs out, the budget is halved, and what failed is computed again in smaller parts: fewer units,
        then the rows of a unit one by one.

        Args:
            units: what one batch of a job holds.
            compute: from units to a value of each of their rows, in order.

        Raises:
            MemoryError: if a row alone is too much.
        """
        waiting = deque(units)
        values: list[T] = []
        while waiting:
            part = self._next_part(waiting)
            found = _unless_out_of_memory(compute, part) if self._shrinks else compute(part)
            if found is not None:
                values += found
                continue
            free_memory()
            taken = len(part) * max(unit.tokens for unit in part)
            if len(part) == len(part[0].rows) == 1:
                raise MemoryError(
                    f"A single row of {taken} tokens does not fit into memory: choose a smaller dtype, or spread the "
                    "model over more devices with a device map."
                )
            self.lower(taken // 2)
            waiting.extendleft(reversed(part if len(part) > 1 else part[0].alone()))
        return values

    def _next_part(self, waiting: deque[Unit]) -> list[Unit]:
        """Take from those that wait what the budget holds; at least a unit, or a row of one that is too large."""
        part: list[Unit] = []
        longest = 0
        while waiting:
            first = waiting.popleft()
            if first.tokens > self.tokens and len(first.rows) > 1:
                first, *others = first.alone()
                waiting.extendleft(reversed(others))
            longest = max(longest, first.tokens)
            if part and (len(part) + 1) * longest > self.tokens:
                waiting.appendleft(first)
                break
            part.append(first)
        return part


def ran_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that there was no memory left, be it the device's or the machine's."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _SAID)


def free_memory() -> None:
    """Give back what nobody uses: what an error's frames held, and what the device's allocator keeps for later."""
    gc.collect()
    getattr(torch.get_device_module(), "empty_cache", lambda: None)()


def tokens_that_fit(model: Any) -> float:
    """How many tokens the memory that is free now has room for, at the least; infinitely many on a CPU.

    A cautious guess from the configuration, in half of what is free: the other half is for the logits, for what an
    attention keeps beside its weights, and for the fragments between.
    """
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    free = min(map(_free_bytes, devices), default=math.inf)
    return free if free == math.inf else max(1, int(free / 2 / bytes_per_token(model.config, model.dtype)))


def bytes_per_token(config: Any, dtype: torch.dtype, attended: int = 512) -> int:
    """What one token takes in the widest layer, at the most: no layer's states outlive it where nothing is learned.

    Hidden states, queries, keys, values and their copies; the feed-forward's inner states; and the weights of eager
    attention to so many tokens, of which the softmax is computed in float32.
    """
    config = config.get_text_config()
    hidden = getattr(config, "hidden_size", 1024)
    inner = max(4 * hidden, getattr(config, "intermediate_size", None) or 0)
    heads = getattr(config, "num_attention_heads", None) or 16
    return dtype.itemsize * (8 * hidden + 3 * inner) + (4 + dtype.itemsize) * heads * attended


def _free_bytes(device: torch.device) -> int:
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def _unless_out_of_memory(compute: Callable[[list[Unit]], Sequence[T]], units: list[Unit]) -> Sequence[T] | None:
    """compute(units); None where memory ran out, the error and all that its frames hold being gone by then."""
    try:
        return compute(units)
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        return None
