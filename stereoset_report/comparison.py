"""Models beside each other: their numbers, the differences from a baseline, and how sure both are.

`compare` gives plain dataclasses, which `dataclasses.asdict` makes ready for JSON; `comparison_tables` shows them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

import numpy as np

from stereoset_metric.compute_score import VERSION
from stereoset_report.judged import Judged, by_task, judge_part, method_of, scale_of
from stereoset_report.questions_asked import asked_alike, differences_asked
from stereoset_report.resampling import LMS, Array, Resampling, Units, draw, interval, resampled
from stereoset_report.results import ALL, OVERALL, find_alarms
from stereoset_report.saved import Saved
from stereoset_report.significance import ROUNDING, holm, mcnemar_p, sign_flip_p, smallest_difference
from stereoset_scoring.questions.configs import CONTEXT_TASKS, PAIR_TASKS
from stereoset_scoring.refusal import Refusal

TASK, BIAS_TYPE, AGREEMENT = "task", "bias_type", "agreement"
BY = (TASK, BIAS_TYPE, AGREEMENT, OVERALL)


@dataclass(frozen=True)
class Named:
    """Saved scores, and what to call them; equal names are one model, in several languages or tasks."""

    name: str
    saved: Saved


@dataclass(frozen=True)
class Manner:
    """How is counted.

    Attributes:
        average: over "target" terms or each "example"; pairs are always counted by example.
        ties: as `compute_score` takes it.
        resampling: how intervals are made; its seed is also that of the tests.
        by: what is wanted of BY: each task, each bias type of it, each agreement of annotators ("agreement 3"), both
            tasks together ("overall").
        differences: whether models are set against the baseline, which takes longer than their numbers.
    """

    average: str = "target"
    ties: str = "strict"
    resampling: Resampling = field(default_factory=Resampling)
    by: Sequence[str] = (TASK,)
    differences: bool = True


@dataclass(frozen=True)
class Cell:
    """Which examples of a model a row is about.

    Attributes:
        language: two letters.
        split: of the data.
        task: a task, or "overall" for both.
        group: a bias type (or a direction of pairs), or "all".
    """

    language: str
    split: str
    task: str
    group: str = ALL


@dataclass(frozen=True)
class Figure:
    """A number; low and high of its interval, None where there is but one unit to resample."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Difference(Figure):
    """A number of a model minus that of the baseline, on the examples that both have.

    Attributes:
        p: two-sided, by `sign_flip_p`.
        p_holm: the same, corrected for all models that are set against this baseline in this cell.
        detectable: the smallest true difference that these data would have shown four times of five; None where the
            two do not differ in anything.
    """

    p: float | None = None
    p_holm: float | None = None
    detectable: float | None = None


@dataclass(frozen=True)
class Flips:
    """Examples in which a model prefers another side than the baseline.

    Attributes:
        to_stereotype: the baseline does not prefer the stereotype, the model does.
        to_anti_stereotype: the other way.
        p: McNemar's exact test, see `mcnemar_p`.
    """

    to_stereotype: int
    to_anti_stereotype: int
    p: float


@dataclass(frozen=True)
class Against:
    """A model against its baseline.

    Attributes:
        baseline: its name.
        examples: how many examples both have.
        differences: {number: its Difference}.
        flips: on these examples.
    """

    baseline: str
    examples: int
    differences: Mapping[str, Difference]
    flips: Flips


@dataclass(frozen=True)
class Entry:
    """A model's numbers in a cell.

    Attributes:
        model: its name.
        cell: which examples.
        method: what was asked, with the kind of model; None where nothing says it.
        scale: "log" or "probability", of the scores; None for neither.
        count, terms, ties: how many examples, target terms, and examples with options that score equal.
        figures: {number: its Figure}: ss, lms, icat, icat_macro and share in percent, log_odds in nats.
        against: the baseline; None for itself, where it has no such examples, and where nobody asks for differences.
    """

    model: str
    cell: Cell
    method: str | None
    scale: str | None
    count: int
    terms: int
    ties: int
    figures: Mapping[str, Figure]
    against: Against | None = None


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    Attributes:
        entries: cell by cell, the models in the order given.
        questions: lines that say in what the questions differ that were asked of models set against each other.
        notes: lines to print below.
        alarms: {model: its alarms}, as `find_alarms` returns them.
        signatures: {model: how its scores were made}.
        signature: how the numbers were made of them.
    """

    entries: Sequence[Entry]
    questions: Sequence[str]
    notes: Sequence[str]
    alarms: Mapping[str, Sequence[Mapping[str, str]]]
    signatures: Mapping[str, Sequence[str]]
    signature: str


@dataclass(frozen=True)
class Sheet:
    """A model's examples of a language, split and task."""

    name: str
    judged: Judged
    method: str | None
    scale: str | None
    parts: Mapping[str, Saved]  # {config: where it is from}


