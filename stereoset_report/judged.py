"""Examples as columns: what a vote of each says, and by how much the stereotype leads (its margin)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, log
from typing import Any

import numpy as np

from stereoset_metric.compute_score import Judgement, flat_references, judge_all
from stereoset_report.resampling import LMS, SS, Array, Units, units_of
from stereoset_report.results import ALL
from stereoset_report.saved import Saved
from stereoset_scoring.files.predictions import option_ids
from stereoset_scoring.questions.configs import split_config
from stereoset_scoring.questions.examples import GOLD_LABELS, gold_labels

SHARE, LOG_ODDS = "share", "log_odds"
LOGS, PROBABILITIES = "log", "probability"  # what scores are; as run.json has it under "scale"
NO_LOGARITHMS = ("quotient",)  # methods of language models whose scores are no logarithms; see METHODS.md
Row = Mapping[str, Any]  # of the data set, in any layout


@dataclass(frozen=True)
class Judged:
    """Examples, judged.

    Attributes:
        keys: what tells the examples apart: the ids of their options.
        judgements: theirs, in the same order.
        margins: by how much each scores the stereotype above the anti-stereotype, in nats, infinite where a
            probability is 0 (N,); None where scores are no logarithms of anything.
    """

    keys: Sequence[tuple[str, ...]]
    judgements: Sequence[Judgement]
    margins: Array | None

    def __add__(self, other: "Judged") -> "Judged":
        """The examples of both; margins are of one method, and so not of two tasks together."""
        return Judged([*self.keys, *other.keys], [*self.judgements, *other.judgements], None)

    @cached_property
    def stereotyped(self) -> Array:
        """1 where the stereotype is preferred to the anti-stereotype, 0 where not; 0.5 for half a tie (N,)."""
        return np.array([judgement.stereotyped for judgement in self.judgements])

    @cached_property
    def columns(self) -> dict[str, Array]:
        """{number: its value for each example}: what units are averaged from."""
        columns = {SS: 100 * self.stereotyped}
        if self.judgements[0].related is not None:
            columns[LMS] = np.array([50.0 * (judgement.related or 0) for judgement in self.judgements])
        if self.margins is not None:
            columns[SHARE] = 50 * (1 + np.tanh(self.margins / 2))  # 100 / (1 + exp(-margin)), without overflow
            if np.isfinite(self.margins).all():
                columns[LOG_ODDS] = self.margins
        return columns

    @property
    def zeros(self) -> int:
        """How many examples have no log-odds, for one of the two has a probability of 0."""
        return 0 if self.margins is None else int(np.isinf(self.margins).sum())

    def at(self, places: Sequence[int]) -> "Judged":
        """Some of the examples."""
        margins = None if self.margins is None else self.margins[places]
        return Judged([self.keys[i] for i in places], [self.judgements[i] for i in places], margins)

    def where(self, wanted: Callable[[Judgement], bool]) -> "Judged":
        """The examples whose judgement is wanted."""
        return self.at([i for i, judgement in enumerate(self.judgements) if wanted(judgement)])

    def group(self, name: str) -> "Judged":
        """The examples of a group, such as `groups` names."""
        return self if name == ALL else self.at(self._places.get(name, ()))

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """{group: the numbers of its examples}."""
        places: dict[str, list[int]] = {}
        for i, judgement in enumerate(self.judgements):
            for name in _groups_of(judgement):
                places.setdefault(name, []).append(i)
        return places

    @property
    def groups(self) -> list[str]:
        """The bias types and directions that there are."""
        types = sorted({judgement.bias_type for judgement in self.judgements})
        return types + sorted({judgement.direction for judgement in self.judgements if judgement.direction})

    @property
    def agreements(self) -> list[str]:
        """The agreements that are known of the examples, such as "agreement 3"."""
        return sorted({name for name in map(_agreement, self.judgements) if name})

    def units(self, by_example: bool = False) -> Units:
        """Summed by target term: see `units_of`."""
        return units_of([judgement.target for judgement in self.judgements], self.columns, by_example)


def judge_part(rows: Sequence[Row], scores: Sequence[Sequence[float]], ties: str, scale: str | None) -> Judged:
    """The examples of a part, judged.

    Args:
        rows: of the data set.
        scores: scores[i][j] of option j of row i.
        ties: as `compute_score` takes it.
        scale: of the scores, as `scale_of` says.
    """
    margins = None
    if scale is not None:
        margins = np.array([margin(of_row, gold_labels(row), scale) for row, of_row in zip(rows, scores, strict=True)])
    keys = [tuple(option_ids(row)) for row in rows]
    return Judged(keys, judge_all(scores, flat_references(rows), ties), margins)


def margin(scores: Sequence[float], labels: Sequence[str], scale: str | None) -> float:
    """By how much the stereotype is scored above the anti-stereotype, in nats; without a scale, in theirs."""
    anti, pro = (scores[labels.index(label)] for label in GOLD_LABELS[:2])
    if pro == anti:  # also where both are 0, or no numbers to subtract
        return 0.0
    return _ln(pro) - _ln(anti) if scale == PROBABILITIES else pro - anti


def scale_of(saved: Saved, config: str) -> str | None:
    """What the scores of a config are: logarithms, probabilities, or None for neither.

    A run's record says it. Scores of a file are taken for probabilities if all lie between 0 and 1, and for logarithms
    of some if all are 0 or less.
    """
    if saved.record:
        task = saved.record.get("tasks", {}).get(config, {})
        if saved.family == "baseline" or task.get("method") in NO_LOGARITHMS:
            return None
        return saved.record.get("scale", LOGS)
    _, scores = saved.parts[config]
    lowest, highest = _range(scores)
    if lowest >= 0 and highest <= 1:
        return PROBABILITIES
    return LOGS if highest <= 0 else None


def method_of(saved: Saved, config: str) -> str | None:
    """The method that scored a config, with the kind of model: "causal likelihood"; None where nothing says it."""
    method = saved.record.get("tasks", {}).get(config, {}).get("method")
    return None if method is None else f"{saved.family or ''} {method}".strip()


def by_task(configs: Iterable[str]) -> dict[tuple[str, str], str]:
    """{(language, task): config}."""
    return {(language, task): config for config in configs for task, language in [split_config(config)]}


def _agreement(judgement: Judgement) -> str | None:
    """How many annotators agree on an example, as the name of a group; None where that is not known."""
    return None if judgement.agreement is None else f"agreement {judgement.agreement}"


def _groups_of(judgement: Judgement) -> set[str]:
    """The names of the groups that an example is in; Nangia et al. leave neutral pairs out of those by direction."""
    direction = None if judgement.tie else judgement.direction
    return {name for name in (judgement.bias_type, _agreement(judgement), direction) if name is not None}


def _range(scores: Sequence[Sequence[float]]) -> tuple[float, float]:
    return min(map(min, scores)), max(map(max, scores))


def _ln(probability: float) -> float:
    return log(probability) if probability > 0 else -inf
