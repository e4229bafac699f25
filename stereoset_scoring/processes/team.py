"""The processes of one run, which tell each other that they are alive, have come to a point, or have failed.

Nobody waits in a collective: a process that died would hold the others until a time-out that a slow one must not run
into. They meet at a store of keys first, where each also counts its heartbeats, and exchange data when all are there.
"""

import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cache
from typing import TypeVar

from accelerate.utils import gather_object
from torch.distributed import PrefixStore, TCPStore

from stereoset_scoring.place import Lost, processes, run_id
from stereoset_scoring.processes.interruption import Interrupted
from stereoset_scoring.processes.threads import take_threads

T = TypeVar("T")

BEAT = 1  # seconds between two heartbeats
SHORTEST, LATE = 0.01, 1 / 16  # seconds between two looks at who has come; later, this part of the time waited
SILENCE = 120  # seconds without a heartbeat after which a process is given up


class Team:
    """All processes that a launcher started; of one process, a team of one.

    Attributes:
        rank, size: which process this is, of how many.
        state: accelerate's PartialState.

    Raises:
        Lost: if the others are not there in time.
    """

    def __init__(self) -> None:
        self.state = processes()
        self.rank, self.size = self.state.process_index, self.state.num_processes
        self._meetings = 0
        if self.size > 1:
            self._heard = {rank: (0, time.monotonic()) for rank in range(self.size) if rank != self.rank}
            self._store = _store()
            self._over = threading.Event()
            threading.Thread(target=self._beat, args=(_store(),), daemon=True).start()
            self._looked = time.monotonic()
        else:
            take_threads()

    @property
    def is_main(self) -> bool:
        """Whether this process writes and prints."""
        return self.rank == 0

    @property
    def is_first_of_machine(self) -> bool:
        """Whether this process does first what others of its machine find done."""
        return self.state.is_local_main_process

    def deal(self, things: Sequence[T]) -> Iterator[T]:
        """Those things that fall to this process, of a list that is the same on every one: who is done takes the next.

        Raises:
            Lost: if another process has failed or fallen silent.
        """
        if self.size == 1:
            yield from things
            return
        self._meetings += 1
        while (number := self._take(f"dealing {self._meetings}")) < len(things):
            yield things[number]

    def _take(self, place: str) -> int:
        with _lost_store():
            return self._store.add(place, 1) - 1

    def gather(self, thing: T) -> list[T]:
        """What every process brings, by rank; waits for all of them.

        Raises:
            Lost: if one of them has failed or fallen silent.
        """
        if self.size == 1:
            return [thing]
        self.meet()
        return gather_object([thing])

    def meet(self) -> None:
        """Wait until every process has come as far.

        Raises:
            Lost: if one of them has failed or fallen silent.
        """
        if self.size > 1:
            self._meetings += 1
            self._arrive(f"meeting {self._meetings}")
            self._wait(f"meeting {self._meetings}", self.size)

    @contextmanager
    def first_of_machine_first(self) -> Iterator[None]:
        """Work that each machine's first process does before its others do it."""
        if self.size == 1:
            yield
            return
        self._meetings += 1
        local = self.state.local_process_index
        place = f"meeting {self._meetings} of {self.rank - local}"
        if local:
            self._wait(place, 1)
        yield
        if not local:
            self._arrive(place)

    def look_round(self) -> None:
        """Every few heartbeats, see that no other process has failed.

        Raises:
            Lost: if one of them has failed or fallen silent.
        """
        if self.size > 1 and time.monotonic() - self._looked > BEAT:
            self._look()

    def leave(self) -> None:
        """End this process's part when all is done; the first process goes last, for the others talk through it."""
        if self.size > 1:
            self._arrive("leaving")
            if self.is_main:
                self._wait("leaving", self.size)
            self._over.set()
            self.state.destroy_process_group()

    def fail(self, error: BaseException) -> None:
        """End this process's part, and tell the others why: one that was asked to end asks them too."""
        if self.size > 1:
            self._tell(error)
            self._over.set()

    def _tell(self, error: BaseException) -> None:
        try:
            if isinstance(error, Interrupted):
                self._store.set("asked to end", "")
            elif not self._store.check(["failure"]):
                reason = str(error) or type(error).__name__
                self._store.set("failure", f"Process {self.rank} of {self.size} ended: {reason}")
        except RuntimeError:
            pass  # nobody is left to tell: the store is gone

    def _beat(self, store: PrefixStore) -> None:
        """Count heartbeats, in a thread with a connection of its own."""
        try:
            while not self._over.wait(BEAT):
                store.add(f"beats of {self.rank}", 1)
        except RuntimeError:
            pass  # the store is gone, which the main thread finds out by itself

    def _arrive(self, place: str) -> None:
        with _lost_store():
            self._store.add(place, 1)

    def _wait(self, place: str, count: int) -> None:
        began = time.monotonic()
        with _lost_store():
            while self._store.add(place, 0) < count:
                waited = time.monotonic() - began
                time.sleep(min(max(SHORTEST, waited * LATE), BEAT))
                self.look_round()

    def _look(self) -> None:
        with _lost_store():
            self._looked = time.monotonic()
            if self._store.check(["asked to end"]):
                raise Interrupted
            if self._store.check(["failure"]):
                raise Lost(self._store.get("failure").decode())
            for rank, (beats, since) in self._heard.items():
                found = self._store.add(f"beats of {rank}", 0)
                if found != beats:
                    self._heard[rank] = found, self._looked
                elif self._looked - since > SILENCE:
                    raise Lost(
                        f"Process {rank} of {self.size} has given no sign of life for {SILENCE} seconds: it or "
                        "its machine died."
                    )


@contextmanager
def _lost_store() -> Iterator[None]:
    try:
        yield
    except Lost:
        raise
    except RuntimeError as error:
        raise Lost(f"The process that all others talk through is gone ({str(error).splitlines()[0]}).") from error


def _store() -> PrefixStore:
    """A connection to the store through which the processes found each other."""
    where = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    # Its answers come at once, or its machine is dead.
    return PrefixStore(f"beside {run_id()}", TCPStore(*where, is_master=False, timeout=timedelta(seconds=SILENCE)))


@cache
def our_team() -> Team:
    """The Team of this process, the same at every call: two would not meet."""
    return Team()