Sheets = Mapping[Cell, Sequence[Sheet]]  # by cells of the group "all"


def compare(
    models: Sequence[Named], manner: Manner | None = None, baseline: str | None = None, sheets: Sheets | None = None
) -> Comparison:
    """Set models beside each other, and against a baseline.

    Args:
        models: in the order of the rows.
        manner: how is counted.
        baseline: the name of the model that the others are set against; None for the first that there is in each
            language, split and task.
        sheets: what `make_sheets` made of them, where that is known already.

    Raises:
        Refusal: if no model is called as the baseline, or two are called the same.
    """
    manner = manner or Manner()
    names = list(dict.fromkeys(model.name for model in models))
    if baseline is not None and baseline not in names:
        raise Refusal(f"There are no scores of the baseline {baseline!r}: choose one of {', '.join(names)}.")
    sheets = sheets or make_sheets(models, manner)
    entries = [entry for cell, some in sheets.items() for entry in _entries(cell, some, manner, baseline)]
    signatures: dict[str, list[str]] = {name: [] for name in names}
    for model in models:
        signatures[model.name].append(model.saved.signature)
    return Comparison(
        entries,
        _questions(sheets, baseline),
        [*_stamps(models), *_unanswered(sheets, baseline), *_no_scale(sheets)],
        _alarms(models, sheets),
        signatures,
        _signature(manner),
    )


def make_sheets(models: Sequence[Named], manner: Manner) -> dict[Cell, list[Sheet]]:
    """What each model has of each language, split and task, and of both tasks together.

    Raises:
        Refusal: if equal names have the same twice.
    """
    by_model: dict[str, dict[Cell, Sheet]] = {}
    for model in models:
        sheets = by_model.setdefault(model.name, {})
        for (language, task), config in by_task(model.saved.parts).items():
            cell = Cell(language, model.saved.split, task)
            if cell in sheets:
                raise Refusal(f"{model.name} has two sets of scores for {config}: give one of them a name of its own.")
            sheets[cell] = _sheet(model, config, manner)
    found: dict[Cell, list[Sheet]] = defaultdict(list)
    for sheets in by_model.values():
        for cell, sheet in _with_overall(sheets).items():
            found[cell].append(sheet)
    first = list(found)
    return {cell: found[cell] for cell in sorted(found, key=lambda cell: _order(cell, first))}


def figures(units: Units, resampling: Resampling) -> dict[str, Figure]:
    """The numbers of some units, with intervals."""
    draws = resampled(units, resampling)
    return {
        name: Figure(value, *(interval(draws[name], resampling.level) if draws else ()))
        for name, value in units.whole.items()
    }


def differences(ours: Units, theirs: Units, resampling: Resampling) -> dict[str, Difference]:
    """The numbers of one model minus those of another, on the same examples; Holm's correction is still to come."""
    if len(ours.sizes) < 2:
        return {name: Difference(ours.whole[name] - theirs.whole[name]) for name in _common(ours.whole, theirs.whole)}
    draws = draw(len(ours.sizes), resampling.resamples, resampling.seed)
    first, second, p = ours.drawn(draws), theirs.drawn(draws), sign_flip_p(ours, theirs, seed=resampling.seed)
    return {
        name: _difference(ours.whole[name] - theirs.whole[name], first[name] - second[name], p[name], resampling)
        for name in _common(first, second)
    }


def flips(ours: Judged, theirs: Judged) -> Flips:
    """How the preferred sides of the same examples differ."""
    towards = int((ours.stereotyped > theirs.stereotyped).sum())
    away = int((ours.stereotyped < theirs.stereotyped).sum())
    return Flips(towards, away, mcnemar_p(towards, away))


def common_examples(ours: Judged, theirs: Judged) -> tuple[Judged, Judged]:
    """The examples that both have, in the same order."""
    if ours.keys == theirs.keys:
        return ours, theirs
    place = {key: i for i, key in enumerate(theirs.keys)}
    both = [i for i, key in enumerate(ours.keys) if key in place]
    return ours.at(both), theirs.at([place[ours.keys[i]] for i in both])


def _common(first: Iterable[str], second: Iterable[str]) -> list[str]:
    known = set(second)
    return [name for name in first if name in known]


