"""From the readings of an option to one number; all in nats."""

from itertools import chain
from math import exp, fsum, inf, log

from stereoset_scoring.planning.rows import Values


def total(values: Values) -> float:
    """The sum of all readings: ln of the product of the probabilities."""
    return fsum(chain.from_iterable(values))


def mean_log(values: Values) -> float:
    """The mean of all readings: ln of the geometric mean probability."""
    readings = list(chain.from_iterable(values))
    return fsum(readings) / len(readings)


def log_mean_probability(values: Values) -> float:
    """ln of the arithmetic mean of the probabilities."""
    readings = list(chain.from_iterable(values))
    top = max(readings)
    if top == -inf:
        return top
    # Relative to the largest, so that probabilities below the smallest float still count.
    return top + log(fsum(exp(value - top) for value in readings) / len(readings))


def only(values: Values) -> float:
    """The one reading there is."""
    ((value,),) = values
    return value


def share_of_first(values: Values) -> float:
    """ln of the first row's probability as a share of that of two."""
    first, second = map(fsum, values)
    top = max(first, second)
    if top == -inf:
        return log(0.5)
    return first - top - log(exp(first - top) + exp(second - top))
