"""The scores in what lm-eval logs of StereoSet's tasks with --log_samples: an example a line, texts and all.

The log holds its examples itself, as `stereoset_report.harness.tasks` wrote them: no data set is read for it.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import Any

from stereoset_report.harness.stereoset_tasks import before, options
from stereoset_report.harness.tasks import TAG
from stereoset_scoring.questions.configs import CONTEXT_TASKS, LANGUAGES, split_config
from stereoset_scoring.questions.examples import read_example
from stereoset_scoring.refusal import Refusal

METHODS = {"intrasentence": "lm-eval likelihood", "intersentence": "lm-eval conditional"}
SPLITS = ("validation", "test", "sample")
PLAIN, CHANGED = "plain", "changed"

Line = dict[str, Any]  # of a log, with "where" for messages


@dataclass(frozen=True)
class Logged:
    """What a log holds.

    Attributes:
        parts: {config: (rows, scores)}, scores[i][j] of option j of row i: sums of ln P, in nats.
        partial: what part of the data they are of; None for all of it.
        split: the split of the data.
        record: what is known of the run, as run.json would have it.
    """

    parts: dict[str, tuple[list[dict[str, Any]], list[list[float]]]]
    partial: str | None
    split: str
    record: dict[str, Any]


def find_logs(path: Path) -> list[Path]:
    """The logs of StereoSet's tasks: the file itself, or all that a folder holds; none for what is something else."""
    if path.is_dir():
        ours = (path / "run.json").exists() or (path / "scores.json").exists()
        return [] if ours else sorted(path.rglob(f"samples_{TAG}_*.jsonl"))
    return [path] if path.suffix.lower() == ".jsonl" else []


def read_logs(paths: Sequence[Path]) -> Logged:
    """The scores of some logs of one run.

    Raises:
        OSError: if there is no such file.
        Refusal: if a line is laid out otherwise, has no number for an option, or stands twice.
    """
    lines = list(chain.from_iterable(map(_lines, paths)))
    if not lines:
        raise Refusal(f"{paths[0]} holds no examples: give a log of lm-eval --log_samples.")
    _check_doubles(lines)
    splits = sorted({line["doc"]["split"] for line in lines})
    if len(splits) > 1:
        raise Refusal(f"{paths[0].parent} has logs of the splits {', '.join(splits)}: give one of the files.")
    by_config = _by_config(lines)
    tasks = {config: {"method": _method(config), "options": _asked(some)} for config, some in by_config.items()}
    parts = {
        config: (list(map(itemgetter("doc"), some)), list(map(_scores, some))) for config, some in by_config.items()
    }
    partial = ", ".join(filter(None, map(_part, by_config.values()))) or None
    return Logged(parts, partial, splits[0], {"tasks": tasks, **_label(paths[0])})


def _by_config(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """{config: its lines}, tasks and examples in the order of the data."""
    found: dict[str, list[Line]] = {}
    for line in sorted(lines, key=lambda line: (*_place(line["doc"]["config"]), line["doc_id"])):
        found.setdefault(line["doc"]["config"], []).append(line)
    return found


def _place(config: str) -> tuple[int, int]:
    task, language = split_config(config)
    return LANGUAGES.index(language), CONTEXT_TASKS.index(task)


def _method(config: str) -> str:
    task, _ = split_config(config)
    return METHODS[task]


def _lines(path: Path) -> Iterator[Line]:
    with open(path, encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            yield _read(text, f"{path}, line {number}")


def _read(text: str, where: str) -> Line:
    """A line of a log, in the layout of lm-eval 0.4.13, whose doc is one of our examples."""
    try:
        line = json.loads(text)
        doc = line["doc"]
        task, language = split_config(doc["config"])
        known = task in CONTEXT_TASKS and language in LANGUAGES and doc["split"] in SPLITS
        counted = isinstance(doc["examples"], int) and isinstance(line["doc_id"], int)
        whole = len(line["filtered_resps"]) == len(read_example(doc).options)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{where} is none of lm-eval's log of these tasks ({error!r:.80}): {_MEND}") from None
    if not (known and counted and whole):
        raise Refusal(f"{where} is none of lm-eval's log of these tasks: {_MEND}")
    return {**line, "where": where}


_MEND = "give samples_stereoset_*.jsonl, as lm_eval --log_samples writes it with tasks of stereoset export lm-eval."


def _check_doubles(lines: Sequence[Line]) -> None:
    seen: dict[tuple[str, str, str], str] = {}
    for line in lines:
        doc = line["doc"]
        other = seen.setdefault((doc["config"], doc["split"], doc["id"]), line["where"])
        if other != line["where"]:
            raise Refusal(
                f"{line['where']} has the example of {other} again: give the folder, or the file, of a single run."
            )


def _scores(line: Line) -> list[float]:
    return [_score(answer, line["where"]) for answer in line["filtered_resps"]]


def _score(answer: Any, where: str) -> float:
    """The sum of ln P of an option: lm-eval writes [sum, whether it is the likeliest], both as text."""
    try:
        score = float(answer[0])
    except (ValueError, TypeError, LookupError):
        score = math.nan
    if math.isnan(score):
        raise Refusal(f"{where} has the answer {answer!r:.80}: there must be a number for each option.")
    return score


def _asked(lines: Sequence[Line]) -> dict[str, str]:
    """How was asked: as the task says, or with more before it, such as shots, an instruction, or a chat template."""
    return {"reduction": "sum", "prompt": PLAIN if all(map(_is_plain, lines)) else CHANGED}


def _is_plain(line: Line) -> bool:
    context = before(line["doc"])
    wanted = [(context, f"{' ' if context else ''}{sentence}") for sentence in options(line["doc"])]
    given = line.get("arguments")
    if not isinstance(given, Mapping) or not all(isinstance(one, Mapping) for one in given.values()):
        return False
    return [(one.get("arg_0"), one.get("arg_1")) for one in given.values()] == wanted


def _part(lines: Sequence[Line]) -> str | None:
    """Which part of a task was asked, as with lm-eval's --limit; None for all of it."""
    doc = lines[0]["doc"]
    return None if len(lines) == doc["examples"] else f"{len(lines)} of {doc['examples']} examples of {doc['config']}"


def _label(path: Path) -> dict[str, str]:
    """What lm-eval calls the model, from the results that it writes beside a log at the same time."""
    moment = path.stem.rpartition("_")[2]
    for results in sorted(path.parent.glob(f"*_{moment}.json")):
        try:
            name = json.loads(results.read_text(encoding="utf-8")).get("model_name")
        except (ValueError, AttributeError):
            continue
        if isinstance(name, str) and name:
            return {"label": name}
    return {}
