"""What is shown while a command runs: lines, progress, and how wide a table may be."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stereoset_cli.ending import silence

SHARE = 0.1  # of the work, after which a line is due where there is no terminal
PAUSE = 30  # seconds, likewise


def is_main() -> bool:
    """Whether this process is the first of a run, as launchers tell it, long before the processes know each other."""
    return os.environ.get("RANK", "0") == "0"


def say(*lines: str) -> None:
    """Print lines at once; where nobody reads them any more, the work goes on."""
    _print(lines, sys.stdout)


def note(line: str) -> None:
    """Print a line that is no result, likewise."""
    _print([line], sys.stderr)


def _print(lines, stream):
    try:
        print(*lines, sep="\n", file=stream, flush=True)
    except BrokenPipeError:
        silence(stream)


def table_width() -> int | None:
    """How many columns a table may take: those of the terminal, or COLUMNS; None where neither is known."""
    return shutil.get_terminal_size((0, 0)).columns or None


@contextmanager
def progress(total: int) -> Iterator[Callable[[int], object]]:
    """Shows how far the work is: a bar on a terminal, elsewhere a line every so often.

    Args:
        total: how many examples there are to read.

    Yields:
        what to call with how many were read just now.
    """
    if not sys.stderr.isatty():
        yield Lines(total).count
        return
    from tqdm import tqdm

    with tqdm(total=total, unit="example", desc="scoring") as bar:
        yield bar.update


class Lines:
    """Progress as lines: one at every tenth of the work and at its end, and after half a minute without any.

    Args:
        total: how much there is to do.
        tell: what to call with a line.
        now: the time, in seconds.
    """

    def __init__(self, total: int, tell: Callable[[str], None] = note, now: Callable[[], float] = time.monotonic):
        self._total, self._tell, self._now = total, tell, now
        self._done = self._told = 0
        self._began = self._told_at = now()

    def count(self, number: int) -> None:
        """Say how far it is, if a line is due."""
        self._done += number
        now = self._now()
        due = self._done - self._told >= SHARE * self._total or now - self._told_at >= PAUSE
        if not due and self._done < self._total:
            return
        self._told, self._told_at = self._done, now
        share, lasted = self._done / self._total, now - self._began
        self._tell(
            f"scoring: {share:.0%}, {self._done} of {self._total} examples, "
            f"{_clock(lasted)} gone, {_clock(lasted / share - lasted)} left"
        )


def _clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
