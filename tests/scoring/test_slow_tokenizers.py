"""Tokenizers in Python, without a fast twin: their tokens are found in the text exactly, or the text is refused."""

import io
import json
import unicodedata
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertGenerationTokenizer,
    BertJapaneseTokenizer,
    BertTokenizer,
    BertTokenizerLegacy,
    BertweetTokenizer,
    ByT5Tokenizer,
    CanineTokenizer,
    CTRLTokenizer,
    EsmTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    GPTSw3Tokenizer,
    MyT5Tokenizer,
    PerceiverTokenizer,
    PhobertTokenizer,
    RoCBertTokenizer,
    T5Config,
    T5ForConditionalGeneration,
    TapasTokenizer,
    XLMTokenizer,
)

from stereoset_scoring import load_scorer
from stereoset_scoring.questions.spelling import mark_of, spans, words
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal

CLOSE = 1e-10  # float64, in nats
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["the", "garden", "teacher", "kind", "quiet", "was", "cafe", "calm", "river", "a", "."]
TEXTS = [
    "The gardener was kind.",
    "the teacher was  quiet, was the river calm?",
    "Das Café war schön!",
    "don't un-kind (a)",
    " the river ",
    "naïve; ½ of ﬁve",
    "",
]


def letters(texts):
    forms = ["".join([text, text.lower(), unicodedata.normalize("NFKC", text)]) for text in texts]
    return sorted({letter for form in forms for letter in form if not letter.isspace()})


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return str(path)


def wordpiece_file(folder):
    pieces = [*WORDS, *letters(TEXTS), "##er", "##s", *("##" + letter for letter in letters(TEXTS))]
    return write(folder / "vocab.txt", "\n".join(SPECIAL + list(dict.fromkeys(pieces))) + "\n")


def merges_of(texts):
    """For each word of some texts, the merges that build it from the left, with </w> at its end."""
    merges = []
    for word in dict.fromkeys(word for text in texts for word in text.split()[::2]):
        built, *rest = [*word[:-1], word[-1] + "</w>"]
        for letter in rest:
            merges.append((built, letter))
            built += letter
    return list(dict.fromkeys(merges))


def bpe_files(folder, layout):
    """(vocabulary, merges) in the layout of "phobert", "ctrl" or "xlm"."""
    merges = merges_of(TEXTS)
    ended = {letter + end for letter in letters(TEXTS) for end in ("", "</w>")} | {a + b for a, b in merges}
    if layout == "xlm":
        pieces = ["<s>", "</s>", "<pad>", "<unk>", "<special0>", "<special1>", *sorted(ended)]
    else:
        pieces = [*sorted(one.removesuffix("</w>") if "</w>" in one else one + "@@" for one in ended), "<unk>"]
    numbered = {piece: i for i, piece in enumerate(pieces)}
    lines = [" ".join(merge) for merge in merges]
    if layout == "phobert":
        counted = "".join(f"{line} 1\n" for line in lines)
        return write(folder / "vocab.txt", "".join(f"{one} 1\n" for one in pieces[:-1])), write(
            folder / "bpe.codes", counted
        )
    head = [] if layout == "xlm" else ["#version"]
    tail = " 1\n" if layout == "xlm" else "\n"
    return write(folder / "vocab.json", json.dumps(numbered)), write(
        folder / "merges.txt", tail.join([*head, *lines, ""])
    )


def sentencepiece_file(folder):
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    model = io.BytesIO()
    trainer.train(sentence_iterator=iter(TEXTS), model_writer=model, vocab_size=50, minloglevel=2, pad_id=3)
    (folder / "spiece.model").write_bytes(model.getvalue())
    return str(folder / "spiece.model")


def moses(make):
    """A tokenizer that needs sacremoses, which the tests do not install."""

    def make_if_installed(folder):
        pytest.importorskip("sacremoses")
        return make(folder)

    return make_if_installed


