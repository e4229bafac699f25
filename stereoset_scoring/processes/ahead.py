"""Work of this process's own that is done while it waits for another device."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def prepared_ahead(things: Iterable[T], prepare: Callable[[T], R]) -> Iterator[tuple[T, R]]:
    """Each thing with what comes of preparing it, which a thread does while the one before is worked on.

    An error in preparing a thing is raised when its turn comes.
    """
    waiting: list[tuple[T, Future[R]]] = []
    with ThreadPoolExecutor(1) as thread:
        for thing in things:
            waiting.append((thing, thread.submit(prepare, thing)))
            if len(waiting) > 1:
                yield _ready(waiting.pop(0))
        yield from map(_ready, waiting)


def _ready(begun: tuple[T, "Future[R]"]) -> tuple[T, R]:
    thing, coming = begun
    return thing, coming.result()
