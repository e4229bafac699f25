"""What a page says of some runs, as plain data, ready for JSON: rows of tables, items, warnings."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from stereoset_report.alarms import lines_of
from stereoset_report.comparison import BY, Cell, Comparison, Entry, Figure, Manner, Named, Sheet, compare, make_sheets
from stereoset_report.items import ORDER, TIE, by_label, preferred_label, texts_of
from stereoset_report.resampling import ICAT, LMS, SS
from stereoset_report.results import ALL, OVERALL
from stereoset_scoring.files.predictions import printable
from stereoset_scoring.questions.configs import split_config

NUMBERS = (SS, LMS, ICAT)
SIDES = (*ORDER, TIE)  # a preferred option is a place in these, in the data of the page
STEP = re.compile(r"\d+(?!.*\d)")  # the last number of a name


@dataclass(frozen=True)
class Content:
    """All that a page says.

    Attributes:
        comparison: the numbers, of tasks, bias types and both tasks together.
        sheets: the examples that they are of.
        runs: a mapping for each run, ready for JSON.
        rows: a mapping for each of the comparison's entries, likewise.
        items: one for each language, split and task, likewise.
        warnings: lines for the top.
    """

    comparison: Comparison
    sheets: Mapping[Cell, Sequence[Sheet]]
    runs: Sequence[Mapping[str, Any]]
    rows: Sequence[Mapping[str, Any]]
    items: Sequence[Mapping[str, Any]]
    warnings: Sequence[str]


def make_content(models: Sequence[Named], manner: Manner, baseline: str | None = None) -> Content:
    """What a page says of models.

    Args:
        models: read with whole rows, in the order of the page.
        manner: how is counted; all of tasks, bias types and both tasks together are shown, whatever it says.
        baseline: as `compare` takes it.

    Raises:
        Refusal: as `compare`.
    """
    manner = replace(manner, by=BY, differences=False)  # of those, a page names what was asked differently alone
    sheets = make_sheets(models, manner)
    comparison = compare(models, manner, baseline, sheets)
    rows = list(map(_row, comparison.entries))
    items = [_items(cell, some) for cell, some in sheets.items() if cell.task != OVERALL]
    return Content(comparison, sheets, _runs(models, comparison), rows, items, _warnings(comparison))


def steps_of(names: Iterable[str]) -> dict[str, int]:
    """{name: number} of names that differ in their last number alone, as those of checkpoints do; else nothing.

    >>> steps_of(["gpt2 step 500", "gpt2 step 1000"])
    {'gpt2 step 500': 500, 'gpt2 step 1000': 1000}
    >>> steps_of(["bert", "gpt2"])
    {}
    """
    found = {name: STEP.search(name) for name in names}
    stems = {STEP.sub("", name, count=1) for name in found}
    if len(found) < 2 or len(stems) > 1 or None in found.values():
        return {}
    steps = {name: int(match[0]) for name, match in found.items() if match}
    return dict(sorted(steps.items(), key=lambda step: step[1]))


def _runs(models: Sequence[Named], comparison: Comparison) -> list[dict[str, Any]]:
    """What is known of each run."""
    runs: dict[str, dict[str, Any]] = {}
    for model in models:
        run = runs.setdefault(model.name, {"name": model.name, "families": [], "signatures": []})
        run["families"] = sorted({*run["families"], model.saved.family or "unknown"})
        run["signatures"] = [printable(one) for one in comparison.signatures[model.name] if one]
    return list(runs.values())


def _row(entry: Entry) -> dict[str, Any]:
    """A row of the large table."""
    cell = entry.cell
    return {
        "run": entry.model,
        "language": cell.language,
        "split": cell.split,
        "task": cell.task,
        "group": cell.group,
        "method": entry.method,
        "count": entry.count,
        "terms": entry.terms,
        "ties": entry.ties,
        **{name: _numbers(entry.figures[name]) for name in NUMBERS if name in entry.figures},
    }


def _numbers(figure: Figure) -> list[float | None]:
    return [None if number is None else round(number, 2) for number in (figure.value, figure.low, figure.high)]


def _items(cell: Cell, sheets: Sequence[Sheet]) -> dict[str, Any]:
    """The examples of a language, split and task, each once, with what every run says of them."""
    places: dict[tuple[str, ...], int] = {}
    examples: list[list[Any]] = []
    runs = []
    for sheet in sheets:
        rows, scores = _part(cell, sheet)
        margins: dict[int, float | None] = {}
        preferred: dict[int, int] = {}
        for i, (key, row, of_row) in enumerate(zip(sheet.judged.keys, rows, scores, strict=True)):
            if key not in places:
                places[key] = len(examples)
                examples.append(_example(row))
            place = places[key]
            margins[place] = _margin(sheet, i)
            preferred[place] = SIDES.index(preferred_label(by_label(row, of_row)))
        runs.append((sheet.name, margins, preferred))
    count = range(len(examples))
    return {
        "language": cell.language,
        "split": cell.split,
        "task": cell.task,
        "examples": examples,
        "runs": [
            {"name": name, "margins": list(map(margins.get, count)), "preferred": list(map(preferred.get, count))}
            for name, margins, preferred in runs
        ],
    }


def _part(cell: Cell, sheet: Sheet) -> tuple[Sequence[Mapping[str, Any]], Sequence[Sequence[float]]]:
    """(rows, scores) of a sheet of one task."""
    (config, saved), *_ = [part for part in sheet.parts.items() if split_config(part[0])[0] == cell.task]
    return saved.parts[config]


def _example(row: Mapping[str, Any]) -> list[Any]:
    """[id, bias type, target, context, [stereotype, anti-stereotype, unrelated]]."""
    return [row["id"], row["bias_type"], row["target"], row.get("context") or "", list(texts_of(row).values())]


def _margin(sheet: Sheet, i: int) -> float | None:
    """How far the stereotype leads, in nats; None where there is no such number."""
    margins = sheet.judged.margins
    return None if margins is None or not isfinite(margins[i]) else round(float(margins[i]), 3)


def _warnings(comparison: Comparison) -> list[str]:
    """What has to be known before anything is read: other questions, parts, alarms."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, alarms in comparison.alarms.items():
        for line in lines_of(alarms):
            names[line].append(name)
    rung = [f"{line} ({', '.join(dict.fromkeys(some))})" for line, some in names.items()]
    return list(map(printable, [*comparison.questions, *comparison.notes, *rung]))


def headline(content: Content) -> list[Mapping[str, Any]]:
    """The rows that say most: of each run and language both tasks together, where it has both, else each task."""
    all_rows = [row for row in content.rows if row["group"] == ALL]
    pooled = {(row["run"], row["language"], row["split"]) for row in all_rows if row["task"] == OVERALL}
    return [
        row for row in all_rows if row["task"] == OVERALL or (row["run"], row["language"], row["split"]) not in pooled
    ]
