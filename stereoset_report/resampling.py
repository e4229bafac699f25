"""Intervals by resampling: numbers of examples that are drawn in groups, as products with how often each is drawn.

What is drawn are target terms, for examples of one term are alike (a cluster bootstrap: Cameron, Gelbach & Miller
2008); where there is one term only, its examples. Draws and percentiles are those of `stereoset_metric.compute_score`,
number for number, and come in a hundredth of its time.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SS, LMS, ICAT, ICAT_MACRO = "ss", "lms", "icat", "icat_macro"


@dataclass(frozen=True)
class Resampling:
    """How intervals are made.

    Attributes:
        level: the share of the resamples that an interval holds.
        resamples: how many.
        seed: of the draws.
    """

    level: float = 0.95
    resamples: int = 1000
    seed: int = 0


@dataclass(frozen=True)
class Units:
    """A group of examples, summed by what is drawn together.

    Attributes:
        names: of the target terms, in alphabetical order; of single examples, their term.
        sizes: examples of each (U,).
        means: {number: the mean of each unit (U,)}: ss, lms and shares in percent, log-odds in nats.
        by_example: whether a unit counts as often as it has examples; else all units count the same.
        alone: whether the units are the examples of a single term.
    """

    names: Sequence[str]
    sizes: Array
    means: Mapping[str, Array]
    by_example: bool = False
    alone: bool = False

    @cached_property
    def weights(self) -> Array:
        """What each unit counts for in a mean (U,)."""
        return self.sizes if self.by_example else np.ones(len(self.sizes))

    @cached_property
    def whole(self) -> dict[str, float]:
        """The numbers of all units, each drawn once."""
        return {name: float(values[0]) for name, values in self.drawn(np.ones((1, len(self.sizes)))).items()}

    def drawn(self, draws: Array) -> dict[str, Array]:
        """The numbers of resamples.

        Args:
            draws: how often each unit is drawn (R, U).

        Returns:
            {number: (R,)}: means over units, icat of the mean lms and ss, and icat_macro, the mean of the units' own.
        """
        totals = draws @ self.weights
        numbers = {name: draws @ (self.weights * values) / totals for name, values in self.means.items()}
        macro = None if self.alone or LMS not in self.means else draws @ self.own_icat / draws.sum(axis=1)
        return with_icat(numbers, macro)

    @cached_property
    def own_icat(self) -> Array:
        """The icat of each unit (U,), in percent."""
        return icat(self.means[LMS], self.means[SS])


def units_of(targets: Sequence[str], columns: Mapping[str, Array], by_example: bool = False) -> Units:
    """Examples summed by target term; where there is one term only, each for itself.

    Args:
        targets: the term of each example.
        columns: {number: its value for each example (N,)}.
        by_example: as `Units` has it.
    """
    names = sorted(set(targets))
    if len(names) == 1:
        return Units(list(targets), np.ones(len(targets)), dict(columns), by_example, alone=True)
    place = {name: i for i, name in enumerate(names)}
    places = np.array([place[target] for target in targets])
    sizes = np.bincount(places).astype(float)
    means = {name: np.bincount(places, values) / sizes for name, values in columns.items()}
    return Units(names, sizes, means, by_example)


def with_icat(numbers: Mapping[str, Array], macro: Array | None = None) -> dict[str, Array]:
    """The numbers, and icat behind lms where there is one; icat_macro is the same where macro is None."""
    if LMS not in numbers:
        return dict(numbers)
    whole = icat(numbers[LMS], numbers[SS])
    return {**numbers, ICAT: whole, ICAT_MACRO: whole if macro is None else macro}


def icat(lms: Array, ss: Array) -> Array:
    """lms * min(ss, 100 - ss) / 50, in percent (Nadeem et al. 2021, §6)."""
    return lms * np.minimum(ss, 100 - ss) / 50


@lru_cache(maxsize=32)
def draw(units: int, resamples: int, seed: int) -> Array:
    """How often each of some units is drawn, in resamples of as many units with replacement (R, U)."""
    _, state, _ = random.Random(int(seed)).getstate()  # so that the draws are the metric's, which knows no numpy
    generator = np.random.RandomState()
    generator.set_state(("MT19937", np.array(state[:-1], dtype=np.uint32), state[-1], 0, 0.0))
    drawn = (generator.random_sample((resamples, units)) * units).astype(np.int64)  # (R, U), which unit
    rows = np.arange(resamples)[:, None] * units
    return np.bincount((rows + drawn).ravel(), minlength=resamples * units).reshape(resamples, units).astype(float)


def resampled(units: Units, resampling: Resampling) -> dict[str, Array]:
    """{number: its values in the resamples (R,)}; none where there is but one unit to draw from."""
    if len(units.sizes) < 2:
        return {}
    return units.drawn(draw(len(units.sizes), resampling.resamples, resampling.seed))


def interval(values: Array, level: float) -> tuple[float, float]:
    """The percentiles between which a share of the resamples lies: the same many below as above."""
    ordered, tail = np.sort(values), (1 - level) / 2
    low, high = (ordered[min(int(share * len(ordered)), len(ordered) - 1)] for share in (tail, 1 - tail))
    return float(low), float(high)
