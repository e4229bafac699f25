"""Tables as text for a terminal, as Markdown, LaTeX or CSV; what is in them, they do not know."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stereoset_scoring.files.predictions import printable

DIFFERS = "!"
GAP = "  "  # between columns
TOLERANCE = 0.005 + 1e-9  # percentage points: published numbers have two decimals


@dataclass(frozen=True)
class Cell:
    """A computed number, and the published one, in percent.

    Attributes:
        value: None for a number that there is not.
        published: None where nothing was published.
        low, high: of its interval; None without one.
        signed: whether a plus is shown, as of a difference.
    """

    value: float | None
    published: float | None = None
    low: float | None = None
    high: float | None = None
    signed: bool = False

    @property
    def differs(self) -> bool:
        """Whether both numbers are there and do not round to each other."""
        if self.value is None or self.published is None:
            return False
        return abs(self.value - self.published) > TOLERANCE

    def __str__(self) -> str:
        value = self._shown(self.value)
        if self.low is not None:
            value += f" ({self._shown(self.low)}, {self._shown(self.high)})"
        return value if self.published is None else f"{value} [{self.published:.2f}]{DIFFERS * self.differs}"

    def _shown(self, number: float | None) -> str:
        if number is None:
            return "-"
        return f"{number:+.2f}" if self.signed else f"{number:.2f}"


Row = list[Any]  # labels, then Cells or counts


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: what it is.
        labels: names of its first columns, which hold text.
        columns: (group, name) of the columns that hold Cells or counts; neighbours with one group belong together.
        sections: {heading: rows}; a heading may be empty.
        notes: lines to print below.
    """

    title: str
    labels: list[str]
    columns: list[tuple[str, str]]
    sections: dict[str, list[Row]]
    notes: list[str] = field(default_factory=list)

    @property
    def cells(self) -> list[Cell]:
        """All its Cells."""
        return [cell for rows in self.sections.values() for row in rows for cell in row if isinstance(cell, Cell)]


def render(table: Table, layout: str, width: int | None = None) -> str:
    """A table as text.

    Args:
        table: what is in it.
        layout: a name in FORMATS.
        width: how many columns of text a terminal has; None for as many as the table likes.
    """
    return terminal(table, width) if layout == "terminal" else FORMATS[layout](table)


def filled(table: Table) -> Table:
    """The table without those columns of Cells that nobody fills."""
    left, rows = len(table.labels), [row for some in table.sections.values() for row in some]
    kept = [i for i in range(len(table.columns)) if any(map(_is_filled, _column(rows, left + i)))]
    places = [*range(left), *(left + i for i in kept)]
    sections = {}
    for heading, some in table.sections.items():
        sections[heading] = [_at(row, places) for row in some]
    return replace(table, columns=[table.columns[i] for i in kept], sections=sections)


def _column(rows: Iterable[Row], place: int) -> list[Any]:
    return [row[place] for row in rows]


def _at(row: Row, places: Iterable[int]) -> Row:
    return [row[place] for place in places]


def _is_filled(cell: Any) -> bool:
    return not isinstance(cell, Cell) or cell.value is not None or cell.published is not None


def terminal(table: Table, width: int | None = None) -> str:
    """The table for a terminal: columns aligned, headings between blocks of rows; it wraps by whole columns."""
    parts = ["\n".join(_terminal_lines(part)) for part in _side_by_side(table, width)]
    return "\n".join([table.title, "", "\n\n".join(parts), "", *table.notes]).rstrip()


def _terminal_lines(table: Table) -> list[str]:
    groups, names = _two_headers(table)
    blocks = [(heading, _texts(rows)) for heading, rows in table.sections.items()]
    widths = _widths([groups, names, *(row for _, rows in blocks for row in rows)])
    lines = [_aligned(row, widths, table) for row in ([groups, names] if any(groups) else [names])]
    for heading, rows in blocks:
        lines += ["", *([heading] if heading else []), *(_aligned(row, widths, table) for row in rows)]
    return lines


def _side_by_side(table: Table, width: int | None) -> Iterator[Table]:
    """Tables of the same labels, with as many of the columns each as stand beside each other; at least one."""
    first, count = 0, len(table.columns)
    while first < count:
        last = count
        while last > first + 1 and width is not None and _width(_columns(table, first, last)) > width:
            last -= 1
        yield _columns(table, first, last)
        first = last


def _width(table: Table) -> int:
    """How many columns of text the rows of a table take."""
    rows = [row for some in table.sections.values() for row in _texts(some)]
    widths = _widths([*_two_headers(table), *rows])
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _columns(table: Table, first: int, last: int) -> Table:
    """A table with its labels and some of its columns."""
    left = len(table.labels)
    sections = {}
    for heading, rows in table.sections.items():
        sections[heading] = [[*row[:left], *row[left + first : left + last]] for row in rows]
    return replace(table, columns=table.columns[first:last], sections=sections)


def markdown(table: Table) -> str:
    """The table as Markdown: one header line, the headings in a column of their own."""
    heads = any(table.sections)
    names = [*([""] * heads), *table.labels, *(f"{group} {name}".strip() for group, name in table.columns)]
    below = [[*([heading] * heads), *row] for heading, rows in table.sections.items() for row in _texts(rows)]
    header, *rows = map(_without_bars, [names, *below])
    left = len(names) - len(table.columns)
    widths = [max(width, 3) for width in _widths([header, *rows])]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = [f"| {' | '.join(_padded(row, widths, left))} |" for row in [header, rule, *rows]]
    return "\n".join([f"**{table.title}**", "", *lines, "", *(f"{note}  " for note in table.notes)]).rstrip()


