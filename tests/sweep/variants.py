"""The variants of architectures, on several processes."""

import signal
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import repeat

import torch

from tests.sweep.architectures import Architecture, windows
from tests.sweep.configurations import UNFIT
from tests.sweep.trial import Trial, told, trials_of

PATIENCE = 120  # seconds of this process for one variant: what else the machine does is left out


@dataclass
class Variant:
    """An architecture whose windows reach so far.

    Attributes:
        architecture: the architecture.
        window: how far its windows reach, in tokens; None where none was made.
        trials: what came of it.
        unbuilt: why there is no model to try; None where there is one.
        seconds: how long it took this process.
    """

    architecture: Architecture
    window: int | None = None
    trials: list[Trial] = field(default_factory=list)
    unbuilt: str | None = None
    seconds: float = 0


def sweep(chosen, processes, sources):
    """Yields the variants of each architecture, in order, as the processes get to them."""
    with ProcessPoolExecutor(processes, initializer=prepare) as pool:
        yield from pool.map(variants, chosen, repeat(sources))


def prepare():
    """A process of the sweep: one thread, no warnings, and an alarm clock."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, give_up)


def give_up(*_):
    """End a variant that takes too long."""
    raise TimeoutError(f"It took more than {PATIENCE} seconds.")


def variants(architecture, sources):
    """The variants of an architecture, tried."""
    if architecture.model_type in UNFIT:
        return [Variant(architecture, unbuilt=UNFIT[architecture.model_type])]
    try:
        return [tried(Variant(architecture, window), sources) for window in windows(architecture)]
    except Exception as error:  # of any make: the sweep goes on, and says what it was
        return [Variant(architecture, unbuilt=told(error))]


def tried(variant, sources):
    """A variant with its trials."""
    begun = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        variant.trials = trials_of(variant.architecture, variant.window, sources=sources)
    except Exception as error:
        variant.unbuilt = told(error)
    signal.setitimer(signal.ITIMER_PROF, 0)
    variant.seconds = round(time.process_time() - begun, 1)
    return variant
