"""How much a number hangs on the method: one model, asked by several, within each and between them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from statistics import stdev

import numpy as np

from stereoset_report.comparison import Cell, Figure, Manner, Named, Sheet, common_examples, figures, make_sheets
from stereoset_report.comparison_tables import shown
from stereoset_report.formats import Cell as Shown
from stereoset_report.formats import Row, Table, filled
from stereoset_report.questions_asked import facts
from stereoset_report.resampling import resampled
from stereoset_report.results import OVERALL
from stereoset_scoring.questions.configs import PAIR_TASKS

NUMBERS = ("ss", "lms", "icat")
LEGEND = (
    "within: the standard error of a method's number (root mean square over the methods), what other target terms "
    "would change; between: the standard deviation over the methods; range: the highest less the lowest; agree: "
    "examples in which all methods prefer the same side, in percent."
)


@dataclass(frozen=True)
class Asked:
    """A model asked by one method.

    Attributes:
        name: of the run.
        method: what was asked, with options and preset.
        figures: {number: its Figure}.
    """

    name: str
    method: str
    figures: Mapping[str, Figure]


@dataclass(frozen=True)
class Spread:
    """How far the numbers of several methods lie apart; in the unit of the number.

    Attributes:
        within: root mean square over the methods of the standard error, by resampling target terms; None where there
            is but one unit.
        between: standard deviation over the methods.
        range: the highest less the lowest.
    """

    within: float | None
    between: float
    range: float


@dataclass(frozen=True)
class Sensitivity:
    """One model by several methods.

    Attributes:
        model: its name.
        cell: which examples.
        asked: the methods.
        spreads: {number: its Spread}; empty for one method.
        agree: share of the examples that all have, in percent, in which all prefer the same side; None for one method.
    """

    model: str
    cell: Cell
    asked: Sequence[Asked]
    spreads: Mapping[str, Spread]
    agree: float | None


def sensitivity(models: Sequence[Named], manner: Manner | None = None) -> list[Sensitivity]:
    """The methods of each model, beside each other.

    Runs are of one model if their records name the same commit, or weights of the same sum; prediction files if their
    names are alike up to a slash, as "BERT/likelihood" and "BERT/pll" are.
    """
    manner = manner or Manner()
    groups = by_model(models)
    unique = [Named(f"{i}", model.saved) for i, model in enumerate(models)]
    found = []
    for cell, sheets in make_sheets(unique, manner).items():
        for places in groups if cell.task != OVERALL else []:
            some = [(models[int(sheet.name)], sheet) for sheet in sheets if int(sheet.name) in places]
            if some:
                found.append(_sensitivity(model_words(some[0][0]), cell, some, manner))
    return found


def by_model(models: Sequence[Named]) -> list[list[int]]:
    """The places of those that are of one model."""
    groups: list[tuple[set[str], list[int]]] = []
    for place, model in enumerate(models):
        marks = marks_of(model)
        group = next((group for group in groups if group[0] & marks), None)
        if group is None:
            groups.append((marks, [place]))
        else:
            group[0].update(marks)
            group[1].append(place)
    return [places for _, places in groups]


def marks_of(named: Named) -> set[str]:
    """What tells which model saved scores are of: its commit, or the sums of its weights; a name without a run."""
    model = named.saved.record.get("model", {})
    if model.get("commit"):
        return {f"{model.get('name')} {model['commit']}"}
    sums = {head["weights_sha256"] for head in model.get("heads", {}).values()}
    return sums or {f"{model.get('name') or named.name.partition('/')[0]}"}


def model_words(named: Named) -> str:
    """What a model is called."""
    model = named.saved.record.get("model", {})
    if not model.get("name"):
        return named.name.partition("/")[0]
    return f"{model['name']}@{model['commit'][:8]}" if model.get("commit") else PurePath(model["name"]).name


def sensitivity_table(found: Sequence[Sensitivity]) -> Table:
    """A section for each model and task: a row for each method, and their spread below."""
    sections: dict[str, list[Row]] = {}
    for one in found:
        cell = one.cell
        rows = [_asked_row(asked) for asked in one.asked]
        if one.spreads:
            rows += [_spread_row(one, "within"), _spread_row(one, "between"), _spread_row(one, "range")]
            rows[-1][-1] = Shown(one.agree)
        sections[f"{one.model}, {cell.task}, {cell.language}, {cell.split}"] = rows
    columns = [("", name) for name in (*NUMBERS, "agree")]
    return filled(Table("Sensitivity to the method", ["method", "run"], columns, sections, [LEGEND]))


def _asked_row(asked: Asked) -> Row:
    return [asked.method, asked.name, *(shown(asked.figures.get(name)) for name in NUMBERS), Shown(None)]


def _sensitivity(model: str, cell: Cell, some: Sequence[tuple[Named, Sheet]], manner: Manner) -> Sensitivity:
    by_example = manner.average == "example" or cell.task in PAIR_TASKS
    all_units = [sheet.judged.units(by_example) for _, sheet in some]
    asked = [
        Asked(named.name, method_words(sheet), figures(units, manner.resampling))
        for (named, sheet), units in zip(some, all_units, strict=True)
    ]
    if len(some) < 2:
        return Sensitivity(model, cell, asked, {}, None)
    draws = [resampled(units, manner.resampling) for units in all_units]
    spreads = {}
    for name in NUMBERS:
        values = [one.figures[name].value for one in asked if name in one.figures]
        if len(values) == len(asked):
            variances = [float(np.var(of_one[name])) for of_one in draws if of_one]
            within = float(np.sqrt(np.mean(variances))) if len(variances) == len(asked) else None
            spreads[name] = Spread(within, stdev(values), max(values) - min(values))
    return Sensitivity(model, cell, asked, spreads, _agreement([sheet for _, sheet in some]))


def method_words(sheet: Sheet) -> str:
    """What was asked: the method with its options and the preset, as far as a record says it."""
    known = facts(sheet)
    if "method" not in known:
        return "unknown"
    words = [known["method"], *(f"{name}={known[name]}" for name in ("options", "preset") if known[name] != "none")]
    return " ".join(str(word) for word in words).replace("options=", "")


def _agreement(sheets: Sequence[Sheet]) -> float | None:
    """In how many of the examples that all have, in percent, all prefer the same side."""
    common = sheets[0].judged
    for sheet in sheets[1:]:
        common, _ = common_examples(common, sheet.judged)
    if not common.keys:
        return None
    votes = np.array([common_examples(common, sheet.judged)[1].stereotyped for sheet in sheets])
    return float(100 * (votes == votes[0]).all(axis=0).mean())


def _spread_row(one: Sensitivity, part: str) -> Row:
    cells = [Shown(getattr(one.spreads[name], part) if name in one.spreads else None) for name in NUMBERS]
    return [f"  {part}", "", *cells, Shown(None)]
