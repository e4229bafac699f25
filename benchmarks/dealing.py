"""How long processes take over portions: simulated, be the portions dealt to who is free or shared out beforehand."""

import heapq
from dataclasses import dataclass


@dataclass(frozen=True)
class Load:
    """What a portion takes a process of speed 1.

    Attributes:
        plan: seconds of planning.
        batches: seconds of each batch.
    """

    plan: float
    batches: tuple[float, ...]

    @property
    def seconds(self):
        """Of all of it."""
        return self.plan + sum(self.batches)

    def rest(self, spent):
        """What is left of it after some seconds: all planning, for it is planned again, and the unfinished batches."""
        left = spent - self.plan
        for done, seconds in enumerate(self.batches):
            left -= seconds
            if left < 0:
                return Load(self.plan, self.batches[done:])
        return Load(self.plan, ())


@dataclass(frozen=True)
class Turn:
    """A process at a portion.

    Attributes:
        load: the portion's.
        process: which one.
        start, stop: in seconds.
    """

    load: Load
    process: int
    start: float
    stop: float


def dealt(loads, speeds):
    """The Turns where who is free takes the next portion."""
    free, turns = [(0.0, process) for process in range(len(speeds))], []
    for load in loads:
        now, process = free[0]
        turns.append(Turn(load, process, now, now + load.seconds / speeds[process]))
        heapq.heapreplace(free, (turns[-1].stop, process))
    return turns


def shared(loads, speeds):
    """The Turns where each process has every N-th portion."""
    turns, free = [], [0.0] * len(speeds)
    for number, load in enumerate(loads):
        process = number % len(speeds)
        start, free[process] = free[process], free[process] + load.seconds / speeds[process]
        turns.append(Turn(load, process, start, free[process]))
    return turns


def end_of(turns):
    """When the last one is done."""
    return max(turn.stop for turn in turns)


def left_of(turns, speeds, stops):
    """The Loads of the command that goes on, where each process has stopped at some moment.

    Args:
        turns: what would have been done.
        speeds, stops: of each process.
    """
    return [turn.load.rest((stops[turn.process] - turn.start) * speeds[turn.process]) for turn in turns]
