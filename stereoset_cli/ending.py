"""How a command ends: by itself, by a refusal in one line, or by being asked to."""

import sys
from collections.abc import Callable
from pathlib import Path

from stereoset_scoring.refusal import name_extra

REFUSALS: tuple[type[Exception], ...] = (ValueError, OSError, MemoryError)


def run(command: Callable[[], int | None], *refusals: type[Exception]) -> None:
    """Run a command as a process does, and leave with its status if it has one; a refusal is one line and status 1.

    So is a module that is missing, where an extra of the installation brings it.

    Args:
        command: from nothing to an exit status, None for 0.
        refusals: classes of errors that are refusals, besides those of every command.
    """
    try:
        status = command()
    except ModuleNotFoundError as missing:
        sys.exit(f"{Path(sys.argv[0]).name}: {name_extra(missing)}")
    except (*REFUSALS, *refusals) as refusal:
        sys.exit(f"{Path(sys.argv[0]).name}: {refusal}")
    if status:
        sys.exit(status)
