"""A trial of the machinery: a few dozen examples written for this project, and a tiny model that learns them.

The model has seen the examples, so its figures say that everything works and nothing else.
"""

import json
from importlib.resources import files

from stereoset_scoring.refusal import Refusal

__all__ = ["build_model", "load_sample"]


def load_sample(task):
    """The sample's examples of a task, as rows in the layout of StereoSet's JSON file.

    Args:
        task: "intrasentence" or "intersentence".

    Raises:
        ValueError: if there is no such task.
    """
    data = json.loads(files(__name__).joinpath("examples.json").read_text(encoding="utf-8"))["data"]
    if task not in data:
        raise Refusal(f"The sample has no task {task!r}: choose one of {', '.join(sorted(data))}.")
    return data[task]


def __getattr__(name):
    # On demand: reading the examples needs no torch.
    if name == "build_model":
        from stereoset_scoring.sample.model import build_model

        return build_model
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
