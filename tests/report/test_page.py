"""stereoset report: one file that says what `compare` and `items` say, asks nobody, and shows no text as markup."""

import json
import re
from html.parser import HTMLParser
from math import log

import pytest

pytest.importorskip("matplotlib", reason="the extra report is not installed")

from stereoset_report.comparison import Manner, Named
from stereoset_report.page.build import build, find_terms
from stereoset_report.page.content import make_content, steps_of
from stereoset_report.page.figures import drawings, write
from stereoset_report.resampling import Resampling
from stereoset_report.saved import Saved

HOSTILE = "<script>alert(1)</script></script><img src=x onerror=alert(2)> \u202eright to left $x^2$ \u2028"
LABELS = ("stereotype", "anti-stereotype", "unrelated")
MANNER = Manner(resampling=Resampling(resamples=50))


def rows_of(terms=3, each=4, text="The librarian reads."):
    """Examples of some target terms of two bias types."""
    return [
        {
            "id": f"example {term} {i}",
            "target": f"term {term}",
            "bias_type": ("profession", "gender")[term % 2],
            "context": text,
            "sentences": [
                {"id": f"{term}-{i}-{label}", "sentence": f"{text} {label}", "gold_label": label} for label in LABELS
            ],
        }
        for term in range(terms)
        for i in range(each)
    ]


def saved(rows, lead, partial=None, config="intersentence"):
    """Scores in which the stereotype leads by lead(i), nats."""
    scores = [[log(0.5) + min(lead(i), 0), log(0.5) - max(lead(i), 0), -9.0] for i in range(len(rows))]
    return Saved({config: (rows, scores)}, partial, "validation", None, {}, "label")


def page_of(models, **options):
    """(the text of the page, its content, its drawings)."""
    content = make_content(models, MANNER)
    figures = drawings(content, find_terms(models, content, MANNER))
    return build(content, figures, 0.95, **options), content, figures


