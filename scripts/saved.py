"""Saved scores beside the rows that they are of: from a run of score.py, or from anybody's prediction file."""

import json
from dataclasses import dataclass
from functools import cache

from report import CONTEXT_TASKS

from stereoset_dataset import load_stereoset
from stereoset_metric.compute_score import COLUMNS
from stereoset_scoring.examples import as_pair
from stereoset_scoring.predictions import align, read_predictions
from stereoset_scoring.sample import load_sample


@dataclass(frozen=True)
class Saved:
    """Scores of one file.

    Attributes:
        parts: {config: (rows, scores)}, scores[i][j] of option j of row i.
        partial: what part of the data they are of; None for all of it.
        split: the split of the data.
        family: the kind of model, where a run's record says it.
        record: of the run, as its run.json holds it; empty for a file.
    """

    parts: dict
    partial: str | None
    split: str
    family: str | None
    record: dict


def read_saved(path, language="en", split="validation", data_dir=None):
    """The Saved scores of a prediction file or of the output folder of a run.

    Args:
        path: the file or folder.
        language: of a file whose tasks do not say it.
        split: of a file; a run's record says it.
        data_dir: a mirror of the upstream files, instead of the network.

    Raises:
        OSError: if there is no such file.
        ValueError: if it has another layout, or does not fit the data.
    """
    run = json.loads((path / "run.json").read_text(encoding="utf-8")) if path.is_dir() else {}
    by_config, partial = read_predictions(path / "scores.json" if path.is_dir() else path)
    split = run.get("split", split)
    parts = {}
    for name, by_id in by_config.items():
        config = name if language == "en" or name not in CONTEXT_TASKS else f"{name}_{language}"
        parts[config] = align(by_id, load_rows(config, split, data_dir), partial=partial is not None)
    return Saved(parts, partial, split, run.get("model", {}).get("family"), run)


@cache
def load_rows(config, split, data_dir, whole=False):
    """The rows of a config, with the sample and the pairs of StereoSet among them.

    Args:
        config: name of the data set's config, or "intrasentence_pairs", which are made as by Nangia et al.
        split: "validation", "test" or "sample".
        data_dir: a mirror of the upstream files, instead of the network.
        whole: whether to give more than what the metric needs of them.
    """
    if split == "sample":
        return load_sample(config)
    split = "test" if config == "crows_pairs" else split  # the only one it has
    name = "intrasentence" if config == "intrasentence_pairs" else config
    dataset = load_stereoset(name, split=split, data_dir=data_dir)
    if not whole:
        dataset = dataset.select_columns([name for name in ("id", *COLUMNS) if name in dataset.column_names])
    rows = dataset.to_list()
    return list(map(as_pair, rows)) if config == "intrasentence_pairs" else rows
