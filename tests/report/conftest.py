"""Runs and prediction files as the commands read them, of made-up models on the sample."""

import json
import sys

import numpy as np
import pytest

from stereoset_cli import main as cli
from stereoset_scoring.files.predictions import write_predictions
from stereoset_scoring.sample import load_sample

TASKS = ("intrasentence", "intersentence")
METHODS = {"intrasentence": "likelihood", "intersentence": "conditional"}


@pytest.fixture
def stereoset(monkeypatch, capsys):
    """stereoset(*words): the command in this process; what it prints, or the one line of its refusal."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["stereoset", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "0")
        try:
            cli.main()
        except SystemExit as end:
            return str(end.code) if end.code else capsys.readouterr().out
        return capsys.readouterr().out

    return run


@pytest.fixture
def make_run(tmp_path):
    """make_run(name, …): the folder of a run over the sample, by a model that draws its scores.

    Args:
        bias: what is added to the stereotype's, in nats.
        methods: {task: method}.
        of_task: more that the record says of every task.
        record: more that it says of the run.
    """

    def make(name, seed=0, bias=0.0, methods=METHODS, limit=None, of_task=None, **record):
        folder = tmp_path / name
        folder.mkdir()
        generator = np.random.default_rng(seed)
        added = {"stereotype": bias, "anti-stereotype": 0.0, "unrelated": -2.0}
        scores = {
            task: {
                option["id"]: -abs(float(generator.normal(5))) + added[option["gold_label"]]
                for row in load_sample(task)[:limit]
                for option in row["sentences"]
            }
            for task in methods
        }
        partial = f"first {limit} examples of each task" if limit else None
        write_predictions(folder / "scores.json", scores, partial)
        tasks = {task: {"method": method, "options": {}, **(of_task or {})} for task, method in methods.items()}
        known = {"label": name, "model": {"name": name, "family": "causal"}, "tasks": tasks, "split": "sample"}
        (folder / "run.json").write_text(json.dumps({**known, "scale": "log", **record}))
        return folder

    return make
