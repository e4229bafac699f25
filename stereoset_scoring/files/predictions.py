"""StereoSet's interchange layout: option scores by id, as its own evaluation and bias-bench read and write them.

    {"intrasentence": [{"id": <option id>, "score": <float>}, …], "intersentence": […]}

Higher means preferred. Keys are names of the data set's configs: the original's own for English, "intrasentence_de"
and so on beside them. A further key "partial" says of what part of the data the scores are.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from stereoset_scoring.files.store import read_json, write_json
from stereoset_scoring.refusal import Refusal

PARTIAL = "partial"

Row = Mapping[str, Any]  # of the data set, in any layout that `read_example` reads


def write_predictions(path: str | Path, scores: Mapping[str, Mapping[str, float]], partial: str | None = None) -> None:
    """Write scores atomically.

    Args:
        path: the file.
        scores: {config: {option id: score}}.
        partial: what part of the data they are of; None for all of it.

    Raises:
        OSError: if the file cannot be written.
        ValueError: if a score is not a number.
    """
    write_json(path, as_predictions(scores, partial, path))


def as_predictions(
    scores: Mapping[str, Mapping[str, float]], partial: str | None = None, name: str | Path = "scores.json"
) -> dict[str, Any]:
    """Scores in the layout, ready for JSON; see `write_predictions`.

    Args:
        scores, partial: as there.
        name: what a refusal calls them.

    Raises:
        Refusal: if a score is not a number.
    """
    for config, by_id in scores.items():
        _check_numbers(name, config, by_id.items())
    content: dict[str, Any] = {}
    for config, by_id in scores.items():
        content[config] = [{"id": option, "score": score} for option, score in by_id.items()]
    return content | ({PARTIAL: partial} if partial else {})


def read_predictions(path: str | Path) -> tuple[dict[str, dict[str, float]], str | None]:
    """Scores from a file in the layout, whoever wrote it.

    Returns:
        ({config: {option id: score}}, partial): what part of the data they are of, or None for all of it.

    Raises:
        OSError: if there is no such file.
        ValueError: if the file has another layout, or a score is doubled or not a number.
    """
    content = read_json(path)
    if not isinstance(content, Mapping):
        raise Refusal(f"{path} is not in StereoSet's layout: give a mapping of tasks to lists of id and score.")
    partial = content.get(PARTIAL)
    if partial is not None and (not isinstance(partial, str) or not partial.strip()):
        raise Refusal(f"{path} does not say under {PARTIAL!r} what part was scored: give a text, or leave it out.")
    by_config = {config: _by_id(path, config, entries) for config, entries in content.items() if config != PARTIAL}
    if not by_config:
        raise Refusal(f"{path} holds no scores: give at least one task.")
    return by_config, None if partial is None else printable(partial)


def printable(text: str) -> str:
    """A text of a file in one line: what a terminal would obey instead of showing it is spelled out."""
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def align(
    by_id: Mapping[str, float], rows: Sequence[Row], partial: bool = False, subset: bool = False
) -> tuple[Sequence[Row], list[list[float]]]:
    """Rows and their scores, side by side.

    Args:
        by_id: {option id: score}.
        rows: rows of the data set, in any layout.
        partial: whether rows without any score are left out; else every row must have its scores.
        subset: whether the rows are known to be a part of those scored; else every score must have its option.

    Returns:
        (rows, scores): the rows that have scores, and scores[i][j] of option j of row i.

    Raises:
        ValueError: if a score is missing, or belongs to no option.
    """
    options = all_options = [option_ids(row) for row in rows]
    if partial:
        scored = [i for i, ids in enumerate(options) if not by_id.keys().isdisjoint(ids)]
        rows, options = [rows[i] for i in scored], [options[i] for i in scored]
    missing = [option for ids in options for option in ids if option not in by_id]
    if missing:
        raise Refusal(
            f"{len(missing)} of {sum(map(len, options))} options have no score, first {missing[0]!r}: "
            "give a file with all of them, for this split and language."
        )
    known = {option for ids in all_options for option in ids}
    extra = [] if subset else [option for option in by_id if option not in known]
    if extra:
        raise Refusal(
            f"{len(extra)} of {len(by_id)} scores belong to no option of these rows, first {extra[0]!r}: "
            "give the split and language that were scored."
        )
    return rows, [list(map(by_id.__getitem__, ids)) for ids in options]


def option_ids(row: Row) -> list[str]:
    """The ids of a row's options, in order."""
    sentences = row["sentences"]
    return list(sentences["id"]) if isinstance(sentences, Mapping) else [option["id"] for option in sentences]


def _by_id(path: str | Path, config: str, entries: Any) -> dict[str, float]:
    if not isinstance(entries, list) or not all(map(_is_record, entries)):
        raise Refusal(f"{path}: {config!r} is not a list of records with id and score: see StereoSet's layout.")
    pairs = [(entry["id"], entry["score"]) for entry in entries]
    by_id = dict(pairs)
    if len(by_id) != len(pairs):
        (doubled, _), *_ = Counter(map(itemgetter(0), pairs)).most_common(1)
        raise Refusal(f"{path}: {config!r} scores option {doubled!r} twice: keep one of the two.")
    _check_numbers(path, config, pairs)
    return by_id


def _is_record(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("id"), str) and "score" in entry


def _check_numbers(path: str | Path, config: str, pairs: Iterable[tuple[str, Any]]) -> None:
    for option, score in pairs:
        if not _is_number(score):
            raise Refusal(f"{path}: {config!r} gives option {option!r} the score {score!r:.80}: give a number.")


def _is_number(score: Any) -> bool:
    """Whether a score is a number, and no larger than a float."""
    if type(score) is float:  # as nearly all are
        return not math.isnan(score)
    if not isinstance(score, (int, float)) or isinstance(score, bool):
        return False
    try:
        return not math.isnan(score)
    except OverflowError:  # an int such as 10**400
        return False
