"""The place of this process: which one of its run it is, and which device is its own."""

from datetime import timedelta

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env

PATIENCE = timedelta(hours=6)  # for joining, and for what is exchanged when everyone is there


def processes() -> PartialState:
    """accelerate's PartialState of this run: on CPUs where there is nothing else, or ACCELERATE_USE_CPU says so."""
    cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
    return PartialState(cpu=cpu, timeout=PATIENCE)
