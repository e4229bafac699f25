"""Masked methods beyond the likelihood, each against its definition: one text at a time, no library code."""

import re
from difflib import SequenceMatcher
from functools import cache
from itertools import product

import pytest
import torch
from transformers import BertForMaskedLM

from stereoset_scoring import load_scorer
from stereoset_scoring.methods.pseudo_likelihood import MaskedConditional
from stereoset_scoring.questions.examples import read_example
from stereoset_scoring.questions.tokens import Tokens
from tests.crossing import crossed

CLOSE = 1e-10  # float64, in nats

MASKED = ["bert", "roberta", "albert"]
WHOLE_SENTENCE = ["pll", "pll_word_l2r", "aul", "aula"]
WORDS = {  # what a word is to each tokenizer
    "bert": r"\w+|[^\w\s]",
    "roberta": r" ?\w+| ?[^\w\s]+",
    "albert": r"\S+",
}
INTRASENTENCE = {
    # case: (context, what fills BLANK)
    "one piece or many": ("The gardener was BLANK.", ["kind", "thoughtful"]),
    "several words": ("The river was BLANK, he said.", ["very calm", "calm"]),
    "BLANK begins the context": ("BLANK are often quiet.", ["Gardeners", "Trees"]),
    "text glued to BLANK": ("The tree was un-BLANKed by a teacher.", ["water", "paint"]),
    "text beyond ASCII": ("Das Café — am Fluß — war BLANK", ["schön", "grün"]),
}
INTERSENTENCE = {
    "full stop": ("A gardener met us.", ["He was kind.", "Trees are thoughtful."]),
    "no full stop": ("We met a teacher", ["She is tall.", "it was in the garden!"]),
    "beyond ASCII": ("Das Café war schön!", ["Der Gärtner war müde — sehr.", '"Grün," she said.']),
}
PAIRS = {
    "one word": ("The gardener was kind.", "The gardener was quiet."),
    "several places": ("She said it was a calm day, was it not?", "He said it was a long day, is it not?"),
    "words in another order": ("It was kind calm long.", "It was long quiet kind."),
    "other letter case": ("The Gardener was Kind.", "the gardener was quiet."),
}

every_model = pytest.mark.parametrize("name", MASKED)


@pytest.fixture(scope="module")
def scorer_of(scorer_of_one):
    """Nothing here changes a model."""
    return scorer_of_one


def cases(table):
    return [pytest.param(case, id=name) for name, case in table.items()]


def every_model_and_case_of(table):
    return pytest.mark.parametrize(("name", "case"), crossed(MASKED, cases(table)))


@cache  # many methods read the same
def log_softmax(model, shown):
    """ln P of every token at each place of a text."""
    with torch.no_grad():
        return model(torch.tensor([shown])).logits[0].log_softmax(-1)


class ByHand:
    """A model and its tokenizer, read one text at a time."""

    def __init__(self, model, tokenizer):
        self.model, self.tokenizer = model, tokenizer

    def tokens(self, text):
        """(ids, spans, positions of the text's own tokens)"""
        encoding = self.tokenizer(text, return_offsets_mapping=True, return_special_tokens_mask=True)
        own = [i for i, special in enumerate(encoding["special_tokens_mask"]) if not special]
        return encoding["input_ids"], encoding["offset_mapping"], own

    def read(self, ids, position, masked):
        """ln P of the token at a position while some positions are masked."""
        shown = tuple(self.tokenizer.mask_token_id if i in masked else token for i, token in enumerate(ids))
        return log_softmax(self.model, shown)[position, ids[position]].item()

    def alone(self, ids, positions):
        """[ln P of each position's token, masked alone]"""
        return [self.read(ids, i, {i}) for i in positions]


@pytest.fixture
def by_hand(model_of, tokenizer_of):
    return lambda name: ByHand(model_of(name, "masked"), tokenizer_of(name))


def filled(case):
    """(context, [(text, start and end of the attribute)], sentences)"""
    context, fillers = case
    start = context.index("BLANK")
    return context, [(context.replace("BLANK", filler), start, start + len(filler)) for filler in fillers]


def touches(span, start, end):
    return any(start <= character < end for character in range(*span))


@every_model_and_case_of(INTRASENTENCE)
def test_pseudo_likelihood_reads_every_token_outside_the_attribute(scorer_of, by_hand, row, name, case):
    context, texts = filled(case)
    hand, expected = by_hand(name), []
    for text, start, end in texts:
        ids, spans, own = hand.tokens(text)
        expected.append(sum(hand.alone(ids, [i for i in own if not touches(spans[i], start, end)])))
    scores = scorer_of(name, method="pseudo_likelihood").score([row(context, [text for text, *_ in texts])])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


@every_model_and_case_of(INTERSENTENCE)
def test_pseudo_likelihood_reads_the_context_before_the_whole_option(scorer_of, by_hand, row, name, case):
    context, sentences = case
    hand, expected = by_hand(name), []
    for sentence in sentences:
        ids, spans, own = hand.tokens(f"{context} {sentence}")
        expected.append(sum(hand.alone(ids, [i for i in own if spans[i][1] <= len(context)])))
    scores = scorer_of(name, method="pseudo_likelihood").score([row(context, sentences)])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


