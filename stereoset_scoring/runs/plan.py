"""What a run will read, all of it known before anything is computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from stereoset_scoring.planning.job import Job
from stereoset_scoring.processes.team import Team
from stereoset_scoring.questions.configs import asked_as
from stereoset_scoring.roles import Named, Rows, Scores
from stereoset_scoring.runs.asked import Asked
from stereoset_scoring.runs.record import beginning_record, identity, model_record, versions

Questions = tuple[Any, dict[str, Job]]  # what the jobs depend on, and they
LeftOut = dict[str, dict[str, str]]  # config -> id of an example -> why it is left out


@dataclass(frozen=True)
class Plan:
    """What a scorer will read, of each data set; all mappings are by the name of its config.

    Attributes:
        scorer: who reads.
        data: the rows.
        jobs: what is read of them.
        methods: by which method.
        fallbacks: why that is not the usual one, in words; None where it is.
        unscored: why a data set is left out as a whole.
        left_out: {id: why} of the examples of a data set that are left out.
        record: of the run, as far as it is known.
        questions: (what they depend on, the jobs), for the next revision; None where that cannot be told.
    """

    scorer: Scores
    data: Mapping[str, Rows]
    jobs: dict[str, Job]
    methods: dict[str, Named]
    fallbacks: dict[str, str | None]
    unscored: dict[str, str]
    left_out: LeftOut
    record: dict[str, Any]
    questions: Questions | None = None

    @cached_property
    def identities(self) -> dict[str, dict[str, Any]]:
        """All that the values of each data set depend on."""
        return {
            config: identity(self.record, self.methods[config], self.data[config], job)
            for config, job in self.jobs.items()
        }


def make_plan(
    asked: Asked, team: Team, scorer: Scores, data: Mapping[str, Rows], before: Questions | None = None
) -> Plan:
    """The Plan of a scorer for some data, {config: rows}.

    Args:
        asked, team, scorer, data: of the run.
        before: the questions of the plan of the revision before; (None, {}) for the first, None where there is one.

    Raises:
        Refusal: if it cannot be scored.
    """
    unscored = scorer.unanswerable(data)
    data = {config: rows for config, rows in data.items() if config not in unscored}
    data, left_out = _without(scorer.unscorable if asked.output.keep_going else scorer.unattributable, data)
    key = scorer.asks(data) if before else None
    jobs = scorer.plan_all(data, before[1]) if before and key == before[0] is not None else scorer.plan_all(data)
    methods = {config: scorer.method(asked_as(config)) for config in data}
    fallbacks = {config: scorer.fallback(asked_as(config)) for config in data}
    record = _describe(asked, team, scorer, jobs, methods) | {"unscored": unscored}
    return Plan(scorer, data, jobs, methods, fallbacks, unscored, left_out, record, key and (key, jobs))


def _without(
    find_refused: Callable[[Rows], dict[int, str]], data: Mapping[str, Rows]
) -> tuple[dict[str, Rows], LeftOut]:
    """(the data without the examples that are refused, {config: {id: why}} of those that have any).

    Examples of which it cannot be told what stands at BLANK are always left out: no mend is asked of anybody, for they
    are so in the published data, and the run says how many they are.
    """
    kept: dict[str, Rows] = {}
    left_out: LeftOut = {}
    for config, rows in data.items():
        refused = find_refused(rows)
        kept[config] = [row for i, row in enumerate(rows) if i not in refused]
        if refused:
            left_out[config] = {rows[i]["id"]: why for i, why in refused.items()}
    return kept, left_out


def _describe(
    asked: Asked, team: Team, scorer: Scores, jobs: Mapping[str, Job], methods: Mapping[str, Named]
) -> dict[str, Any]:
    """The record of a run; what comes out of it is still to be filled in."""
    heads = dict.fromkeys(row.head for job in jobs.values() for row in job.rows)
    return {
        "label": asked.output.label,
        "model": model_record(scorer.source, heads),
        "tasks": {},
        "preset": scorer.preset,
        "split": asked.questions.split,
        "data_file": asked.questions.data_file,
        "scale": asked.output.scale,
        "partial": None,
        "left_out": {},
        "max_tokens": scorer.max_tokens,
        "world_size": team.size,
        "device": str(team.state.device),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "beginnings": {config: beginning_record(method, scorer.source) for config, method in methods.items()},
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }
