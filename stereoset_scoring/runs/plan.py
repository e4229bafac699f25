"""What a run will read: tried on a few examples before anything is computed, then planned portion by portion."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import torch

from stereoset_scoring.planning.job import Job, Questions
from stereoset_scoring.planning.portions import Portion, in_portions
from stereoset_scoring.processes.team import Team
from stereoset_scoring.questions.configs import asked_as
from stereoset_scoring.questions.examples import read_example
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.roles import Named, Rows, Scores
from stereoset_scoring.runs.asked import Asked
from stereoset_scoring.runs.record import TokenCounts, beginning_record, identity, model_record, tokens_of, versions

FOR_ONE_CORE = 1024  # the hidden size up to which a batch takes one core seconds: asked to end, it can be waited for


class Posed(NamedTuple):
    """A portion whose questions are known.

    Attributes:
        rows: its rows.
        questions: what they ask.
        texts: what the options of each row hold; empty where that is not counted, see `tokens_of`.
    """

    rows: list[Mapping[str, Any]]
    questions: Questions
    texts: list[TokenCounts]


Known = tuple[Any, dict[Portion, Posed]]  # what questions depend on, and those that were posed here


@dataclass(frozen=True)
class Plan:
    """What a scorer will read, of each data set; all mappings are by the name of its config.

    Attributes:
        scorer: who reads.
        data: the rows.
        probes: what was read of a few of them, to try the model.
        methods: by which method.
        fallbacks: why that is not the usual one, in words; None where it is.
        unscored: why a data set is left out as a whole.
        record: of the run, as far as it is known.
        known: what the revision before asked, where that is the same, and this one itself.
    """

    scorer: Scores
    data: Mapping[str, Rows]
    probes: dict[str, Job]
    methods: dict[str, Named]
    fallbacks: dict[str, str | None]
    unscored: dict[str, str]
    record: dict[str, Any]
    known: Known | None = None

    @property
    def heads(self) -> list[str]:
        """The heads that are asked."""
        return heads_of(self.probes)

    @property
    def suits_forks(self) -> bool:
        """Whether forks of this process, each on one core, compute as it does, and every batch within seconds.

        What is compiled, quantized or code of others may have threads of its own, and a fork has none of them.
        """
        heads, width = self.record["model"]["heads"].values(), self.scorer.width
        own = [head[name] for head in heads for name in ("compiled", "quantization", "code_sha256")]
        on_cpu = bool(heads) and all(head["devices"] == ["cpu"] for head in heads)
        return on_cpu and not any(own) and width is not None and width <= FOR_ONE_CORE

    @cached_property
    def portions(self) -> list[Portion]:
        """What is planned, read and handed out at once, in order."""
        return in_portions({config: len(rows) for config, rows in self.data.items()}, self.scorer.max_tokens)

    @cached_property
    def identities(self) -> dict[str, dict[str, Any]]:
        """All that the values of each data set depend on."""
        tokenizer = self.scorer.source.tokenizer
        return {
            config: identity(self.record, self.methods[config], rows, self.probes[config], tokenizer)
            for config, rows in self.data.items()
        }

    def pose(self, portion: Portion, leave_out: bool) -> Posed:
        """What a portion asks; see `Scores.questions`."""
        if self.known and portion in self.known[1]:
            return self.known[1][portion]
        data, tokenizer = self.data[portion.config], self.scorer.source.tokenizer
        rows = [data[i] for i in range(portion.start, portion.stop)]
        questions = self.scorer.questions(portion, rows, leave_out)
        posed = Posed(rows, questions, tokens_of(rows, tokenizer))
        if self.known:
            self.known[1][portion] = posed
        return posed

    def leaves_out(self, found: Mapping[str, Mapping[str, str]]) -> bool:
        """Whether nothing is left out, as a record says it, {config: {id: why}}, but what always is."""
        return all(map(self._are_left_out, found, found.values()))

    def _are_left_out(self, config: str, found: Mapping[str, str]) -> bool:
        rows = [row for row in self.data[config] if row["id"] in found]
        try:
            _, refused = self.scorer.questions(Portion(config, 0, len(rows)), rows)
        except Refusal:
            return False
        return len(refused) == len(found)


def make_plan(asked: Asked, team: Team, scorer: Scores, data: Mapping[str, Rows], before: Known | None = None) -> Plan:
    """The Plan of a scorer for some data, {config: rows}.

    Args:
        asked, team, scorer, data: of the run.
        before: what the revision before asked; (None, {}) for the first one, None where there is no other.

    Raises:
        Refusal: if it cannot be scored.
    """
    unscored = scorer.unanswerable(data)
    data = {config: rows for config, rows in data.items() if config not in unscored}
    if not asked.output.keep_going:
        check_examples(data)
    probes = scorer.try_out(data)
    methods = {config: scorer.method(asked_as(config)) for config in data}
    fallbacks = {config: scorer.fallback(asked_as(config)) for config in data}
    record = _describe(asked, team, scorer, heads_of(probes), methods) | {"unscored": unscored}
    return Plan(scorer, data, probes, methods, fallbacks, unscored, record, _known(scorer, data, before))


def check_examples(data: Mapping[str, Rows]) -> None:
    """See that each row of some data sets is an example.

    Raises:
        Refusal: if one is not.
    """
    for rows in data.values():
        for row in rows:
            read_example(row)


def heads_of(probes: Mapping[str, Job]) -> list[str]:
    """The heads that some jobs ask."""
    return list(dict.fromkeys(head for job in probes.values() for head in job.heads))


def _known(scorer: Scores, data: Mapping[str, Rows], before: Known | None) -> Known | None:
    """What the revision before asked, if this one asks the same; None where nobody will ask again."""
    key = scorer.asks(data) if before else None
    if before is None or key is None:
        return None
    return before if key == before[0] else (key, {})


def _describe(
    asked: Asked, team: Team, scorer: Scores, heads: Iterable[str], methods: Mapping[str, Named]
) -> dict[str, Any]:
    """The record of a run; what comes out of it is still to be filled in."""
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
