"""Examples of one's own, from a file in the layout of StereoSet's dev.json."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stereoset_scoring.files.store import read_json
from stereoset_scoring.questions.configs import CONTEXT_TASKS, ENGLISH, config_name
from stereoset_scoring.questions.examples import BLANK, GOLD_LABELS, read_example
from stereoset_scoring.refusal import Refusal

FIELDS = ("id", "target", "bias_type", "context")
OPTION_FIELDS = ("id", "sentence", "gold_label")
WORD = "word"  # of an option, where somebody says what fills BLANK
LAYOUT = (
    'give {"data": {"intrasentence": [examples], "intersentence": [examples]}}, one of the two, or a list of examples'
)


@dataclass(frozen=True)
class OwnData:
    """The examples of a file.

    Attributes:
        rows: {config: rows}, rows as in StereoSet's JSON files.
        reference: {"path", "sha256", "language"} of the file, for the record.
    """

    rows: dict[str, list[dict[str, Any]]]
    reference: dict[str, str]


def read_data_file(path: Path, language: str = ENGLISH, tasks: Iterable[str] | None = None) -> OwnData:
    """The examples of a file: {"data": {task: examples}}, as dev.json has them, or a plain list of examples.

    Of a plain list, an example with BLANK in its context is intrasentence, and any other intersentence.

    Args:
        path: the file.
        language: of its texts; two letters.
        tasks: those that are wanted; None for all that it has.

    Raises:
        OSError: if there is no such file.
        Refusal: if it has another layout, or lacks a task; the message names the file and the example.
    """
    try:
        by_task = _by_task(read_json(path))
        missing = [task for task in tasks or () if task not in by_task]
        if missing:
            raise Refusal(f"it has no {missing[0]} examples: leave that out of --tasks")
        rows = {config_name(task, language): _rows(task, by_task[task]) for task in tasks or by_task}
        _check_options(rows)
    except Refusal as refusal:
        words = str(refusal)
        raise Refusal(words if words.startswith(str(path)) else f"{path} cannot be scored: {words}.") from None
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return OwnData(rows, {"path": str(path), "sha256": sha256, "language": language})


def _by_task(content):
    """{task: examples} of the content of a file; those of no task left out."""
    if isinstance(content, list):
        return _of_list(content)
    data = content.get("data") if isinstance(content, Mapping) else None
    if not isinstance(data, Mapping) or not data or not set(data) <= set(CONTEXT_TASKS):
        raise Refusal(LAYOUT)
    by_task = {task: data[task] for task in CONTEXT_TASKS if data.get(task)}
    if not by_task or not all(isinstance(examples, list) for examples in by_task.values()):
        raise Refusal(f"it holds no examples: {LAYOUT}")
    return by_task


def _of_list(examples):
    by_task = {task: [] for task in CONTEXT_TASKS}
    for i, row in enumerate(examples):
        by_task[read_example(_checked(row, i)).task].append(row)
    if not examples:
        raise Refusal(f"it holds no examples: {LAYOUT}")
    return {task: rows for task, rows in by_task.items() if rows}


def _rows(task, examples):
    """The examples of a task, checked, with the fields that are read and no others."""
    rows = [_checked(row, i) for i, row in enumerate(examples)]
    for row in rows:
        if read_example(row).task != task:
            lack = f"no {BLANK}" if task == CONTEXT_TASKS[0] else BLANK
            raise Refusal(f"example {row['id']!r} is among the {task} ones and has {lack} in its context")
    for kind, ids in (
        ("example", [row["id"] for row in rows]),
        ("option", [option["id"] for row in rows for option in row["sentences"]]),
    ):
        doubled, times = Counter(ids).most_common(1)[0]
        if times > 1:
            raise Refusal(f"{task} has {times} {kind}s with the id {doubled!r}: give each one of its own")
    return rows


def _checked(row, index):
    """A row with all that is needed of it, as text."""
    name = f"the example {index + 1}"
    kept = _texts(row, FIELDS, name)
    name = f"example {kept['id']!r}"
    sentences = row.get("sentences")
    if not isinstance(sentences, list):
        raise Refusal(f"{name} has no list of sentences: give two or three options")
    options = [_option(option, f"option {i + 1} of {name}") for i, option in enumerate(sentences)]
    labels = sorted(option["gold_label"] for option in options)
    if labels not in (sorted(GOLD_LABELS), sorted(GOLD_LABELS[:2])):
        raise Refusal(f"{name} has the gold labels {', '.join(labels)}: give one each of {', '.join(GOLD_LABELS)}")
    if not kept["context"]:
        raise Refusal(f"{name} has an empty context: give the sentence with {BLANK}, or the one before")
    return {**kept, "sentences": options}


def _option(option, name):
    kept = _texts(option, OPTION_FIELDS, name)
    return kept if option.get(WORD) is None else {**kept, **_texts(option, [WORD], name)}


def _texts(mapping, fields, name):
    """Some fields of a mapping, all of them texts."""
    if not isinstance(mapping, Mapping):
        raise Refusal(f"{name} is {mapping!r:.40}: {LAYOUT}")
    for field in fields:
        if not isinstance(mapping.get(field), str):
            raise Refusal(f"{name} has {mapping.get(field)!r:.40} as {field}: give a text")
    return {field: mapping[field] for field in fields}


def _check_options(rows):
    """See that all examples have unrelated options, or none: they are judged together."""
    counts = {len(row["sentences"]): row["id"] for some in rows.values() for row in some}
    if len(counts) > 1:
        raise Refusal(f"example {counts[2]!r} has no unrelated option and {counts[3]!r} has one: score them apart")
