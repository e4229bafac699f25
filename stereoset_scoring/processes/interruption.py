"""Being asked to end: a process finishes what it is at, keeps it, and says that it can go on another time."""

import os
import signal
from contextlib import contextmanager

RESUME = getattr(os, "EX_TEMPFAIL", 75)  # the exit status that says: start me again, and I go on

_state = {"asked": False, "at_work": False}


class Interrupted(SystemExit):
    """The process was asked to end, and ends with the status RESUME unless somebody holds it back."""

    def __init__(self):
        super().__init__(RESUME)


@contextmanager
def listening(number=signal.SIGTERM):
    """Inside, a signal, by default the one that SLURM and launchers send, raises Interrupted in the main thread."""

    def ask(number, frame):
        _state["asked"] = True
        if not _state["at_work"]:
            raise Interrupted

    _state["asked"] = False
    before = signal.signal(number, ask)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextmanager
def undisturbed():
    """Work that is finished first: Interrupted is raised at its end."""
    _state["at_work"] = True
    try:
        yield
    finally:
        _state["at_work"] = False
    if _state["asked"]:
        raise Interrupted
