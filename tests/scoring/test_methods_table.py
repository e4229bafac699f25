"""The table of methods: every one runs where it is defined, and is refused with a reason everywhere else."""

import re
from dataclasses import dataclass, fields

import pytest
import torch
from transformers import BartConfig, BartForConditionalGeneration

from stereoset_scoring import load_scorer
from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.pseudo_likelihood import PLL
from stereoset_scoring.methods.reductions import mean_log
from stereoset_scoring.methods.registry import METHODS, PRESETS, check_options, choose_method, methods_table
from stereoset_scoring.questions.examples import as_pair, read_example

TINY = {"masked": "bert", "permutation": "xlnet", "causal": "gpt2", "seq2seq": "t5"}
SHORT = {"permutation": {"passage": "It was calm."}}  # the released passage takes seconds
TASKS = ("intrasentence", "intersentence", "pairs")
DEFINED = {
    # what SCORING defines, the default first; written out here, so that nothing vanishes from the table unseen
    ("masked", "intrasentence"): "likelihood pseudo_likelihood word_l2r pll pll_word_l2r aul aula",
    ("masked", "intersentence"): "next_sentence pseudo_likelihood conditional pll pll_word_l2r aul aula",
    ("masked", "pairs"): "pseudo_likelihood differing_tokens pll pll_word_l2r aul aula",
    ("permutation", "intrasentence"): "likelihood",
    ("permutation", "intersentence"): "next_sentence conditional",
    ("causal", "intrasentence"): "likelihood choice",
    ("causal", "intersentence"): " ".join(
        ("conditional joint conditional_share", "gain joint_gain ratio quotient", "next_sentence choice")
    ),
    ("causal", "pairs"): "joint",
    ("seq2seq", "intrasentence"): "likelihood denoising prefix",
    ("seq2seq", "intersentence"): "conditional denoising prefix next_sentence",
    ("next_sentence", "intersentence"): "next_sentence",
    ("sentiment", "intrasentence"): "sentiment",
    ("sentiment", "intersentence"): "sentiment",
}
# Scored with a head that was trained for it, and tested with those heads.
TRAINED = {("permutation", "intersentence", "next_sentence"), ("causal", "intersentence", "next_sentence")}
NAMES = sorted({name for names in DEFINED.values() for name in names.split()})
CELLS = [(family, task) for family in TINY for task in TASKS]
LINES = [(family, task, name) for (family, task), names in DEFINED.items() for name in names.split()]
CHATS = {("causal", "intrasentence", "choice"), ("causal", "intersentence", "choice")}  # in test_chat.py
RUNS = [cell for cell in LINES if cell[0] in TINY and cell not in TRAINED | CHATS]
REFUSED = [
    (family, task, name)
    for family, task in CELLS
    for name in NAMES
    if name not in DEFINED.get((family, task), "").split()
]
PRESET_DEFAULTS = {
    # preset: {(family, task): the method it stands for}; no other cell has one
    "stereoset": {
        ("masked", "intrasentence"): "likelihood",
        ("masked", "intersentence"): "next_sentence",
        ("permutation", "intrasentence"): "likelihood",
        ("permutation", "intersentence"): "next_sentence",
        ("causal", "intrasentence"): "likelihood",
        ("causal", "intersentence"): "quotient",
    },
    "multilingual": {
        ("masked", "intrasentence"): "likelihood",
        ("masked", "intersentence"): "next_sentence",
        ("permutation", "intersentence"): "next_sentence",
        ("causal", "intrasentence"): "likelihood",
        ("causal", "intersentence"): "conditional",
        ("seq2seq", "intrasentence"): "likelihood",
        ("seq2seq", "intersentence"): "conditional",
    },
    "bias-bench": {
        ("masked", "intrasentence"): "likelihood",
        ("masked", "pairs"): "differing_tokens",
        ("causal", "intrasentence"): "likelihood",
        ("causal", "pairs"): "joint",
    },
    "crows-pairs": {("masked", "pairs"): "pseudo_likelihood"},
}
OPTIONS = {
    # option: (family, a value that is none, what the message offers)
    "text": ("masked", "words", "one of ids, pasted"),
    "average": ("permutation", "mean", "one of probability, log"),
    "lowercase": ("masked", "true", "one of True, False"),
    "decimals": ("masked", "3", "one of int, None"),
    "follows": ("masked", 2, "one of 0, 1"),
    "join": ("masked", "tab", "one of none, space"),
    "segments": ("masked", "three", "one of own, two"),
    "passage": ("permutation", 3, "one of str, None"),
    "reading": ("permutation", "mask", "one of content, query"),
    "bos": ("causal", "eos", "one of context, released, none, None"),
    "bos_text": ("causal", 7, "one of str, None"),
    "reduction": ("causal", "median", "one of mean, sum, mean_per_byte"),
    "chat": ("causal", "yes", "one of True, False"),
    "user": ("causal", 3, "str"),
    "wording": ("causal", "4", "one of 1, 2, 3, all"),
    "language": ("causal", "it", "one of en, de, es, fr, tr"),
    "border": ("causal", "tokens", "one of offsets, length"),
    "first": ("seq2seq", "likeliest", "one of sentinel, greedy"),
    "end": ("seq2seq", None, "one of True, False"),
    "prefix": ("seq2seq", None, "str"),
    "before": ("seq2seq", "digit", "one of label, greedy"),
}