def _difference(value: float, draws: Array, p: float, resampling: Resampling) -> Difference:
    low, high = interval(draws, resampling.level)
    error = float(np.std(draws, ddof=1)) if len(draws) > 1 else 0.0
    return Difference(value, low, high, p, None, smallest_difference(error) if error > ROUNDING else None)


def _sheet(model: Named, config: str, manner: Manner) -> Sheet:
    rows, scores = model.saved.parts[config]
    scale = scale_of(model.saved, config)
    judged = judge_part(rows, scores, manner.ties, scale)
    return Sheet(model.name, judged, method_of(model.saved, config), scale, {config: model.saved})


def _with_overall(sheets: Mapping[Cell, Sheet]) -> dict[Cell, Sheet]:
    """The sheets of a model, and one of both tasks together where it has both."""
    found = dict(sheets)
    for cell in sheets:
        if cell.task == CONTEXT_TASKS[0]:
            both = [sheets.get(replace(cell, task=task)) for task in CONTEXT_TASKS]
            having = [sheet for sheet in both if sheet]
            if len(having) == len(both):
                parts = {config: saved for sheet in having for config, saved in sheet.parts.items()}
                judged = reduce(add, (sheet.judged for sheet in having))
                methods = " and ".join(dict.fromkeys(sheet.method or "unknown" for sheet in having))
                known = all(sheet.method for sheet in having)
                overall = Sheet(having[0].name, judged, methods if known else None, None, parts)
                found[replace(cell, task=OVERALL)] = overall
    return found


def _order(cell: Cell, first: Sequence[Cell]) -> tuple[int, int]:
    """Where a cell stands: languages and splits as given, and the tasks of each in their order."""
    places = [(one.language, one.split) for one in first]
    return places.index((cell.language, cell.split)), (*CONTEXT_TASKS, OVERALL, *PAIR_TASKS).index(cell.task)


def _entries(cell: Cell, sheets: Sequence[Sheet], manner: Manner, baseline: str | None) -> Iterator[Entry]:
    """The entries of a language, split and task: those of all examples, and of bias types where they are wanted."""
    by_example = manner.average == "example" or cell.task in PAIR_TASKS
    if cell.task == OVERALL and OVERALL not in manner.by:
        return
    wanted = [ALL] if cell.task == OVERALL or TASK in manner.by else []
    if BIAS_TYPE in manner.by:
        wanted = [*dict.fromkeys(name for sheet in sheets for name in sheet.judged.groups), *wanted]
    if AGREEMENT in manner.by:
        wanted = [*sorted({name for sheet in sheets for name in sheet.judged.agreements}), *wanted]
    base = baseline_of(sheets, baseline) if manner.differences else None
    for group in wanted:
        rows = [_entry(replace(cell, group=group), sheet, base, by_example, manner.resampling) for sheet in sheets]
        yield from _corrected([row for row in rows if row])


def baseline_of(sheets: Sequence[Sheet], name: str | None) -> Sheet | None:
    """The sheet that the others are set against: the one so called, or the first."""
    return next((sheet for sheet in sheets if name in (None, sheet.name)), None)


def _entry(cell: Cell, sheet: Sheet, base: Sheet | None, by_example: bool, resampling: Resampling) -> Entry | None:
    """A row; None where the model has no such examples."""
    judged = sheet.judged.group(cell.group)
    if not judged.judgements:
        return None
    ties = sum(judgement.tie for judgement in judged.judgements)
    terms = len({judgement.target for judgement in judged.judgements})
    numbers = figures(judged.units(by_example), resampling)
    against = None if base is None or base is sheet else _against(sheet, base, cell.group, by_example, resampling)
    return Entry(sheet.name, cell, sheet.method, sheet.scale, len(judged.keys), terms, ties, numbers, against)


def _against(sheet: Sheet, base: Sheet, group: str, by_example: bool, resampling: Resampling) -> Against | None:
    """A model against its baseline; margins of two methods have nothing to be subtracted."""
    ours, theirs = common_examples(sheet.judged.group(group), base.judged.group(group))
    if not ours.keys:
        return None
    if not asked_alike(sheet, base):
        ours = replace(ours, margins=None)
    found = differences(ours.units(by_example), theirs.units(by_example), resampling)
    return Against(base.name, len(ours.keys), found, flips(ours, theirs))


def with_holm(all_against: Sequence[Against]) -> list[Against]:
    """Comparisons with one baseline, the p-values of each number corrected for all of them."""
    adjusted: list[dict[str, float]] = [{} for _ in all_against]
    for name in {name for against in all_against for name in against.differences}:
        known = [(i, p) for i, against in enumerate(all_against) if (p := _p_of(against, name)) is not None]
        for (i, _), p in zip(known, holm([p for _, p in known]), strict=True):
            adjusted[i][name] = p
    return [_adjusted(against, of_one) for against, of_one in zip(all_against, adjusted, strict=True)]


