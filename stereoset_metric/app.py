"""A Space for the metric: a prediction file in StereoSet's layout in, the table of ss, lms and icat out.

    python app.py

A Space holds this folder alone, so nothing outside it is imported, and gradio only to build the page.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import datasets
from compute_score import AVERAGES, TIES, Refusal, compute_score, flat_references

GOLD = "McGill-NLP/stereoset"  # English, validation split: ids and gold labels are all that is used of it
TASKS = ("intrasentence", "intersentence")
FIGURES = ("count", "ss", "lms", "icat", "icat_macro", "ties")
HEADER = ["task", "bias type", *FIGURES]


def make_table(
    predictions: str, gold: str | None = None, average: str = "target", ties: str = "strict"
) -> list[list[Any]]:
    """The function behind the button.

    Args:
        predictions: the text of a prediction file, {"intrasentence": [{"id", "score"}, …], "intersentence": […]}, with
            one of the tasks or both; higher scores mean preferred.
        gold: the text of a file in the layout of StereoSet's dev.json; None for the published English validation set.
        average, ties: as in `compute_score`.

    Returns:
        A list of rows under HEADER: each bias type and "all" for each task, then for both tasks pooled.

    Raises:
        ValueError: if a text is not in its layout, or an option has no score.
    """
    scores = read_scores(predictions)
    examples = None if gold is None else read_gold(gold)
    parts = {task: align(scores[task], gold_rows(task, examples)) for task in TASKS if task in scores}
    if len(parts) == len(TASKS):
        parts["overall"] = tuple(first + second for first, second in zip(*parts.values(), strict=True))
    table = []
    for task, (aligned, references) in parts.items():
        result = compute_score(aligned, references, average=average, ties=ties, breakdown="bias_type")
        groups = result.pop("bias_type") | {"all": result}
        for group, found in groups.items():
            table.append([task, group, *(_rounded(found[name]) for name in FIGURES)])
    return table


def read_scores(text: str) -> dict[str, dict[str, Any]]:
    """{task: {option id: score}} of the text of a prediction file."""
    content = _json(text, "The predictions")
    if not isinstance(content, dict) or not any(task in content for task in TASKS):
        raise Refusal(f"The predictions hold no scores: give a mapping with {' or '.join(TASKS)}.")
    scores = {}
    for task in TASKS:
        if task in content:
            pairs = _pairs(content[task])
            if pairs is None:
                raise Refusal(f"The predictions of {task} are not a list of records with id and score.")
            scores[task] = dict(pairs)
            if len(scores[task]) < len(pairs):
                raise Refusal(f"The predictions of {task} score an option twice: keep one score of each.")
    return scores


def read_gold(text: str) -> dict[str, list[Any]]:
    """{task: examples} of the text of a file in dev.json's layout."""
    content = _json(text, "The gold file")
    data = content.get("data") if isinstance(content, dict) else None
    if not isinstance(data, dict) or not all(_is_gold(data.get(task, [])) for task in TASKS):
        raise Refusal("The gold file is not in the layout of dev.json: give one with data and its tasks.")
    return {task: data.get(task, []) for task in TASKS}


def gold_rows(task: str, gold: Mapping[str, list[Any]] | None = None) -> Any:
    """The examples of a task, from the uploaded file or the published data set."""
    if gold is None:
        return datasets.load_dataset(GOLD, task, split="validation")
    if not gold[task]:
        raise Refusal(f"The gold file has no {task} examples, and the predictions have: give both the same tasks.")
    return gold[task]


def align(scores: Mapping[str, Any], rows: Iterable[Any]) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """(scores[i][j] of option j of example i, flat references)."""
    options = [_option_ids(row) for row in rows]
    known = {option for ids in options for option in ids}
    missing, extra = known - scores.keys(), scores.keys() - known
    if missing or extra:
        raise Refusal(
            f"{len(missing)} of {len(known)} options have no score, and {len(extra)} scores belong to no option: "
            "give the scores of exactly the gold file's split."
        )
    return [list(map(scores.__getitem__, ids)) for ids in options], flat_references(rows)


def build_page() -> Any:
    """The page, ready to launch."""
    import gradio

    def press(pasted: str, uploaded: str | None, gold: str | None, average: str, ties: str) -> list[list[Any]]:
        text = Path(uploaded).read_text(encoding="utf-8") if uploaded else pasted
        try:
            return make_table(text, Path(gold).read_text(encoding="utf-8") if gold else None, average, ties)
        except Refusal as refusal:
            raise gradio.Error(str(refusal)) from refusal

    with gradio.Blocks(title="StereoSet") as page:
        gradio.Markdown(card())
        pasted = gradio.Textbox(label="Predictions in StereoSet's layout (JSON), pasted", lines=6)
        uploaded = gradio.File(label="… or uploaded", file_types=[".json"])
        gold = gradio.File(label="Gold file in dev.json's layout (default: English validation)", file_types=[".json"])
        average = gradio.Radio(list(AVERAGES), value="target", label="average")
        ties = gradio.Radio(list(TIES), value="strict", label="ties")
        button = gradio.Button("Evaluate")
        table = gradio.Dataframe(headers=HEADER, label="Percent; count and ties in examples")
        button.click(press, [pasted, uploaded, gold, average, ties], table)
    return page


def card() -> str:
    """The metric card without the Space's header."""
    text = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return text.split("---\n", 2)[-1].strip()


def _json(text, name):
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refusal(f"{name} cannot be read ({error}): give JSON.") from None


def _pairs(records):
    """[(option id, score)] of a task's records; None if they are in another layout."""
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        return None
    pairs = [(record.get("id"), record.get("score")) for record in records]
    return pairs if all(isinstance(option, str) for option, _ in pairs) else None


def _is_gold(examples):
    """Whether a task's examples are laid out so that their options' ids can be read; the metric judges the rest."""
    if not isinstance(examples, list) or not all(isinstance(example, dict) for example in examples):
        return False
    return all(_pairs(example.get("sentences")) is not None for example in examples)


def _option_ids(row):
    sentences = row["sentences"]
    return sentences["id"] if isinstance(sentences, dict) else [option["id"] for option in sentences]


def _rounded(value):
    return round(value, 2) if isinstance(value, float) else value


if __name__ == "__main__":
    build_page().launch()