class Elements(HTMLParser):
    """What a browser would make of a text: elements with their attributes, and the data of scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self.texts = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data):
        if self.elements and self.elements[-1][0] == "script":
            self.scripts[-1] += data
        self.texts.append(data)


@pytest.fixture(scope="module")
def two():
    rows = rows_of()
    models = [Named("one", saved(rows, lambda i: i - 3)), Named("other", saved(rows, lambda i: 1, "first 12 examples"))]
    return page_of(models)


def test_a_page_of_two_runs_has_their_numbers_figures_items_and_warnings(two):
    text, content, figures = two
    data = json.loads(Elements(text).scripts[0])
    assert [run["name"] for run in data["runs"]] == ["one", "other"]
    (other,) = [row for row in data["rows"] if row["run"] == "other" and row["group"] == "all"]
    assert other["ss"][0] == 100.0
    assert {row["group"] for row in data["rows"]} == {"all", "gender", "profession"}
    (items,) = data["items"]
    assert len(items["examples"]) == 12
    assert items["runs"][1]["margins"] == [1.0] * 12
    assert items["runs"][0]["preferred"][:3] == [1, 1, 1]
    assert {figure.section for figure in figures} == {"plane", "pair", "terms"}
    assert text.count("<svg") == len(figures)
    assert any("PARTIAL: other" in warning for warning in content.warnings)
    assert "PARTIAL: other" in text
    assert "What a score cannot show" in text


def test_the_page_asks_the_network_for_nothing(two):
    text, *_ = two
    addresses = set(re.findall(r"https?://[^\s\"'<>)]+", text))  # names of SVG's vocabularies are no addresses
    assert {one for one in addresses if not re.match(r"http://(purl|creativecommons|www\.w3)\.org", one)} == set()
    for tag, attributes in Elements(text).elements:
        for name in ("src", "href", "action", "data"):
            assert re.match(r"data:|#|$", attributes.get(name) or ""), (tag, attributes)


def test_no_name_and_no_text_is_markup():
    hostile, long = saved(rows_of(text=HOSTILE), lambda i: i - 3), saved(rows_of(), lambda i: 2)
    text, _, figures = page_of([Named(HOSTILE, hostile), Named("other" * 2000, long)], title=HOSTILE)
    found = Elements(text)
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert not any(name.startswith("on") for _, attributes in found.elements for name in attributes)
    assert "img" not in {tag for tag, _ in found.elements}
    data = json.loads(found.scripts[0])
    assert data["items"][0]["examples"][0][4][0] == f"{HOSTILE} stereotype"
    assert HOSTILE in "".join(found.texts).replace("\\u2028", "\u2028")
    assert len(figures) >= 3


def test_ink_and_lines_of_a_figure_are_the_themes(two):
    text, *_ = two
    assert "var(--ink)" in text
    assert "#1b1d1f" not in text.replace("--ink: #1b1d1f", "")


def test_figures_for_papers_are_written_in_three_formats(two, tmp_path):
    _, _, figures = two
    paths = [path for figure in figures[:2] for path in write(figure, tmp_path)]
    assert {path.suffix for path in paths} == {".svg", ".pdf", ".png"}
    assert [path.read_bytes()[:4] for path in paths[1:3]] == [b"%PDF", b"\x89PNG"]
    again = [path.read_bytes() for path in write(figures[0], tmp_path)]
    assert again[0] == paths[0].read_bytes()  # the same drawing, the same bytes


@pytest.mark.parametrize(
    ("names", "steps"),
    [
        (["m-step500", "m-step1000"], {"m-step500": 500, "m-step1000": 1000}),
        (["checkpoint-20", "checkpoint-3"], {"checkpoint-3": 3, "checkpoint-20": 20}),
        (["bert", "gpt2"], {}),
        (["gpt2"], {}),
        (["a-1b", "b-2b"], {}),
    ],
)
def test_runs_whose_names_differ_in_their_last_number_are_steps(names, steps):
    assert steps_of(names) == steps
    assert list(steps_of(names)) == list(steps)


def test_checkpoints_are_drawn_as_a_series():
    rows = rows_of()
    models = [Named(f"m step {step}", saved(rows, lambda i, step=step: i - step)) for step in (1, 2, 10)]
    _, _, figures = page_of(models)
    assert [figure.section for figure in figures].count("steps") == 1


def test_many_runs_are_a_leaderboard_without_a_forest_each():
    rows = rows_of(terms=2, each=2)
    models = [Named(f"model {name}", saved(rows, lambda i: i - 1)) for name in "abcdefghijklmnopqrstuvwxyz"]
    text, content, figures = page_of(models)
    assert "<h2>Leaderboard</h2>" in text
    assert {figure.section for figure in figures} == {"plane"}
    assert len(content.runs) == 26


def test_pairs_without_target_terms_and_without_lms_have_a_page():
    rows = [
        {
            "id": str(i),
            "target": "",
            "bias_type": "age",
            "context": "",
            "direction": "stereo",
            "sentences": [
                {"id": f"{i}:{label}", "sentence": f"One of {label}.", "gold_label": label} for label in LABELS[:2]
            ],
        }
        for i in range(6)
    ]
    scores = [[-1.0, -2.0] if i % 2 else [-2.0, -1.0] for i in range(6)]
    model = Named("pairs", Saved({"crows_pairs": (rows, scores)}, None, "test", None, {}, "pairs"))
    text, _, figures = page_of([model])
    assert "lms" not in json.loads(Elements(text).scripts[0])["rows"][0]
    assert figures == []


def test_the_command_writes_page_and_figures(stereoset, make_run, tmp_path):
    page, folder = tmp_path / "out" / "report.html", tmp_path / "figures"
    runs = [make_run(name, methods={"intersentence": "conditional"}, limit=12) for name in "ab"]
    said = stereoset("report", *runs, "--output", page, "--figures", folder)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert f"{page}: 2 runs" in said
    assert {path.suffix for path in folder.iterdir()} == {".svg", ".pdf", ".png"}


def test_a_folder_of_runs_is_all_of_them(stereoset, make_run, tmp_path):
    run, _ = (make_run(name, methods={"intersentence": "conditional"}, limit=12) for name in "ab")
    said = stereoset("report", run.parent, "--output", tmp_path / "board.html")
    assert "2 runs" in said
