"""Tables as text: aligned, and well-formed in every format."""

import csv
import io
import re

import pytest

from stereoset_report import formats


@pytest.fixture
def table():
    """A small table with everything awkward: groups, headings, gaps, differences, and characters that formats use."""
    return formats.Table(
        "Tea & cake: 100%",
        ["Model"],
        [("Cups|mugs", "lms"), ("Cups|mugs", "ss"), ("", "n")],
        {
            "first_one": [["a_b", formats.Cell(83.1, 83.1), formats.Cell(None), 5]],
            "second": [["c{d}~^\\", formats.Cell(50.0, 50.006), formats.Cell(61.5, 61.504), 12345]],
        },
        ["#1: note ±0.005"],
    )


@pytest.mark.parametrize(
    ("value", "published", "text"),
    [
        (83.1, None, "83.10"),
        (83.104, 83.1, "83.10 [83.10]"),
        (83.105, 83.1, "83.11 [83.10]"),  # what a published number may be off by, rounded
        (83.1062, 83.1, "83.11 [83.10]!"),
        (None, 83.1, "- [83.10]"),
        (None, None, "-"),
    ],
)
def test_a_cell_shows_the_published_number_and_marks_a_difference(value, published, text):
    assert str(formats.Cell(value, published)) == text


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (formats.Cell(61.93, None, 59.641, 64.3), "61.93 (59.64, 64.30)"),
        (formats.Cell(61.93, 61.9, 59.641, 64.3), "61.93 (59.64, 64.30) [61.90]!"),
        (formats.Cell(3.254, signed=True), "+3.25"),
        (formats.Cell(-3.25, None, -6.1, 0.4, signed=True), "-3.25 (-6.10, +0.40)"),
    ],
)
def test_a_cell_shows_its_interval_and_the_sign_of_a_difference(cell, text):
    assert str(cell) == text


def test_columns_that_nobody_fills_are_left_out():
    empty, cell = formats.Cell(None), formats.Cell(1.0)
    columns = [("a", "none"), ("a", "some"), ("b", "published"), ("b", "text")]
    sections = {"": [["x", empty, empty, empty, "-"]], "more": [["y", empty, cell, formats.Cell(None, 2.0), "-"]]}
    found = formats.filled(formats.Table("t", ["m"], columns, sections))
    assert found.columns == columns[1:]
    assert found.sections["more"] == [["y", *sections["more"][0][2:]]]


def test_csv_has_a_line_per_row_and_numbers_as_they_were_computed(table):
    lines = list(csv.reader(io.StringIO(formats.render(table, "csv"))))
    lms, ss = "Cups|mugs_lms", "Cups|mugs_ss"
    assert lines[0] == ["table", "section", "Model", lms, f"{lms}_published", ss, f"{ss}_published", "n"]
    assert lines[1] == ["Tea & cake: 100%", "first_one", "a_b", "83.1", "83.1", "", "", "5"]
    assert lines[2] == ["Tea & cake: 100%", "second", "c{d}~^\\", "50.0", "50.006", "61.5", "61.504", "12345"]


def test_csv_gives_intervals_columns_of_their_own():
    cells = [[formats.Cell(1 / 3, None, 0.25, 0.5)], [formats.Cell(None)]]
    table = formats.Table("t", [], [("", "ss")], {"": cells})
    lines = list(csv.reader(io.StringIO(formats.render(table, "csv"))))
    assert lines[0][2:] == ["ss", "ss_low", "ss_high"]
    assert [line[2:] for line in lines[1:]] == [[str(1 / 3), "0.25", "0.5"], ["", "", ""]]


def test_the_terminal_aligns_labels_left_and_numbers_right(table):
    lines = formats.terminal(table).splitlines()
    rows = [line for line in lines if re.match(r"a_b|c\{d\}", line)]
    assert len({len(line) for line in rows}) == 1
    assert [line.split()[-1] for line in rows] == ["5", "12345"]
    assert "first_one" in lines


def test_markdown_rows_have_the_same_width_and_columns(table):
    rows = [line for line in formats.markdown(table).splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert len({len(row) for row in rows}) == 1
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert re.fullmatch(r"\| -+ \| -+ \|( -+: \|){3}", rows[1])


def test_latex_is_balanced_and_escaped(table):
    text = formats.latex(table)
    assert re.findall(r"\\(?:begin|end)\{(\w+)\}", text) == ["table", "tabular", "tabular", "table"]
    bare = re.sub(r"\\[\\{}%&#_$]", "", text)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[%#_~^](?!\{\})", bare.replace("$\\pm$", ""))
    assert r"Tea \& cake: 100\%" in text
    assert r"c\{d\}\textasciitilde{}\textasciicircum{}\textbackslash{}" in text


def test_every_latex_row_has_as_many_columns_as_the_table(table):
    body = formats.latex(table).partition(r"\hline")[2].partition(r"\end{tabular}")[0]
    for row in re.findall(r"^(.*) \\\\$", body, re.MULTILINE):
        cells = re.split(r"(?<!\\)&", row)
        spans = [int(span) - 1 for span in re.findall(r"\\multicolumn\{(\d+)\}", row)]
        assert len(cells) + sum(spans) == 4, row


@pytest.mark.parametrize("layout", ["terminal", "markdown", "latex"])
def test_every_format_holds_title_and_notes(table, layout):
    text = formats.render(table, layout).replace("\\", "").replace("$pm$", "±")
    assert "Tea & cake: 100%" in text
    assert "#1: note ±0.005" in text