SLOW = {
    "bert": lambda folder: BertTokenizerLegacy(wordpiece_file(folder)),
    "bert, cased": lambda folder: BertTokenizerLegacy(wordpiece_file(folder), do_lower_case=False),
    "bert-japanese": lambda folder: BertJapaneseTokenizer(wordpiece_file(folder), word_tokenizer_type="basic"),
    "bert-japanese, characters": lambda folder: BertJapaneseTokenizer(
        wordpiece_file(folder), word_tokenizer_type="basic", subword_tokenizer_type="character"
    ),
    "phobert": lambda folder: PhobertTokenizer(*bpe_files(folder, "phobert")),
    "bertweet": lambda folder: BertweetTokenizer(*bpe_files(folder, "phobert")),
    "ctrl": lambda folder: CTRLTokenizer(*bpe_files(folder, "ctrl"), unk_token="<unk>"),
    "xlm": moses(lambda folder: XLMTokenizer(*bpe_files(folder, "xlm"))),
    "esm": lambda folder: EsmTokenizer(
        wordpiece_file(folder), unk_token="[UNK]", cls_token="[CLS]", mask_token="[MASK]", eos_token="[SEP]"
    ),
    "byt5": lambda folder: ByT5Tokenizer(),
    "perceiver": lambda folder: PerceiverTokenizer(),
    "canine": lambda folder: CanineTokenizer(),
    "bert generation": lambda folder: BertGenerationTokenizer(sentencepiece_file(folder)),
    "gpt-sw3": lambda folder: GPTSw3Tokenizer(sentencepiece_file(folder)),
}


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """slow(name): a hub tokenizer of SLOW."""

    @cache
    def make(name):
        tokenizer = SLOW[name](tmp_path_factory.mktemp("slow"))
        assert not tokenizer.is_fast
        return tokenizer

    return make


