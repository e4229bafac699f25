"""Files of weights, read as data: nothing in them is run."""

from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from stereoset_scoring.refusal import Refusal


def read_weights(path):
    """{name: tensor} of a .safetensors file, or of a file of torch.save that holds weights and nothing else.

    Raises:
        Refusal: if it is another file; code in it is never run.
    """
    try:
        if Path(path).suffix == ".safetensors":
            return load_file(path)
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, SafetensorError, RuntimeError, EOFError) as error:
        raise Refusal(
            f"{path} is no file of weights, and nothing in it is run: give a state dict, as torch.save or "
            f"safetensors writes it ({str(error).splitlines()[0] if str(error) else type(error).__name__})."
        ) from error
    if not isinstance(weights, Mapping) or not all(isinstance(tensor, torch.Tensor) for tensor in weights.values()):
        raise Refusal(f"{path} holds a {type(weights).__name__} that is no state dict: save model.state_dict().")
    return dict(weights)
