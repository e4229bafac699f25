"""Figures for a page and for papers, drawn by matplotlib: the field's own, with SVG, PDF and PNG from one drawing.

What a colour says, a marker, a line's dashes or a label says too. In a page, ink and lines have its theme's colours.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stereoset_report.comparison import AGREEMENT, Cell, Entry, Sheet, common_examples
from stereoset_report.items import Term
from stereoset_report.page.content import Content, steps_of
from stereoset_report.resampling import ICAT, LMS, SS
from stereoset_report.results import ALL, OVERALL
from stereoset_scoring.files.predictions import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe & Ito's colours, which people tell apart who see few, on light and on dark; and another number of markers, so
# that the first 42 pairs of the two differ.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("solid", "dashed", "dotted")
INK, LINE, PAPER = "#1b1d1f", "#c9ced3", "#fefefe"  # stand for the theme's
THEMED = {INK: "var(--ink)", LINE: "var(--line)", PAPER: "var(--paper)"}
NAMED_AT_MOST = 12  # points that carry a name; of more, the table's numbers
FORESTS_AT_MOST = 12  # runs times tasks
STYLE = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": LINE,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "legend.frameon": False,
}
FORMATS = ("svg", "pdf", "png")


@dataclass(frozen=True)
class Drawing:
    """A figure that has not been drawn yet.

    Attributes:
        name: of its files, such as "ss-lms-intrasentence-en".
        title: what it shows.
        words: the same for who cannot see it.
        draw: draws it.
        section: where it belongs on the page: "plane", "terms", "steps" or "pair".
    """

    name: str
    title: str
    words: str
    draw: "Callable[[], Figure]"
    section: str


def drawings(content: Content, terms: Mapping[tuple[str, Cell], Sequence[Term]]) -> list[Drawing]:
    """All figures that there are to draw of some runs.

    Args:
        content: what a page says.
        terms: the target terms of (run, cell), for a forest of each.
    """
    entries = content.comparison.entries
    cells = list(dict.fromkeys(entry.cell for entry in entries if entry.cell.group == ALL))
    found = [_plane_of(cell, entries) for cell in cells if cell.task != OVERALL and _has_lms(cell, entries)]
    found += [_steps_of(cell, entries) for cell in cells if steps_of(map(_name_of, _of(cell, entries)))]
    for cell, sheets in content.sheets.items():
        if cell.task != OVERALL and len(sheets) == 2 and all(sheet.judged.margins is not None for sheet in sheets):
            found.append(_pair_of(cell, sheets[0], sheets[1]))
    found += [_terms_of(run, cell, some) for (run, cell), some in terms.items()]
    return found


def as_svg(drawing: Drawing) -> str:
    """A drawing as SVG to stand in a page: no prologue, the page's font and the theme's ink."""
    with _drawn(drawing) as figure:
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    for colour, variable in THEMED.items():
        text = text.replace(colour, variable)
    return text


def write(drawing: Drawing, folder: Path) -> list[Path]:
    """A drawing in files for papers: SVG, PDF and PNG, on white.

    Raises:
        OSError: if the folder cannot be written to.
    """
    paths = [folder / f"{drawing.name}.{kind}" for kind in FORMATS]
    with _drawn(drawing) as figure:
        for path in paths:
            dates = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else {}
            figure.savefig(path, dpi=200, facecolor="white", bbox_inches="tight", metadata=dates)
    return paths


@contextmanager
def _drawn(drawing: Drawing) -> Any:
    """The figure, drawn in the house's style and closed afterwards; its parts get names that no other figure has."""
    import matplotlib  # here, for it takes half a second

    with matplotlib.rc_context({**STYLE, "svg.hashsalt": drawing.name}):
        yield drawing.draw()


def _figure(width: float, height: float) -> "tuple[Figure, Axes]":
    """A figure of some inches, without a window."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axisbelow(True)
    return figure, axes


def _name_of(entry: Entry) -> str:
    return entry.model


def _of(cell: Cell, entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.cell == cell]


def _has_lms(cell: Cell, entries: Sequence[Entry]) -> bool:
    return any(LMS in entry.figures for entry in _of(cell, entries))


def _place(cell: Cell) -> str:
    split = "" if cell.split == "validation" else f", {cell.split}"
    return f"{cell.task} ({cell.language}{split})"


def _file(*words: str) -> str:
    """A name of a file from some words, whatever is in them."""
    text = "-".join(words)
    return "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in text).strip("-")[:80] or "figure"


def _short(name: str, most: int = 28) -> str:
    """A name for a label: in one line, without matplotlib's mathematics, and not too long."""
    text = printable(name).replace("$", r"\$")
    return text if len(text) <= most else text[: most - 1] + "…"


