"""One scorer's part of a run, in a folder of its own: gone on with, computed, written; or found finished."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from stereoset_scoring.files.ledger import Ledger
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.processes import garbage
from stereoset_scoring.processes.ahead import prepared_ahead
from stereoset_scoring.processes.team import Team
from stereoset_scoring.processes.workers import can_fork, done_by_workers
from stereoset_scoring.reading import read_rest
from stereoset_scoring.runs.asked import Asked
from stereoset_scoring.runs.counting import Counter, Farthest
from stereoset_scoring.runs.done import Done, Whole, done_with
from stereoset_scoring.runs.outcome import Judge, Outcome, find_finished, save
from stereoset_scoring.runs.plan import Plan, Posed
from stereoset_scoring.runs.record import data_sha256, task_record

Known = Mapping[Any, Sequence[float]]  # key of a row -> its values in nats
PROGRESS = "progress"  # the folder, in the output folder, of what was computed so far


@dataclass(frozen=True)
class Listener:
    """Who is told how a run goes on, in the main process.

    Attributes:
        began: called with each Plan before it is computed.
        ended: called with each Outcome.
        note: called with a line of what is good to know; also by the first process of another machine.
        progress: called with how many examples there are; gives a context, whose value is called with how many
            were read just now.
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
        self._known: Mapping[str, Known] = self._ledger.read()
        self._known_done: Mapping[str, Mapping[Any, Any]] = self._ledger.done
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
        with self._plan.scorer.evaluating(self._plan.heads), self._telling() as progress:
            mine = list(self._done_by_workers(progress) if self._workers > 1 else self._done_here(progress))
        costs = _together(self._team.gather(dict(self._plan.scorer.costs)))
        done = chain.from_iterable(self._team.gather(mine))
        if not self._team.is_main:
            return None
        with garbage.kept():
            return self._put_together(done, costs, judge)

    def _go_on(self) -> None:
        """Start from what earlier runs have computed; from now on the ledger takes more."""
        count = sum(map(len, self._known.values()))
        found = (self._known, self._known_done) if self._team.is_first_of_machine else ({}, {})
        shares = self._team.gather(found)  # also: nobody writes while another one reads
        self._known, self._known_done = (_joined(some) for some in zip(*shares, strict=True))
        self._ledger.open()
        if count and self._team.is_main:
            self._listener.note(f"Going on: {count} rows were computed before.")
        if self._ledger.damaged and self._team.is_first_of_machine:
            torn = f"{self._ledger.damaged} lines in {self._ledger.folder}"
            self._listener.note(f"{torn} were torn or damaged and do not count.")

    @contextmanager
    def _telling(self) -> Iterator[Farthest]:
        """Progress over all data sets, told by the main process, where there is anything to read."""
        total = sum(map(len, self._plan.data.values()))
        told = self._team.is_main and self._plan.heads
        telling = self._listener.progress(total) if told else nullcontext(lambda count: None)
        with telling as tell:
            progress = Farthest(tell)
            yield progress
            progress.reach(total)

    @cached_property
    def _workers(self) -> int:
        """How many forks of this process compute for it: one for each thread, where that suits; else 1, for none.

        It does not where one would have less to do than the largest portion: then threads share every operation.
        """
        if self._team.size > 1 or not self._plan.suits_forks:
            return 1
        sizes, threads = [portion.size for portion in self._plan.portions], torch.get_num_threads()
        has_work = 0 < threads * max(sizes, default=0) <= sum(sizes)
        return threads if has_work and can_fork(threads) else 1

    def _done_by_workers(self, progress: Farthest) -> Iterator[Done]:
        """What comes of all portions."""

        def work(portion: Portion, tell: Callable[[int], object]) -> Done:
            within = Farthest(tell)
            done = self._done(Counter([portion], within.reach), portion, self._found_or_posed(portion))
            within.reach(portion.size)
            return done

        return done_by_workers(self._plan.portions, work, self._workers, progress.go_on, self._ledger.reopen)

    def _done_here(self, progress: Farthest) -> Iterator[Done]:
        """What comes of the portions that fall to this process."""
        counter = Counter(self._plan.portions, progress.reach)
        for portion, found in self._dealt():
            yield self._done(counter, portion, found)

    def _dealt(self) -> Iterator[tuple[Portion, Done | Posed]]:
        """The portions that fall to this process, each with what came of it before, or with what it asks."""
        portions = self._team.deal(self._plan.portions)
        if self._plan.scorer.computes_elsewhere:
            return prepared_ahead(portions, self._found_or_posed)
        return ((portion, self._found_or_posed(portion)) for portion in portions)

    def _found_or_posed(self, portion: Portion) -> Done | Posed:
        """What came of a portion in an earlier run; what it asks, where that is nothing."""
        content = self._known_done[portion.config].get((portion.start, portion.stop))
        if content is not None:
            done = Done.from_json(portion, content)
            if self._asked.output.keep_going or not done.left_out:
                return done
        return self._plan.pose(portion, self._asked.output.keep_going)

    def _done(self, counter: Counter, portion: Portion, found: Done | Posed) -> Done:
        """What comes of a portion, or came of it before."""
        if isinstance(found, Done):
            counter.within(portion, 0)
            return found
        with self._plan.scorer.as_tried():
            done = self._read(counter, portion, found)
        self._ledger.add_done(portion.config, (portion.start, portion.stop), done.as_json)
        return done

    def _read(self, counter: Counter, portion: Portion, posed: Posed) -> Done:
        """Plan a portion, and compute what is not known of it."""
        going_on = self._asked.output.keep_going
        job, _ = self._plan.scorer.plan_part(portion, posed.rows, going_on, posed.questions)
        keys, known = job.keys, self._known[portion.config]

        def keep(values: Known) -> None:
            self._ledger.add(portion.config, {keys[i]: of_row for i, of_row in values.items()})

        values, failures = read_rest(
            self._plan.scorer,
            job,
            {i: known[key] for i, key in enumerate(keys) if key in known},
            counter.within(portion, len(keys)),
            keep,
            going_on,
            self._team.look_round,
        )
        return done_with(portion, posed, job, values, failures)

    def _put_together(self, done: Iterable[Done], costs: Mapping[str, int], judge: Judge) -> Outcome:
        """What came of all portions, written."""
        by_config: dict[str, list[Done]] = {config: [] for config in self._plan.data}
        for one in done:
            by_config[one.portion.config].append(one)
        whole = {config: Whole.of(some, self._plan.data[config]) for config, some in by_config.items()}
        scores = {config: (of.rows, of.scores) for config, of in whole.items()}
        return save(self._folder, self._plan, self._record(whole, costs), scores, judge)

    def _record(self, whole: Mapping[str, Whole], costs: Mapping[str, int]) -> dict[str, Any]:
        """The record, now that it is known what was scored."""
        plan = self._plan
        left_out = {config: of.left_out for config, of in whole.items() if of.left_out}
        tasks = {config: self._task(config, of) for config, of in whole.items()}
        found = {"tasks": tasks, "partial": self._partial(left_out), "left_out": left_out, "workers": self._workers}
        return plan.record | found | ({"costs": costs} if costs else {})

    def _task(self, config: str, of: Whole) -> dict[str, Any]:
        """The record of a data set."""
        sha256 = data_sha256(of.rows) if of.left_out else self._plan.identities[config]["data"]
        record = task_record(self._plan.methods[config], sha256, of.scores, of.counts, self._plan.fallbacks[config])
        return record | ({"observed": of.observed} if of.observed else {})

    def _partial(self, left_out: Mapping[str, Mapping[str, str]]) -> str | None:
        """What part of the data is scored, in words; None for all of it."""
        limit = self._asked.questions.limit
        parts = [f"first {limit} examples of each task"] if limit else []
        parts += [self._asked.questions.selection] if self._asked.questions.selection else []
        parts += [f"{len(some)} of {config} left out" for config, some in left_out.items()]
        return ", ".join(parts) or None


def _joined(shares: Sequence[Mapping[str, Mapping[Any, Any]]]) -> dict[str, Mapping[Any, Any]]:
    """What all processes know of each data set; where two know the same, what the first of them knows."""
    joined: dict[str, Mapping[Any, Any]] = {}
    for share in reversed(shares):
        for config, known in share.items():
            joined[config] = {**joined.get(config, {}), **known}
    return joined


def _together(costs: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """The costs of all processes, since this run was started."""
    total: collections.Counter[str] = collections.Counter()
    for of_one in costs:
        total.update(of_one)
    return dict(total)
