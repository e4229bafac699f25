"""How far a run is, in examples."""

from collections.abc import Callable, Iterable
from itertools import accumulate

from stereoset_scoring.planning.portions import Portion


class Counter:
    """Tells somebody how many examples were read just now; those that other processes read, when they are passed by.

    Args:
        portions: all of the run, in the order in which they are dealt.
        tell: called with a number of examples.
    """

    def __init__(self, portions: Iterable[Portion], tell: Callable[[int], object]):
        portions = list(portions)
        ends = accumulate((portion.size for portion in portions), initial=0)
        self._starts = dict(zip(portions, ends, strict=False))
        self._total = sum(portion.size for portion in portions)
        self._tell, self._told = tell, 0

    def within(self, portion: Portion, rows: int) -> Callable[[int], None]:
        """What to call with how many rows of a portion, which has so many, were read."""
        start, read = self._starts[portion], 0
        self._reach(start)

        def tick(count: int) -> None:
            nonlocal read
            read += count
            self._reach(start + portion.size * read // rows)

        return tick

    def done(self) -> None:
        """All is read that this process reads."""
        self._reach(self._total)

    def _reach(self, place: int) -> None:
        if place > self._told:
            self._tell(place - self._told)
            self._told = place