# ss against lms


def _plane_of(cell: Cell, entries: Sequence[Entry]) -> Drawing:
    place = _place(cell)
    count = len(_of(cell, entries))
    words = f"ss against lms of {count} runs, {place}, with lines of equal icat; the numbers are in the table."
    return Drawing(
        _file("ss-lms", cell.task, cell.language, cell.split),
        f"ss against lms: {place}",
        words,
        lambda: _plane(cell, entries),
        "plane",
    )


def _plane(cell: Cell, entries: Sequence[Entry]) -> "Figure":
    """A point with whiskers for each run, and for few runs one for each bias type, over lines of equal icat."""
    shown = [entry for entry in _of(cell, entries) if LMS in entry.figures]
    few = len(shown) <= 3
    figure, axes = _figure(6.2, 4.6)
    parts = [one for one in entries if few and _is_part(one, cell) and LMS in one.figures]
    _equal_icat(axes, [*shown, *parts])
    for i, entry in enumerate(shown):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        for part in parts:
            if part.model == entry.model:
                axes.plot(*_point(part), marker=marker, mfc="none", mec=colour, ls="none", ms=5)
                axes.annotate(part.cell.group, _point(part), (4, -9), textcoords="offset points", fontsize=7)
        _whiskers(axes, entry, colour)
        label = _short(entry.model) if len(shown) <= NAMED_AT_MOST else None
        axes.plot(*_point(entry), marker=marker, color=colour, ls="none", ms=7, label=label)
        if len(shown) > NAMED_AT_MOST:
            axes.annotate(str(i + 1), _point(entry), (5, 4), textcoords="offset points", fontsize=7)
    axes.set_xlabel("ss (%): 50 is unbiased by this measure")
    axes.set_ylabel("lms (%)")
    if len(shown) <= NAMED_AT_MOST:
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.13), ncols=2, fontsize=8)
    return figure


def _is_part(entry: Entry, cell: Cell) -> bool:
    """Whether an entry is of a bias type of a cell."""
    one = entry.cell
    here = (one.language, one.split, one.task) == (cell.language, cell.split, cell.task)
    return here and one.group != ALL and not one.group.startswith(AGREEMENT)


def _point(entry: Entry) -> tuple[float, float]:
    return entry.figures[SS].value, entry.figures[LMS].value


def _whiskers(axes: "Axes", entry: Entry, colour: str) -> None:
    """The intervals of both numbers."""
    ss, lms = entry.figures[SS], entry.figures[LMS]
    if ss.low is not None and ss.high is not None:
        axes.plot([ss.low, ss.high], [lms.value, lms.value], color=colour, lw=1)
    if lms.low is not None and lms.high is not None:
        axes.plot([ss.value, ss.value], [lms.low, lms.high], color=colour, lw=1)


def _equal_icat(axes: "Axes", entries: Sequence[Entry]) -> None:
    """Lines of equal icat behind some points, and room for these."""
    left, right = _room([value for entry in entries for value in _ends(entry, SS)], 50)
    low, high = _room([value for entry in entries for value in _ends(entry, LMS)])
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.axvline(50, color=LINE, lw=1, ls="dashed")
    ss, lms = np.meshgrid(np.linspace(left, right, 201), np.linspace(low, high, 101))
    icat = lms * np.minimum(ss, 100 - ss) / 50
    step = 5 if np.ptp(icat) < 60 else 10
    lines = axes.contour(ss, lms, icat, levels=np.arange(0, 101, step), colors=LINE, linewidths=0.8)
    axes.clabel(lines, fmt=lambda value: f"icat {value:.0f}", fontsize=7, colors=INK)


def _ends(entry: Entry, name: str) -> list[float]:
    figure = entry.figures[name]
    return [value for value in (figure.value, figure.low, figure.high) if value is not None]


def _room(values: Sequence[float], *also: float) -> tuple[float, float]:
    """Limits of an axis in percent that hold some values with a margin."""
    low, high = min([*values, *also]), max([*values, *also])
    margin = max(2.0, 0.08 * (high - low))
    return max(0.0, low - margin), min(100.0, high + margin)


# Target terms


