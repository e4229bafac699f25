"""Items and target terms as text for a terminal, as CSV, and as lines of JSON; their texts are shown as they are.

What a terminal would obey instead of showing it is spelled out.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from stereoset_report.comparison_tables import columns_of, p_shown, shown
from stereoset_report.formats import Cell, Row, Table, filled, records_as_csv
from stereoset_report.items import Item, Term, Verdict
from stereoset_scoring.files.predictions import printable

NUMBERS = ("ss", "lms", "share", "log_odds")
LEGEND = (
    "In percent; log-odds in nats. Intervals are by resampling the term's few examples, and rough. difference: of ss; "
    "p (Holm): corrected for all terms of the block; flips: how many examples turn to the stereotype, and from it."
)


def as_text(items: Iterable[Item]) -> str:
    """Items for a terminal: a block each."""
    return "\n\n".join(_block(item) for item in items)


def as_json_lines(found: Iterable[Item | Term]) -> str:
    """Items or terms as JSON, one a line; signs beyond ASCII by their numbers."""
    return "\n".join(json.dumps(asdict(one)) for one in found)


def items_as_csv(items: Sequence[Item]) -> str:
    """Items as CSV, a line each; of a model's scores and margins, those of the other have `other_` in front."""
    return records_as_csv(map(_record, items))


def terms_table(terms: Sequence[Term]) -> Table:
    """The terms, a section for each language and task."""
    sections: dict[str, list[Row]] = {}
    compared = any(term.against for term in terms)
    for term in terms:
        row = [printable(term.target), term.bias_type, term.count, *(shown(term.figures.get(name)) for name in NUMBERS)]
        heading = f"{term.task}, {term.language}, {term.split}"
        heading += f": difference minus {term.against.baseline}" if term.against else ""
        sections.setdefault(heading, []).append([*row, *_against(term)] if compared else row)
    names = ["examples", "ss", "lms", "share", "log-odds", "difference", "p", "p (Holm)", "flips"]
    columns = [("", name) for name in (names if compared else names[:-4])]
    return filled(Table("Target terms", ["term", "bias type"], columns, sections, [LEGEND]))


def terms_as_csv(terms: Sequence[Term]) -> str:
    """Terms as CSV, a line each, with all their numbers."""
    return records_as_csv(map(_term_record, terms))


def _block(item: Item) -> str:
    verdict = item.verdict
    place = [item.task, item.language, item.bias_type, item.target, item.id]
    flags = f"  [{', '.join(item.flags)}]" if item.flags else ""
    lines = [f"{', '.join(map(printable, place))}{flags}", f"  {_verdict(verdict)}"]
    if item.other:
        lines.append(f"  {_verdict(item.other)}")
    if item.context:
        lines.append(f"  {printable(item.context)}")
    others = item.other.scores if item.other else {}
    for label, text in item.texts.items():
        mark = ">" if label == verdict.preferred else " "
        other = f" {others[label]:>12.4g}" if label in others else ""
        lines.append(f"  {mark} {label:<15} {verdict.scores[label]:>12.4g}{other}  {printable(text)}")
    return "\n".join(lines)


def _verdict(verdict: Verdict) -> str:
    unit = "nats" if verdict.scale else "as scores are"
    related = "" if verdict.related_margin is None else f", over the unrelated option {verdict.related_margin:+.2f}"
    return f"{verdict.model}: prefers {verdict.preferred}; margin {verdict.margin:+.2f}{related} ({unit})"


def _record(item: Item) -> dict[str, Any]:
    record = {name: value for name, value in asdict(item).items() if isinstance(value, str)}
    record |= {"flags": " ".join(item.flags)}
    record |= {f"text_{label}": text for label, text in item.texts.items()}
    record |= _of_verdict(item.verdict, "")
    return record | (_of_verdict(item.other, "other_") if item.other else {})


def _of_verdict(verdict: Verdict, prefix: str) -> dict[str, Any]:
    known = asdict(verdict)
    scores = known.pop("scores")
    return {f"{prefix}{name}": value for name, value in known.items()} | {
        f"{prefix}score_{label}": score for label, score in scores.items()
    }


def _against(term: Term) -> list[Any]:
    if term.against is None:
        return [Cell(None)] * 4
    found, flips = term.against.differences["ss"], term.against.flips
    difference = Cell(found.value, None, found.low, found.high, signed=True)
    return [difference, p_shown(found.p), p_shown(found.p_holm), f"+{flips.to_stereotype} -{flips.to_anti_stereotype}"]


def _term_record(term: Term) -> dict[str, Any]:
    record = {name: value for name, value in asdict(term).items() if isinstance(value, str | int)}
    record |= columns_of(term.figures, "")
    if term.against is None:
        return record
    record |= {"baseline": term.against.baseline, **columns_of(term.against.differences, "_difference")}
    return record | {f"flips_{name}": value for name, value in asdict(term.against.flips).items()}
