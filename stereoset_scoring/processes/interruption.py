"""Being asked to end: a process finishes what it is at, keeps it, and says that it can go on another time.

Before there is anything to keep, it ends at once. One request is enough: those that follow change nothing, for
clusters send them to launchers, which pass them on. And whoever was started by a launcher does not outlive it.
"""

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

RESUME = getattr(os, "EX_TEMPFAIL", 75)  # the exit status that says: start me again, and I go on
LOOK = 0.5  # seconds between two looks for the launcher
GRACE = 30  # seconds that a process may take to end when its launcher is gone
# What torchrun and accelerate set for those that they start, and nobody else does.
LAUNCHERS = ("TORCHELASTIC_RUN_ID", "ACCELERATE_DYNAMO_MODE")

_state = {"begun": False, "asked": False, "at_work": False}


class Interrupted(SystemExit):
    """The process was asked to end, and ends with the status RESUME unless somebody holds it back."""

    def __init__(self) -> None:
        super().__init__(RESUME)

    def __reduce__(self) -> "tuple[type[Interrupted], tuple[()], dict[str, object]]":  # to be sent between processes
        return Interrupted, (), vars(self)


def begin() -> None:
    """From now on being asked to end, or left by one's launcher, is an end with the status RESUME: at once, at first.

    To be called before the imports that take seconds; `listening` takes over when there is something to keep.
    """
    signal.signal(signal.SIGTERM, _end_at_once)
    if _state["begun"]:
        return
    _state["begun"] = True
    atexit.register(signal.signal, signal.SIGTERM, signal.SIG_IGN)  # else it could still be killed with all done
    if any(name in os.environ for name in LAUNCHERS):
        threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def say() -> None:
    """Tell whoever reads along that this is no failure."""
    print(_words(), file=sys.stderr)


@contextmanager
def listening(number: int = signal.SIGTERM) -> Iterator[None]:
    """Inside, a signal, by default the one that SLURM and launchers send, raises Interrupted in the main thread, once.

    Afterwards it does what it did before, or nothing if it was sent: then the process is ending already.
    """

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)
        _state["asked"] = True
        if not _state["at_work"]:
            raise Interrupted

    before = signal.signal(number, ask)
    try:
        yield
    finally:
        if not _state["asked"]:
            signal.signal(number, before)
        _state["asked"] = False


@contextmanager
def undisturbed() -> Iterator[None]:
    """Work that is finished first: Interrupted is raised at its end."""
    _state["at_work"] = True
    try:
        yield
    finally:
        _state["at_work"] = False
    if _state["asked"]:
        raise Interrupted


def _end_at_once(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    os.write(2, f"{_words()}\n".encode())  # print may be what was interrupted
    os._exit(RESUME)


def _words() -> str:
    return f"{Path(sys.argv[0]).name}: asked to end; the same command goes on from here."


def _end_with(parent: int) -> None:
    """Ask this process to end when its parent has; end it where it cannot answer, as in a library's call that waits."""
    while os.getppid() == parent:
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(RESUME)
