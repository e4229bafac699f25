"""Tokens of texts from those of their words: the same as the tokenizer's own, or none."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from stereoset_scoring.questions import tokens
from stereoset_scoring.questions.words import PATTERNS, Words, cuts_at_spaces
from stereoset_scoring.refusal import Refusal

TEXTS = [
    "The gardener isn't slow, we've 1234 reasons 's to say so.",
    "Der Gärtner ist freundlich; l'été 2024, «très»!",
    "a\nb  c\td e\r\n\r\nf <end> g",
]
# Characters at which patterns differ, marks that compose with what stands before them, and an added token.
CHARACTERS = st.sampled_from([*"aBé3 '.,-\n\t", "\u00a0", "\u0301", "'s", "'S", "<end>", "ß", "語", "\u2028", "\x1c"])
TEXT = st.lists(CHARACTERS, max_size=12).map("".join)


def byte_level(*steps, normalizer=None, special="<end>", **added):
    """A byte-level BPE that finds words by some steps."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(list(steps)) if len(steps) > 1 else steps[0]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(TEXTS * 3, trainer)
    tokenizer.add_special_tokens([AddedToken(special, **added)])
    return tokenizer


def of_pattern(pattern, **options):
    """As Llama 3 and Qwen 2 have it."""
    last = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return byte_level(pre_tokenizers.Split(Regex(pattern), behavior="isolated"), last, **options)


def gpt2(**options):
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), **options)


KINDS = {
    "gpt2": gpt2,
    "roberta": lambda: gpt2(lstrip=True, rstrip=True),
    "added with a space": lambda: gpt2(special="a B"),
    "neox": lambda: gpt2(normalizer=normalizers.NFC()),
    **{name: lambda pattern=pattern: of_pattern(pattern) for name, pattern in PATTERNS.items()},
    "Qwen 2, composed": lambda: of_pattern(PATTERNS["Qwen 2"], normalizer=normalizers.NFC()),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_tokens_of_words_are_those_of_the_text(kind):
    below = KINDS[kind]()
    assert cuts_at_spaces(below)
    words = Words(below)

    def own(text):
        return tuple(below.encode(text, add_special_tokens=False).ids)

    @settings(max_examples=150)
    @given(TEXT, st.lists(TEXT, max_size=3))
    @example("The gardener is kind.", ["He isn't slow.", "'s 1234", "a B"])
    @example("The gardener is slow", ["\u0301 kind", "kind "])
    @example("a", ["B c"])
    def same(text, others):
        assert words.ids(text) in (None, own(text))
        before, after = words.ids(text), words.continuations(text, others)
        if before is not None and after is not None:
            assert [before + ids for ids in after] == [own(f"{text} {other}") for other in others]

    same()


def test_a_sentence_of_words_is_told_by_its_words():
    words = Words(gpt2())
    assert words.ids("The gardener isn't slow, we've 1234 reasons.") is not None
    assert words.continuations("The gardener.", ["He is kind.", "'s 3"]) is not None


@pytest.mark.parametrize("text", ["", " a", "a ", "a  b", "a\nb", "a\u00a0b", "a <end> b"])
def test_what_is_more_than_words_is_left_to_the_tokenizer(text):
    words = Words(gpt2())
    assert words.ids(text) is None
    assert words.continuations("a", ["b", text]) is None


def with_prefix_space():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=True))


def with_dropout():
    below = gpt2()
    below.model.dropout = 0.1
    return below


def of_pieces():
    return Tokenizer(models.Unigram([("a", 0.0)]))


def split(behavior):
    return pre_tokenizers.Split(Regex(PATTERNS["Llama 3"]), behavior)


OTHERS = {
    "a space before every text": with_prefix_space,
    "drawn pieces": with_dropout,
    "other words": lambda: of_pattern(r"\w+ ?"),
    "no words": lambda: byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)),
    "another normalizer": lambda: gpt2(normalizer=normalizers.NFKC()),
    "another model": of_pieces,
    "another last step": lambda: byte_level(split("isolated"), pre_tokenizers.Metaspace()),
    "words that are left out": lambda: byte_level(split("removed"), pre_tokenizers.ByteLevel(False, use_regex=False)),
    "one step more": lambda: byte_level(
        pre_tokenizers.Digits(), split("isolated"), pre_tokenizers.ByteLevel(False, use_regex=False)
    ),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_of_other_tokenizers_nothing_is_said(kind):
    assert not cuts_at_spaces(OTHERS[kind]())


def test_patterns_are_those_of_the_libraries_own_tokenizers():
    from transformers.models.qwen2 import tokenization_qwen2
    from transformers.models.qwen3_5 import tokenization_qwen3_5

    assert PATTERNS["Qwen 2"] == tokenization_qwen2.PRETOKENIZE_REGEX
    assert PATTERNS["Qwen 3.5"] == tokenization_qwen3_5.PRETOKENIZE_REGEX


def test_special_tokens_beside_a_text_change_nothing():
    below = gpt2()
    end = below.token_to_id("<end>")
    below.post_processor = processors.TemplateProcessing("$A <end>", special_tokens=[("<end>", end)])
    assert Words(below).ids("a kind gardener") == tuple(below.encode("a kind gardener", add_special_tokens=False).ids)


def test_tokens_that_are_added_later_count():
    hub = PreTrainedTokenizerFast(tokenizer_object=gpt2())
    tokenizer = tokens.Tokenizer(hub)
    before = tokenizer.encode_bare("a kind gardener")
    hub.add_tokens(["kind"])
    tokenizer.read_ahead([])
    after = tokenizer.encode_bare("a kind gardener")
    assert after == tuple(hub.encode("a kind gardener", add_special_tokens=False)) != before


def test_a_word_that_cannot_be_read_is_refused_with_its_text():
    below = Tokenizer(models.BPE({"a": 0, "Ġ": 1}, [], unk_token="<unk>"))
    below.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer = tokens.Tokenizer(PreTrainedTokenizerFast(tokenizer_object=below))
    tokenizer.read_ahead([tokens.Texts(bare=["a a", "a b"], joined=("a", ["a", "c"]))])
    assert tokenizer.encode_bare("a a") == (0, 1, 0)
    with pytest.raises(Refusal, match="cannot read 'a b'"):
        tokenizer.encode_bare("a b")
    with pytest.raises(Refusal, match="cannot read 'a c'"):
        tokenizer.join("a", ["a", "c"])
