"""What a run will read, all of it known before anything is computed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from stereoset_scoring.questions.configs import asked_as
from stereoset_scoring.runs.asked import Asked
from stereoset_scoring.runs.record import beginning_record, identity, model_record, versions


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

    scorer: Any
    data: dict[str, list]
    jobs: dict[str, Any]
    methods: dict[str, Any]
    fallbacks: dict[str, str | None]
    unscored: dict[str, str]
    left_out: dict[str, dict[str, str]]
    record: dict[str, Any]
    questions: tuple[Any, dict[str, Any]] | None = None

    @cached_property
    def identities(self) -> dict[str, dict[str, Any]]:
        """All that the values of each data set depend on."""
        return {
            config: identity(self.record, self.methods[config], self.data[config], job)
            for config, job in self.jobs.items()
        }


def make_plan(asked: Asked, team, scorer, data, before=None) -> Plan:
    """The Plan of a scorer for some data, {config: rows}.

    Args:
        asked, team, scorer, data: of the run.
        before: the questions of the plan of the revision before; (None, {}) for the first, None where there is one.

    Raises:
        Refusal: if it cannot be scored.
    """
    unscored = scorer.unanswerable(data)
    data = {config: rows for config, rows in data.items() if config not in unscored}
    data, left_out = _without_unscorable(scorer, data) if asked.output.keep_going else (data, {})
    key = scorer.asks(data) if before else None
    jobs = scorer.plan_all(data, before[1]) if before and key == before[0] is not None else scorer.plan_all(data)
    methods = {config: scorer.method(asked_as(config)) for config in data}
    fallbacks = {config: scorer.fallback(asked_as(config)) for config in data}
    record = _describe(asked, team, scorer, jobs, methods) | {"unscored": unscored}
    return Plan(scorer, data, jobs, methods, fallbacks, unscored, left_out, record, key and (key, jobs))


def _without_unscorable(scorer, data):
    """(the data without the examples that the scorer refuses, {config: {id: why}} of those that have any)."""
    kept, left_out = {}, {}
    for config, rows in data.items():
        refused = scorer.unscorable(rows)
        kept[config] = [row for i, row in enumerate(rows) if i not in refused]
        if refused:
            left_out[config] = {rows[i]["id"]: why for i, why in refused.items()}
    return kept, left_out


def _describe(asked, team, scorer, jobs, methods):
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
