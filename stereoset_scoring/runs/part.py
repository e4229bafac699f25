"""One scorer's part of a run, in a folder of its own: gone on with, computed, written; or found finished."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from stereoset_scoring.files.ledger import Ledger
from stereoset_scoring.processes.team import Team
from stereoset_scoring.reading import Unreadable, read_everywhere, rows_to_read
from stereoset_scoring.runs.asked import Asked
from stereoset_scoring.runs.outcome import Judge, Outcome, Scored, find_finished, save
from stereoset_scoring.runs.plan import Plan
from stereoset_scoring.runs.record import task_record

PROGRESS = "progress"  # the folder, in the output folder, of what was computed so far


@dataclass(frozen=True)
class Listener:
    """Who is told how a run goes on, in the main process.

    Attributes:
        began: called with each Plan before it is computed.
        ended: called with each Outcome.
        note: called with a line of what is good to know; also by the first process of another machine.
        progress: called with how many rows there are to read; gives a context, whose value is called with how many
            rows were read just now.
    """

    began: Callable[[Plan], None]
    ended: Callable[[Outcome], None]
    note: Callable[[str], None]
    progress: Callable[[int], AbstractContextManager[Callable[[int], Any]]]


class Part:
    """What a run does with one scorer.

    Args:
        asked: what is asked.
        team: the processes of the run.
        plan: what is read.
        folder: where the files go.
        listener: who is told how it goes on.

    Raises:
        Refusal: if the folder holds another run.
    """

    def __init__(self, asked: Asked, team: Team, plan: Plan, folder: Path, listener: Listener):
        self._asked, self._team, self._plan, self._folder, self._listener = asked, team, plan, folder, listener
        self._ledger = Ledger(folder / PROGRESS, plan.identities)
        self._known = self._ledger.read()
        self._observed: dict[str, dict[str, float]] = {}
        self._costs: dict[str, int] = {}
        self._left_out = {config: dict(some) for config, some in plan.left_out.items()}
        finished = self._find_finished() if team.is_main else None
        self._finished = team.gather(finished)[0]

    def run(self, judge: Judge) -> Outcome | None:
        """Compute what is not known and write the files, or find them written; the Outcome, in the main process."""
        if self._team.is_main:
            self._listener.began(self._plan)
        outcome = self._finished or self._compute(judge)
        if outcome is not None and self._team.is_main:
            self._listener.ended(outcome)
        self._team.meet()  # nothing is removed before it is written
        with self._team.first_of_machine_first():
            self._ledger.remove()
        return outcome

    def _find_finished(self) -> Outcome | None:
        """What a run of the same thing has left in the folder; what one was still writing does not count."""
        found = None if any(self._known.values()) else find_finished(self._folder, self._plan, self._asked.output)
        if found:
            self._listener.note(f"{self._folder} holds this run, finished: nothing is computed. (Anew: --restart.)")
        return found

    def _compute(self, judge: Judge) -> Outcome | None:
        self._go_on()
        with self._counting() as tick:
            scores = {config: self._read(config, tick) for config in self._plan.jobs}
        self._costs = _together(self._team.gather(dict(self._plan.scorer.costs)))
        return save(self._folder, self._plan, self._record(scores), scores, judge) if self._team.is_main else None

    def _go_on(self) -> None:
        """Start from what earlier runs have computed; from now on the ledger takes more."""
        self._team.meet()  # nobody writes while another one reads
        self._ledger.open()
        count = sum(map(len, self._known.values()))
        if count and self._team.is_main:
            self._listener.note(f"Going on: {count} rows were computed before.")
        if self._ledger.damaged and self._team.state.is_local_main_process:
            self._listener.note(
                f"{self._ledger.damaged} lines in {self._ledger.folder} were torn or damaged and do not count."
            )

    def _counting(self) -> AbstractContextManager[Callable[[int], Any]]:
        """Progress over all data sets, in the main process and for its own share."""
        if not self._team.is_main:
            return nullcontext(lambda rows: None)
        jobs = self._plan.jobs.items()
        return self._listener.progress(sum(rows_to_read(self._team, job, self._known[config]) for config, job in jobs))

    def _read(self, config: str, tick: Callable[[int], Any]) -> tuple[list[Mapping[str, Any]], list[list[float]]]:
        """(rows, scores) of a data set, without the examples that are left out."""
        job, rows = self._plan.jobs[config], self._plan.data[config]
        values, failures = read_everywhere(
            self._team,
            self._plan.scorer,
            job,
            tick,
            self._known[config],
            partial(self._ledger.add, config),
            self._asked.output.keep_going,
        )
        unscored = job.unscored(failures)
        if len(unscored) == len(rows):
            raise Unreadable(f"No example of {config} can be scored, the first for this: {unscored[0]}")
        if unscored:
            self._left_out.setdefault(config, {}).update({job.ids[i]: why for i, why in unscored.items()})
        self._observed[config] = job.observed(values, unscored)
        kept = [row for i, row in enumerate(rows) if i not in unscored]
        return kept, [of_row for of_row in job.scores(values, unscored) if of_row is not None]

    def _record(self, scores: Scored) -> dict[str, Any]:
        """The record, now that it is known what was scored."""
        plan = self._plan
        tasks = {
            config: task_record(
                plan.methods[config],
                rows,
                plan.jobs[config],
                of_rows,
                plan.scorer.source.tokenizer,
                plan.fallbacks[config],
            )
            | ({"observed": self._observed[config]} if self._observed[config] else {})
            for config, (rows, of_rows) in scores.items()
        }
        found = {"tasks": tasks, "partial": self._partial(), "left_out": self._left_out}
        return plan.record | found | ({"costs": self._costs} if self._costs else {})

    def _partial(self) -> str | None:
        """What part of the data is scored, in words; None for all of it."""
        limit = self._asked.questions.limit
        parts = [f"first {limit} examples of each task"] if limit else []
        parts += [self._asked.questions.selection] if self._asked.questions.selection else []
        parts += [f"{len(some)} of {config} left out" for config, some in self._left_out.items()]
        return ", ".join(parts) or None


def _together(costs: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The costs of all processes, since this run was started."""
    total: Counter[str] = Counter()
    for of_one in costs:
        total.update(of_one)
    return dict(total)
