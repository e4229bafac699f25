"""Python's collection of circles, put off while many small things are made that are in none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept() -> Iterator[None]:
    """Inside, nobody looks for circles of garbage: that would take longer than the work, and find none."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
