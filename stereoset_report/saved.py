"""Saved scores beside the rows that they are of: from a run of score.py, or from anybody's prediction file."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import stereoset_dataset
from stereoset_dataset import load_stereoset
from stereoset_metric.compute_score import COLUMNS
from stereoset_report.harness.samples import find_logs, read_logs
from stereoset_report.own_data import read_data_file
from stereoset_report.scored_pairs import read_scored_pairs
from stereoset_scoring.files.finished import RESULTS, read_record
from stereoset_scoring.files.predictions import align, printable, read_predictions
from stereoset_scoring.files.store import read_json
from stereoset_scoring.questions.configs import CONTEXT_TASKS, LANGUAGES_OF, PAIRS, asked_as, config_name
from stereoset_scoring.questions.examples import as_pair
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.sample import load_sample

REFERENCE = ("path", "sha256", "language")  # what a record tells of one's own file
READ = ("id", "context", "task", "flags", *COLUMNS)  # all that tables need of a row
SPLITS = ("validation", "test", "sample", "file")

Parts = Mapping[str, tuple[Sequence[Mapping[str, Any]], list[list[float]]]]  # {config: (rows, scores)}


@dataclass(frozen=True)
class Saved:
    """Scores of one file.

    Attributes:
        parts: {config: (rows, scores)}, scores[i][j] of option j of row i.
        partial: what part of the data they are of; None for all of it.
        split: the split of the data.
        family: the kind of model, where a run's record says it.
        record: of the run, as its run.json holds it; empty for a file.
        label: what tables call the scores.
        signature: how the scores were made, in a line: that of a run; of a file, which it is.
    """

    parts: Parts
    partial: str | None
    split: str
    family: str | None
    record: dict[str, Any]
    label: str = ""
    signature: str = ""


def read_saved(
    path: Path,
    language: str = "en",
    split: str = "validation",
    data_dir: str | Path | None = None,
    data_file: Path | None = None,
    whole: bool = False,
) -> Saved:
    """The Saved scores of a prediction file or of the output folder of a run.

    A CSV, as CrowS-Pairs' own code writes it, holds its pairs itself, and so does a log of lm-eval (samples_*.jsonl, or
    the folder of such): no data set is read for them.

    Args:
        path: the file or folder.
        language: of a file whose tasks do not say it.
        split: of a file; a run's record says it.
        data_dir: a mirror of the upstream files, instead of the network.
        data_file: the file of the examples that were scored, where it was one's own; a run's record says where it was.
        whole: whether to give more of the rows than what the metric needs of them.

    Raises:
        OSError: if there is no such file.
        ValueError: if it has another layout, or does not fit the data; the message names the file.
    """
    if path.suffix.lower() == ".csv":
        pairs: Parts = {config_name("crows_pairs", language): read_scored_pairs(path)}
        return Saved(pairs, None, "test", None, {}, label_of(path, {}))
    if logs := find_logs(path):
        found = read_logs(logs)
        signature = _signature_of(logs, found.split, found.partial)
        return Saved(
            found.parts, found.partial, found.split, None, found.record, label_of(path, found.record), signature
        )
    record = _read_record(path / "run.json") if path.is_dir() else {}
    scores = path / "scores.json" if path.is_dir() else path
    by_config, partial = read_predictions(scores)
    split = record.get("split") or split
    own = _own_rows(path, record, data_file, language)
    parts: dict[str, tuple[Sequence[Mapping[str, Any]], list[list[float]]]] = {}
    for name, by_id in by_config.items():
        says_none = name in CONTEXT_TASKS or language in LANGUAGES_OF.get(name, ())
        config = config_name(name, language) if says_none else name
        try:
            rows = load_rows(config, split, data_dir, whole) if own is None else _rows_of(own, config)
            parts[config] = align(by_id, rows, partial=partial is not None)
        except Refusal as error:
            raise Refusal(f"{scores}, {name!r}: {error}") from error
    family = record.get("model", {}).get("family")
    return Saved(
        parts,
        partial,
        split,
        None if family is None else printable(family),
        record,
        label_of(path, record),
        _signature(path, scores, split, partial),
    )


def label_of(path: Path, record: Mapping[str, Any]) -> str:
    """What tables call the scores: the label of their run, or the name of the file or folder."""
    label = record.get("label")
    if isinstance(label, str) and label.strip():
        return printable(label)
    return path.resolve().name.removesuffix(".json").removesuffix(".csv").removesuffix(".jsonl")


def _signature(path, scores, split, partial):
    """A run's signature as its results.json has it; else what tells one file from another."""
    results = path / RESULTS
    signature = read_json(results).get("signature") if path.is_dir() and results.is_file() else None
    if isinstance(signature, str):
        return printable(signature)
    return _signature_of([scores], split, partial)


