"""Models that lie in parts on several processes: fully sharded, or parallel in their tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def is_sharded(model: Any) -> bool:
    """Whether a model's weights lie in parts on several processes: as DTensors, or as DeepSpeed's ZeRO 3 has them.

    Some versions of transformers have plain tensors where a model is parallel in them, and say so by its `tp_size`.
    """
    if (getattr(model, "tp_size", None) or 1) > 1:
        return True
    return any(hasattr(weight, "device_mesh") or hasattr(weight, "ds_id") for weight in model.parameters())


def is_fully_sharded(model: Any) -> bool:
    """Whether a module of a model may lack its weights where it is not the model that calls it.

    Where tensors are parallel, each module does its part of the exchange by itself.
    """
    by_torch = any(hasattr(module, "reshard") for module in model.modules())
    return by_torch or any(hasattr(weight, "ds_id") for weight in model.parameters())


@contextmanager
def resharded(model: Any) -> Iterator[None]:
    """Afterwards, what fully_shard keeps whole for a backward pass lies in parts again, and outlives no step."""
    try:
        yield
    finally:
        if is_sharded(model):
            for module in model.modules():
                getattr(module, "reshard", lambda: None)()
