"""A Space for the metric: a prediction file in StereoSet's layout in, the table of ss, lms and icat out.

    python app.py

A Space holds this folder alone, so nothing outside it is imported, and gradio only to build the page.
"""

import base64
from html import escape
from pathlib import Path
from typing import Any

import example_files
from compute_score import AVERAGES, TIES, VERSION, Refusal
from gold_labels import DOWNLOADS, LANGUAGES
from prediction_tables import (
    BOUNDS,
    COMPARED,
    CONFIDENCE,
    HEADER,
    PERCENT,
    as_csv,
    make_comparison,
    make_table,
)

LARGEST = 50 * 2**20  # bytes of a file; the published ones have 1 to 12 MB
INTRODUCTION = """\
# StereoSet
How biased is a language model? Give the scores of its options on StereoSet or CrowS-Pairs, as
`stereoset score` writes them, and see how often it prefers the stereotype (**ss**, ideal 50), a meaningful option
(**lms**, ideal 100), and both in one number (**icat**, ideal 100).
"""
PLACEHOLDER = '{"intrasentence": [{"id": "…", "score": -12.3}, …], "intersentence": […], "crows_pairs": […]}'
GOLD_PLACEHOLDER = '{"data": {"intrasentence": [{"id": "…", "target": "…", "bias_type": "…", "sentences": […]}, …]}}'
STYLE = """
.stereoset { margin: 0 0 1.5em; }
.stereoset figcaption { padding: .5em 0; overflow-wrap: anywhere; }
.stereoset-scroll { overflow-x: auto; }
.stereoset :is(table, thead, tbody, tr) { border: 0 !important; }
.stereoset table { border-collapse: collapse; width: 100%; margin: 0 !important; font-variant-numeric: tabular-nums; }
.stereoset th, .stereoset td { border: 0 solid #8886 !important; border-bottom-width: 1px !important;
  padding: .3em .6em; text-align: end; vertical-align: top; white-space: nowrap; }
.stereoset th:nth-child(-n+2) { text-align: start; }
.stereoset th:nth-child(2) { position: sticky; inset-inline-start: 0; background: var(--body-background-fill); }
.stereoset bdi { display: block; max-width: min(24em, 35vw); max-height: 6em; overflow: auto;
  white-space: normal; overflow-wrap: break-word; font-weight: normal; }
.stereoset tr.all, .stereoset tr.all bdi { font-weight: bold; }
.stereoset small { display: block; font-weight: normal; }
@media (max-width: 600px) {
  .stereoset table { font-size: .85em; }
  .stereoset th, .stereoset td { padding: .3em .4em; }
}
.stereoset-refusal { border-inline-start: 4px solid #c33; padding: .5em 1em; overflow-wrap: anywhere; }
"""


def answer(
    files: list[tuple[str | None, str]],
    gold: tuple[str | None, str],
    language: str = "en",
    average: str = "target",
    ties: str = "strict",
    intervals: bool = True,
) -> str:
    """What the page shows below the form, as HTML: tables, or the one sentence that says what is amiss.

    Args:
        files: of one or two models: the path of an uploaded file, or None, and the pasted text.
        gold: likewise the gold labels; both empty for the published ones.
        language, average, ties: as in `make_table`.
        intervals: whether to resample.
    """
    try:
        texts = [(_label(one, number), text_of(*one)) for number, one in enumerate(files)]
        options: dict[str, Any] = {"gold": text_of(*gold, "The gold file") or None}
        options |= {"language": language, "average": average, "ties": ties}
        texts = [one for number, one in enumerate(texts) if number == 0 or one[1].strip()]
        return "".join(_tables(texts, options, CONFIDENCE if intervals else None))
    except Refusal as refusal:
        return f'<p class="stereoset-refusal" role="alert">{_text(str(refusal))}</p>'


def text_of(uploaded: str | None, pasted: str, name: str = "The predictions") -> str:
    """The text of a file, or what was pasted in its place.

    Raises:
        Refusal: if it is too large, or no text in UTF-8.
    """
    size = Path(uploaded).stat().st_size if uploaded else len(pasted or "")
    if size > LARGEST:
        raise Refusal(f"{name} cannot be read ({size / 2**20:.0f} MB): give a file of at most {LARGEST >> 20} MB.")
    try:
        return Path(uploaded).read_text(encoding="utf-8-sig") if uploaded else pasted or ""
    except UnicodeDecodeError as error:
        raise Refusal(f"{name} cannot be read (no UTF-8 at byte {error.start}): save the file as UTF-8.") from None