@every_model_and_case_of(INTERSENTENCE)
def test_conditional_reads_the_option_after_its_context(scorer_of, by_hand, row, name, case):
    context, sentences = case
    hand, expected = by_hand(name), []
    for sentence in sentences:
        ids, spans, own = hand.tokens(f"{context} {sentence}")
        values = hand.alone(ids, [i for i in own if spans[i][1] > len(context)])
        expected.append(sum(values) / len(values))
    scores = scorer_of(name, method="conditional").score([row(context, sentences)])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


def test_conditional_leaves_out_the_beginning_of_a_context_that_is_too_long(scorer_of, by_hand, row):
    context, sentences = "It was calm. " * 20 + "We met a teacher.", ["He was kind.", "She is tall and she is kind."]
    hand, expected = by_hand("bert"), []
    encoded = [hand.tokens(f"{context} {sentence}") for sentence in sentences]
    excess = max(len(ids) for ids, *_ in encoded) - 64  # as much for both options
    for ids, spans, own in encoded:
        shorter = [ids[0], *ids[1 + excess :]]
        positions = [i - excess for i in own if spans[i][1] > len(context)]
        values = hand.alone(shorter, positions)
        expected.append(sum(values) / len(values))
    scorer = scorer_of("bert", method="conditional")
    assert scorer.score([row(context, sentences)]) == [pytest.approx(expected, abs=CLOSE)]
    assert scorer.plan([row(context, sentences)]).truncated == 1


def test_token_that_straddles_the_border_is_the_options_and_counted(row):
    class Joined:
        """A tokenizer whose second of three tokens holds the end of the context and the beginning of the option."""

        mask = (9, "[MASK]")

        def tokenize(self, text):
            return Tokens(text, (1, 2, 3), ((0, 3), (3, 9), (9, 12)), None, (False,) * 3, (0, 0, 0))

    example = read_example(row("abcdef", ["ghijkl"]))  # "abcdef ghijkl", the border before the space
    (recipe,) = MaskedConditional().recipes(example, Joined())
    assert [one.reads for one in recipe.rows] == [((1, 2),), ((2, 3),)]
    assert recipe.straddling == 1
    assert recipe.rows[0].optional == range(1)


@every_model_and_case_of(INTRASENTENCE)
def test_word_l2r_masks_the_later_tokens_of_the_attribute_too(scorer_of, by_hand, row, name, case):
    context, texts = filled(case)
    hand, expected = by_hand(name), []
    for text, start, end in texts:
        ids, spans, _ = hand.tokens(text)
        attribute = [i for i, span in enumerate(spans) if touches(span, start, end)]
        expected.append(sum(hand.read(ids, i, {j for j in attribute if j >= i}) for i in attribute))
    scores = scorer_of(name, method="word_l2r").score([row(context, [text for text, *_ in texts])])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


def whole_sentence(hand, method, text, word):
    """SCORING: over all the tokens of a text."""
    ids, spans, own = hand.tokens(text)
    if method == "pll":
        return sum(hand.alone(ids, own))
    if method == "pll_word_l2r":
        ends = [found.end() for found in re.finditer(word, text)]
        number = {i: next(n for n, end in enumerate(ends) if spans[i][1] <= end) for i in own}
        return sum(hand.read(ids, i, {j for j in own if j >= i and number[j] == number[i]}) for i in own)
    values = [hand.read(ids, i, set()) for i in own]
    if method == "aula":
        hand.model.set_attn_implementation("eager")
        with torch.no_grad():
            layers = hand.model(torch.tensor([ids]), output_attentions=True).attentions
        received = torch.cat(layers).mean(0).mean(0).mean(0)  # layers, heads, and those who look
        values = [value * received[i].item() for value, i in zip(values, own, strict=True)]
    return sum(values) / len(own)


@pytest.mark.parametrize(("name", "method", "case"), crossed(product(MASKED, WHOLE_SENTENCE), cases(INTRASENTENCE)))
def test_whole_sentence_methods_read_the_filled_context(scorer_of, by_hand, row, name, method, case):
    context, texts = filled(case)
    expected = [whole_sentence(by_hand(name), method, text, WORDS[name]) for text, *_ in texts]
    scores = scorer_of(name, method=method).score([row(context, [text for text, *_ in texts])])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


@pytest.mark.parametrize(("name", "method"), crossed(MASKED, WHOLE_SENTENCE))
def test_whole_sentence_methods_read_context_and_option(scorer_of, by_hand, row, name, method):
    examples = list(INTERSENTENCE.values())
    expected = [
        [whole_sentence(by_hand(name), method, f"{context} {one}", WORDS[name]) for one in sentences]
        for context, sentences in examples
    ]
    scores = scorer_of(name, method=method).score([row(*example) for example in examples])
    assert scores == [pytest.approx(one, abs=CLOSE) for one in expected]


