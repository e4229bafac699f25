"""The processes of somebody's training, which are in step with each other anyway, and talk through torch's group."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import distributed

from stereoset_scoring.place import Lost, processes

T = TypeVar("T")


class Peers:
    """All processes of torch's group, or this one alone where there is none; launched ones that have none make it.

    Args:
        in_step: whether each of them has to do all the work, as where each holds a part of one model.

    Attributes:
        rank, size: which process this is, of how many.
    """

    def __init__(self, in_step: bool = False):
        available = distributed.is_available()
        if available and not distributed.is_initialized() and int(os.environ.get("WORLD_SIZE", 1)) > 1:
            processes()
        grouped = available and distributed.is_initialized()
        self.rank, self.size = (distributed.get_rank(), distributed.get_world_size()) if grouped else (0, 1)
        self._in_step = in_step

    @property
    def is_main(self) -> bool:
        """Whether this process is the first."""
        return self.rank == 0

    def share(self, work: Sequence[T]) -> Sequence[T]:
        """This process's part of a list that is the same on every process."""
        return work if self._in_step else work[self.rank :: self.size]

    def gather(self, thing: T) -> list[T]:
        """What every process brings, by rank; waits for all of them."""
        if self.size == 1:
            return [thing]
        things: list[Any] = [None] * self.size
        distributed.all_gather_object(things, thing)
        return things

    def together(self, work: Callable[[], T]) -> T:
        """What work gives on this process, once all are done with theirs; where it fails on one, it fails on all.

        Raises:
            Lost: if it fails on another process.
            Exception: what work raises on this one.
        """
        try:
            done, failure = work(), None
        except Exception as error:  # of any make: the others wait
            failure = error
        failures = self.gather(None if failure is None else f"{type(failure).__name__}: {failure}")
        if failure is not None:
            raise failure
        for rank, words in enumerate(failures):
            if words is not None:
                raise Lost(f"Process {rank} of {self.size} has failed: {words}")
        return done