def card() -> str:
    """The metric card without the Space's header."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return text.split("---\n", 2)[-1].strip()


def build_page() -> Any:
    """The page, ready to launch."""
    import gradio

    def press(
        upload: Any, paste: str, other_upload: Any, other_paste: str, gold_upload: Any, gold_paste: str, *options: Any
    ) -> Any:
        return answer([(upload, paste), (other_upload, other_paste)], (gold_upload, gold_paste), *options)

    def fill() -> Any:
        return None, example_files.PREDICTIONS, None, example_files.OTHERS, None, example_files.GOLD

    def one_file(title: str, placeholder: str = PLACEHOLDER) -> Any:
        upload = gradio.File(label=f"{title}: upload", height=160)
        return upload, gradio.Textbox(label=f"{title}: or paste", lines=4, max_lines=8, placeholder=placeholder)

    with gradio.Blocks(title="StereoSet", analytics_enabled=False) as page:
        gradio.Markdown(INTRODUCTION)
        with gradio.Row():
            with gradio.Column():
                first = one_file("Predictions")
            with gradio.Column():
                second = one_file("To compare (optional)")
        with gradio.Row():
            languages = [(name, language) for language, name in LANGUAGES.items()]
            language = gradio.Dropdown(
                languages, value="en", label="language", info="of tasks whose name in the file says none"
            )
            average = gradio.Radio(
                list(AVERAGES), value="target", label="average", info="over target terms or examples"
            )
            ties = gradio.Radio(list(TIES), value="strict", label="ties", info="strict: as in published tables")
            intervals = gradio.Checkbox(value=True, label="95 % intervals", info="take some seconds")
        with gradio.Accordion("Gold labels of your own", open=False):
            gradio.Markdown("In the layout of StereoSet's dev.json; without any, the published ones are downloaded.")
            gold = one_file("Gold labels", GOLD_PLACEHOLDER)
        with gradio.Row():
            button = gradio.Button("Evaluate", variant="primary")
            example = gradio.Button("Try an example")
        result = gradio.HTML()
        with gradio.Accordion("What this page downloads", open=False):
            gradio.Markdown(DOWNLOADS)
        with gradio.Accordion("What the figures say: the metric card", open=False):
            gradio.Markdown(card())
        texts = [*first, *second, *gold]
        asked = [*texts, language, average, ties, intervals]
        button.click(press, asked, result)
        example.click(fill, None, texts).then(press, asked, result)
    return page


def launch(**options: Any) -> Any:
    """Serve the page, with fonts of the reader's own machine; options are those of gradio's launch."""
    import gradio

    theme = gradio.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    return build_page().launch(theme=theme, css=STYLE, max_file_size="200mb", **options)


def _label(file, number):
    uploaded, _ = file
    return Path(uploaded).name if uploaded else ("first model", "second model")[number]


def _tables(texts, options, level):
    """The HTML of a table for each file; of two, then of their differences."""
    terms = f"{options['average']} average, ties {options['ties']}, version {VERSION}"
    drawn = f", {100 * CONFIDENCE:.0f} % intervals of 1000 resamples of target terms"
    header = [*HEADER, *(BOUNDS if level else ())]
    for label, text in texts:
        rows = make_table(text, confidence_level=level, **options)
        yield table(f"{label}: percent; {terms}{drawn if level else ''}.", header, rows)
    if len(texts) == 2:
        (label, text), (other, others) = texts
        title = f"{label} minus {other}: percentage points, paired on the same examples; {terms}{drawn}."
        yield table(title, COMPARED, make_comparison(text, others, **options), signed=True)


def table(title: str, header: list[str], rows: list[list[Any]], signed: bool = False) -> str:
    """A table as HTML, intervals below their figures, and a link that saves it as CSV."""
    names = [name for name in header if name not in BOUNDS]
    heads = "".join(f'<th scope="col">{name.replace("_", " ")}</th>' for name in names)
    records = [dict(zip(header, row, strict=True)) for row in rows]
    body = "".join(_row(record, names, signed) for record in records)
    saved = base64.b64encode(_sound(as_csv(header, rows)).encode()).decode()
    link = f'<a download="stereoset.csv" href="data:text/csv;charset=utf-8;base64,{saved}">Download as CSV</a>'
    return (
        f'<figure class="stereoset"><figcaption>{_text(title)}</figcaption>'
        f'<div class="stereoset-scroll" tabindex="0"><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody>'
        f"</table></div><p>{link}</p></figure>"
    )


def _row(record, names, signed):
    cells = "".join(_cell(record, name, signed) for name in names)
    return f'<tr class="all">{cells}</tr>' if record["bias type"] == "all" else f"<tr>{cells}</tr>"


def _cell(record, name, signed):
    value = record[name]
    if isinstance(value, str):
        return f'<th scope="row"><bdi>{_text(value)}</bdi></th>'
    if name not in PERCENT or value is None:
        return f"<td>{'-' if value is None else value}</td>"
    bounds = [record.get(f"{name}_{side}") for side in ("low", "high")]
    sign = "+" if signed else ""
    small = "" if None in bounds else "<small>({:{sign}.2f}, {:{sign}.2f})</small>".format(*bounds, sign=sign)
    return f"<td>{value:{sign}.2f}{small}</td>"


def _text(text):
    return escape(_sound(text))


def _sound(text):
    """A text without halves of characters, which JSON may hold and no page can."""
    return text.encode("utf-8", "backslashreplace").decode()


if __name__ == "__main__":
    launch()
