"""Python's collection of circles, put off while many small things are made that are in none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SELDOM = 200_000  # more things than there were, before anybody looks for circles among them


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
    """As `kept`; what is made inside stays until the process ends, and no later collection goes through it.

    And later ones come seldom: what is made of some hundred examples goes away by itself before the next one.
    """
    with kept():
        try:
            yield
        finally:
            gc.freeze()
            gc.set_threshold(SELDOM)
