"""How much this process computes at a time, and what it splits a batch into where memory is short."""

import gc
import math
from itertools import count

import torch

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
    """

    def __init__(self, tokens=math.inf):
        self.tokens = tokens

    def lower(self, tokens):
        """Allow no more than this many tokens from now on."""
        self.tokens = min(self.tokens, max(1, tokens))

    def spend(self, units, length, compute):
        """The values of all rows of some units, in order, computed in as many parts as the budget demands.

        Where memory runs out, the budget is halved, and what failed is computed again in smaller parts: fewer units,
        then the rows of a unit one by one.

        Args:
            units: lists of rows.
            length: from a unit to the tokens that it takes.
            compute: from units to a value of each of their rows, in order.

        Raises:
            MemoryError: if a row alone is too much.
        """
        rows = [row for unit in units for row in unit]
        number = count()
        waiting, values = [[[next(number) for _ in unit] for unit in units]], {}

        def size(unit):
            return length([rows[i] for i in unit])

        while waiting:
            part, *rest = self._parts(waiting.pop(), size)
            waiting += reversed(rest)
            found = _unless_out_of_memory(compute, [[rows[i] for i in unit] for unit in part])
            if found is not None:
                values.update(zip((i for unit in part for i in unit), found, strict=True))
                continue
            free_memory()
            taken = len(part) * max(map(size, part))
            if sum(map(len, part)) == 1:
                raise MemoryError(
                    f"A single row of {taken} tokens does not fit into memory: choose a smaller dtype, or spread the "
                    "model over more devices with a device map."
                )
            self.lower(taken // 2)
            waiting.append(part)
        return [values[i] for i in range(len(rows))]

    def _parts(self, units, size):
        """The units in lists that keep the budget: a unit alone, or a row alone, may be larger."""
        if self.tokens == math.inf:
            return [units]
        parts, longest = [], 0
        for unit in units:
            for piece in [unit] if len(unit) == 1 or size(unit) <= self.tokens else [[i] for i in unit]:
                longest = max(longest, size(piece))
                if parts and (len(parts[-1]) + 1) * longest <= self.tokens:
                    parts[-1].append(piece)
                else:
                    parts.append([piece])
                    longest = size(piece)
        return parts


def ran_out_of_memory(error):
    """Whether an error says that there was no memory left, be it the device's or the machine's."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _SAID)


def free_memory():
    """Give back what nobody uses: what an error's frames held, and what the device's allocator keeps for later."""
    gc.collect()
    getattr(torch.get_device_module(), "empty_cache", lambda: None)()


def tokens_that_fit(model):
    """How many tokens the memory that is free now has room for, at the least; infinitely many on a CPU.

    A cautious guess from the configuration, in half of what is free: the other half is for the logits, for what an
    attention keeps beside its weights, and for the fragments between.
    """
    devices = {parameter.device for parameter in model.parameters() if parameter.device.type == "cuda"}
    free = min(map(_free_bytes, devices), default=math.inf)
    return free if free == math.inf else max(1, int(free / 2 / bytes_per_token(model.config, model.dtype)))


def bytes_per_token(config, dtype, attended=512):
    """What one token takes in the widest layer, at the most: no layer's states outlive it where nothing is learned.

    Hidden states, queries, keys, values and their copies; the feed-forward's inner states; and the weights of eager
    attention to so many tokens, of which the softmax is computed in float32.
    """
    config = config.get_text_config()
    hidden = getattr(config, "hidden_size", 1024)
    inner = max(4 * hidden, getattr(config, "intermediate_size", None) or 0)
    heads = getattr(config, "num_attention_heads", None) or 16
    return dtype.itemsize * (8 * hidden + 3 * inner) + (4 + dtype.itemsize) * heads * attended


def _free_bytes(device):
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return torch.cuda.mem_get_info(device)[0] + unused


def _unless_out_of_memory(compute, units):
    """compute(units); None where memory ran out, the error and all that its frames hold being gone by then."""
    try:
        return compute(units)
    except (RuntimeError, MemoryError) as error:
        if not ran_out_of_memory(error):
            raise
        return None
