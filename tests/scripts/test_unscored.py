"""A table always comes out: defaults that a checkpoint can answer, tasks that it cannot, and the alarms below."""

import json
import re

import pytest
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForSequenceClassification,
    RobertaModel,
)

from stereoset_scoring.checkpoints.next_sentence_head import HeadSpec, NextSentenceModel, save_trained_head

LIMIT = ["--limit", "4"]


def read(place, name):
    return json.loads((place / name).read_text(encoding="utf-8"))


def tasks_of(printed):
    """The tasks that have lines in the table."""
    found = re.findall(r"^(\w+) +all ", printed, re.M)
    return list(dict.fromkeys(found))


@pytest.fixture
def score_sample(score_here, tmp_path):
    """score_sample(model, *options): (what was printed, run.json) of the first examples of the built-in data."""

    def run(model, *options):
        printed = score_here("--sample", "--model", model, *LIMIT, *options, "--output-dir", tmp_path)
        return printed, read(tmp_path, "run.json")

    return run


@pytest.fixture
def score_pairs(score_here, shared, tmp_path):
    """score_pairs(model, *options): the same of the real data, within sentences and in pairs."""

    def run(model, *options):
        data = ["--data-dir", shared / "upstream", "--tasks", "intrasentence", "crows_pairs", *LIMIT]
        printed = score_here("--model", model, *data, *options, "--output-dir", tmp_path)
        return printed, read(tmp_path, "run.json")

    return run


@pytest.mark.parametrize(
    ("name", "method", "options"),
    [("roberta", "pseudo_likelihood", []), ("xlnet", "conditional", ["--option", "passage=It was a calm day."])],
)
def test_a_model_without_a_next_sentence_head_gets_its_table(folder, score_sample, name, method, options):
    printed, record = score_sample(folder(name), *options)
    reason = f"{folder(name)} holds no next-sentence head"
    assert tasks_of(printed) == ["intrasentence", "intersentence", "overall"]
    words = f"scored by {method}, not by the usual default, for {reason}."
    assert f"  intersentence: {words}" in printed.splitlines()[:4]
    assert f"NOTE: intersentence: {words}" in printed.splitlines()
    assert f"|intersentence:{method}" in printed.splitlines()[-1]
    assert record["tasks"]["intersentence"]["fallback"] == reason
    assert record["tasks"]["intrasentence"]["fallback"] is None
    assert record["unscored"] == {}


def test_a_next_sentence_model_gets_the_half_that_it_can_answer(folder, score_sample, tmp_path):
    place = tmp_path / "nsp"
    BertForNextSentencePrediction.from_pretrained(folder("bert")).save_pretrained(place)
    AutoTokenizer.from_pretrained(folder("bert")).save_pretrained(place)
    printed, record = score_sample(place)
    assert tasks_of(printed) == ["intersentence"]
    assert list(record["unscored"]) == ["intrasentence"]
    assert "masked-language-model head" in record["unscored"]["intrasentence"]
    assert f"NOT SCORED: intrasentence: {record['unscored']['intrasentence']}" in printed
    assert f"  intrasentence: not scored: {record['unscored']['intrasentence']}" in printed
    assert list(read(tmp_path, "scores.json")) == ["intersentence", "partial"]


@pytest.mark.parametrize("name", ["t5", "xlnet"])
def test_pairs_that_a_kind_has_no_method_for_are_named(folder, score_pairs, name):
    options = ["--option", "passage=It was a calm day."] if name == "xlnet" else []
    printed, record = score_pairs(folder(name), *options)
    assert tasks_of(printed) == ["intrasentence"]
    assert record["unscored"].keys() == {"crows_pairs"}
    assert "NOT SCORED: crows_pairs: There is no method for a" in printed


def test_a_sentiment_model_is_asked_about_no_pairs(folder, score_pairs, tmp_path):
    place, labels = tmp_path / "sentiment", {"id2label": {0: "negative", 1: "positive"}}
    BertForSequenceClassification.from_pretrained(folder("bert"), **labels).save_pretrained(place)
    AutoTokenizer.from_pretrained(folder("bert")).save_pretrained(place)
    printed, record = score_pairs(f"baseline:sentiment={place}")
    assert tasks_of(printed) == ["intrasentence"]
    assert record["unscored"] == {
        "crows_pairs": "There is no method for a sentiment model on pairs: score another task."
    }


