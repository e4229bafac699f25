"""A comparison as tables, as rows of CSV, and as JSON."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from stereoset_report.alarms import lines_of
from stereoset_report.comparison import Cell, Comparison, Difference, Entry, Figure
from stereoset_report.formats import Cell as Shown
from stereoset_report.formats import Row, Table, filled, records_as_csv
from stereoset_report.results import ALL

SCORES = ("ss", "lms", "icat", "share", "log_odds")  # what tables show; JSON and CSV have icat_macro, too
NAMES = {"log_odds": "log-odds"}
SCALES = {"log": "nats", "probability": "probability"}
LEGEND = (
    "ss, lms, icat and share in percent; in parentheses intervals, from resampled target terms. share: how much the "
    "stereotype gets of what it and the anti-stereotype get, on average; log-odds: of the two, in nats, on average. "
    "Both are on the scale of the method, and grow with the lengths of what it sums: compare them within a method."
)
LEGEND_OF_DIFFERENCES = (
    "p: by swapping the two models in target terms; Holm: corrected for the number of models; detectable: the smallest "
    "true difference that such data show 80 times of 100 at p < 0.05; flips: how many examples turn to the stereotype, "
    "and from it, with McNemar's exact test, which takes examples as independent."
)


def tables(comparison: Comparison) -> list[Table]:
    """The numbers of all models, and below them the differences, where there are any."""
    found = [scores_table(comparison.entries)]
    if any(entry.against for entry in comparison.entries):
        found.append(differences_table(comparison.entries))
    return [filled(table) for table in found]


def scores_table(entries: Sequence[Entry]) -> Table:
    """A row for each model and cell."""
    sections: dict[str, list[Row]] = {}
    for entry in entries:
        cells = [shown(entry.figures.get(name)) for name in SCORES]
        row = [entry.model, entry.count, entry.terms, *cells, scale_of(entry), entry.ties]
        sections.setdefault(heading_of(entry.cell), []).append(row)
    names = ["examples", "terms", *(NAMES.get(name, name) for name in SCORES), "scores", "ties"]
    return Table("Scores", ["model"], [("", name) for name in names], sections, [LEGEND])


def differences_table(entries: Sequence[Entry]) -> Table:
    """A row for each model, cell and number, and one for the flips; the baseline is in the heading."""
    sections: dict[str, list[Row]] = {}
    for entry in entries:
        if entry.against:
            heading = f"{heading_of(entry.cell)}: minus {entry.against.baseline}"
            rows = sections.setdefault(heading, [])
            names = [name for name in SCORES if name in entry.against.differences]
            flips = entry.against.flips
            turned = [f"+{flips.to_stereotype} -{flips.to_anti_stereotype}", p_shown(flips.p)]
            for i, name in enumerate(names):
                found = entry.against.differences[name]
                first = [entry.model, *turned] if i == 0 else ["", "", ""]
                rows.append([first[0], NAMES.get(name, name), *_difference(found), *first[1:]])
    columns = ["difference", "p", "p (Holm)", "detectable", "flips", "p (flips)"]
    labels = ["model", "number"]
    return Table("Differences", labels, [("", name) for name in columns], sections, [LEGEND_OF_DIFFERENCES])


def heading_of(cell: Cell) -> str:
    """Which examples, in words."""
    words = [cell.task, *([cell.group] if cell.group != ALL else []), cell.language, cell.split]
    return ", ".join(words)


def shown(figure: Figure | None) -> Shown:
    """A figure in a table."""
    return Shown(None) if figure is None else Shown(figure.value, None, figure.low, figure.high)


def p_shown(p: float | None) -> str:
    """A p-value as text."""
    return "-" if p is None else "<0.0001" if p < 0.0001 else f"{p:.4f}"


def scale_of(entry: Entry) -> str:
    """What the scores are, in words: the method where it is known, and their scale."""
    return ", ".join(word for word in (entry.method, SCALES.get(entry.scale or "")) if word) or "-"


def above(comparison: Comparison) -> list[str]:
    """Lines that stand above the tables: in what questions differ, and what must not be read as it stands."""
    found = list(comparison.questions)
    for model, alarms in comparison.alarms.items():
        found += [f"{model}: {line}" for line in lines_of(alarms)]
    return found


def below(comparison: Comparison) -> list[str]:
    """Lines that stand below the tables: notes, and how all was made."""
    return [
        *comparison.notes,
        comparison.signature,
        *(f"{model}: {line}" for model, lines in comparison.signatures.items() for line in lines),
    ]


def as_json(comparison: Comparison) -> dict[str, Any]:
    """All of it, as JSON has it."""
    return asdict(comparison)


def csv_of(entries: Iterable[Entry]) -> str:
    """A line for each model and cell, with all its numbers; differences have the names of their numbers in front."""
    return records_as_csv(map(_record, entries))


def _difference(found: Difference) -> list[Any]:
    value = Shown(found.value, None, found.low, found.high, signed=True)
    return [value, p_shown(found.p), p_shown(found.p_holm), Shown(found.detectable)]


def _record(entry: Entry) -> dict[str, Any]:
    record = {"model": entry.model, **asdict(entry.cell), "method": entry.method, "scale": entry.scale}
    record |= {"count": entry.count, "terms": entry.terms, "ties": entry.ties, **columns_of(entry.figures, "")}
    against = entry.against
    if against is None:
        return record
    flips = {f"flips_{name}": value for name, value in asdict(against.flips).items()}
    common = {"baseline": against.baseline, "common_examples": against.examples}
    return {**record, **common, **columns_of(against.differences, "_difference"), **flips}


def columns_of(figures: Mapping[str, Figure], suffix: str) -> dict[str, Any]:
    """{ss: …, ss_low: …, …} of {ss: Figure}."""
    return {
        f"{name}{suffix}{'' if part == 'value' else f'_{part}'}": value
        for name, figure in figures.items()
        for part, value in asdict(figure).items()
    }