@pytest.fixture(scope="module")
def scorer_of(scorer_of_one):
    """Nothing here changes a model."""
    return scorer_of_one


def refused(*parts):
    """A ValueError whose one sentence holds all the parts, in this order."""
    return pytest.raises(ValueError, match=".*".join(map(re.escape, parts)))


@pytest.fixture
def rows(intrasentence, intersentence, row):
    pairs = [row("", ["He is kind.", "She is kind."], id="x"), row("", ["They are tall.", "They are calm."], id="y")]
    return {"intrasentence": intrasentence, "intersentence": intersentence, "pairs": pairs}.__getitem__


def test_the_table_holds_what_is_defined_with_the_defaults_first():
    assert {cell: " ".join(method.name for method in methods) for cell, methods in METHODS.items()} == DEFINED


def test_every_method_has_a_line_with_its_sources_and_options():
    lines = methods_table().splitlines()[2:]
    assert len(lines) == len(LINES)
    for (family, task, name), line in zip(LINES, lines, strict=True):
        assert re.match(rf"\| {family} \| {task} \| `{name}`", line)
        assert re.search(r"\b(19|20)\d\d\b", line)
        assert line.count("|") - line.count("\\|") == 7


@pytest.mark.parametrize(("family", "task", "name"), RUNS)
def test_method_runs_where_it_is_defined(scorer_of, rows, family, task, name):
    preset = "stereoset" if name == "quotient" else None
    checkpoint = "bart" if name == "denoising" else TINY[family]  # a T5 has no mask
    scores = scorer_of(checkpoint, method=name, preset=preset, **SHORT.get(family, {})).score(rows(task))
    assert [len(one) for one in scores] == [len(one["sentences"]) for one in rows(task)]
    assert torch.tensor([score for one in scores for score in one]).isfinite().all()
    assert len({score for one in scores for score in one}) > len(rows(task))  # not one number for all


@pytest.mark.parametrize(("family", "task", "name"), sorted(TRAINED))
def test_a_head_that_nobody_trained_is_refused_with_the_way_to_train_one(scorer_of, rows, family, task, name):
    with refused("next-sentence head", "scripts/train_next_sentence.py"):
        scorer_of(TINY[family], method=name).score(rows(task))


@pytest.mark.parametrize(("family", "task", "name"), REFUSED)
def test_method_is_refused_where_it_is_not_defined(family, task, name):
    if (family, task) in DEFINED:
        expected = (repr(name), family, task, "choose", *DEFINED[family, task].split()[:1])
    else:
        expected = (f"no method for a {family} model on {task}", "score another task")
    with refused(*expected):
        choose_method(family, task, name)


@pytest.mark.parametrize(("family", "task"), [cell for cell in CELLS if cell not in DEFINED])
def test_task_without_a_method_is_refused_when_it_is_scored(scorer_of, rows, family, task):
    with refused("no method", family, task, "score another task"):
        scorer_of(TINY[family]).score(rows(task))


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(("family", "task"), CELLS)
def test_preset_stands_for_one_method_or_is_refused(scorer_of, rows, family, task, preset):
    scorer = scorer_of(TINY[family], preset=preset, **SHORT.get(family, {}))
    name = PRESET_DEFAULTS[preset].get((family, task))
    if name:
        assert scorer.method(task).name == name
        if (family, task, name) in TRAINED:
            return
        assert torch.tensor([score for one in scorer.score(rows(task)) for score in one]).isfinite().all()
        return
    with refused(
        *([repr(preset), family, task, "leave the preset out"] if (family, task) in DEFINED else ["no method"])
    ):
        scorer.score(rows(task))


@pytest.mark.parametrize(("preset", "family", "task", "name"), [
    ("stereoset", "causal", "intersentence", "conditional"),
    ("stereoset", "masked", "intrasentence", "pll"),
    ("multilingual", "causal", "intersentence", "quotient"),
    ("crows-pairs", "masked", "pairs", "differing_tokens"),
    ("bias-bench", "masked", "pairs", "pseudo_likelihood"),
])  # fmt: skip
def test_preset_without_the_method_asked_for_is_refused(preset, family, task, name):
    with refused(repr(preset), name, family, task, "leave the preset out"):
        choose_method(family, task, name, preset)