@pytest.mark.parametrize(("name", "method"), crossed(MASKED, WHOLE_SENTENCE))
def test_whole_sentence_methods_read_each_sentence_of_a_pair(scorer_of, by_hand, row, name, method):
    pairs = list(PAIRS.values())
    expected = [[whole_sentence(by_hand(name), method, one, WORDS[name]) for one in pair] for pair in pairs]
    scores = scorer_of(name, method=method).score([row("", pair) for pair in pairs])
    assert scores == [pytest.approx(one, abs=CLOSE) for one in expected]


def pair_by_hand(hand, pair, swapped, equal):
    """Of each sentence, ln P of its tokens that difflib finds equal in the other, or different."""
    tokens = [hand.tokens(sentence) for sentence in pair]
    first, second = reversed(tokens) if swapped else tokens
    matcher = SequenceMatcher(None, [str(i) for i in first[0]], [str(i) for i in second[0]])
    blocks = matcher.get_matching_blocks()
    same = [{b[side] + k for b in blocks for k in range(b.size)} for side in (0, 1)]
    chosen = [
        [i for i in own if (i in matched) == equal] for (_, _, own), matched in zip((first, second), same, strict=True)
    ]
    values = [hand.alone(ids, some) for (ids, _, _), some in zip((first, second), chosen, strict=True)]
    return values[::-1] if swapped else values


@pytest.mark.parametrize(
    ("direction", "name", "case"), crossed(product(["stereo", "antistereo"], MASKED), cases(PAIRS))
)
def test_pairs_are_read_where_difflib_finds_them_equal_or_different(scorer_of, by_hand, row, name, direction, case):
    rows, swapped = [{**row("", case), "direction": direction}], direction == "antistereo"
    equal = [sum(values) for values in pair_by_hand(by_hand(name), case, swapped, equal=True)]
    assert scorer_of(name).score(rows) == [pytest.approx(equal, abs=CLOSE)]
    differing = [sum(values) / len(values) for values in pair_by_hand(by_hand(name), case, swapped, equal=False)]
    assert scorer_of(name, method="differing_tokens").score(rows) == [pytest.approx(differing, abs=CLOSE)]


def test_order_of_a_pair_matters_to_difflib(by_hand):
    # Or the case above would not tell the directions apart.
    hand, pair = by_hand("bert"), PAIRS["words in another order"]
    assert pair_by_hand(hand, pair, False, equal=True) != pair_by_hand(hand, pair, True, equal=True)


@pytest.mark.parametrize(
    ("name", "method", "lowercase", "sentence_space", "decimals"),
    crossed(
        product(MASKED, ["pseudo_likelihood", "differing_tokens"]), product([True, False], [True, False], [None, 1, 3])
    ),
)
def test_options_of_pairs(scorer_of, by_hand, row, name, method, lowercase, sentence_space, decimals):
    pair, byte_level, equal = PAIRS["other letter case"], name == "roberta", method == "pseudo_likelihood"
    read = [sentence.lower() if lowercase and not byte_level else sentence for sentence in pair]
    read = [" " + sentence if sentence_space and byte_level else sentence for sentence in read]
    values = pair_by_hand(by_hand(name), read, False, equal)
    expected = [sum(some) / (1 if equal else len(some)) for some in values]
    options = {"lowercase": lowercase, "sentence_space": sentence_space, "decimals": decimals}
    ((first, second),) = scorer_of(name, method=method, **options).score([row("", pair)])
    rounded = expected if decimals is None else [round(score, decimals) for score in expected]
    assert [first, second] == pytest.approx(rounded, abs=CLOSE)


@every_model
@pytest.mark.parametrize("preset", ["crows-pairs", "bias-bench"])
def test_presets_of_pairs_are_their_options(scorer_of, row, name, preset):
    options = {"crows-pairs": {"lowercase": True, "sentence_space": True}, "bias-bench": {"method": "differing_tokens"}}
    rows = [row("", pair, id=case) for case, pair in PAIRS.items()]
    expected = scorer_of(name, decimals=3, **options[preset]).score(rows)
    assert scorer_of(name, preset=preset).score(rows) == expected


def test_attention_is_asked_for_in_a_way_that_leaves_the_model_as_it_was(folder, tokenizer_of, row):
    model = BertForMaskedLM.from_pretrained(folder("bert"))
    before = model.config._attn_implementation
    load_scorer(model=model, tokenizer=tokenizer_of("bert"), method="aula").score(
        [row("It was BLANK.", ["It was kind."])]
    )
    assert model.config._attn_implementation == before != "eager"


@pytest.mark.parametrize(("name", "method"), crossed(MASKED, ["pseudo_likelihood", *WHOLE_SENTENCE]))
def test_batches_do_not_matter(scorer_of, intrasentence, intersentence, row, name, method):
    rows = [*intrasentence[:2], *intersentence[:2], row("", PAIRS["one word"]), row("", PAIRS["several places"])]
    scorer = scorer_of(name, method=method, max_tokens=400)
    expected = [scorer.score([one])[0] for one in rows]
    assert scorer.score(rows[::-1])[::-1] == [pytest.approx(one, abs=CLOSE) for one in expected]
