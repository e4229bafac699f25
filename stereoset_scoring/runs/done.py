"""What came of the portions of a data set, and of the data set as a whole."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from stereoset_scoring.planning.job import Job
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.reading import Unreadable
from stereoset_scoring.roles import Rows
from stereoset_scoring.runs.plan import Posed
from stereoset_scoring.runs.record import TokenCounts, counts_of


class Done(NamedTuple):
    """What came of a portion.

    Attributes:
        portion: which one.
        scores: of the options of each example; None for one that is left out.
        left_out: {index of the example in the portion: why}.
        counts: of what was asked.
        observed: all that was observed beside the scores, by its name.
    """

    portion: Portion
    scores: list[list[float] | None]
    left_out: dict[int, str]
    counts: dict[str, int]
    observed: dict[str, list[float]]

    @property
    def as_json(self) -> list[Any]:
        """All of it but the portion, ready for JSON."""
        return [self.scores, list(self.left_out.items()), self.counts, self.observed]

    @classmethod
    def from_json(cls, portion: Portion, content: Sequence[Any]) -> "Done":
        """What came of a portion, of its `as_json`, written and read."""
        scores, left_out, counts, observed = content
        return cls(portion, scores, dict(left_out), counts, observed)


def done_with(
    portion: Portion,
    posed: Posed,
    job: Job,
    values: Mapping[int, Sequence[float]],
    failures: Mapping[int, str],
) -> Done:
    """What came of a portion.

    Args:
        portion: which one.
        posed: what it asks.
        job: what was read of it.
        values: {index of a row of the job: its values}.
        failures: {index of one that cannot be read: why}.
    """
    refused, unscored = posed.questions.refused, job.unscored(failures)
    places = [i for i in range(portion.size) if i not in refused]
    scores: list[list[float] | None] = [None] * portion.size
    for i, of_row in zip(places, job.scores(values, unscored), strict=True):
        scores[i] = of_row
    return Done(
        portion,
        scores,
        refused | {places[i]: why for i, why in unscored.items()},
        counts_of(job) | _tokens_of(posed.texts, scores),
        job.observed(values, unscored),
    )


def _tokens_of(texts: Sequence[TokenCounts], scores: Sequence[list[float] | None]) -> dict[str, int]:
    """How many tokens the options of the examples that are scored have; empty where that is not counted."""
    if not texts:
        return {}
    kept = [counts for counts, of_row in zip(texts, scores, strict=True) if of_row is not None]
    return TokenCounts(*map(sum, zip(*kept, strict=True)))._asdict()


class Whole(NamedTuple):
    """What came of a data set.

    Attributes:
        rows: those that are scored.
        scores: of their options.
        left_out: {id of another: why}.
        counts: of what was asked.
        observed: the means of what was observed beside the scores, by its name.
    """

    rows: list[Mapping[str, Any]]
    scores: list[list[float]]
    left_out: dict[str, str]
    counts: dict[str, int]
    observed: dict[str, float]

    @classmethod
    def of(cls, parts: Iterable[Done], data: Rows) -> "Whole":
        """The Whole of all portions of some data, in any order.

        Raises:
            Unreadable: if no example can be scored.
        """
        parts = sorted(parts, key=lambda part: part.portion.start)
        rows: list[Mapping[str, Any]] = []
        scores: list[list[float]] = []
        left_out: dict[str, str] = {}
        for part in parts:
            for i, of_row in enumerate(part.scores):
                row = data[part.portion.start + i]
                if of_row is None:
                    left_out[row["id"]] = part.left_out[i]
                else:
                    rows.append(row)
                    scores.append(of_row)
        if left_out and not rows:
            first = next(iter(left_out.values()))
            raise Unreadable(f"No example of {parts[0].portion.config} can be scored, the first for this: {first}")
        return cls(rows, scores, left_out, _sums(parts), _means(parts))


def _sums(parts: Iterable[Done]) -> dict[str, int]:
    """The counts of all parts."""
    counts: Counter[str] = Counter()
    for part in parts:
        counts.update(part.counts)
    return dict(counts)


def _means(parts: Iterable[Done]) -> dict[str, float]:
    """The means of all that was observed, by its name."""
    observed: dict[str, list[float]] = defaultdict(list)
    for part in parts:
        for name, values in part.observed.items():
            observed[name] += values
    return {name: fsum(values) / len(values) for name, values in observed.items()}