def _signature_of(files, split, partial):
    """What tells the scores of some files from others."""
    content = b"".join(path.read_bytes() for path in files)
    parts = {"scores": hashlib.sha256(content).hexdigest()[:8], "split": split, "partial": partial}
    return "|".join(f"{name}:{value}" for name, value in parts.items() if value is not None)


def _read_record(path):
    """The record of a run; what is read of it is of the right type, or not there."""
    record = read_record(path.parent)
    model = record.get("model", {})
    if not isinstance(model, Mapping):
        raise Refusal(f"{path} is no record of a run: give the output folder of score.py, or a prediction file.")
    split, family = record.get("split"), model.get("family")
    if split is not None and split not in SPLITS:
        raise Refusal(f"{path} names the split {split!r:.80}: there are {', '.join(SPLITS)}.")
    if not isinstance(family, str | None):
        raise Refusal(f"{path} names the model's family {family!r:.80}: give a text.")
    tasks = record.get("tasks", {})
    if not isinstance(tasks, Mapping) or not all(isinstance(task, Mapping) for task in tasks.values()):
        raise Refusal(f"{path} names the tasks {tasks!r:.80}: give a mapping of each to what was done.")
    return record


def _own_rows(path, record, data_file, language):
    """{config: rows} of one's own examples; None where the published ones were scored."""
    known = record.get("data_file")
    if known is None and (data_file is None or not record):
        return None if data_file is None else read_data_file(data_file, language).rows
    if known is None:
        raise Refusal(f"{path} scores the published examples, not those of {data_file}: leave --data-file out.")
    if not isinstance(known, Mapping) or not all(isinstance(known.get(name), str) for name in REFERENCE):
        raise Refusal(f"{path / 'run.json'} names the file of examples {known!r:.80}: give a record of a run.")
    place = data_file or Path(known["path"])
    if not place.is_file():
        raise Refusal(f"{path} scores the examples of {printable(str(place))}, which is not there: give --data-file.")
    own = read_data_file(place, known["language"])
    if own.reference["sha256"] != known["sha256"]:
        raise Refusal(
            f"{path} scores the examples of a file with sha256 {printable(known['sha256'][:16])}, and {place} has "
            f"{own.reference['sha256'][:16]}: give the file that was scored as --data-file."
        )
    return own.rows


def _rows_of(own, config):
    if config not in own:
        raise Refusal(f"the file of examples has {', '.join(own)} alone: give the one that was scored")
    return own[config]


@cache
def load_rows(config: str, split: str, data_dir: str | Path | None, whole: bool = False) -> list[dict[str, Any]]:
    """The rows of a config, with the sample and the pairs of StereoSet among them.

    Args:
        config: name of the data set's config, or "intrasentence_pairs", which are made as by Nangia et al.
        split: "validation", "test" or "sample".
        data_dir: a mirror of the upstream files, instead of the network.
        whole: whether to give more than what the metric needs of them.
    """
    if split == "sample":
        return load_sample(config)
    name = "intrasentence" if config == "intrasentence_pairs" else config
    split = "test" if asked_as(name) == PAIRS else split  # the only one they have
    try:
        dataset = load_stereoset(name, split=split, data_dir=data_dir)
    except (OSError, stereoset_dataset.Refusal) as error:  # which speaks of Python's argument
        kind = OSError if isinstance(error, OSError) else Refusal
        raise kind(str(error).replace("data_dir=", "--data-dir")) from error
    if not whole:
        dataset = dataset.select_columns([name for name in READ if name in dataset.column_names])
    rows = list(map(_without_annotators, dataset.to_list()))
    return list(map(as_pair, rows)) if config == "intrasentence_pairs" else rows


def _without_annotators(row: dict[str, Any]) -> dict[str, Any]:
    """A row without who labelled it how, which is two thirds of it and read by nobody here: its `agreement` stays."""
    if "sentences" in row:
        row["sentences"].pop("labels", None)
    return row
