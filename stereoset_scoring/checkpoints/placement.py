"""Where a model goes: this process's own device, or several."""

import torch

from stereoset_scoring.engines.devices import gpus_of
from stereoset_scoring.place import processes
from stereoset_scoring.refusal import Refusal


def default_device():
    """This process's own GPU, or the CPU where there is none."""
    return processes().device


def spread(device, device_map, gpus_per_model):
    """How from_pretrained is told to spread a model over devices: its arguments; none where it shall not.

    Raises:
        Refusal: if the model shall go to two places, or there are too few GPUs.
    """
    if device_map is None and gpus_per_model is None:
        return {}
    if device is not None:
        raise Refusal(f"A model goes to device {device} or is spread over several: leave one of them out.")
    if gpus_per_model is None:
        return {"device_map": device_map}
    if device_map not in (None, "auto"):
        raise Refusal("gpus_per_model chooses the devices itself: leave device_map out, or 'auto'.")
    gpus = gpus_of(processes().local_process_index, gpus_per_model, torch.cuda.device_count())
    return {"device_map": "auto", "max_memory": {gpu: torch.cuda.mem_get_info(gpu)[0] for gpu in gpus}}
