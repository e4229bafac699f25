"""The default of a task is the best method that the checkpoint can answer, and it is said why."""

import re
from copy import deepcopy
from types import SimpleNamespace

import pytest
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    RobertaForMaskedLM,
)

from stereoset_scoring import load_scorer
from stereoset_scoring.baselines import load_baseline
from stereoset_scoring.checkpoints.next_sentence_head import HeadSpec, NextSentenceModel, save_trained_head
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.scorer import Scorer

TASKS = ("intrasentence", "intersentence", "pairs")
PASSAGE = "It was a calm day in the garden."  # the released one takes seconds


def refused(*parts):
    """A ValueError whose one sentence holds all the parts, in this order."""
    return pytest.raises(ValueError, match=".*".join(map(re.escape, parts)))


@pytest.fixture(scope="module")
def saved(folder, tokenizer_of, tmp_path_factory):
    """saved(class of model): the tiny BERT, saved as another architecture, with that one's weights alone."""

    def save(architecture):
        place = tmp_path_factory.mktemp(architecture.__name__)
        architecture.from_pretrained(folder("bert")).save_pretrained(place)
        tokenizer_of("bert").save_pretrained(place)
        return place

    return save


@pytest.fixture
def data(intrasentence, intersentence, row):
    """{task: rows}"""
    pairs = [row("", ["He is kind.", "She is kind."], id="x"), row("", ["They are tall.", "They are calm."], id="y")]
    return {"intrasentence": intrasentence, "intersentence": intersentence, "pairs": pairs}


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("bert", {}, "next_sentence"),
        ("roberta", {}, "pseudo_likelihood"),
        ("albert", {}, "pseudo_likelihood"),
        ("xlnet", {"passage": PASSAGE}, "conditional"),
        ("gpt2", {}, "conditional"),
        ("t5", {}, "conditional"),
    ],
)
def test_default_across_sentences_is_the_best_that_can_be_answered(scorer_of, intersentence, name, options, expected):
    scorer = scorer_of(name, **options)
    assert scorer.method("intersentence").name == expected
    assert scorer.score(intersentence) == scorer_of(name, method=expected, **options).score(intersentence)


@pytest.mark.parametrize("name", ["roberta", "xlnet"])
def test_both_tasks_are_scored_in_one_call(scorer_of, intrasentence, intersentence, name):
    options = {"passage": PASSAGE} if name == "xlnet" else {}
    mixed = scorer_of(name, **options).score([*intersentence, *intrasentence])
    apart = [scorer_of(name, **options).score(rows) for rows in (intersentence, intrasentence)]
    assert mixed == [pytest.approx(one, abs=1e-10) for one in apart[0] + apart[1]]


def test_a_head_that_the_architecture_has_and_the_checkpoint_lacks_is_not_there(saved):
    scorer = load_scorer(saved(BertForMaskedLM), device="cpu")
    assert scorer.method("intersentence").name == "pseudo_likelihood"
    assert scorer.fallback("intersentence") == f"{scorer.source.name} holds no next-sentence head"


@pytest.mark.parametrize(
    ("architecture", "expected"), [(BertForMaskedLM, "pseudo_likelihood"), (BertForPreTraining, "next_sentence")]
)
def test_in_memory_the_model_decides(folder, tokenizer_of, architecture, expected):
    scorer = load_scorer(model=architecture.from_pretrained(folder("bert")), tokenizer=tokenizer_of("bert"))
    assert scorer.method("intersentence").name == expected


def test_a_model_in_memory_without_next_sentence_heads_falls_back_too(folder, tokenizer_of, intersentence):
    model = RobertaForMaskedLM.from_pretrained(folder("roberta"))
    scores = load_scorer(model=model, tokenizer=tokenizer_of("roberta")).score(intersentence)
    assert [len(one) for one in scores] == [3, 3, 3]


