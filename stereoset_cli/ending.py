"""How a command ends: by itself, by a refusal in one line, by being asked to, or because nobody reads on."""

import atexit
import gc
import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from stereoset_metric import compute_score
from stereoset_scoring.refusal import Refusal, name_extra

REFUSALS: tuple[type[Exception], ...] = (Refusal, compute_score.Refusal, OSError, MemoryError)


def run(command: Callable[[], int | None], *refusals: type[Exception]) -> None:
    """Run a command as a process does, and leave with its status if it has one; a refusal is one line and status 1.

    So is a module that is missing, where an extra of the installation brings it. Any other error keeps
    its traceback. Whoever stops reading what is printed, as `head` does, has what they wanted: the command ends, and
    nothing is said of it. What the terminal cannot show is spelled out.

    Args:
        command: from nothing to an exit status, None for 0.
        refusals: classes of errors that are refusals, besides those of every command.
    """
    atexit.register(gc.freeze)  # else Python looks twice through all that was imported, which takes a second or more
    _spell_out()
    try:
        with _printed():
            status = command()
    except ModuleNotFoundError as missing:
        sys.exit(f"{Path(sys.argv[0]).name}: {name_extra(missing)}")
    except (*REFUSALS, *refusals) as refusal:
        if isinstance(refusal, BrokenPipeError) and is_closed(sys.stdout):
            return silence(sys.stdout)
        sys.exit(f"{Path(sys.argv[0]).name}: {refusal}")
    if status:
        sys.exit(status)


@contextmanager
def _printed() -> Iterator[None]:
    """Inside, a command; at its end, be it an exit, what it printed leaves this process.

    Where it cannot, that is raised: Python itself would say so too late, and in its own words.
    """
    try:
        yield
    finally:
        if sys.stdout is not None:
            sys.stdout.flush()


def _spell_out() -> None:
    """Print signs that the terminal's encoding does not have by their numbers."""
    for stream in (sys.stdout, sys.stderr):
        if getattr(stream, "errors", None) == "strict" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def is_closed(stream: TextIO) -> bool:
    """Whether a stream is a pipe that nobody reads any more."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


def silence(stream: TextIO) -> None:
    """Let what is printed to a stream that nobody reads go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
