"""Matrices laid out beforehand as oneDNN reads them, on processors where it multiplies faster than torch's own way.

torch multiplies float32 matrices on a CPU with MKL, which AMD's processors run some 15 % below what oneDNN reaches, and
more where few tokens go through at once, as in encoder-decoders.
"""

import weakref
from functools import cache
from pathlib import Path
from types import MethodType
from typing import Any, cast

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from stereoset_scoring.engines.projection import is_bare

PROCESSORS = Path("/proc/cpuinfo")
NARROWEST = 256  # inputs or outputs; below, a call costs more than it saves
MOST = 2**31  # bytes of matrices that are packed: they are there twice
TOKENS = 1024  # of the passes that the layout is chosen for; any may follow
EXACT = 1e-5  # of the largest output: what float32 rounds away in other orders


def prepack(model: Any) -> None:
    """From now on a model multiplies with packed matrices, where that is faster and as exact.

    For a model that stays as it is: where gradients are wanted, or a matrix was changed, it multiplies as before.

    Args:
        model: a model on the CPU.
    """
    if not _pays():
        return
    # The projection to the vocabulary stays as it is: the engines look into it.
    projection = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    modules = [module for module in model.modules() if _suits(module) and module is not projection]
    if sum(module.weight.nbytes for module in modules) > MOST:
        return
    for module in modules:
        forward = Packed(module)
        if _agrees(module, forward):
            module.forward = forward


def packed_matrices(model: nn.Module) -> int:
    """How many of a model's matrices are packed."""
    return sum(isinstance(vars(module).get("forward"), Packed) for module in model.modules())


class Packed:
    """The forward pass of a module that is a matrix, from its packed weight.

    Args:
        module: the module; it holds this, and not the other way round.
    """

    def __init__(self, module: Any):
        self._module, self._version = weakref.ref(module), module.weight._version
        self._weight = torch.ops.mkldnn._reorder_linear_weight(_matrix(module).contiguous(), TOKENS)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """(..., outputs) of (..., inputs)."""
        module: Any = self._module()
        as_before = torch.is_grad_enabled() or torch.is_autocast_enabled("cpu")
        if as_before or module.weight._version != self._version or x.dtype != torch.float32 or not x.numel():
            return cast(torch.Tensor, type(module).forward(module, x))
        return torch.ops.mkldnn._linear_pointwise(x, self._weight, module.bias, "none", [], "")

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        module: Any = self._module()
        return MethodType(type(module).forward, memo[id(module)])  # a copy is made to be changed


@cache
def _pays() -> bool:
    """Whether this machine's processor is one on which it was measured to be faster, see benchmarks/README.md."""
    try:
        ours = "AuthenticAMD" in PROCESSORS.read_text()
    except OSError:  # no Linux
        return False
    known = hasattr(torch.ops.mkldnn, "_linear_pointwise") and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    return ours and known and torch.backends.mkldnn.is_available()


def _suits(module: Any) -> bool:
    """Whether a module is a matrix of full precision on the CPU, and nothing else, and large."""
    if not is_bare(module, nn.Linear, Conv1D):
        return False
    weight = module.weight
    return weight.dtype == torch.float32 and not weight.is_inference() and min(weight.shape) >= NARROWEST


def _agrees(module: nn.Module, forward: Packed) -> bool:
    """Whether a packed matrix computes what the matrix does."""
    x = torch.linspace(-1, 1, 4 * _matrix(module).shape[1]).view(4, -1)
    with torch.no_grad():
        expected, found = module(x), forward(x)
    return bool((found - expected).abs().max() <= EXACT * expected.abs().max())


def _matrix(module: Any) -> torch.Tensor:
    """(outputs, inputs) of a module that is a matrix."""
    weight: torch.Tensor = module.weight.detach()
    return weight.t() if type(module) is Conv1D else weight
