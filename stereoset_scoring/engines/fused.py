"""Functions that an architecture spells out in many steps over memory, and that torch computes in one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from transformers.activations import ACT2FN, NewGELUActivation

SHIFT = "rel_shift_bnij"  # of XLNet's attention


@contextmanager
def fused(model: nn.Module) -> Iterator[None]:
    """Inside, GPT-2's and T5's activation is one kernel: the same tanh approximation of GELU, rounded fewer times.

    Not in half precision, where eight roundings less are more than what a batch changes. XLNet's attention is shifted
    without the copy that takes half of its time: the same numbers, to the bit.
    """
    modules = list(model.modules())
    spelled_out = [
        (module, name, child)
        for module in (modules if model.dtype in (torch.float32, torch.float64) else ())
        for name, child in module.named_children()
        if type(child) is NewGELUActivation
    ]
    shifting: list[Any] = [module for module in modules if hasattr(module, SHIFT) and SHIFT not in vars(module)]
    try:
        for module, name, _ in spelled_out:
            setattr(module, name, ACT2FN["gelu_pytorch_tanh"])
        for module in shifting:
            setattr(module, SHIFT, _shifted)
        yield
    finally:
        for module, name, child in spelled_out:
            setattr(module, name, child)
        for module in shifting:
            delattr(module, SHIFT)


def _shifted(scores: torch.Tensor, klen: int) -> torch.Tensor:
    """Scores (B, heads, T, length) by relative positions, each row shifted to its own: a view of klen columns."""
    batch, heads, rows, length = scores.shape
    turned = scores.reshape(batch, heads, length, rows)[:, :, 1:]
    return turned.reshape(batch, heads, rows, length - 1)[..., :klen]
