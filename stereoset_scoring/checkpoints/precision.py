"""The dtype of a model's weights."""

import re
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Literal

import torch
from torch import nn

from stereoset_scoring.engines.devices import input_device
from stereoset_scoring.refusal import Refusal

Dtype = torch.dtype | Literal["auto"]  # "auto" is the checkpoint's own
# Where the library's models name what they want in float32, by the dtype of the rest.
KEPT_IN_FLOAT32 = {
    torch.float16: ("_keep_in_fp32_modules", "_keep_in_fp32_modules_strict"),
    torch.bfloat16: ("_keep_in_fp32_modules_strict",),
}


def dtype_named(dtype: str | torch.dtype | None) -> Dtype:
    """A torch dtype of its name; "auto", or None, is the checkpoint's own: "auto".

    Raises:
        Refusal: if there is no floating-point dtype of that name.
    """
    if dtype is None or dtype == "auto":
        return "auto"
    if isinstance(dtype, torch.dtype):
        return dtype
    found = getattr(torch, str(dtype), None)
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        raise Refusal(f"There is no dtype {dtype!r}: choose auto, float32, bfloat16, float16 or float64.")
    return found


def cast(model: nn.Module, dtype: torch.dtype) -> None:
    """All of a loaded model in one dtype, but for what it wants wider.

    Weights that the library leaves in another dtype than asked for, as old code declares them, are cast too. What a
    model names because half precision overflows or spoils it (T5's last feed-forward product, a router's bias) stays
    as it was loaded; and so do computed buffers, such as the frequencies of rotary positions, unless they are narrower.
    """
    kept = _kept_wider(model, dtype)
    for name, weight in model.named_parameters():
        if weight.is_floating_point() and weight.device.type != "meta" and not kept(name):
            weight.data = weight.data.to(dtype)
    _widen(model.buffers(), dtype)


def fits_together(model: Any) -> bool:
    """Whether a model as it was loaded computes at all: of weights in several dtypes, some do not go together."""
    if len({weight.dtype for weight in model.parameters() if weight.is_floating_point()}) < 2:
        return True
    return not isinstance(why_it_fails(model.eval()), RuntimeError)


@torch.no_grad()
def why_it_fails(model: Any) -> Exception | None:
    """The error with which a model answers two tokens; None where it answers them."""
    ids = torch.tensor([[1, 2]], device=input_device(model))
    decoder = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    try:
        with torch.random.fork_rng([ids.device] if ids.device.type == "cuda" else []):  # training draws a dropout
            model(input_ids=ids, attention_mask=torch.ones_like(ids), **decoder)
    except Exception as error:  # of any make: the model's code may be anybody's
        return error
    return None


def suit(model: Any) -> None:
    """Have a mixture of experts computed by plain products where the fused ones take no weights of its dtype."""
    if not takes_its_dtype(model):
        model.set_experts_implementation("eager")


def takes_its_dtype(model: Any) -> bool:
    """Whether what computes a model takes its dtype: the fused products of experts take no float64."""
    mixture = getattr(model, "_can_set_experts_implementation", lambda: False)()
    return model.dtype != torch.float64 or not mixture or model.config._experts_implementation == "eager"


def widen(model: nn.Module, dtype: torch.dtype) -> None:
    """Weights and buffers in a dtype where they are narrower; what is wider stays as it is."""
    _widen((*model.parameters(), *model.buffers()), dtype)


def _widen(tensors: Iterable[torch.Tensor], dtype: torch.dtype) -> None:
    for tensor in tensors:
        if tensor.is_floating_point() and tensor.device.type != "meta":
            tensor.data = tensor.data.to(torch.promote_types(tensor.dtype, dtype))


def _kept_wider(model: nn.Module, dtype: torch.dtype) -> Callable[[str], bool]:
    """From a weight's name to whether the model wants it in float32 where the rest is in a dtype."""
    lists = KEPT_IN_FLOAT32.get(dtype, ())
    asked = [getattr(part, wishes, None) or () for part in model.modules() for wishes in lists]
    patterns = set(chain.from_iterable(asked))
    expressions = [re.compile(pattern.replace("*", ".*")) for pattern in patterns]  # as the library reads them
    return lambda name: any(expression.search(name) for expression in expressions)