def test_the_saved_scores_say_it_again(folder, score_sample, score_here, tmp_path):
    printed, _ = score_sample(folder("roberta"), "--preset", "stereoset")
    again = score_here(tmp_path, script="evaluate_scores.py")
    notes = [line for line in printed.splitlines() if line.startswith(("NOTE", "NOT SCORED", "WARNING"))]
    assert any(line.startswith("NOT SCORED: intersentence: ") for line in notes)
    assert [line for line in again.splitlines() if line.startswith(("NOTE", "NOT SCORED", "WARNING"))] == notes


def test_presets_are_compared_on_the_tasks_that_both_have(folder, score_sample, tmp_path):
    compare = ["--compare-presets", "defaults", "stereoset"]
    with pytest.raises(FileNotFoundError):  # each has a folder of its own
        score_sample(folder("roberta"), *compare)
    assert list(read(tmp_path / "defaults", "results.json")["results"]["en"]) == [
        "intrasentence",
        "intersentence",
        "overall",
    ]
    assert list(read(tmp_path / "stereoset", "results.json")["results"]["en"]) == ["intrasentence"]
    assert list(read(tmp_path / "stereoset", "run.json")["unscored"]) == ["intersentence"]


NOTHING = [
    ("t5", ["--preset", "crows-pairs"], "Preset 'crows-pairs' has no method"),
    ("roberta", ["--tasks", "intersentence", "--preset", "stereoset"], "has no next-sentence head"),
    ("roberta", ["--method", "intersentence=next_sentence"], "has no next-sentence head"),
    ("roberta", ["--compare-presets", "defaults", "crows-pairs"], "Preset 'crows-pairs' has no method"),
]


@pytest.mark.parametrize(("name", "options", "words"), NOTHING)
def test_nothing_to_score_and_what_was_asked_by_name_are_refused(folder, score_sample, name, options, words):
    with pytest.raises(SystemExit, match=re.escape(words)):
        score_sample(folder(name), *options)


def test_a_trained_head_is_asked_where_it_is_given(folder, score_sample, tmp_path):
    head = NextSentenceModel(RobertaModel.from_pretrained(folder("roberta")), HeadSpec(pooling="first"))
    save_trained_head(tmp_path / "head", head, AutoTokenizer.from_pretrained(folder("roberta")))
    printed, record = score_sample(folder("roberta"), "--next-sentence-head", tmp_path / "head")
    assert record["tasks"]["intersentence"]["method"] == "next_sentence"
    assert "usual default" not in printed


def test_unknown_tokens_and_equal_options_are_counted_and_said(folder, score_sample, tmp_path):
    place = tmp_path / "deaf"
    BertForMaskedLM.from_pretrained(folder("bert")).save_pretrained(place)
    tokenizer = AutoTokenizer.from_pretrained(folder("bert"))
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = state["model"]["vocab"]
    state["model"]["vocab"] = {  # every word and letter renamed, the special tokens as they were
        (piece if piece.startswith("[") else f"\u4e00{i}"): i for piece, i in vocabulary.items()
    }
    tokenizer.backend_tokenizer.from_str(json.dumps(state))
    tokenizer.save_pretrained(place)
    (place / "tokenizer.json").write_text(json.dumps(state), encoding="utf-8")
    printed, record = score_sample(place)
    assert {"unknown tokens", "equal options", "ties"} <= {alarm["alarm"] for alarm in record["alarms"]}
    assert record["alarms"] == read(tmp_path, "results.json")["alarms"]
    task = record["tasks"]["intrasentence"]
    assert task["unknown_tokens"] == task["text_tokens"] > 0
    assert task["equal_options"] > 0
    assert (
        f"WARNING: tokens unknown to the tokenizer, {task['text_tokens']} of {task['text_tokens']} (100.0%) of intrasen"
        in printed
    )


def test_a_chat_template_that_was_not_used_is_noted(score_here, folder, score_sample, tmp_path):
    place = tmp_path / "chat"
    AutoModelForCausalLM.from_pretrained(folder("gpt2")).save_pretrained(place)
    tokenizer = AutoTokenizer.from_pretrained(folder("gpt2"))
    tokenizer.chat_template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    tokenizer.save_pretrained(place)
    printed, record = score_sample(place)
    note = f"NOTE: a chat template was not used, that of {place}: texts were scored as they are"
    assert note in printed
    assert record["model"]["chat_template"] is True
    assert note in score_here(tmp_path, script="evaluate_scores.py")


def test_a_model_without_a_chat_template_is_not_told_of_one(folder, score_sample):
    assert "chat template" not in score_sample(folder("gpt2"))[0]