def _terms_of(run: str, cell: Cell, terms: Sequence[Term]) -> Drawing:
    place = _place(cell)
    words = f"ss of {len(terms)} target terms of {printable(run)}, {place}, with intervals, from the highest on."
    return Drawing(
        _file("terms", run, cell.task, cell.language, cell.split),
        f"Target terms: {printable(run)}, {place}",
        words,
        lambda: _forest(terms),
        "terms",
    )


def _forest(terms: Sequence[Term]) -> "Figure":
    """A line for each term: its ss and the interval, and how many examples it has."""
    figure, axes = _figure(6.2, 0.8 + 0.165 * len(terms))
    kinds = sorted({term.bias_type for term in terms})
    for row, term in enumerate(terms):
        ss, kind = term.figures[SS], kinds.index(term.bias_type)
        colour, marker = COLOURS[kind % len(COLOURS)], MARKERS[kind % len(MARKERS)]
        if ss.low is not None and ss.high is not None:
            axes.plot([ss.low, ss.high], [row, row], color=colour, lw=1)
        axes.plot(ss.value, row, marker=marker, color=colour, ms=4, ls="none")
    for kind, name in enumerate(kinds):
        colour, marker = COLOURS[kind % len(COLOURS)], MARKERS[kind % len(MARKERS)]
        axes.plot([], [], marker=marker, color=colour, ls="none", label=_short(name))
    axes.axvline(50, color=LINE, lw=1, ls="dashed")
    axes.set_yticks(range(len(terms)), [f"{_short(term.target)} ({term.count})" for term in terms], fontsize=7)
    axes.set_ylim(len(terms) - 0.4, -0.6)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("ss (%), examples in brackets")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, fontsize=8)
    return figure


# Checkpoints of one model


def _steps_of(cell: Cell, entries: Sequence[Entry]) -> Drawing:
    place = _place(cell)
    words = f"ss, lms and icat of checkpoints, {place}; the numbers are in the table."
    return Drawing(
        _file("steps", cell.task, cell.language, cell.split),
        f"Checkpoints: {place}",
        words,
        lambda: _series(_of(cell, entries)),
        "steps",
    )


def _series(entries: Sequence[Entry]) -> "Figure":
    """A line with its interval for each of ss, lms and icat."""
    figure, axes = _figure(6.2, 3.4)
    steps = steps_of(entry.model for entry in entries)
    ordered = sorted(entries, key=lambda entry: steps[entry.model])
    for i, name in enumerate((SS, LMS, ICAT)):
        known = [(steps[entry.model], entry.figures[name]) for entry in ordered if name in entry.figures]
        places, values = [step for step, _ in known], [one.value for _, one in known]
        axes.plot(places, values, color=COLOURS[i], marker=MARKERS[i], ms=4, ls=DASHES[i], label=name)
        bands = [(step, one.low, one.high) for step, one in known if one.low is not None]
        if bands:
            at, low, high = zip(*bands, strict=True)
            axes.fill_between(at, low, high, color=COLOURS[i], alpha=0.15, lw=0)
    axes.set_xlabel("step")
    axes.set_ylabel("%")
    axes.grid(axis="y", lw=0.5)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.16), ncols=3)
    return figure


# Two runs


def _pair_of(cell: Cell, first: Sheet, second: Sheet) -> Drawing:
    place = _place(cell)
    words = f"The margins of {printable(first.name)} against those of {printable(second.name)}, {place}."
    return Drawing(
        _file("margins", first.name, second.name, cell.task, cell.language, cell.split),
        f"Margins of two runs: {place}",
        words,
        lambda: _margins(first, second),
        "pair",
    )


def _margins(first: Sheet, second: Sheet) -> "Figure":
    """A point for each example that both have; those that flip have a marker of their own."""
    one, other = common_examples(first.judged, second.judged)
    assert one.margins is not None
    assert other.margins is not None
    x, y = one.margins, other.margins
    finite = np.isfinite(x) & np.isfinite(y)
    flips = finite & (one.stereotyped != other.stereotyped)
    figure, axes = _figure(6.2, 5)
    for axis in (axes.axhline, axes.axvline):
        axis(0, color=LINE, lw=1)
    same = finite & ~flips
    axes.plot(x[same], y[same], ".", ms=2.5, color=COLOURS[0], label=f"same side ({same.sum()})", rasterized=True)
    axes.plot(x[flips], y[flips], "x", ms=4, color=COLOURS[1], label=f"flips ({flips.sum()})", rasterized=True)
    axes.set_xlabel(f"{_short(first.name)}: stereotype over anti-stereotype (nats)")
    axes.set_ylabel(f"{_short(second.name)}: the same (nats)")
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2)
    return figure
