"""The examples of the sample."""

import json
from importlib.resources import files
from typing import Any


def load_sample(task: str) -> list[dict[str, Any]]:
    """The sample's examples of a task, as rows in the layout of StereoSet's JSON file.

    Args:
        task: "intrasentence" or "intersentence".

    Raises:
        ValueError: if there is no such task.
    """
    data = json.loads(files("stereoset_scoring.sample").joinpath("examples.json").read_text(encoding="utf-8"))["data"]
    if task not in data:
        raise ValueError(f"The sample has no task {task!r}: choose one of {', '.join(sorted(data))}.")
    return data[task]
