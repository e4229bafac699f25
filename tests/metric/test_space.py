"""The Space: its tables, its published gold labels, and what it says of files that it cannot judge; without gradio."""

import importlib.util
import json
import re
import sys

import pytest

from stereoset_dataset import Stereoset
from stereoset_dataset.upstream import (
    CROWS_PAIRS,
    CROWS_PAIRS_DUTCH,
    CROWS_PAIRS_FRENCH,
    CROWS_PAIRS_REVISED,
    GENDER_PAIRS,
    VALIDATION,
)
from stereoset_metric import compute_score

MODULES = ("compute_score", "example_files", "gold_labels", "prediction_tables")
FILES = (VALIDATION, CROWS_PAIRS, CROWS_PAIRS_DUTCH, CROWS_PAIRS_FRENCH, CROWS_PAIRS_REVISED, *GENDER_PAIRS.values())
HOSTILE = "<script>alert(1)</script> \u202eabc "


@pytest.fixture(scope="module")
def app(repository):
    """The Space's file, imported as a Space does: from within its folder, and here without gradio."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository / "stereoset_metric"))
        for name in MODULES:
            patch.delitem(sys.modules, name, raising=False)
        spec = importlib.util.spec_from_file_location("space_app", repository / "stereoset_metric" / "app.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module
        for name in MODULES:
            sys.modules.pop(name, None)


GOLD = """{"data": {
  "intrasentence": [{"target": "baker", "bias_type": "profession", "sentences": [
    {"id": "a", "gold_label": "unrelated"}, {"id": "b", "gold_label": "stereotype"},
    {"id": "c", "gold_label": "anti-stereotype"}]}],
  "intersentence": [{"target": "baker", "bias_type": "profession", "sentences": [
    {"id": "d", "gold_label": "stereotype"}, {"id": "e", "gold_label": "anti-stereotype"},
    {"id": "f", "gold_label": "unrelated"}]}]}}"""
INTRA = '"intrasentence": [{"id": "c", "score": 1}, {"id": "b", "score": 3}, {"id": "a", "score": 2}]'
INTER = '"intersentence": [{"id": "d", "score": -9}, {"id": "e", "score": -1}, {"id": "f", "score": -10}]'


def test_the_button_of_the_space_makes_a_table(app):
    assert app.make_table(f"{{{INTRA}, {INTER}}}", GOLD) == [
        ["intrasentence", "profession", 1, 100.0, 50.0, 0.0, 0.0, 0],
        ["intrasentence", "all", 1, 100.0, 50.0, 0.0, 0.0, 0],
        ["intersentence", "profession", 1, 0.0, 100.0, 0.0, 0.0, 0],
        ["intersentence", "all", 1, 0.0, 100.0, 0.0, 0.0, 0],
        ["overall", "profession", 2, 50.0, 75.0, 75.0, 75.0, 0],
        ["overall", "all", 2, 50.0, 75.0, 75.0, 75.0, 0],
    ]


@pytest.mark.parametrize(
    ("predictions", "gold", "message"),
    [
        ("", GOLD, "there is nothing in it"),
        ("{", GOLD, "The predictions cannot be read"),
        ('{"partial": "some"}', GOLD, "hold no scores"),
        ('{"nonsense": []}', GOLD, "hold the task 'nonsense'"),
        ("[]", GOLD, "hold no scores"),
        ('{"intrasentence": [1]}', GOLD, "not a list of records"),
        ('{"intrasentence": [{"id": "a", "score": 1}]}', GOLD, "2 of 3 options have no score, and 0 scores"),
        (f'{{{INTRA[:-1]}, {{"id": "a", "score": 1}}]}}', GOLD, "score an option twice"),
        (f"{{{INTRA.replace('3', 'null')}}}", GOLD, "has the score None"),
        (f"{{{INTRA}}}", "{}", "not in the layout of dev.json"),
        (f"{{{INTRA}}}", '{"data": {}}', "no intrasentence examples"),
    ],
)
def test_the_space_refuses_in_a_sentence(app, predictions, gold, message):
    with pytest.raises(ValueError, match=message):
        app.make_table(predictions, gold)


def test_the_page_shows_the_card_without_its_header(app):
    assert app.card().startswith("# Metric card for StereoSet")


def test_the_space_reproduces_a_published_row(app, shared, upstream):
    (gold,) = upstream.glob("moinnadeem/StereoSet/*/data/dev.json")
    predictions = shared / "predictions" / "stereoset" / "predictions_gpt2_ModelNSP_GPT2LM.json"
    table = app.make_table(predictions.read_text(), gold.read_text(encoding="utf-8"))
    # Nadeem et al. 2021, arXiv 2004.09456, Table 7, GPT-2
    assert {(task, group): row for task, group, *row in table}["intrasentence", "all"][1:4] == [61.93, 91.11, 69.37]


@pytest.fixture(scope="module")
def gold_labels(app):
    return sys.modules["gold_labels"]


@pytest.fixture
def published(gold_labels, upstream, monkeypatch):
    """The Space's published examples, downloaded from the folder of upstream files."""
    monkeypatch.setattr(gold_labels, "ADDRESS", upstream.as_uri())
    return gold_labels.published


