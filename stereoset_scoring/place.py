"""The place of this process: which one of its run it is, and which device is its own."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from accelerate import PartialState
from accelerate.utils import parse_flag_from_env
from torch.distributed import PrefixStore, rendezvous

JOINING = timedelta(minutes=10)  # for finding each other, and for what is exchanged when everyone is there


class Lost(RuntimeError):
    """Another process of the run has failed or fallen silent."""


def run_id() -> str:
    """What tells this run's keys from those of others that meet at the same port, as what a killed launcher left."""
    names = ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID", "SLURM_RESTART_COUNT")
    words = ["stereoset", *(os.environ.get(name, "") for name in names)]
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        words.append(_folder_of_launcher())
    return " ".join(words)


def _folder_of_launcher() -> str:
    """The folder that torchrun makes for the processes that it starts on one machine; "" if it did not start them."""
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    return str(Path(file).parents[1]) if file else ""


def processes() -> PartialState:
    """accelerate's PartialState of this run: on CPUs where there is nothing else, or ACCELERATE_USE_CPU says so.

    Raises:
        Lost: if the processes do not find each other in time.
    """
    cpu = parse_flag_from_env("ACCELERATE_USE_CPU") or not torch.accelerator.is_available()
    try:
        return PartialState(cpu=cpu, timeout=JOINING, **_meeting_place())
    except (RuntimeError, ValueError) as error:
        if int(os.environ.get("WORLD_SIZE", 1)) < 2:
            raise
        raise Lost(
            f"The processes of this run did not find each other within {JOINING.total_seconds():g} seconds "
            f"({str(error).splitlines()[0]}): start all of them again, at another port if that one is taken."
        ) from error


def _meeting_place() -> dict[str, Any]:
    """Where torch's group of processes meets, under keys of this run's own; nothing where torch need not be told."""
    told = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"} <= os.environ.keys()
    if not told or int(os.environ["WORLD_SIZE"]) < 2 or torch.distributed.is_initialized():
        return {}
    store, rank, size = next(rendezvous("env://", timeout=JOINING))
    store.set_timeout(JOINING)
    return {"store": PrefixStore(run_id(), store), "rank": rank, "world_size": size}
