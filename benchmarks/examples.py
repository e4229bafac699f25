"""The examples that are scored: StereoSet's English ones where a mirror lies beside the checkout, else the sample."""

import os
from pathlib import Path

from stereoset_dataset import load_stereoset
from stereoset_scoring.questions.configs import CONTEXT_TASKS
from stereoset_scoring.sample import load_sample

REPOSITORY = Path(__file__).resolve().parent.parent


def mirror():
    """The folder of upstream files beside the checkout, or None."""
    folder = Path(os.environ.get("STEREOSET_SHARED", REPOSITORY.parent / "shared")) / "upstream"
    return folder if folder.is_dir() else None


def load_examples():
    """{task: all its rows}."""
    folder = mirror()
    if folder is None:
        return {task: load_sample(task) for task in CONTEXT_TASKS}
    return {task: load_stereoset(task, split="validation", data_dir=folder).to_list() for task in CONTEXT_TASKS}


def texts_of(examples):
    """What a tokenizer is trained on: every context and every option's sentence."""
    return [text for rows in examples.values() for row in rows for text in (row["context"], *_sentences(row))]


def _sentences(row):
    sentences = row["sentences"]
    return sentences["sentence"] if isinstance(sentences, dict) else [one["sentence"] for one in sentences]
