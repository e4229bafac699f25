"""The tables that the Space shows: the texts of prediction files in, rows of ss, lms and icat out."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from compute_score import Refusal, compare_scores, compute_score, flat_references, shown
from gold_labels import CONFIGS, CONTEXT_TASKS, CONTEXTS, published

PERCENT = ("ss", "lms", "icat", "icat_macro")
FIGURES = ("count", *PERCENT, "ties")
HEADER = ["task", "bias type", *FIGURES]
BOUNDS = [f"{name}_{side}" for name in PERCENT for side in ("low", "high")]
COMPARED = ["task", "bias type", "count", *PERCENT, *BOUNDS]
CONFIDENCE = 0.95
PARTIAL = "partial"  # the key under which a file says of what part of the data its scores are

Scores = dict[str, dict[str, Any]]  # {config: {option id: score}}
Aligned = tuple[list[list[Any]], list[dict[str, Any]]]  # scores of examples, flat references


def make_table(
    predictions: str,
    gold: str | None = None,
    average: str = "target",
    ties: str = "strict",
    language: str = "en",
    confidence_level: float | None = None,
) -> list[list[Any]]:
    """The figures of a prediction file.

    Args:
        predictions: the text of a prediction file, {config: [{"id", "score"}, …]}; higher scores mean preferred.
        gold: the text of a file in the layout of StereoSet's dev.json; None for the published labels.
        average, ties, confidence_level: as in `compute_score`.
        language: of the tasks whose name in the file says none.

    Returns:
        A list of rows under HEADER: each bias type and "all" for each task, then for a language's tasks pooled. With
        a confidence_level the columns BOUNDS follow.

    Raises:
        ValueError: if a text is not in its layout, or an option has no score.
    """
    table = []
    for task, (aligned, references) in _parts(predictions, gold, language).items():
        options = {"average": average, "ties": ties, "confidence_level": confidence_level}
        result = compute_score(aligned, references, breakdown="bias_type", **options)
        groups = result.pop("bias_type") | {"all": result}
        names = [*FIGURES, *(BOUNDS if confidence_level else ())]
        for group, found in groups.items():
            table.append([task, group, *(_rounded(found[name]) for name in names)])
    return table


def make_comparison(
    predictions: str,
    others: str,
    gold: str | None = None,
    average: str = "target",
    ties: str = "strict",
    language: str = "en",
) -> list[list[Any]]:
    """The figures of one prediction file minus those of another, paired, with intervals.

    Args:
        predictions, gold, average, ties, language: as in `make_table`.
        others: the text of the other file, of the same tasks and examples.

    Returns:
        A list of rows under COMPARED, in percentage points.

    Raises:
        ValueError: as `make_table`, and if the files answer different questions.
    """
    first, second = _parts(predictions, gold, language), _parts(others, gold, language)
    if first.keys() != second.keys() or any(first[task][1] != second[task][1] for task in first):
        raise Refusal("The two files score different tasks or examples: give two of the same.")
    table = []
    for task, (scores, references) in first.items():
        for group in (*sorted({reference["bias_type"] for reference in references}), "all"):
            chosen = [i for i, reference in enumerate(references) if group in (reference["bias_type"], "all")]
            parts = (scores, second[task][0], references)
            found = compare_scores(
                *(_at(some, chosen) for some in parts), average=average, ties=ties, confidence_level=CONFIDENCE
            )
            numbers = [_rounded(found[name]) for name in (*PERCENT, *BOUNDS)]
            table.append([task, group, len(chosen), *numbers])
    return table


def _at(some: Sequence[Any], places: Iterable[int]) -> list[Any]:
    return [some[i] for i in places]


def as_csv(header: list[str], rows: list[list[Any]]) -> str:
    """A table as CSV; a text that a spreadsheet would take for a formula begins with an apostrophe."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows([header, *(map(_inert, row) for row in rows)])
    return written.getvalue()


