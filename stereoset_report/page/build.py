"""The page itself: the template filled with content and figures, as HTML that asks the network for nothing."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from stereoset_report.comparison import Cell, Manner, Named
from stereoset_report.items import Term, make_terms
from stereoset_report.page.content import NUMBERS, Content, headline
from stereoset_report.page.figures import FORESTS_AT_MOST, Drawing, as_svg
from stereoset_report.results import ALL

TITLE = "StereoSet scores"
# section of a Drawing -> its heading, how to read it, and how many of them are open
SECTIONS = {
    "plane": (
        "ss against lms",
        "A point for each run, with the intervals of both numbers. On a line, icat is the same; it grows upwards and "
        "towards ss 50.",
        4,
    ),
    "steps": ("Checkpoints", "Bands are intervals: two checkpoints whose bands meet are not told apart.", 4),
    "pair": (
        "Two runs against each other",
        "An example right of the vertical line is stereotyped by the one run, one above the horizontal line by the "
        "other; crosses changed sides.",
        2,
    ),
    "terms": (
        "Target terms",
        "Few examples each: most intervals are wide, and the order of terms whose intervals meet says nothing.",
        1,
    ),
}


def find_terms(models: Sequence[Named], content: Content, manner: Manner) -> dict[tuple[str, Cell], list[Term]]:
    """The target terms of (run, language, split and task), where there are few enough for a figure of each."""
    found: dict[tuple[str, Cell], list[Term]] = {}
    cells = [cell for cell, sheets in content.sheets.items() for _ in sheets]
    if len(cells) > 2 * FORESTS_AT_MOST:
        return {}
    for model in models:
        for term in make_terms(model, None, manner):
            cell = Cell(term.language, term.split, term.task)
            found.setdefault((model.name, cell), []).append(term)
    several = {place: terms for place, terms in found.items() if len(terms) > 1}  # pairs name no terms
    return several if len(several) <= FORESTS_AT_MOST else {}


def build(content: Content, drawings: Sequence[Drawing], level: float, title: str = TITLE) -> str:
    """The page.

    Args:
        content: what it says.
        drawings: its figures.
        level: of the intervals.
        title: its heading.
    """
    from jinja2 import Environment, StrictUndefined  # here, for it comes with the extra report
    from markupsafe import Markup

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    tasks, by_language = _by_language(content)
    return environment.from_string(_file("page.html.jinja")).render(
        title=title,
        counted=content.comparison.signature,
        level=f"{level:.0%}",
        numbers=NUMBERS,
        runs=content.runs,
        warnings=content.warnings,
        headline=headline(content),
        signatures={run["name"]: run["signatures"] for run in content.runs},
        tasks=tasks,
        by_language=by_language,
        sections=_sections(drawings),
        style=Markup(_file("page.css")),
        script=Markup(_file("page.js")),
        data=Markup(_as_data({"runs": content.runs, "rows": content.rows, "items": content.items})),
    )


def _sections(drawings: Sequence[Drawing]) -> list[tuple[str, str, int, list[tuple[Drawing, Any]]]]:
    """[(heading, how to read it, how many are open, [(drawing, its SVG)])] of those that have any."""
    from markupsafe import Markup

    found = []
    for section, (heading, words, opened) in SECTIONS.items():
        some = [(drawing, Markup(as_svg(drawing))) for drawing in drawings if drawing.section == section]
        if some:
            found.append((heading, words, opened, some))
    return found


def _by_language(content: Content) -> tuple[list[str], dict[tuple[str, str], dict[str, Any]]]:
    """(tasks, {(run, language): {task: ss with its interval}})."""
    rows = [row for row in content.rows if row["group"] == ALL]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        found.setdefault((row["run"], row["language"]), {})[row["task"]] = row["ss"]
    several = len({row["language"] for row in rows}) > 1
    return list(dict.fromkeys(row["task"] for row in rows)), found if several else {}


def _as_data(content: Mapping[str, Any]) -> str:
    """Content as JSON that may stand in a script element: nothing in it can end that."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