def _adjusted(against: Against, p_values: Mapping[str, float]) -> Against:
    found = {name: replace(one, p_holm=p_values.get(name)) for name, one in against.differences.items()}
    return replace(against, differences=found)


def _corrected(entries: Sequence[Entry]) -> list[Entry]:
    """The rows of a cell, with Holm's correction over the models in it."""
    corrected = iter(with_holm([entry.against for entry in entries if entry.against]))
    return [replace(entry, against=next(corrected)) if entry.against else entry for entry in entries]


def _p_of(against: Against, name: str) -> float | None:
    found = against.differences.get(name)
    return found.p if found else None


def _alarms(models: Sequence[Named], sheets: Sheets) -> dict[str, list[dict[str, str]]]:
    """{model: its alarms}."""
    found: dict[str, list[dict[str, str]]] = defaultdict(list)
    for model in models:
        results: dict[str, dict[str, Any]] = defaultdict(dict)
        for cell, some in sheets.items():
            for sheet in some:
                if sheet.name == model.name and cell.split == model.saved.split:
                    results[cell.language][cell.task] = {ALL: {LMS: sheet.judged.units().whole.get(LMS)}}
        found[model.name] += find_alarms(results, model.saved.parts, model.saved.record)
    return dict(found)


def _questions(sheets: Sheets, baseline: str | None) -> list[str]:
    """In what the questions differ that were asked of each model and of the one it is set against, a line each."""
    seen: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for cell, some in sheets.items():
        base = baseline_of(some, baseline)
        for sheet in some:
            if cell.task != OVERALL and base is not None and sheet is not base:
                words = differences_asked(sheet, base)
                if words:
                    seen[sheet.name, base.name, words].append(f"{cell.task} ({cell.language})")
    return [
        *_splits(sheets),
        *(
            f"DIFFERENT QUESTIONS: {name} and {base}, {', '.join(tasks)}: {words}."
            for (name, base, words), tasks in seen.items()
        ),
    ]


def _splits(sheets: Sheets) -> list[str]:
    """Which models are of which split, in a line, where they are of several in one language: nothing is subtracted."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for cell, some in sheets.items():
        found[cell.language][cell.split] += [sheet.name for sheet in some]
    return [
        f"DIFFERENT SPLITS ({language}): {_names_by_split(splits)}. Nothing is subtracted across them."
        for language, splits in found.items()
        if len(splits) > 1 and len(set(chain.from_iterable(splits.values()))) > 1
    ]


def _names_by_split(splits: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{split}: {', '.join(dict.fromkeys(names))}" for split, names in splits.items())


def _unanswered(sheets: Sheets, baseline: str | None) -> list[str]:
    """Where the baseline has no scores, in a line."""
    missing = [f"{cell.task} ({cell.language})" for cell, some in sheets.items() if baseline_of(some, baseline) is None]
    return [f"NOTE: the baseline {baseline} has no scores of {', '.join(missing)}: no differences."] if missing else []


def _stamps(models: Sequence[Named]) -> list[str]:
    """A line for each model of which only a part was scored."""
    return [f"PARTIAL: {model.name}, {model.saved.partial}" for model in models if model.saved.partial]


def _no_scale(sheets: Sheets) -> list[str]:
    """Whose share and log-odds there are not, and why, in a line each."""
    none, zeros = defaultdict(list), []
    for cell, some in sheets.items():
        for sheet in some:
            if cell.task != OVERALL and sheet.scale is None:
                none[sheet.name].append(f"{cell.task} ({cell.language})")
            if sheet.judged.zeros:
                zeros.append(f"{sheet.name} in {sheet.judged.zeros} examples of {cell.task} ({cell.language})")
    return [
        *(
            f"NOTE: {name}, {', '.join(tasks)}: scores that are neither probabilities nor logarithms give no share and "
            "no log-odds."
            for name, tasks in none.items()
        ),
        *([f"NOTE: no log-odds, for a probability is 0: {', '.join(zeros)}."] if zeros else []),
    ]


def _signature(manner: Manner) -> str:
    resampling = manner.resampling
    parts = {
        "average": manner.average,
        "ties": manner.ties,
        "confidence": resampling.level,
        "resamples": resampling.resamples,
        "seed": resampling.seed,
        "version": VERSION,
    }
    return "|".join(f"{name}:{value}" for name, value in parts.items())
