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


@contextmanager
def lasting() -> Iterator[None]:
    """As `kept`; what is made inside stays until the process ends, and no later collection goes through it."""
    with kept():
        try:
            yield
        finally:
            gc.freeze()