def latex(table: Table) -> str:
    """The table as a LaTeX float that needs no package."""
    count = len(table.labels) + len(table.columns)
    groups = [
        rf"\multicolumn{{{width}}}{{c}}{{{escaped(group)}}}" if width > 1 else escaped(group)
        for group, width in _groups(table)
    ]
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(table.title)}}}",
        rf"\begin{{tabular}}{{{'l' * len(table.labels)}{'r' * len(table.columns)}}}",
        r"\hline",
        *([_latex_row([*[""] * len(table.labels), *groups])] if any(group for group, _ in table.columns) else []),
        _latex_row([*map(escaped, table.labels), *(escaped(name) for _, name in table.columns)]),
        r"\hline",
    ]
    for heading, rows in table.sections.items():
        if heading:
            lines.append(_latex_row([rf"\multicolumn{{{count}}}{{l}}{{\emph{{{escaped(heading)}}}}}"]))
        lines += [_latex_row(map(escaped, row)) for row in _texts(rows)]
        lines.append(r"\hline")
    lines += [r"\end{tabular}", *(rf"\par {escaped(note)}" for note in table.notes), r"\end{table}"]
    return "\n".join(lines)


def comma_separated(table: Table) -> str:
    """The table as CSV, a header and a line per row, its title and heading in front; numbers as they were computed.

    A column of Cells with intervals or published numbers is followed by those; what there is not is empty. Notes are
    left out.
    """
    left, rows = len(table.labels), [row for some in table.sections.values() for row in some]
    parts = [_csv_parts(_column(rows, left + i)) for i in range(len(table.columns))]
    names = ["_".join(filter(None, column)) for column in table.columns]
    header = [
        name if part == "value" else f"{name}_{part}" for name, some in zip(names, parts, strict=True) for part in some
    ]
    lines = [["table", "section", *table.labels, *header]]
    for heading, some in table.sections.items():
        for row in some:
            cells = [
                _csv_value(cell, part) for cell, of_cell in zip(row[left:], parts, strict=True) for part in of_cell
            ]
            lines.append([table.title, heading, *row[:left], *cells])
    return as_csv(lines)


def as_csv(lines: Iterable[Iterable[Any]]) -> str:
    """Lines of values as CSV; what there is not is empty."""
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(lines)
    return written.getvalue().rstrip("\n")


def records_as_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV, a line each, and a column for each name that any has; control characters are spelled out."""
    found = list(records)
    names = list(dict.fromkeys(name for record in found for name in record))
    return as_csv([names, *(map(_one_line, map(record.get, names)) for record in found)])


def _one_line(value: Any) -> Any:
    return printable(value) if isinstance(value, str) else value


def _csv_parts(cells: Sequence[Any]) -> list[str]:
    """What a column of a table becomes in CSV: the value, then what else any of its Cells holds."""
    return ["value", *(name for name in ("low", "high", "published") if _any_has(cells, name))]


def _any_has(cells: Iterable[Any], name: str) -> bool:
    return any(getattr(cell, name, None) is not None for cell in cells)


def _csv_value(cell: Any, part: str) -> Any:
    if isinstance(cell, Cell):
        return getattr(cell, part)
    return cell if part == "value" else None


FORMATS: dict[str, Callable[[Table], str]] = {
    "terminal": terminal,
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}

_COMMANDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}


def escaped(text: str) -> str:
    """A text that LaTeX prints as it stands."""
    return re.sub(r"[\\~^±&%$#_{}]", lambda match: _COMMANDS.get(match[0], "\\" + match[0]), text)


def _without_bars(row: Iterable[str]) -> list[str]:
    """Texts that end no cell of Markdown."""
    return [text.replace("|", r"\|") for text in row]


def _latex_row(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"


def _texts(rows: Iterable[Row]) -> list[list[str]]:
    return [list(map(str, row)) for row in rows]


def _two_headers(table: Table) -> tuple[list[str], list[str]]:
    """The line of groups, each over its first column, and the line of names."""
    groups = [name for group, width in _groups(table) for name in (group, *[""] * (width - 1))]
    return [*[""] * len(table.labels), *groups], [*table.labels, *(name for _, name in table.columns)]


def _groups(table: Table) -> list[tuple[str, int]]:
    """(group, how many columns) from left to right."""
    found: list[tuple[str, int]] = []
    for group, _ in table.columns:
        if found and found[-1][0] == group:
            found[-1] = (group, found[-1][1] + 1)
        else:
            found.append((group, 1))
    return found


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _aligned(row: Sequence[str], widths: Sequence[int], table: Table) -> str:
    """A line of the terminal: labels on the left of their columns, numbers on the right."""
    return GAP.join(_padded(row, widths, len(table.labels))).rstrip()


def _padded(row: Sequence[str], widths: Sequence[int], left: int) -> list[str]:
    """The texts of a row as wide as their columns: the first ones on the left of them, the others on the right."""
    pairs = list(zip(row, widths, strict=True))
    return [text.ljust(width) for text, width in pairs[:left]] + [text.rjust(width) for text, width in pairs[left:]]
