"""Where a model goes: this process's own device, or several."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from stereoset_scoring.engines.devices import gpus_of
from stereoset_scoring.place import processes
from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class Placement:
    """Where a model goes as it is loaded, and in which form it lies there.

    Attributes:
        device: where the model goes; None for this process's own GPU, or the CPU where there is none.
        device_map: "auto" to spread the model over all devices, or {part: device}; instead of a device.
        gpus_per_model: how many of its machine's GPUs each process spreads its model over.
        quantization_config: how the weights are quantized as they are loaded, as transformers takes it.
    """

    device: str | torch.device | None = None
    device_map: str | Mapping[str, Any] | None = None
    gpus_per_model: int | None = None
    quantization_config: Any = None

    @property
    def is_quantized(self) -> bool:
        """Whether the weights are quantized."""
        return self.quantization_config is not None

    def chosen_device(self) -> str | torch.device:
        """The device that was given, or the default one."""
        return default_device() if self.device is None else self.device

    def spread(self) -> dict[str, Any]:
        """How from_pretrained is told to spread a model over devices: its arguments; none where it shall not.

        Raises:
            Refusal: if the model shall go to two places, or there are too few GPUs.
        """
        if self.device_map is None and self.gpus_per_model is None:
            return {}
        if self.device is not None:
            raise Refusal(f"A model goes to device {self.device} or is spread over several: leave one of them out.")
        if self.gpus_per_model is None:
            return {"device_map": self.device_map}
        if self.device_map not in (None, "auto"):
            raise Refusal("gpus_per_model chooses the devices itself: leave device_map out, or 'auto'.")
        gpus = gpus_of(processes().local_process_index, self.gpus_per_model, torch.cuda.device_count())
        return {"device_map": "auto", "max_memory": {gpu: torch.cuda.mem_get_info(gpu)[0] for gpu in gpus}}


def default_device() -> torch.device:
    """This process's own GPU, or the CPU where there is none."""
    return processes().device