def test_a_trained_head_comes_first(folder, model_of, tokenizer_of, tmp_path):
    head = NextSentenceModel(model_of("roberta", "masked").roberta, HeadSpec(pooling="first"))
    save_trained_head(tmp_path, head, tokenizer_of("roberta"))
    scorer = load_scorer(folder("roberta"), device="cpu", next_sentence_head=tmp_path)
    assert (scorer.method("intersentence").name, scorer.fallback("intersentence")) == ("next_sentence", None)
    assert scorer.method("intrasentence").name == "likelihood"


def test_a_trained_head_that_does_not_fit_is_refused_and_not_passed_over(
    folder, model_of, tokenizer_of, data, tmp_path
):
    head = NextSentenceModel(model_of("roberta", "masked").roberta, HeadSpec(pooling="first"))
    save_trained_head(tmp_path, head, tokenizer_of("roberta"))
    scorer = load_scorer(folder("gpt2"), device="cpu", next_sentence_head=tmp_path)
    with refused("does not fit a gpt2"):
        scorer.unanswerable(data)


@pytest.mark.parametrize("name", ["bert", "gpt2", "t5"])
def test_the_usual_default_is_no_fallback(scorer_of, name):
    assert [scorer_of(name).fallback(task) for task in TASKS[:2]] == [None, None]


@pytest.mark.parametrize("more", [{"method": "pseudo_likelihood"}, {"method": {"intersentence": "pll"}}])
def test_what_was_asked_for_is_no_fallback(scorer_of, more):
    assert scorer_of("roberta", **more).fallback("intersentence") is None


def test_preset_stands_for_its_own_question_alone(scorer_of, data):
    scorer = scorer_of("roberta").with_preset("stereoset")
    assert scorer.method("intersentence").name == "next_sentence"
    assert list(scorer.unanswerable(data)) == ["intersentence", "pairs"]
    with refused("roberta", "next-sentence head"):
        scorer.score(data["intersentence"])
    assert scorer.with_preset(None).method("intersentence").name == "pseudo_likelihood"


def test_a_head_is_looked_for_once(saved, intersentence, monkeypatch):
    scorer, asked = load_scorer(saved(BertForMaskedLM), device="cpu"), []
    load = type(scorer.source)._load
    monkeypatch.setattr(type(scorer.source), "_load", lambda self, kind: asked.append(kind) or load(self, kind))
    scorer.score(intersentence)
    scorer.plan_part(Portion("intersentence", 0, len(intersentence)), intersentence, leave_out=True)
    scorer.with_preset("stereoset").with_preset(None).score(intersentence)
    assert sorted(asked) == ["masked", "next_sentence"]


UNANSWERABLE = [
    # checkpoint, arguments, the tasks that it cannot answer, parts of the first reason
    ("bert", {}, [], []),
    ("roberta", {}, [], []),
    ("gpt2", {}, [], []),
    ("t5", {}, ["pairs"], ["no method for a seq2seq model on pairs"]),
    ("xlnet", {}, ["pairs"], ["no method for a permutation model on pairs"]),
    ("t5", {"method": "likelihood"}, None, ["'likelihood'", "seq2seq", "intersentence"]),
    ("roberta", {"method": {"intersentence": "next_sentence"}}, None, ["roberta", "next-sentence head"]),
    ("roberta", {"preset": "stereoset"}, ["intersentence", "pairs"], ["roberta", "next-sentence head"]),
    ("bert", {"preset": "bias-bench"}, ["intersentence"], ["'bias-bench'", "intersentence"]),
    ("t5", {"preset": "crows-pairs"}, None, ["'crows-pairs'", "seq2seq"]),
    ("xlnet", {"method": "conditional"}, None, ["'conditional'", "permutation", "intrasentence"]),
]


@pytest.mark.parametrize(("name", "more", "tasks", "parts"), UNANSWERABLE)
def test_tasks_without_a_method_are_named_with_a_reason(scorer_of, data, name, more, tasks, parts):
    options = {"passage": PASSAGE} if name == "xlnet" else {}
    scorer = scorer_of(name, **more, **options)
    if tasks is None:
        with refused(*parts):
            scorer.unanswerable(data)
        return
    found = scorer.unanswerable(data)
    assert list(found) == tasks
    assert all(part in next(iter(found.values())) for part in parts)