def test_the_space_downloads_the_pinned_files(gold_labels):
    sources = [gold_labels.STEREOSET, *gold_labels.PAIRS.values()]
    assert {one.location: one.sha256 for one in sources} == {file.location: file.sha256 for file in FILES}


CONFIGS = (
    *("intrasentence", "intersentence", "intrasentence_de", "intersentence_tr", "intrasentence_pt"),
    *("crows_pairs", "crows_pairs_en_revised", "crows_pairs_fr", "crows_pairs_nl", "crows_pairs_gender_ko"),
)


@pytest.mark.parametrize("config", CONFIGS)
def test_the_spaces_labels_are_the_data_sets(published, app, upstream, config):
    builder = Stereoset(config_name=config)
    first, *_ = builder.config.sources.values()
    rows = list(builder._examples((upstream / first.location).read_bytes()))  # before they are written as rows
    ours, theirs = (compute_score.flat_references(some) for some in (published(config), rows))
    assert [by_option(*pair) for pair in zip(published(config), ours, strict=True)] == [
        by_option(*pair) for pair in zip(rows, theirs, strict=True)
    ]


def by_option(example, reference):
    """A reference, its options in the order of their ids."""
    ids = [option["id"] for option in example["sentences"]]
    fields = [reference[name] for name in ("target", "bias_type")]
    return [*fields, reference.get("direction"), sorted(zip(ids, reference["gold_label"], strict=True))]


def test_a_translation_is_judged_by_its_language_and_pooled(app, published, shared):
    name = "dbmdz_bert-base-german-cased_BertLM_BertNextSentence_de.json"
    predictions = (shared / "predictions" / "multilingual" / name).read_text()
    with pytest.raises(ValueError, match="9 of 6318 options have no score"):
        app.make_table(predictions)
    table = app.make_table(predictions, language="de")
    tasks = {task: count for task, group, count, *_ in table if group == "all"}
    assert tasks == {"intrasentence_de": 2103, "intersentence_de": 2123, "overall_de": 4226}


def test_pairs_have_an_ss_and_nothing_else(app, published):
    options = [option for pair in published("crows_pairs") for option in pair["sentences"]]
    scores = [{"id": option["id"], "score": option["gold_label"] == "stereotype"} for option in options]
    scores = [{**one, "score": int(one["score"])} for one in scores]
    table = app.make_table(json.dumps({"crows_pairs": scores}))
    assert table[-1] == ["crows_pairs", "all", 1508, 100.0, None, None, None, 0]
    assert len(table) == 10


def test_a_part_of_the_data_is_judged_where_the_file_says_so(app, published):
    options = [option for example in published("intrasentence")[:7] for option in example["sentences"]]
    scores = [{"id": option["id"], "score": number} for number, option in enumerate(options)]
    part = {"partial": "the first 7", "intrasentence": scores}
    assert app.make_table(json.dumps(part))[-1][:3] == ["intrasentence", "all", 7]


