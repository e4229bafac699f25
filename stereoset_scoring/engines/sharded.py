"""Models that lie in parts on several processes: fully sharded, or parallel in their tensors."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def is_sharded(model: Any) -> bool:
    """Whether a model's weights lie in parts on several processes: as DTensors, or as DeepSpeed's ZeRO 3 has them."""
    return any(hasattr(weight, "device_mesh") or hasattr(weight, "ds_id") for weight in model.parameters())


@contextmanager
def resharded(model: Any) -> Iterator[None]:
    """Afterwards, what fully_shard keeps whole for a backward pass lies in parts again, and outlives no step."""
    try:
        yield
    finally:
        if is_sharded(model):
            for module in model.modules():
                getattr(module, "reshard", lambda: None)()