@pytest.mark.parametrize(("preset", "methods"), PRESETS.items())
def test_every_option_of_a_preset_is_one_of_its_method(preset, methods):
    for method, options in methods.items():
        assert options.keys() <= {field.name for field in fields(method)}
        family = next(family for (family, _), some in METHODS.items() if method in some)
        check_options(family, options)


@pytest.mark.parametrize(("option", "case"), OPTIONS.items())
def test_value_that_an_option_does_not_have_is_refused(scorer_of, option, case):
    family, value, offer = case
    with refused(f"Option {option} cannot be {value!r}", f"choose {offer}"):
        scorer_of(TINY[family], **{option: value})


def test_every_option_is_in_the_table_above_but_the_spaces():
    known = {field.name for methods in METHODS.values() for method in methods for field in fields(method)}
    assert known - {"attribute_space", "sentence_space"} == set(OPTIONS)


@pytest.mark.parametrize("family", TINY)
def test_option_of_another_family_is_refused(scorer_of, family):
    known = {
        field.name for (kind, _), some in METHODS.items() if kind == family for one in some for field in fields(one)
    }
    for option in OPTIONS.keys() - known:
        with refused(family, repr(option), "choose", *sorted(known)[:1]):
            scorer_of(TINY[family], **{option: None})


def test_preset_for_t5_is_refused_for_a_seq2seq_of_another_kind(tokenizer_of, rows):
    small = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    model = BartForConditionalGeneration(
        BartConfig(vocab_size=400, encoder_attention_heads=1, decoder_attention_heads=1, **small)
    )
    for task in TASKS[:2]:
        scorer = load_scorer(model=model, tokenizer=tokenizer_of("roberta"), preset="multilingual")
        with refused("'multilingual'", "no method", "seq2seq", task, "leave the preset out"):
            scorer.score(rows(task))


LABELS = ["stereotype", "anti-stereotype", "unrelated"]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
@pytest.mark.parametrize("layout", ["names", "indices", "columns"])
def test_pair_of_an_example_is_its_stereotype_then_its_anti_stereotype(order, layout):
    names = [LABELS[i] for i in order]
    labels = [
        {"anti-stereotype": 0, "stereotype": 1, "unrelated": 2}[name] if layout == "indices" else name for name in names
    ]
    sentences = [
        {"id": name, "sentence": f"{name}.", "gold_label": label} for name, label in zip(names, labels, strict=True)
    ]
    if layout == "columns":
        sentences = {field: [one[field] for one in sentences] for field in ("id", "sentence", "gold_label")}
    pair = as_pair({"id": "e", "context": "It was BLANK.", "target": "t", "sentences": sentences})
    assert [one["id"] for one in pair["sentences"]] == LABELS[:2]
    assert (pair["context"], pair["direction"], pair["target"]) == ("", "stereo", "t")


@pytest.mark.parametrize("labels", [["stereotype", "unrelated"], ["anti-stereotype"], [2, 0], []])
def test_example_without_both_is_no_pair(labels):
    sentences = [{"id": str(i), "sentence": "It was.", "gold_label": label} for i, label in enumerate(labels)]
    with refused("'e7'", "no stereotype or no anti-stereotype", "a pair needs both"):
        as_pair({"id": "e7", "context": "It was BLANK.", "sentences": sentences})


def test_example_without_a_context_is_a_pair_or_refused(scorer_of, row):
    with refused("'e'", "empty context", "no pair", "give its context"):
        scorer_of("bert").score([row("", ["He is kind.", "She is kind.", "It is kind."])])


def test_pair_without_a_differing_token_is_refused_by_name(scorer_of, row):
    with refused("'e-0'", "'e'", "no token to read"):
        scorer_of("bert", method="differing_tokens").score([row("", ["He is kind.", "He is  kind."])])


def test_pair_of_equal_sentences_is_refused_by_name(scorer_of, row):
    with refused("'e'", "are the same, and nothing can prefer one", "--without forced_tie"):
        scorer_of("bert").score([row("", ["He is kind.", "He is kind."])])


def test_reduction_of_a_subclass_is_its_own(scorer_of, intrasentence):
    @dataclass(frozen=True)
    class MeanPLL(PLL):
        reduce = staticmethod(mean_log)

    tokenizer = scorer_of("bert").source.tokenizer
    (recipe, *_) = MeanPLL().recipes(read_example(intrasentence[0]), tokenizer)
    assert recipe.combine([[-1.0], [-3.0]]) == -2.0


def test_a_method_without_recipes_is_none():
    class Nothing(Method):
        name, source = "nothing", "nobody"

    with pytest.raises(TypeError, match="recipes"):
        Nothing()