def test_intervals_are_the_metrics(app):
    files = app.example_files
    row = app.make_table(files.PREDICTIONS, files.GOLD, confidence_level=0.95)[-1]
    named = dict(zip([*app.HEADER, *app.BOUNDS], row, strict=True))
    scores = json.loads(files.PREDICTIONS)["intrasentence"]
    numbers = [one["score"] for one in scores]
    golds = compute_score.flat_references(json.loads(files.GOLD)["data"]["intrasentence"])
    found = compute_score.compute_score([numbers[i : i + 3] for i in range(0, 18, 3)], golds, confidence_level=0.95)
    assert {name: named[name] for name in app.BOUNDS} == {name: round(found[name], 2) for name in app.BOUNDS}


def test_two_files_are_compared_paired(app):
    files = app.example_files
    rows = app.make_comparison(files.PREDICTIONS, files.OTHERS, files.GOLD)
    first, second = (app.make_table(text, files.GOLD)[-1] for text in (files.PREDICTIONS, files.OTHERS))
    assert rows[-1][:4] == ["intrasentence", "all", 6, round(first[3] - second[3], 2)]
    same = app.make_comparison(files.PREDICTIONS, files.PREDICTIONS, files.GOLD)
    assert {number for row in same for number in row[3:]} == {0.0}


def test_two_files_of_different_tasks_are_not_compared(app):
    with pytest.raises(ValueError, match="different tasks or examples"):
        app.make_comparison(f"{{{INTRA}}}", f"{{{INTER}}}", GOLD)


def test_the_page_answers_with_two_decimals_and_a_download(app):
    files = app.example_files
    html = app.answer([(None, files.PREDICTIONS), (None, files.OTHERS)], (None, files.GOLD))
    assert html.count("<table>") == html.count('download="stereoset.csv"') == 3
    cells = re.findall(r"<td>([^<]+)", html)
    assert all(re.fullmatch(r"[+-]?\d+(\.\d\d)?|-", cell) for cell in cells), cells
    assert "<small>(" in html


def refusal(html):
    (sentence,) = re.findall(r'^<p class="stereoset-refusal" role="alert">(.*)</p>$', html)
    return sentence


def test_the_page_says_every_failure_in_a_sentence(app, gold_labels, tmp_path, monkeypatch):
    path = tmp_path / "predictions.json"
    gold_labels._contexts.cache_clear()  # what other tests have downloaded

    def of(data):
        path.write_bytes(data)
        return refusal(app.answer([(str(path), ""), (None, "")], (None, "")))

    assert "nothing in it" in refusal(app.answer([(None, ""), (None, "")], (None, "")))
    assert "nothing in it" in refusal(app.answer([(None, None), (None, None)], (None, None)))
    assert "give JSON" in of(b'{"intrasentence": ')
    assert "give JSON" in of(b"[" * 100_000)
    assert "no UTF-8 at byte 1" in of(b'"\xff"')
    with path.open("wb") as file:
        file.truncate(100 * 10**6)
    assert "at most 50 MB" in refusal(app.answer([(str(path), ""), (None, "")], (None, "")))
    monkeypatch.setattr(gold_labels, "ADDRESS", "http://127.0.0.1:9")
    assert "cannot be downloaded" in of(f"{{{INTRA}}}".encode())
    monkeypatch.setattr(gold_labels, "ADDRESS", tmp_path.as_uri())
    other = tmp_path / gold_labels.STEREOSET.location
    other.parent.mkdir(parents=True)
    other.write_text("{}")
    assert "other bytes than the pinned" in of(f"{{{INTRA}}}".encode())


def test_hostile_labels_stay_text(app):
    gold = json.loads(GOLD)
    for number, example in enumerate(gold["data"]["intrasentence"]):
        example |= {"target": HOSTILE * 5, "bias_type": HOSTILE * 500 + str(number) + "\ud800"}
    html = app.answer([(None, f"{{{INTRA}}}"), (None, "")], (None, json.dumps(gold)))
    html.encode()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    html = app.answer([(None, f"{{{INTRA.replace('3', 'null')}}}"), (None, "")], (None, json.dumps(gold)))
    assert "<script" not in html
    refusal(html).encode()


def test_a_spreadsheet_takes_no_label_for_a_formula(app):
    assert app.as_csv(["task"], [["=1+1"], ["age"], [-1.5]]) == "task\n'=1+1\nage\n-1.5\n"
