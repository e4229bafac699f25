"""Functions that an architecture spells out in many steps over memory, and that torch computes in one."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from transformers.activations import ACT2FN, NewGELUActivation


@contextmanager
def fused(model: nn.Module) -> Iterator[None]:
    """Inside, GPT-2's and T5's activation is one kernel: the same tanh approximation of GELU, rounded fewer times.

    Not in half precision, where eight roundings less are more than what a batch changes.
    """
    parts = model.modules() if model.dtype in (torch.float32, torch.float64) else ()
    spelled_out = [
        (module, name, child)
        for module in parts
        for name, child in module.named_children()
        if type(child) is NewGELUActivation
    ]
    try:
        for module, name, _ in spelled_out:
            setattr(module, name, ACT2FN["gelu_pytorch_tanh"])
        yield
    finally:
        for module, name, child in spelled_out:
            setattr(module, name, child)
