"""How far a run is, in examples."""

from collections.abc import Callable, Iterable
from itertools import accumulate

from stereoset_scoring.planning.portions import Portion


class Farthest:
    """Tells somebody how many examples the farthest place in a run is farther than it was.

    Args:
        tell: called with a number of examples.
    """

    def __init__(self, tell: Callable[[int], object]):
        self._tell, self._place = tell, 0

    def reach(self, place: int) -> None:
        """So many examples are read, or passed by."""
        if place > self._place:
            self._tell(place - self._place)
            self._place = place

    def go_on(self, count: int) -> None:
        """So many more are."""
        self.reach(self._place + count)


class Counter:
    """Tells somebody how many examples are read; those that other processes read count when they are passed by.

    Args:
        portions: all of the run, in the order in which they are dealt.
        reach: called with how many examples are read, or passed by.
    """

    def __init__(self, portions: Iterable[Portion], reach: Callable[[int], object]):
        portions = list(portions)
        ends = accumulate((portion.size for portion in portions), initial=0)
        self._starts = dict(zip(portions, ends, strict=False))
        self._reach = reach

    def within(self, portion: Portion, rows: int) -> Callable[[int], None]:
        """What to call with how many rows of a portion, which has so many, were read."""
        start, read = self._starts[portion], 0
        self._reach(start)

        def tick(count: int) -> None:
            nonlocal read
            read += count
            self._reach(start + portion.size * read // rows)

        return tick
