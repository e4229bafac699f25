"""Where the parts of a model lie."""

from itertools import chain

import torch

from stereoset_scoring.refusal import Refusal


def input_device(model):
    """The device that a model's inputs go to: that of its input embeddings, wherever the rest of it may be.

    Embeddings that are kept elsewhere until they are needed take their inputs from anywhere.
    """
    if not hasattr(model, "hf_device_map"):
        return model.device
    weights = chain(model.get_input_embeddings().parameters(), model.parameters())
    return next((weight.device for weight in weights if weight.device.type != "meta"), torch.device("cpu"))


def gpus_of(local_rank, gpus_per_model, available):
    """The numbers of the GPUs of a machine that one of its processes spreads its model over.

    Args:
        local_rank: the number of the process on its machine.
        gpus_per_model: how many GPUs each process takes.
        available: how many there are.

    Raises:
        ValueError: if there are not that many for this process.
    """
    if gpus_per_model < 1:
        raise Refusal(f"gpus_per_model is {gpus_per_model}: give a number of GPUs, 1 or more.")
    gpus = range(local_rank * gpus_per_model, (local_rank + 1) * gpus_per_model)
    if gpus.stop > available:
        raise Refusal(
            f"Process {local_rank} of this machine would need GPUs {gpus.start} to {gpus.stop - 1} for its model, and "
            f"there are {available}: start fewer processes, or take fewer GPUs per model."
        )
    return gpus
