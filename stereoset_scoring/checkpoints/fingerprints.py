"""Fingerprints: what tells one set of weights from another."""

import hashlib
import json
from typing import Any

import torch
from accelerate.utils import align_module_device
from torch import nn

OF_PLACES = ("base_model_name_or_path", "revision", "inference_mode")  # what of an adapter changes no output


def fingerprint(model: nn.Module) -> str:
    """sha256, as hex, over names, shapes, dtypes and bytes of a model's weights, and over its adapters' settings."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        weights = _in_memory(model, name, tensor).detach().cpu().contiguous().flatten()
        digest.update(weights.view(torch.uint8).numpy().data)
    for name, config in sorted(getattr(model, "peft_config", {}).items()):
        digest.update(f"{name} {_settings(config)}".encode())
    return digest.hexdigest()


def _settings(adapter_config: Any) -> str:
    """What an adapter does with its weights, such as their scale, as JSON."""
    settings = {name: value for name, value in adapter_config.to_dict().items() if name not in OF_PLACES}
    return json.dumps(settings, sort_keys=True, default=lambda value: sorted(map(str, value)))


def _in_memory(model: nn.Module, name: str, tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of a model's state; fetched, where it is kept elsewhere until it is needed."""
    if tensor.device.type != "meta":
        return tensor
    part, _, own = name.rpartition(".")
    module = model.get_submodule(part)
    with align_module_device(module, torch.device("cpu")):
        return getattr(module, own).detach().clone()
