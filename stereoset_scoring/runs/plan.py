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
    """

    scorer: Any
    data: dict[str, list]
    jobs: dict[str, Any]
    methods: dict[str, Any]
    fallbacks: dict[str, str | None]
    unscored: dict[str, str]
    left_out: dict[str, dict[str, str]]
    record: dict[str, Any]

    @cached_property
    def identities(self) -> dict[str, dict[str, Any]]:
        """All that the values of each data set depend on."""
        return {
            config: identity(self.record, self.methods[config], self.data[config], job)
            for config, job in self.jobs.items()
        }


def make_plan(asked: Asked, team, scorer, data) -> Plan:
    """The Plan of a scorer for some data, {config: rows}.

    Raises:
        Refusal: if it cannot be scored.
    """
    unscored = scorer.unanswerable(data)
    data = {config: rows for config, rows in data.items() if config not in unscored}
    data, left_out = _without(scorer.unscorable if asked.output.keep_going else scorer.unattributable, data)
    jobs = scorer.plan_all(data)
    methods = {config: scorer.method(asked_as(config)) for config in data}
    fallbacks = {config: scorer.fallback(asked_as(config)) for config in data}
    record = _describe(asked, team, scorer, jobs, methods) | {"unscored": unscored}
    return Plan(scorer, data, jobs, methods, fallbacks, unscored, left_out, record)


def _without(find_refused, data):
    """(the data without the examples that are refused, {config: {id: why}} of those that have any).

    Examples of which it cannot be told what stands at BLANK are always left out: no mend is asked of anybody, for they
    are so in the published data, and the run says how many they are.
    """
    refused = {config: find_refused(rows) for config, rows in data.items()}
    kept = {config: [row for i, row in enumerate(rows) if i not in refused[config]] for config, rows in data.items()}
    left_out = {config: {data[config][i]["id"]: why for i, why in some.items()} for config, some in refused.items()}
    return kept, {config: some for config, some in left_out.items() if some}


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
