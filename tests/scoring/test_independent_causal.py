"""Causal methods of context and option, each against its definition: one text at a time, no library code."""

from functools import cache

import pytest
import torch

CLOSE = 1e-10  # float64, in nats

HABIT = {"gpt2": "released", "llama": "context", "bare": "none"}  # the default of the option bos
REDUCTIONS = ["mean", "sum", "mean_per_byte"]
EXAMPLES = [
    ("A gardener met us.", ["He was kind.", "Trees are thoughtful."]),
    ("We met a teacher", ["She is tall.", "it was in the garden!"]),
    ("Das Café war schön!", ["Der Gärtner war müde — sehr.", '"Grün," she said.']),
]
PAIR = ("The gardener was kind.", "Der Gärtner war grün — sehr.")
MODES = [(name, mode) for name in HABIT for mode in (None, "context", "released", "none") if name != "bare" or not mode]
FORMULAS = {  # of ln PL(A), ln PL(B), ln PL(AB), ln PL(B|A)
    "conditional": lambda a, b, ab, b_given_a: b_given_a,
    "joint": lambda a, b, ab, b_given_a: ab,
    "conditional_share": lambda a, b, ab, b_given_a: b_given_a - ab,
    "gain": lambda a, b, ab, b_given_a: b_given_a - b,
    "joint_gain": lambda a, b, ab, b_given_a: ab - b,
    "ratio": lambda a, b, ab, b_given_a: b - a,
}

every_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)


@pytest.fixture(scope="module")
def scorer_of(scorer_of_one):
    """Nothing here changes a model."""
    return scorer_of_one


@cache  # methods and reductions are made of the same
def log_softmax(model, shown):
    """ln P of every token after each of some."""
    with torch.no_grad():
        return model(torch.tensor([shown])).logits[0].log_softmax(-1)


def log_probs(model, ids, bos, mode):
    """[ln P of each token of a text], None for one that is not scored."""
    if mode == "context":
        found = log_softmax(model, (bos, *ids))
        return [found[i, token].item() for i, token in enumerate(ids)]
    first = log_softmax(model, (bos,))[0, ids[0]].item() if mode == "released" else None
    found = log_softmax(model, tuple(ids))
    return [first, *(found[i, token].item() for i, token in enumerate(ids[1:]))]


def reduced(values, reduction, text):
    values = [value for value in values if value is not None]
    return sum(values) / {"mean": len(values), "sum": 1, "mean_per_byte": len(text.encode())}[reduction]


def parts(model, tokenizer, context, option, mode, reduction, border="offsets"):
    """ln PL of A, B, AB and B given A."""
    given = context if context[-1] in ".!?" else context + "."
    text = f"{given} {option}"
    encoding = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    n = next(i for i, (_, end) in enumerate(encoding["offset_mapping"]) if end > len(given))
    if border == "length":
        n = len(tokenizer.encode(given, add_special_tokens=False))
    both = log_probs(model, encoding["input_ids"], tokenizer.bos_token_id, mode)
    alone = log_probs(model, tokenizer.encode(option, add_special_tokens=False), tokenizer.bos_token_id, mode)
    return (
        reduced(both[:n], reduction, given),
        reduced(alone, reduction, option),
        reduced(both, reduction, text),
        reduced(both[n:], reduction, " " + option),
    )


@pytest.mark.parametrize(("name", "mode"), MODES)
@pytest.mark.parametrize("method", FORMULAS)
@every_reduction
def test_method_is_its_formula(scorer_of, model_of, tokenizer_of, row, name, mode, method, reduction):
    model, tokenizer = model_of(name, "causal"), tokenizer_of(name)
    expected = [
        [FORMULAS[method](*parts(model, tokenizer, context, one, mode or HABIT[name], reduction)) for one in sentences]
        for context, sentences in EXAMPLES
    ]
    scorer = scorer_of(name, method=method, reduction=reduction, **({"bos": mode} if mode else {}))
    assert scorer.score([row(*example) for example in EXAMPLES]) == [pytest.approx(one, abs=CLOSE) for one in expected]


@pytest.mark.parametrize("name", ["gpt2", "llama"])
@every_reduction
def test_quotient_divides_logarithms(scorer_of, model_of, tokenizer_of, row, name, reduction):
    model, tokenizer = model_of(name, "causal"), tokenizer_of(name)
    expected = []
    for context, sentences in EXAMPLES:
        some = [parts(model, tokenizer, context, one, "released", reduction, "length") for one in sentences]
        expected.append([b / a for a, b, *_ in some])
    scorer = scorer_of(name, preset="stereoset", reduction=reduction)
    assert scorer.score([row(*example) for example in EXAMPLES]) == [pytest.approx(one, abs=CLOSE) for one in expected]


@pytest.mark.parametrize(("name", "mode"), MODES)
@every_reduction
@pytest.mark.parametrize("context", ["", "The gardener was BLANK."], ids=["joint of a pair", "likelihood"])
def test_sentence_is_read_whole(scorer_of, model_of, tokenizer_of, row, name, mode, reduction, context):
    model, tokenizer = model_of(name, "causal"), tokenizer_of(name)
    expected = []
    for sentence in PAIR:
        ids = tokenizer.encode(sentence, add_special_tokens=False)
        values = log_probs(model, ids, tokenizer.bos_token_id, mode or HABIT[name])
        expected.append(reduced(values, reduction, sentence))
    scorer = scorer_of(name, reduction=reduction, **({"bos": mode} if mode else {}))
    assert scorer.score([row(context, PAIR)]) == [pytest.approx(expected, abs=CLOSE)]


@pytest.mark.parametrize("method", ["gain", "ratio", "joint_gain"])
def test_option_or_context_of_which_nothing_is_scored_is_refused_by_name(scorer_of, row, method):
    # Without a beginning of texts the first token is not scored, and here there is no other.
    with pytest.raises(ValueError, match=r"'e-0'.*'e'.*no token to read"):
        scorer_of("bare", method=method).score([row("It was a calm day.", ["a"])])


def test_every_preset_begins_texts_as_released(scorer_of, row):
    rows = [row(*example) for example in EXAMPLES]
    released = scorer_of("gpt2", method="ratio", bos="released", border="length").score(rows)
    assert scorer_of("gpt2", preset="multilingual", method="ratio").score(rows) == released
