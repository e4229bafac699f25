"""A run, on one process or many: from what is asked to the files of each scorer."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

from stereoset_scoring.files.finished import set_files_aside
from stereoset_scoring.files.ledger import check_place, set_aside
from stereoset_scoring.files.store import claimed
from stereoset_scoring.processes import garbage
from stereoset_scoring.processes.team import Team, our_team
from stereoset_scoring.processes.workers import begun_by_worker, can_fork
from stereoset_scoring.runs.asked import Asked
from stereoset_scoring.runs.loading import import_loaders, load_scorers
from stereoset_scoring.runs.outcome import Judge, Outcome
from stereoset_scoring.runs.part import PROGRESS, Listener, Part
from stereoset_scoring.runs.plan import Known, Plan, make_plan

Data = Mapping[str, Sequence[Mapping[str, Any]]]  # {config: rows}


def run(
    asked: Asked, read_data: Callable[[], Data], choose: Callable[[Data], Data], judge: Judge, listener: Listener
) -> list[Outcome]:
    """Score data as asked and write the files; this process's part of it, from start to end.

    If it fails, the other processes are told.

    Args:
        asked: what is asked.
        read_data: gives all rows; each machine's first process calls it before the others do, or a fork of it.
        choose: from all rows to those that are scored.
        judge: from {config: (rows, scores)} and a record to (results, alarms).
        listener: who is told how it goes on.

    Returns:
        the Outcome of each scorer, in the main process; nothing in the others.

    Raises:
        OSError: if model, data or folder are out of reach, or another run is writing to the folder.
        Refusal: if something cannot be scored, or the folder holds another run.
        Unreadable: if the model fails on an example.
        Lost: if another process has failed or fallen silent.
    """
    team = our_team()
    try:
        with ExitStack() as stack:
            for folder in chain.from_iterable(one.folders.values() for one in asked.each):
                stack.enter_context(claimed(folder) if team.is_main else nullcontext())
                check_place(folder / PROGRESS)
            with garbage.lasting():
                data = choose(_read(asked, team, read_data))
            outcomes = _score(asked, team, data, judge, listener)
    except BaseException as error:
        team.fail(error)
        raise
    team.leave()
    return outcomes


def _read(asked: Asked, team: Team, read_data: Callable[[], Data]) -> Data:
    """All rows, read while another process, where there is one, imports what loads a checkpoint: both take seconds."""
    forks = team.size == 1 and team.state.device.type == "cpu" and not asked.questions.data_file and can_fork(1)
    with begun_by_worker(read_data) if forks else nullcontext(read_data) as rows:
        if forks or not team.is_first_of_machine:
            import_loaders(asked)
        with team.first_of_machine_first():
            data = rows()
    import_loaders(asked)
    return data


def _score(asked: Asked, team: Team, data: Data, judge: Judge, listener: Listener) -> list[Outcome]:
    """Each revision, the questions of one being those of the next where both ask alike."""
    outcomes: list[Outcome] = []
    before: Known | None = (None, {}) if asked.model.revisions else None
    for one in asked.each:
        plans = {name: make_plan(one, team, scorer, data, before) for name, scorer in load_scorers(one, team).items()}
        before = before and next(iter(plans.values())).known
        outcomes += _score_planned(one, team, plans, judge, listener)
        del plans  # and with them the weights, before the next ones are loaded
    return outcomes if team.is_main else []


def _score_planned(
    asked: Asked, team: Team, plans: Mapping[str | None, Plan], judge: Judge, listener: Listener
) -> list[Outcome]:
    """The scorers' parts. What can be refused is, before anything is computed."""
    if asked.output.restart:
        _begin_anew(team, asked.folders.values(), listener)
    parts = [Part(asked, team, plan, asked.folders[name], listener) for name, plan in plans.items()]
    outcomes = [part.run(judge) for part in parts]
    return [outcome for outcome in outcomes if outcome is not None]


def _begin_anew(team: Team, folders: Iterable[Path], listener: Listener) -> None:
    """Set aside what earlier runs have left: progress on every machine, files where there are some."""
    with team.first_of_machine_first():
        for folder in folders:
            aside = [set_aside(folder / PROGRESS), set_files_aside(folder) if team.is_main else None]
            for path in filter(None, aside):
                listener.note(f"What was computed before is in {path}.")
    team.meet()
