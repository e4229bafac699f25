"""Every example with its texts and scores: what is preferred, by how much, and where another model disagrees."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from stereoset_report.alarms import equal_texts
from stereoset_report.comparison import (
    Against,
    Figure,
    Manner,
    Named,
    Sheet,
    common_examples,
    differences,
    figures,
    flips,
    make_sheets,
    with_holm,
)
from stereoset_report.judged import margin, scale_of
from stereoset_report.results import OVERALL
from stereoset_scoring.files.predictions import option_ids
from stereoset_scoring.questions.configs import split_config
from stereoset_scoring.questions.examples import GOLD_LABELS, gold_labels, options_of
from stereoset_scoring.refusal import Refusal

ANTI, PRO, OFF = GOLD_LABELS
ORDER = (PRO, ANTI, OFF)  # in which options are shown
Value = TypeVar("Value")
TIE = "tie"  # as a side: neither is preferred; as a flag: two options score equal
FLAGS = {
    TIE: "two options score equal",
    "unrelated": "the unrelated option is preferred",
    "equal": "two options have one text, and score equal",
    "flip": "the other model prefers the other side",
}


@dataclass(frozen=True)
class Verdict:
    """What a model says of an example.

    Attributes:
        model: its name.
        scores: {gold label: score}.
        preferred: the gold label of the highest score; "tie" where two share it.
        side: of stereotype and anti-stereotype, the preferred one; or "tie".
        margin: by how much the stereotype is scored above the anti-stereotype; see `margin`.
        related_margin: by how much the better of these two is scored above the unrelated option; None without one.
        scale: "log" or "probability": margins are in nats; None: they are differences of scores.
    """

    model: str
    scores: Mapping[str, float]
    preferred: str
    side: str
    margin: float
    related_margin: float | None
    scale: str | None


@dataclass(frozen=True)
class Item:
    """An example.

    Attributes:
        id, language, split, task, bias_type, target, context: of the example.
        texts: {gold label: the option's sentence}.
        verdict: of the model.
        other: of another model; None without one.
        flags: of FLAGS.
    """

    id: str
    language: str
    split: str
    task: str
    bias_type: str
    target: str
    context: str
    texts: Mapping[str, str]
    verdict: Verdict
    other: Verdict | None = None
    flags: Sequence[str] = ()

    @property
    def shift(self) -> float:
        """By how much the margin is larger than the other model's."""
        return self.verdict.margin - self.other.margin if self.other else 0.0


@dataclass(frozen=True)
class Wanted:
    """Which items; None for no condition.

    Attributes:
        tasks, languages, bias_types, targets: those wanted.
        flags: an item has one of them at least.
        margins: (lowest, highest) margin.
    """

    tasks: Sequence[str] | None = None
    languages: Sequence[str] | None = None
    bias_types: Sequence[str] | None = None
    targets: Sequence[str] | None = None
    flags: Sequence[str] | None = None
    margins: tuple[float, float] | None = None

    def has(self, item: Item) -> bool:
        """Whether an item is wanted."""
        low, high = self.margins or (item.verdict.margin, item.verdict.margin)
        return (
            low <= item.verdict.margin <= high
            and (self.flags is None or bool(set(self.flags) & set(item.flags)))
            and self.has_place(item.language, item.task, item.bias_type, item.target)
        )

    def has_place(self, language: str, task: str, bias_type: str, target: str) -> bool:
        """Whether examples of these are wanted, whatever is said of them."""
        places = (
            (self.languages, language),
            (self.tasks, task),
            (self.bias_types, bias_type),
            (self.targets, target),
        )
        return all(known is None or value in known for known, value in places)


SORTS: dict[str, Callable[[Item], Any]] = {
    "margin": lambda item: -item.verdict.margin,
    "size": lambda item: -abs(item.verdict.margin),
    "shift": lambda item: -abs(item.shift),
    "target": lambda item: item.target,
    "bias-type": lambda item: item.bias_type,
}


def make_items(named: Named, other: Named | None = None) -> list[Item]:
    """The items of saved scores, in the order of the data.

    Args:
        named: the scores, read with whole rows.
        other: those of another model; examples that it lacks are set beside nothing.

    Raises:
        Refusal: if the two have no task and language in common.
    """
    if other is not None and not set(named.saved.parts) & set(other.saved.parts):
        raise Refusal(f"{named.name} and {other.name} score no task in common: give scores of the same ones.")
    found: list[Item] = []
    for config in named.saved.parts:
        verdicts = _verdicts(other, config) if other and config in other.saved.parts else {}
        found += _items(named, config, verdicts)
    return found


def select(items: Iterable[Item], wanted: Wanted, sort: str | None = None, reverse: bool = False) -> list[Item]:
    """Those items that are wanted, sorted.

    Args:
        items: the items.
        wanted: which.
        sort: a name in SORTS: margin from the most stereotyped on, size and shift from the largest on; None for the
            order of the data.
        reverse: whether to turn that round.
    """
    chosen = [item for item in items if wanted.has(item)]
    if sort is not None:
        chosen.sort(key=SORTS[sort])
    return chosen[::-1] if reverse else chosen


@dataclass(frozen=True)
class Term:
    """A target term.

    Attributes:
        language, split, task, bias_type, target: which; bias types joined where it has several.
        count: its examples.
        figures: {number: its Figure}, intervals by resampling its examples.
        against: another model on the same examples; p_holm is corrected for all terms of the task.
    """

    language: str
    split: str
    task: str
    bias_type: str
    target: str
    count: int
    figures: Mapping[str, Figure]
    against: Against | None = None


def make_terms(named: Named, other: Named | None, manner: Manner, wanted: Wanted | None = None) -> list[Term]:
    """The target terms of saved scores, task by task, from the most stereotyped on.

    Args:
        named: the scores.
        other: those of a baseline to set them against; None for none.
        manner: how is counted; its average does not matter within a term.
        wanted: of which tasks, languages, bias types and terms.
    """
    wanted = wanted or Wanted()
    bases = make_sheets([other], manner) if other else {}
    found: list[Term] = []
    for cell, (sheet,) in make_sheets([named], manner).items():
        if cell.task == OVERALL:
            continue
        base = bases[cell][0] if cell in bases else None
        names = sorted({judgement.target for judgement in sheet.judged.judgements})
        terms = [_term(cell.language, cell.split, cell.task, name, sheet, base, manner) for name in names]
        terms = [term for term in terms if wanted.has_place(term.language, term.task, term.bias_type, term.target)]
        found += sorted(_with_holm(terms), key=lambda term: -term.figures["ss"].value)
    return found


def by_label(row: Mapping[str, Any], values: Sequence[Value]) -> dict[str, Value]:
    """{gold label: value}, from a value for each option of a row: stereotype, anti-stereotype, unrelated."""
    found = dict(zip(gold_labels(row), values, strict=True))
    return {label: found[label] for label in ORDER if label in found}


def texts_of(row: Mapping[str, Any]) -> dict[str, str]:
    """{gold label: the option's sentence}, ordered likewise."""
    return by_label(row, [option["sentence"] for option in options_of(row)])


def preferred_label(scores: Mapping[str, float]) -> str:
    """The gold label of the highest score; "tie" where two share it."""
    best = max(scores.values())
    first = [label for label, score in scores.items() if score == best]
    return first[0] if len(first) == 1 else TIE


def _verdicts(named: Named, config: str) -> dict[tuple[str, ...], Verdict]:
    """{ids of the options: the verdict} of another model."""
    rows, scores = named.saved.parts[config]
    scale = scale_of(named.saved, config)
    return {
        tuple(option_ids(row)): _verdict(named.name, row, of_row, scale)
        for row, of_row in zip(rows, scores, strict=True)
    }


def _items(named: Named, config: str, others: Mapping[tuple[str, ...], Verdict]) -> list[Item]:
    task, language = split_config(config)
    rows, scores = named.saved.parts[config]
    scale = scale_of(named.saved, config)
    return [
        _item(
            row,
            (language, named.saved.split, task),
            _verdict(named.name, row, of_row, scale),
            others.get(tuple(option_ids(row))),
            equal_texts([row], [of_row]) > 0,
        )
        for row, of_row in zip(rows, scores, strict=True)
    ]


def _item(
    row: Mapping[str, Any], place: tuple[str, str, str], verdict: Verdict, other: Verdict | None, equal: bool
) -> Item:
    flags = {
        TIE: len(set(verdict.scores.values())) < len(verdict.scores),
        "unrelated": verdict.preferred == OFF,
        "equal": equal,
        "flip": other is not None and other.side != verdict.side,
    }
    return Item(
        row["id"],
        *place,
        bias_type=row["bias_type"],
        target=row["target"],
        context=row.get("context") or "",
        texts=texts_of(row),
        verdict=verdict,
        other=other,
        flags=[flag for flag, holds in flags.items() if holds],
    )


def _verdict(model: str, row: Mapping[str, Any], scores: Sequence[float], scale: str | None) -> Verdict:
    of_label = by_label(row, scores)
    lead = margin(scores, gold_labels(row), scale)
    side = TIE if lead == 0 else PRO if lead > 0 else ANTI
    related = None
    if OFF in of_label:
        better = max(of_label[PRO], of_label[ANTI])
        related = margin([better, of_label[OFF]], [PRO, ANTI], scale)
    return Verdict(model, of_label, preferred_label(of_label), side, lead, related, scale)


def _term(language: str, split: str, task: str, name: str, sheet: Sheet, base: Sheet | None, manner: Manner) -> Term:
    judged = sheet.judged.where(lambda judgement: judgement.target == name)
    types = Counter(judgement.bias_type for judgement in judged.judgements)
    numbers = figures(judged.units(), manner.resampling)
    against = None
    if base is not None:
        ours, theirs = common_examples(judged, base.judged)
        if ours.keys:
            found = differences(ours.units(), theirs.units(), manner.resampling)
            against = Against(base.name, len(ours.keys), found, flips(ours, theirs))
    return Term(language, split, task, ", ".join(sorted(types)), name, len(judged.keys), numbers, against)


def _with_holm(terms: Sequence[Term]) -> list[Term]:
    """The terms, with Holm's correction over those of them that are set against anything."""
    corrected = iter(with_holm([term.against for term in terms if term.against]))
    return [replace(term, against=next(corrected)) if term.against else term for term in terms]
