"""What the figures are taken on."""

import os
import platform
from pathlib import Path

import torch


def machine(device):
    """The processor, its cores, and the accelerator where one is used, in words."""
    words = [processor(), f"{os.cpu_count()} cores"]
    if torch.device(device).type == "cuda":
        words.append(torch.cuda.get_device_name(device))
    return ", ".join(words)


def processor():
    """The processor's name, as far as the system tells it."""
    return _told("model name") or platform.processor() or platform.machine()


def has_fast_bfloat16(device):
    """Whether the device multiplies bfloat16 in hardware, as far as the system tells it."""
    if torch.device(device).type == "cuda":
        return torch.cuda.is_bf16_supported()
    return "avx512_bf16" in _told("flags").split()


def _told(key):
    """What Linux says of the first processor; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.partition(":")[0].strip() == key), "")
