"""Tables as text for a terminal, as Markdown or as LaTeX; what is in them, they do not know."""

import re
from dataclasses import dataclass, field, replace

DIFFERS = "!"
GAP = "  "  # between columns
TOLERANCE = 0.005 + 1e-9  # percentage points: published numbers have two decimals


@dataclass(frozen=True)
class Cell:
    """A computed number, and the published one, in percent.

    Attributes:
        value: None for a number that there is not.
        published: None where nothing was published.
    """

    value: float | None
    published: float | None = None

    @property
    def differs(self):
        """Whether both numbers are there and do not round to each other."""
        return None not in (self.value, self.published) and abs(self.value - self.published) > TOLERANCE

    def __str__(self):
        value = "-" if self.value is None else f"{self.value:.2f}"
        return value if self.published is None else f"{value} [{self.published:.2f}]{DIFFERS * self.differs}"


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes:
        title: what it is.
        labels: names of its first columns, which hold text.
        columns: (group, name) of the columns that hold Cells or counts; neighbours with one group belong together.
        sections: {heading: rows}, a row being a list of labels followed by Cells or counts; a heading may be empty.
        notes: lines to print below.
    """

    title: str
    labels: list[str]
    columns: list[tuple[str, str]]
    sections: dict[str, list[list]]
    notes: list[str] = field(default_factory=list)

    @property
    def cells(self):
        """All its Cells."""
        return [cell for rows in self.sections.values() for row in rows for cell in row if isinstance(cell, Cell)]


def render(table, layout, width=None):
    """A table as text.

    Args:
        table: the Table.
        layout: a name in FORMATS.
        width: how many columns of text a terminal has; None for as many as the table likes.
    """
    return terminal(table, width) if layout == "terminal" else FORMATS[layout](table)


def terminal(table, width=None):
    """The table for a terminal: columns aligned, headings between blocks of rows; it wraps by whole columns."""
    parts = ["\n".join(_terminal_lines(part)) for part in _side_by_side(table, width)]
    return "\n".join([table.title, "", "\n\n".join(parts), "", *table.notes]).rstrip()


def _terminal_lines(table):
    groups, names = _two_headers(table)
    blocks = [(heading, _texts(rows)) for heading, rows in table.sections.items()]
    widths = _widths([groups, names, *(row for _, rows in blocks for row in rows)])
    lines = [_aligned(row, widths, table) for row in ([groups, names] if any(groups) else [names])]
    for heading, rows in blocks:
        lines += ["", *([heading] if heading else []), *(_aligned(row, widths, table) for row in rows)]
    return lines


def _side_by_side(table, width):
    """Tables of the same labels, with as many of the columns each as stand beside each other; at least one."""
    first, count = 0, len(table.columns)
    while first < count:
        last = count
        while last > first + 1 and width is not None and _width(_columns(table, first, last)) > width:
            last -= 1
        yield _columns(table, first, last)
        first = last


def _width(table):
    """How many columns of text the rows of a table take."""
    rows = [row for some in table.sections.values() for row in _texts(some)]
    widths = _widths([*_two_headers(table), *rows])
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _columns(table, first, last):
    """A table with its labels and some of its columns."""
    left = len(table.labels)
    sections = {
        heading: [[*row[:left], *row[left + first : left + last]] for row in rows]
        for heading, rows in table.sections.items()
    }
    return replace(table, columns=table.columns[first:last], sections=sections)


def markdown(table):
    """The table as Markdown: one header line, the headings in a column of their own."""
    heads = any(table.sections)
    names = [*([""] * heads), *table.labels, *(f"{group} {name}".strip() for group, name in table.columns)]
    rows = [[*([heading] * heads), *row] for heading, rows in table.sections.items() for row in _texts(rows)]
    rows = [[text.replace("|", r"\|") for text in row] for row in [names, *rows]]
    left = len(names) - len(table.columns)
    widths = [max(width, 3) for width in _widths(rows)]
    rule = ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)]
    lines = [
        "| "
        + " | ".join(_pad(text, width, i < left) for i, (text, width) in enumerate(zip(row, widths, strict=True)))
        + " |"
        for row in [rows[0], rule, *rows[1:]]
    ]
    return "\n".join([f"**{table.title}**", "", *lines, "", *(f"{note}  " for note in table.notes)]).rstrip()


def latex(table):
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


FORMATS = {"terminal": terminal, "markdown": markdown, "latex": latex}

_COMMANDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$"}


def escaped(text):
    """A text that LaTeX prints as it stands."""
    return re.sub(r"[\\~^±&%$#_{}]", lambda match: _COMMANDS.get(match[0], "\\" + match[0]), text)


def _latex_row(cells):
    return " & ".join(cells) + r" \\"


def _texts(rows):
    return [list(map(str, row)) for row in rows]


def _two_headers(table):
    """The line of groups, each over its first column, and the line of names."""
    groups = [name for group, width in _groups(table) for name in (group, *[""] * (width - 1))]
    return [*[""] * len(table.labels), *groups], [*table.labels, *(name for _, name in table.columns)]


def _groups(table):
    """(group, how many columns) from left to right."""
    found = []
    for group, _ in table.columns:
        if found and found[-1][0] == group:
            found[-1] = (group, found[-1][1] + 1)
        else:
            found.append((group, 1))
    return found


def _widths(rows):
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _aligned(row, widths, table):
    """A line of the terminal: labels on the left of their columns, numbers on the right."""
    cells = zip(row, widths, strict=True)
    return GAP.join(_pad(text, width, i < len(table.labels)) for i, (text, width) in enumerate(cells)).rstrip()


def _pad(text, width, left):
    return text.ljust(width) if left else text.rjust(width)
