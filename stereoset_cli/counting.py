"""How numbers are counted, as several commands ask for it: averages, ties, and how intervals are drawn."""

import argparse
from collections.abc import Sequence

from stereoset_metric.compute_score import AVERAGES, TIES
from stereoset_report.comparison import TASK, Manner
from stereoset_report.resampling import Resampling


def add_counting(group: argparse._ArgumentGroup) -> None:
    """The options that make a Manner: see `manner_of`."""
    add_average(group)
    add_ties(group)
    add_intervals(group)


def add_average(group: argparse._ArgumentGroup) -> None:
    """Over what is averaged."""
    group.add_argument("--average", choices=AVERAGES, default="target", help="over target terms or examples")


def add_ties(group: argparse._ArgumentGroup) -> None:
    """What ties count."""
    group.add_argument("--ties", choices=tuple(TIES), default="strict", help="what a tie is worth")


def add_intervals(group: argparse._ArgumentGroup) -> None:
    """How intervals are drawn: see `resampling_of`."""
    default = Resampling()
    group.add_argument(
        "--confidence-level", type=share, default=default.level, metavar="SHARE", help="of the intervals"
    )
    group.add_argument("--resamples", type=count, default=default.resamples, help="how many, for the intervals")
    group.add_argument("--seed", type=int, default=default.seed, help="of what is drawn at random")


def manner_of(args: argparse.Namespace, by: Sequence[str] = (TASK,)) -> Manner:
    """How is counted, as the options of `add_counting` say; by: as Manner has it."""
    return Manner(args.average, args.ties, resampling_of(args), by)


def resampling_of(args: argparse.Namespace) -> Resampling:
    """How intervals are made, as the options of `add_intervals` say."""
    return Resampling(args.confidence_level, args.resamples, args.seed)


def share(word: str) -> float:
    """A confidence level of the command line."""
    level = float(word)
    if not 0 < level < 1:
        raise argparse.ArgumentTypeError(f"{word} is no share between 0 and 1: give one such as 0.95")
    return level


def count(word: str) -> int:
    """How many of something, on the command line."""
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is too few: give 1 or more")
    return number