def read_scores(text: str, language: str = "en", known: Iterable[str] = CONFIGS) -> tuple[Scores, bool]:
    """({config: {option id: score}}, whether they are of a part of the data) of the text of a prediction file."""
    content = _json(text, "The predictions")
    if not isinstance(content, dict) or not content.keys() - {PARTIAL}:
        raise Refusal(f"The predictions hold no scores: give a mapping with {' or '.join(CONTEXT_TASKS)}.")
    scores: Scores = {}
    for task in content.keys() - {PARTIAL}:
        config = f"{task}_{language}" if task in CONTEXT_TASKS and language != "en" else task
        if config not in known:
            raise Refusal(f"The predictions hold the task {shown(task)}: there are {', '.join(known)}.")
        if config in scores:
            raise Refusal(f"The predictions hold {config} twice, once without its language: keep one.")
        pairs = _pairs(content[task])
        if pairs is None:
            raise Refusal(f"The predictions of {task} are not a list of records with id and score.")
        scores[config] = dict(pairs)
        if len(scores[config]) < len(pairs):
            raise Refusal(f"The predictions of {task} score an option twice: keep one score of each.")
    return {config: scores[config] for config in known if config in scores}, PARTIAL in content


def read_gold(text: str) -> dict[str, list[Any]]:
    """{task: examples} of the text of a file in dev.json's layout."""
    content = _json(text, "The gold file")
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not all(_is_gold(data.get(task, [])) for task in CONTEXT_TASKS):
        raise Refusal("The gold file is not in the layout of dev.json: give one with data and its tasks.")
    return {task: data.get(task, []) for task in CONTEXT_TASKS}


def align(scores: Mapping[str, Any], rows: Iterable[Any], partial: bool = False) -> Aligned:
    """(scores[i][j] of option j of example i, flat references).

    Args:
        scores: {option id: score}.
        rows: the examples.
        partial: whether examples without any score are left out.
    """
    rows = [row for row in rows if not partial or not scores.keys().isdisjoint(_option_ids(row))]
    options = list(map(_option_ids, rows))
    known = {option for ids in options for option in ids}
    missing, extra = known - scores.keys(), scores.keys() - known
    if missing or extra:
        raise Refusal(
            f"{len(missing)} of {len(known)} options have no score, and {len(extra)} scores belong to no option: "
            "give the scores of exactly the gold file's split, and their language."
        )
    return [list(map(scores.__getitem__, ids)) for ids in options], flat_references(rows)


def _parts(predictions: str, gold: str | None, language: str) -> dict[str, Aligned]:
    """{task: what is judged}, each language's tasks pooled after them."""
    examples = None if gold is None else read_gold(gold)
    own = {} if examples is None else {"language": "en", "known": CONTEXT_TASKS}
    scores, partial = read_scores(predictions, **{"language": language, **own})
    parts: dict[str, Aligned] = {}
    for config, by_id in scores.items():
        rows = published(config) if examples is None else examples[config]
        if not rows:
            raise Refusal(
                f"The gold file has no {config} examples, and the predictions have: give both the same tasks."
            )
        parts[config] = align(by_id, rows, partial)
    return parts | _pooled(parts)


def _pooled(parts: Mapping[str, Aligned]) -> dict[str, Aligned]:
    """Both tasks of StereoSet in one, of every language that has both."""
    pooled = {}
    for config in parts:
        task, language = CONTEXTS.get(config, ("", ""))
        other = config.replace(*CONTEXT_TASKS)
        if task == CONTEXT_TASKS[0] and other in parts:
            name = "overall" if language == "en" else f"overall_{language}"
            pooled[name] = (parts[config][0] + parts[other][0], parts[config][1] + parts[other][1])
    return pooled


def _json(text, name):
    if not text.strip():
        raise Refusal(f"{name} cannot be read, for there is nothing in it: upload a file, or paste its text.")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{name} cannot be read ({error}): give JSON.") from None


def _pairs(records):
    """[(option id, score)] of a task's records; None if they are in another layout."""
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        return None
    pairs = [(record.get("id"), record.get("score")) for record in records]
    return pairs if all(isinstance(option, str) for option, _ in pairs) else None


def _is_gold(examples):
    """Whether a task's examples are laid out so that their options' ids can be read; the metric judges the rest."""
    if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
        return False
    return all(_pairs(example.get("sentences")) is not None for example in examples)


def _option_ids(row):
    sentences = row["sentences"]
    return sentences["id"] if isinstance(sentences, dict) else [option["id"] for option in sentences]


def _rounded(value):
    return round(value, 2) if isinstance(value, float) else value


def _inert(cell):
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(("=", "+", "-", "@", "\t", "\r")) else cell
