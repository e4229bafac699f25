"""What a run leaves: its files, written together, and what is told of them; and finding them again."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Any

from stereoset_scoring.files.finished import (
    RECORD,
    RESULTS,
    files_of_run,
    read_record,
    write_finished,
)
from stereoset_scoring.files.ledger import difference
from stereoset_scoring.files.predictions import as_predictions, option_ids
from stereoset_scoring.files.store import read_json
from stereoset_scoring.processes.interruption import undisturbed
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.roles import Rows
from stereoset_scoring.runs.asked import Output
from stereoset_scoring.runs.plan import Plan
from stereoset_scoring.runs.record import Record, Scores, signature

Results = Mapping[str, Any]
Part = tuple[list[Mapping[str, Any]], list[list[float]]]  # rows of a data set, scores[i][j] of option j of row i
Scored = Mapping[str, Part]  # by the name of its config
Judge = Callable[[Scored, Record], tuple[Results, Sequence[Mapping[str, str]]]]


@dataclass(frozen=True)
class Outcome:
    """What came out.

    Attributes:
        record: of the run, as run.json holds it.
        results: the metric's numbers, as the judge gave them.
        signature: a line to print beside them.
    """

    record: Mapping[str, Any]
    results: Results
    signature: str


def save(folder: Path, plan: Plan, record: dict[str, Any], scores: Scored, judge: Judge) -> Outcome:
    """Judge the scores and write scores.json, results.json and run.json.

    Args:
        folder: where they go.
        plan: of the run.
        record: of the run, complete but for the alarms.
        scores: of each data set, with the rows that they are of.
        judge: from the scores and the record to (results, alarms).

    Raises:
        OSError: if the folder cannot be written to.
    """
    results, alarms = judge(scores, record)
    record = {**record, "alarms": alarms, "identity": _identity(plan, record["scale"])}
    line, partial = signature(record), record["partial"]
    predictions = as_predictions(_by_option(scores, record["scale"]), partial)
    content = {"partial": partial, "signature": line, "results": results, "alarms": alarms}
    folder.mkdir(parents=True, exist_ok=True)
    with undisturbed():
        write_finished(folder, predictions, content, record)
    return Outcome(record, results, line)


def find_finished(folder: Path, plan: Plan, output: Output) -> Outcome | None:
    """What a finished run of the same thing has left in a folder; None where no run has.

    Raises:
        Refusal: if the folder holds files of another run, or files that do not join.
    """
    if not files_of_run(folder):
        return None
    if not (folder / RECORD).is_file():
        raise Refusal(
            f"{folder} holds scores that no run.json tells of: give another folder, or set them aside with --restart."
        )
    record = read_record(folder)
    there, here = record.get("identity"), _identity(plan, output.scale)
    if there != here or (not output.keep_going and not plan.leaves_out(record.get("left_out", {}))):
        raise Refusal(
            f"{folder} holds another finished run ({_difference(there, here)}): "
            "give another folder, or set it aside with --restart."
        )
    found = read_json(folder / RESULTS)
    return Outcome(record, found["results"], found["signature"])


def _identity(plan: Plan, scale: str) -> dict[str, Any]:
    """All that the files of a run depend on, beside the machine; as a file of JSON gives it back."""
    return json.loads(json.dumps({"tasks": plan.identities, "unscored": sorted(plan.unscored), "scale": scale}))


def _difference(there: Any, here: Mapping[str, Any]) -> str:
    """In what two runs differ, in words."""
    if not isinstance(there, Mapping):
        return "of an earlier version"
    if there == here:
        return "some examples are left out there"
    ours, theirs = here["tasks"], there["tasks"]
    if theirs.keys() != ours.keys():
        return f"it scores {', '.join(theirs)}; this one {', '.join(ours)}"
    differing = next((config for config in ours if theirs[config] != ours[config]), None)
    return difference(theirs[differing], ours[differing]) if differing else difference(there, here)


def _by_option(scores: Scored, scale: str) -> dict[str, dict[str, float]]:
    """{config: {option id: score}} on a scale, of {config: (rows, scores)}."""
    convert: Callable[[float], float] = exp if scale == "probability" else float
    return {config: dict(_options(rows, of_rows, convert)) for config, (rows, of_rows) in scores.items()}


def _options(rows: Rows, scores: Scores, convert: Callable[[float], float]) -> Iterator[tuple[str, float]]:
    for row, of_row in zip(rows, scores, strict=True):
        for option, score in zip(option_ids(row), of_row, strict=True):
            yield option, convert(score)
