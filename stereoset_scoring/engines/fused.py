"""Functions that an architecture spells out in many steps over memory, and that torch computes in one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from transformers.activations import ACT2FN, NewGELUActivation

from stereoset_scoring.engines.relative import attention_of, positions_of, shifted

SHIFT, POSITIONS, ATTENTION = "rel_shift_bnij", "relative_positional_encoding", "rel_attn_core"  # of XLNet


@contextmanager
def fused(model: nn.Module) -> Iterator[None]:
    """Inside, GPT-2's and T5's activation is one kernel: the same tanh approximation of GELU, rounded fewer times.

    Not in half precision, where eight roundings less are more than what a batch changes. XLNet's attention is shifted
    without the copy that takes half of its time: the same numbers, to the bit. In full precision it is one kernel, too,
    and what positions come to is computed once for all rows of a batch.
    """
    full = model.dtype in (torch.float32, torch.float64)
    with ExitStack() as stack:
        for module in list(model.modules()):
            for name, child in module.named_children() if full else ():
                if type(child) is NewGELUActivation:
                    stack.enter_context(_with(module, name, ACT2FN["gelu_pytorch_tanh"]))
            if hasattr(module, SHIFT):
                stack.enter_context(_with(module, SHIFT, shifted))
            if full and hasattr(module, POSITIONS):
                stack.enter_context(_with(module, POSITIONS, positions_of(module)))
            if full and hasattr(module, ATTENTION):
                stack.enter_context(_with(module, ATTENTION, attention_of(module)))
        yield


@contextmanager
def _with(module: nn.Module, name: str, other: Any) -> Iterator[None]:
    """Inside, a module has another child, or a method of its own."""
    before = vars(module).get(name, module._modules.get(name))
    setattr(module, name, other)
    try:
        yield
    finally:
        if before is None:
            delattr(module, name)
        else:
            setattr(module, name, before)
