"""Taking turns: A B A B, so that what slows the machine for a while slows both."""

from statistics import median
from time import perf_counter


def alternate(works, rounds, clock=perf_counter, idle=1):
    """Do works in turn, after some turns each that do not count.

    Args:
        works: {name: function without arguments}.
        rounds: how many turns count.
        idle: how many turns do not.

    Returns:
        ({name: seconds of each turn}, {name: what each turn gave}).
    """
    seconds, found = {name: [] for name in works}, {name: [] for name in works}
    for turn in range(idle + rounds):
        for name, work in works.items():
            start = clock()
            result = work()
            if turn >= idle:
                seconds[name].append(clock() - start)
                found[name].append(result)
    return seconds, found


def middle(values):
    """The median."""
    return median(values)


def spread(values, digits=2):
    """The median with the smallest and the largest, in words."""
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"
