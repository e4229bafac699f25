"""The threads of a process: how many it takes, and how they wait for each other."""

import os
import sys
from pathlib import Path

SPINS = "2000"  # some 0.1 ms, as lies between two operations; by default it is some 17 ms
OF_THE_USER = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")


def sleep_at_barriers() -> None:
    """Let threads that wait for others soon sleep, unless the user has said how they wait; before torch is imported.

    They spin otherwise, each on a core of its own: where somebody else computes on one of them, all wait for the one
    that shares it, and a tiny model takes several times as long. Holds for GNU's OpenMP, which torch brings on Linux.
    """
    if not any(name in os.environ for name in OF_THE_USER):
        os.environ["GOMP_SPINCOUNT"] = SPINS


def take_threads() -> None:
    """Take the processor that there is, if `accelerate launch` started one process without a GPU, with few threads.

    It does so whatever number of processes it was asked for, and sets OMP_NUM_THREADS for that number. What the user
    has set holds.
    """
    import torch  # here, for it takes seconds, and reads how threads wait as it is imported

    if not _is_left_alone() or torch.accelerator.is_available():
        return
    available = _cores()
    torch.set_num_threads(available)
    print(
        f"Without a GPU, accelerate launch starts one process whatever it is asked for: it computes on {available} "
        "cores. For several processes, start them with torchrun --nproc-per-node N.",
        file=sys.stderr,
    )


def _is_left_alone() -> bool:
    launched = "ACCELERATE_DYNAMO_MODE" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ
    if not launched:
        return False
    words, variables = _of_parent("cmdline"), _of_parent("environ")
    asked = any(word.replace("-", "_").startswith("__num_cpu_threads_per_process") for word in words)
    return not asked and not any(variable.startswith("OMP_NUM_THREADS=") for variable in variables)


def _of_parent(name) -> list[str]:
    """What the parent was started with; nothing where the system does not tell."""
    try:
        return Path(f"/proc/{os.getppid()}/{name}").read_text(errors="replace").split("\0")
    except OSError:
        return []


def _cores() -> int:
    """How many cores this process may use."""
    import psutil  # comes with accelerate

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, psutil.cpu_count(logical=False) or usable)