def bare(text):
    """Letters alone, without accents and case: what every tokenizer here leaves of a text."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(letter for letter in plain if unicodedata.category(letter)[0] not in "MZC")


def spelled(hub, piece):
    """What a piece says of the text, marks of its kind removed."""
    if isinstance(hub, ByT5Tokenizer | PerceiverTokenizer):
        return piece.encode("latin-1")
    return bare(piece.removeprefix("##").removesuffix("@@").removesuffix("</w>").replace("▁", " "))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("name", SLOW)
def test_each_token_spells_the_characters_that_it_stands_for(slow, name, text):
    hub = slow(name)
    tokens, pieces = Tokenizer(hub).tokenize(text), hub.tokenize(text)
    own = [span for span, special in zip(tokens.offsets, tokens.special, strict=True) if not special]
    assert list(tokens.ids) == hub(text)["input_ids"]
    assert [tokens.ids[i] for i in tokens.ordinary] == hub.convert_tokens_to_ids(pieces)
    assert all(a <= c for (a, _), (c, _) in pairwise(own))
    held = {i for start, end in own for i in range(start, end)}
    assert {i for i, letter in enumerate(text) if bare(letter)} <= held
    for piece, (start, end) in zip(pieces, own, strict=True):
        if piece == hub.unk_token:
            assert start < end
        elif isinstance(spelled(hub, piece), bytes):
            assert spelled(hub, piece) in text[start:end].encode()
            assert end == start + 1
        else:
            assert spelled(hub, piece) in bare(text[start:end])


@pytest.fixture(scope="module")
def twins(tmp_path_factory):
    """(slow, fast) of one vocabulary, in lower case."""
    file = wordpiece_file(tmp_path_factory.mktemp("twins"))
    pieces = Path(file).read_text(encoding="utf-8").splitlines()
    return Tokenizer(BertTokenizerLegacy(file)), Tokenizer(
        BertTokenizer(vocab={one: i for i, one in enumerate(pieces)})
    )


WILD = st.text(st.sampled_from([*"abcderkitz AÉé.,'-\"½ﬁß中字 \t\n\u0301\u200b\u00a0😀"]), max_size=25)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=WILD | st.lists(st.sampled_from([*WORDS, "Gardener", "zzz", "kind,", "Café"])).map(" ".join))
def test_a_slow_tokenizer_answers_as_its_fast_twin(twins, text):
    slow, fast = twins
    expected = fast.tokenize(text)
    try:
        found = slow.tokenize(text)
    except Refusal:  # where unknown words touch, or a lone accent, a slow one cannot tell
        assert expected.ids.count(fast.unknown_id) > ("\u0301" not in text)
        return
    assert (found.ids, found.special) == (expected.ids, expected.special)
    assert found.words == expected.words
    for (start, end), other in zip(found.offsets, expected.offsets, strict=True):
        # A fast tokenizer gives marks and control characters that it drops to no token or to the one before.
        assert bare(text[start:end]) == bare(text[slice(*other)])
        assert start == other[0] or not bare(text[slice(*sorted((start, other[0])))])


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20))
def test_bytes_belong_to_the_character_that_they_are_of(text):
    expected = [(i, i + 1) for i, letter in enumerate(text) for _ in letter.encode()]
    assert spans(text, [chr(byte) for byte in text.encode()]) == expected


SPELLINGS = [
    # text, pieces, spans
    ("The gardener.", ["the", "[UNK]", "."], [(0, 3), (4, 12), (12, 13)]),
    ("so so", ["[UNK]", "[UNK]"], [(0, 2), (3, 5)]),
    ("soso", ["[UNK]", "[UNK]"], None),  # where does the first one end?
    ("soso", ["so", "##s"], None),  # not all is spelled
    ("kind", ["calm"], None),
    ("kind", ["kind", "er"], None),
    ("ﬁne", ["f", "ine"], [(0, 1), (0, 3)]),  # one character, two pieces
    ("a é", ["a", "Ġ", "Ã", "©"], [(0, 1), (1, 2), (2, 3), (2, 3)]),
    ("a é", ["▁a", "▁", "<0xC3>", "<0xA9>"], [(0, 1), (1, 2), (2, 3), (2, 3)]),
    ("a é", [b"a", b" \xc3", b"\xa9"], [(0, 1), (1, 3), (2, 3)]),
    ("a  b", ["▁a", "▁", "b"], [(0, 1), (1, 3), (3, 4)]),
    ("“a\u2019s”…", ['"', "a", "&apos;", "s</w>", '"', "..."], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6)]),
    ("un-kind", ["un</w>", "@-@</w>", "kind</w>"], [(0, 2), (2, 3), (3, 7)]),
    ("b\u0301 a", ["[UNK]", "a"], [(0, 2), (3, 4)]),
    # What is unknown must not swallow what only another case would leave to the pieces.
    ("\u0301 z kk", ["[UNK]", "[UNK]", "[UNK]"], None),
    ("a@@b", ["a@@@@", "@@@", "b"], None),  # either of the first two may have the second @
]


@pytest.mark.parametrize(("text", "pieces", "expected"), SPELLINGS)
def test_pieces_are_found_where_there_is_one_way_only(text, pieces, expected):
    assert spans(text, pieces, "[UNK]") == expected


CUT = [
    # vocabulary, text, pieces, words
    (["##ing", "sing"], "singing is fun", ["sing", "##ing", "is", "fun"], [0, 0, 1, 2]),
    (["sing@@", "ing"], "singing is fun.", ["sing@@", "ing", "is", "fun@@", "."], [0, 0, 1, 2, 2]),
    (["sing", "ing</w>"], "singing is.", ["sing", "ing</w>", "is</w>", ".</w>"], [0, 0, 1, 2]),
    (["▁sing", "ing"], "singing is.", ["▁sing", "ing", "▁", "is", "."], [0, 0, 1, 1, 1]),
    (["a", "b", " "], "ab c!", ["a", "b", " ", "c", "!"], [0, 0, None, 1, 2]),
    (["a", "日"], "日本 ab", ["日", "本", " ", "a", "b"], [0, 1, None, 2, 2]),
]


@pytest.mark.parametrize(("vocabulary", "text", "pieces", "expected"), CUT)
def test_words_are_the_tokenizers_own_or_those_of_the_text(vocabulary, text, pieces, expected):
    assert words(text, pieces, spans(text, pieces), mark_of(vocabulary)) == expected


def test_a_tokenizer_whose_pieces_do_not_spell_the_text_is_refused_by_name(tmp_path):
    maps = {"decompose_map": {"65": "01"}, "merge_map": {}}
    tokenizer = Tokenizer(MyT5Tokenizer(write(tmp_path / "byte_maps.json", json.dumps(maps))))
    assert tokenizer.tokenize("kind", special=False).offsets == ((0, 1), (1, 2), (2, 3), (3, 4))
    with pytest.raises(Refusal, match=r"MyT5Tokenizer gives no character offsets.*'the teacher'.*tokenizer.json"):
        tokenizer.tokenize("the teacher")


def test_a_tokenizer_of_tables_is_refused(tmp_path):
    with pytest.raises(Refusal, match=r"cannot read .*table"):
        Tokenizer(TapasTokenizer(wordpiece_file(tmp_path))).tokenize("the river")


def test_a_tokenizer_that_gives_its_model_more_than_ids_is_refused(tmp_path):
    signs = write(tmp_path / "signs.json", json.dumps(dict.fromkeys([*SPECIAL, *letters(TEXTS)], 0)))
    tokenizer = Tokenizer(RoCBertTokenizer(wordpiece_file(tmp_path), signs, signs))
    for ask in (tokenizer.tokenize, tokenizer.encode):
        with pytest.raises(Refusal, match=r"RoCBertTokenizer gives its model input_pronun.* and input_shape"):
            ask("the river")


def test_a_token_without_an_id_is_refused(tmp_path):
    vocabulary, merges = bpe_files(tmp_path, "ctrl")
    tokenizer = Tokenizer(CTRLTokenizer(vocabulary, merges, unk_token="<none>"))
    for ask in (tokenizer.tokenize, tokenizer.encode, tokenizer.encode_bare):
        with pytest.raises(Refusal, match="no id for a part of 'kind 語' and no unknown token"):
            ask("kind 語")


def bert(size):
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=size,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=16,
        initializer_range=0.4,
        max_position_embeddings=128,
    )
    return BertForMaskedLM(config).double().eval()


def gpt(size):
    torch.manual_seed(3)
    config = GPT2Config(vocab_size=size, n_positions=128, n_embd=16, n_layer=2, n_head=2, initializer_range=0.3)
    return GPT2LMHeadModel(config).double().eval()


def ln_p(model, ids, position, token):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, position].log_softmax(-1)[token].item()


CONTEXT, FILLERS = "the BLANK was kind.", ["gardener", "teacher"]
BEFORE = "the "


def filled(hub, filler):
    """(ids of the filled context, the attribute's positions), counted by cutting what stands before its end."""
    counts = [len(hub.tokenize(BEFORE.strip() + end)) for end in ("", " " + filler)]
    first = hub.build_inputs_with_special_tokens([-1]).index(-1)
    space = isinstance(hub, ByT5Tokenizer | PerceiverTokenizer)  # a byte of its own
    return hub(CONTEXT.replace("BLANK", filler))["input_ids"], range(first + counts[0] + space, first + counts[1])


@pytest.mark.parametrize("name", ["bert", "bert-japanese", "phobert", "bertweet", "xlm", "perceiver"])
def test_masked_methods_score_with_a_slow_tokenizer_as_by_hand(slow, name, row):
    hub = slow(name)
    model, mask = bert(len(hub)), hub.mask_token_id
    rows = [row(CONTEXT, [CONTEXT.replace("BLANK", filler) for filler in FILLERS])]

    def scores(method):
        return load_scorer(model=model, tokenizer=hub, method=method).score(rows)[0]

    def read(ids, position, masked):
        return ln_p(model, [mask if i in masked else one for i, one in enumerate(ids)], position, ids[position])

    for i, filler in enumerate(FILLERS):
        ids, attribute = filled(hub, filler)
        assert len(attribute) > 0
        ps = [ln_p(model, [*ids[:k], mask, *ids[attribute.stop :]], k, ids[k]) for k in attribute]
        assert scores("likelihood")[i] == pytest.approx(torch.tensor(ps).exp().mean().log().item(), abs=1e-6)
        whole = sum(read(ids, k, set(range(k, attribute.stop))) for k in attribute)
        assert scores("word_l2r")[i] == pytest.approx(whole, abs=CLOSE)
        rest = sum(read(ids, k, {k}) for k in range(1, len(ids) - 1) if k not in attribute)
        assert scores("pseudo_likelihood")[i] == pytest.approx(rest, abs=CLOSE)


def test_later_pieces_of_a_word_are_masked_with_a_slow_tokenizer(slow, row):
    hub = slow("phobert")
    model, sentence = bert(len(hub)), "the gardener was kind."
    scorer = load_scorer(model=model, tokenizer=hub, method="pll_word_l2r")
    (found,) = scorer.score([row("the BLANK was kind.", [sentence, "the teacher was kind."])])
    ids, words_of = [], []
    for number, word in enumerate(sentence.split()):
        ids += hub.convert_tokens_to_ids(hub.tokenize(word))
        words_of += [number] * (len(ids) - len(words_of))
    ids, words_of = [hub.cls_token_id, *ids, hub.sep_token_id], [None, *words_of, None]
    expected = 0
    for k in range(1, len(ids) - 1):
        later = {j for j in range(k, len(ids)) if words_of[j] == words_of[k]}
        shown = [hub.mask_token_id if j in later else one for j, one in enumerate(ids)]
        expected += ln_p(model, shown, k, ids[k])
    assert found[0] == pytest.approx(expected, abs=CLOSE)


@pytest.mark.parametrize("name", ["ctrl", "byt5", "bert generation", "gpt-sw3"])
def test_causal_methods_score_with_a_slow_tokenizer_as_by_hand(slow, name, row):
    hub = slow(name)
    model = gpt(len(hub))
    context, options = "the teacher was calm.", ["the river was quiet.", "a teacher was kind."]
    scorer = load_scorer(model=model, tokenizer=hub, method="conditional", bos="none")
    (found,) = scorer.score([row(context, options)])
    for score, option in zip(found, options, strict=True):
        ids = hub(f"{context} {option}", add_special_tokens=False)["input_ids"]
        before = len(hub(context, add_special_tokens=False)["input_ids"])  # the space is the option's, be it a token
        values = [ln_p(model, ids[:k], k - 1, ids[k]) for k in range(before, len(ids))]
        assert score == pytest.approx(sum(values) / len(values), abs=CLOSE)


def test_an_encoder_decoder_of_bytes_is_scored_as_by_hand(row):
    hub = ByT5Tokenizer()
    torch.manual_seed(3)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 0}
    model = T5ForConditionalGeneration(T5Config(vocab_size=len(hub), **sizes)).double().eval()
    scorer = load_scorer(model=model, tokenizer=hub, method="likelihood")
    (found,) = scorer.score([row("Das BLANK ist da.", ["Das Café ist da.", "Das Tal ist da."])])
    sentinel = hub.convert_tokens_to_ids("<extra_id_0>")
    for score, filler in zip(found, ["Café", "Tal"], strict=True):
        ids, start, stop = hub(f"Das {filler} ist da.")["input_ids"], 4, 4 + len(filler.encode())
        chances = []
        for k in range(start, stop):
            read = torch.tensor([[*ids[:k], sentinel, *ids[stop:]]])
            with torch.no_grad():
                logits = model(input_ids=read, decoder_input_ids=torch.tensor([[0, sentinel]])).logits
            chances.append(logits[0, 1].softmax(-1)[ids[k]])
        assert score == pytest.approx(torch.stack(chances).mean().log().item(), abs=1e-6)


BEGINNINGS = [
    # name, what stands before a text, whether by itself
    ("bert", ["[CLS]"], True),
    ("phobert", ["<s>"], True),
    ("perceiver", ["[CLS]"], True),
    ("byt5", ["</s>"], False),
    ("gpt-sw3", ["<s>"], False),
]


@pytest.mark.parametrize(("name", "pieces", "habit"), BEGINNINGS)
def test_the_beginning_is_what_stands_before_a_text(slow, name, pieces, habit):
    hub = slow(name)
    beginning = Tokenizer(hub).beginning
    assert (hub.convert_ids_to_tokens(beginning.ids), beginning.habit) == (pieces, habit)


def test_byte_level_is_told_of_slow_tokenizers_too(slow):
    assert not any(Tokenizer(slow(name)).is_byte_level for name in ("bert", "byt5", "phobert"))