def test_a_next_sentence_model_cannot_be_asked_what_stands_at_blank(saved, data):
    scorer = load_scorer(saved(BertForNextSentencePrediction), device="cpu")
    refusals = scorer.unanswerable(data)
    assert list(refusals) == ["intrasentence", "pairs"]
    assert "masked-language-model head" in refusals["intrasentence"]
    assert len(scorer.score(data["intersentence"])) == len(data["intersentence"])
    with refused("masked-language-model head"):
        scorer.score(data["intrasentence"])
    with refused("masked-language-model head"):
        scorer.unanswerable({"intrasentence": data["intrasentence"]})


@pytest.mark.parametrize("method", [None, {"intrasentence": "pll"}])
def test_a_tokenizer_without_a_mask_leaves_the_task_that_needs_none(folder, tokenizer_of, data, tmp_path, method):
    BertForPreTraining.from_pretrained(folder("bert")).save_pretrained(tmp_path)
    tokenizer = deepcopy(tokenizer_of("bert"))
    tokenizer.mask_token = None
    tokenizer.save_pretrained(tmp_path)
    scorer = load_scorer(tmp_path, device="cpu", method=method)
    if method:
        with refused("no mask token"):
            scorer.unanswerable(data)
        return
    assert list(scorer.unanswerable(data)) == ["intrasentence", "pairs"]


def test_one_row_that_can_be_scored_is_enough_to_go_on(scorer_of, intrasentence, row):
    bad = row("It was BLANK.", ["It was \u200b."])
    assert scorer_of("bert").unanswerable({"intrasentence": [bad, *intrasentence]}) == {}
    assert list(scorer_of("bert").unanswerable({"first": [bad], "second": intrasentence})) == ["first"]


def test_a_trained_head_alone_answers_one_task(model_of, tokenizer_of, data, tmp_path):
    head = NextSentenceModel(model_of("gpt2", "causal").transformer)
    save_trained_head(tmp_path, head, tokenizer_of("gpt2"))
    refusals = load_scorer(tmp_path, device="cpu").unanswerable(data)
    assert list(refusals) == ["intrasentence", "pairs"]
    assert "trained next-sentence head" in refusals["intrasentence"]


def test_a_model_without_any_head_is_refused_for_its_own(folder, tokenizer_of, tmp_path, intersentence):
    model = RobertaForMaskedLM.from_pretrained(folder("roberta")).roberta
    model.save_pretrained(tmp_path)
    tokenizer_of("roberta").save_pretrained(tmp_path)
    with refused(str(tmp_path), "masked-language-model head"):
        load_scorer(tmp_path, device="cpu").score(intersentence)


def test_the_ensemble_knows_no_pairs(data, tmp_path):
    files = [tmp_path / f"{i}.json" for i in range(3)]
    for file in files:
        file.write_text("{}", encoding="utf-8")
    ensemble = load_baseline(f"baseline:ensemble={','.join(map(str, files))}")
    assert list(ensemble.unanswerable(data)) == ["pairs"]
    with refused("baseline:ensemble", "pairs", "intrasentence or intersentence"):
        ensemble.unanswerable({"pairs": data["pairs"]})


@pytest.mark.parametrize("name", ["ideal", "stereotyped", "random"])
def test_the_other_baselines_answer_everything(name, data):
    assert load_baseline(f"baseline:{name}").unanswerable(data) == {}


@pytest.mark.parametrize(
    ("device", "config", "expected"),
    [
        ("cpu", BertConfig(hidden_size=512), 4096),
        ("cpu", BertConfig(hidden_size=768), 2048),
        ("mps:0", BertConfig(hidden_size=64), 4096),
        ("cuda:1", BertConfig(hidden_size=64), 16384),
        ("cpu", None, 2048),  # behind a server
    ],
)
def test_a_pass_holds_as_many_tokens_as_keep_its_device_busy(device, config, expected):
    assert Scorer(SimpleNamespace(device=device, config=config, family="causal")).max_tokens == expected
