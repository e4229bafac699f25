"""Every method against its definition, written out here one text at a time: no batch, no padding, no library code."""

from functools import cache

import pytest
import torch
from transformers import AutoConfig, BertLMHeadModel

from stereoset_scoring import load_scorer

CLOSE = 1e-12  # float64, in nats

MASKED = ["bert", "roberta", "albert"]
CAUSAL = ["gpt2", "llama", "bare"]
HABIT = {"gpt2": "released", "llama": "context", "bare": "none"}  # the default of the option bos

INTRASENTENCE = {
    # case: (context, [(sentence, what fills BLANK)])
    "one piece or many": (
        "The gardener was BLANK.",
        [("The gardener was kind.", "kind"), ("The gardener was thoughtful.", "thoughtful")],
    ),
    "attribute of several words": (
        "The river was BLANK.",
        [("The river was very calm.", "very calm"), ("The river was calm.", "calm")],
    ),
    "BLANK begins the context": (
        "BLANK are often quiet.",
        [("Gardeners are often quiet.", "Gardeners"), ("Trees are often quiet.", "Trees")],
    ),
    "BLANK has a suffix glued to it": (
        "The tree was BLANKed by a teacher.",
        [("The tree was watered by a teacher.", "water"), ("The tree was painted by a teacher.", "paint")],
    ),
    "BLANK has a prefix glued to it": (
        "She was un-BLANK, he said.",
        [("She was un-kind, he said.", "kind"), ("She was un-quiet, he said.", "quiet")],
    ),
    "BLANK in quotation marks": (
        'She said "BLANK" in the garden.',
        [('She said "kind" in the garden.', "kind"), ('She said "calm day" in the garden.', "calm day")],
    ),
    "context without a full stop": (
        "The river was BLANK",
        [("The river was calm", "calm"), ("The river was long", "long")],
    ),
    "context ends in a space": (
        "The river was BLANK. ",
        [("The river was calm. ", "calm"), ("The river was long. ", "long")],
    ),
    "text beyond ASCII": (
        "Das Café — über dem Fluß — war BLANK.",
        [("Das Café — über dem Fluß — war schön.", "schön"), ("Das Café — über dem Fluß — war grün.", "grün")],
    ),
    "case differs between context and sentence": (
        "The Gardener near THE river was BLANK.",
        [
            ("the gardener near the river was Kind.", "Kind"),
            ("The gardener near the River was calm.", "calm"),
        ],
    ),
    "signs of a pattern in the context": (
        "He said (twice, was it?) that it was BLANK [*].",
        [("He said (twice, was it?) that it was calm [*].", "calm")],
    ),
}
WORDS = {
    # case: (context, [(sentence, stored word)])
    "word of several words": (
        "Der Gärtner war BLANK.",
        [("Der Gärtner war sehr müde.", "sehr müde"), ("Der Gärtner war nicht grün.", "nicht grün")],
    ),
    "word that the sentence inflects": ("Das war BLANK.", [("Das war schöne.", "schön"), ("Das waren Tage", "Tag")]),
    "two BLANKs": ("Ein BLANK Tag, ein BLANK Garten.", [("Ein grün Tag, ein grün Garten.", "grün")]),
}
INTERSENTENCE = {
    "full stop": ("A gardener met us.", ["He was kind.", "Trees are thoughtful."]),
    "question": ("Was it calm?", ["It was a calm day.", "They are not"]),
    "no full stop": ("We met a teacher", ["She is tall.", "it was in the garden!"]),
    "beyond ASCII": ("Das Café war schön!", ["Der Gärtner war müde — sehr.", "Grün."]),
    "option begins with a quotation mark": ("She was quiet.", ['"It was calm," she said.', "(Was it?)"]),
}


@pytest.fixture(scope="module")
def scorer_of(scorer_of_one):
    """Nothing here changes a model."""
    return scorer_of_one


def each(table):
    return pytest.mark.parametrize("case", table.values(), ids=table.keys())


def log_softmax(model, ids):
    """ln P of every token at each place of a text."""
    return read_once(model, tuple(ids))


@cache  # many tests read the same
def read_once(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].log_softmax(-1)


def masked_by_hand(model, tokenizer, text, start, end, average="probability"):
    """SCORING.md §2, masked likelihood: one mask in place of what is left of the attribute."""
    encoding = tokenizer(text, return_offsets_mapping=True)
    ids, spans = encoding["input_ids"], encoding["offset_mapping"]
    attribute = [i for i, (a, b) in enumerate(spans) if any(start <= c < end for c in range(a, b))]
    logs = []
    for k in range(attribute[0], attribute[-1] + 1):
        shown = [*ids[:k], tokenizer.mask_token_id, *ids[attribute[-1] + 1 :]]
        logs.append(log_softmax(model, shown)[k, ids[k]])
    logs = torch.stack(logs)
    return (logs.exp().mean().log() if average == "probability" else logs.mean()).item()


def log_probs_of_tokens(model, ids, bos, mode):
    """[ln P of each token of a text], None for one that is not scored, by the three ways to begin a text."""
    if mode == "context":
        at = log_softmax(model, [bos, *ids])
        return [at[i, token].item() for i, token in enumerate(ids)]
    at = log_softmax(model, ids)
    first = log_softmax(model, [bos])[0, ids[0]].item() if mode == "released" else None
    return [first] + [at[i - 1, ids[i]].item() for i in range(1, len(ids))]


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values)


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("average", ["probability", "log"])
@each(INTRASENTENCE)
def test_masked_likelihood_is_its_definition(scorer_of, model_of, tokenizer_of, row, name, average, case):
    context, options = case
    scores = scorer_of(name, average=average).score([row(context, [sentence for sentence, _ in options])])
    start = context.index("BLANK")
    expected = [
        masked_by_hand(
            model_of(name, "masked"),
            tokenizer_of(name),
            context.replace("BLANK", filler),
            start,
            start + len(filler),
            average,
        )
        for _, filler in options
    ]
    assert scores == [pytest.approx(expected, abs=CLOSE)]


@pytest.mark.parametrize("name", MASKED)
@each(WORDS)
def test_masked_likelihood_takes_the_stored_word(scorer_of, model_of, tokenizer_of, row, name, case):
    context, options = case
    scores = scorer_of(name).score([row(context, *zip(*options, strict=True))])
    start = context.index("BLANK")
    model, tokenizer = model_of(name, "masked"), tokenizer_of(name)
    filled = [(context.replace("BLANK", word), start, start + len(word)) for _, word in options]
    assert scores == [pytest.approx([masked_by_hand(model, tokenizer, *one) for one in filled], abs=CLOSE)]


@pytest.mark.parametrize("name", MASKED)
def test_first_of_two_blanks_is_scored_and_both_are_filled(scorer_of, model_of, tokenizer_of, row, name):
    sentence = "A thoughtful teacher met a quiet gardener."
    scores = scorer_of(name).score([row("A BLANK teacher met a BLANK gardener.", [sentence])])
    expected = masked_by_hand(model_of(name, "masked"), tokenizer_of(name), sentence, 2, 2 + len("thoughtful"))
    assert scores == [[pytest.approx(expected, abs=CLOSE)]]


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("attribute_space", [False, True])
@pytest.mark.parametrize("sentence_space", [False, True])
@pytest.mark.parametrize(
    "context", ["The gardener was BLANK.", "BLANK is near the river.", "A BLANK day, a BLANK tree"]
)
def test_pasted_text_is_tokenized_again(
    scorer_of, model_of, tokenizer_of, row, name, attribute_space, sentence_space, context
):
    model, tokenizer, word = model_of(name, "masked"), tokenizer_of(name), "thoughtful"
    byte_level = name == "roberta"
    pieces = tokenizer.encode(" " * (attribute_space and byte_level) + word, add_special_tokens=False)
    probabilities = []
    for k, piece in enumerate(pieces):
        text = context.replace("BLANK", tokenizer.decode(pieces[:k]) + tokenizer.mask_token)
        starts_at_mask = text.startswith(tokenizer.mask_token) or text.startswith(" ")
        ids = tokenizer(" " * (sentence_space and byte_level and not starts_at_mask) + text)["input_ids"]
        probabilities.append(log_softmax(model, ids)[ids.index(tokenizer.mask_token_id), piece].exp())
    scorer = scorer_of(name, text="pasted", attribute_space=attribute_space, sentence_space=sentence_space)
    scores = scorer.score([row(context, [context.replace("BLANK", word)])])
    assert scores == [[pytest.approx(torch.stack(probabilities).mean().log().item(), abs=CLOSE)]]


def bos_modes(name):
    return [None, "none"] if name == "bare" else [None, "context", "released", "none"]


MODES = [(name, mode) for name in CAUSAL for mode in bos_modes(name)]


@pytest.mark.parametrize(("name", "mode"), MODES)
@each(INTRASENTENCE)
def test_causal_likelihood_is_its_definition(scorer_of, model_of, tokenizer_of, row, name, mode, case):
    context, options = case
    sentences = [sentence for sentence, _ in options]
    model, tokenizer = model_of(name, "causal"), tokenizer_of(name)
    encoded = [tokenizer.encode(sentence, add_special_tokens=False) for sentence in sentences]
    expected = [mean(log_probs_of_tokens(model, ids, tokenizer.bos_token_id, mode or HABIT[name])) for ids in encoded]
    scores = scorer_of(name, **({} if mode is None else {"bos": mode})).score([row(context, sentences)])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


@pytest.mark.parametrize(("name", "mode"), MODES)
@pytest.mark.parametrize(("method", "border"), [(None, None), ("conditional", "length"), ("joint", None)])
@each(INTERSENTENCE)
def test_causal_intersentence_is_its_definition(
    scorer_of, model_of, tokenizer_of, row, name, mode, method, border, case
):
    context, sentences = case
    model, tokenizer = model_of(name, "causal"), tokenizer_of(name)
    given = context if context[-1] in ".!?" else context + "."
    expected = []
    for sentence in sentences:
        encoding = tokenizer(f"{given} {sentence}", add_special_tokens=False, return_offsets_mapping=True)
        values = log_probs_of_tokens(model, encoding["input_ids"], tokenizer.bos_token_id, mode or HABIT[name])
        option = [i for i, (_, end) in enumerate(encoding["offset_mapping"]) if end > len(given)]
        if border == "length":
            option = range(len(tokenizer.encode(given, add_special_tokens=False)), len(values))
        expected.append(mean(values if method == "joint" else [values[i] for i in option]))
    chosen = {key: value for key, value in (("bos", mode), ("border", border)) if value is not None}
    scores = scorer_of(name, method=method, **chosen).score([row(context, sentences)])
    assert scores == [pytest.approx(expected, abs=CLOSE)]


def test_bos_text_stands_in_for_the_first_token(scorer_of, model_of, tokenizer_of, row):
    model, tokenizer, sentence = model_of("bare", "causal"), tokenizer_of("bare"), "The river was calm."
    bos = tokenizer.encode("garden")[0]
    expected = mean(log_probs_of_tokens(model, tokenizer.encode(sentence), bos, "released"))
    scores = scorer_of("bare", bos_text="garden").score([row("The river was BLANK.", [sentence])])
    assert scores == [[pytest.approx(expected, abs=CLOSE)]]


def test_beginning_by_habit_is_whatever_the_tokenizer_puts_there(scorer_of, folder, tokenizer_of, model_of, row):
    # A masked model's tokenizer under a causal model: [CLS] before the text, and no bos token of its own.
    config = AutoConfig.from_pretrained(folder("bert"), is_decoder=True)
    model = BertLMHeadModel.from_pretrained(folder("bert"), config=config, dtype=torch.float64).eval()
    tokenizer, sentence = tokenizer_of("bert"), "The river was calm."
    ids = tokenizer.encode(sentence, add_special_tokens=False)
    expected = mean(log_probs_of_tokens(model, ids, tokenizer.cls_token_id, "context"))
    scores = load_scorer(model=model, tokenizer=tokenizer).score([row("The river was BLANK.", [sentence])])
    assert scores == [[pytest.approx(expected, abs=CLOSE)]]


@pytest.mark.parametrize("name", CAUSAL)
def test_context_that_is_too_long_loses_its_beginning_for_every_option_alike(
    scorer_of, model_of, tokenizer_of, row, name
):
    model, tokenizer = model_of(name, "causal"), tokenizer_of(name)
    context, sentences = "It is calm" + ", it is calm" * 20 + ".", ["He is kind.", "She was thoughtful and quiet."]
    encoded = [
        tokenizer(f"{context} {sentence}", add_special_tokens=False, return_offsets_mapping=True)
        for sentence in sentences
    ]
    bos = [tokenizer.bos_token_id] * (HABIT[name] == "context")
    # The model reads 64 tokens; the last one of a text is read off, and needs no reading.
    cut = max(len(bos) + len(one["input_ids"]) - 1 for one in encoded) - 64
    expected = []
    for one in encoded:
        ids = [*bos, *one["input_ids"][cut:]]
        count = sum(end > len(context) for _, end in one["offset_mapping"])
        at = log_softmax(model, ids[:-1])
        expected.append(mean([at[i - 1, ids[i]].item() for i in range(len(ids) - count, len(ids))]))
    scorer, rows = scorer_of(name), [row(context, sentences)]
    assert cut > 0
    assert scorer.score(rows) == [pytest.approx(expected, abs=CLOSE)]
    assert (scorer.plan(rows).truncated, scorer.plan([row("It is calm.", sentences)]).truncated) == (1, 0)


@each(INTERSENTENCE)
def test_next_sentence_is_the_probability_of_class_0(scorer_of, model_of, tokenizer_of, row, case):
    context, sentences = case
    scores = scorer_of("bert").score([row(context, sentences)])
    model, expected = model_of("bert", "next_sentence"), []
    for sentence in sentences:
        inputs = tokenizer_of("bert")(context, sentence, return_tensors="pt")
        assert inputs["token_type_ids"].unique().tolist() == [0, 1]
        expected.append(model(**inputs).logits[0].log_softmax(-1)[0].item())
    assert scores == [pytest.approx(expected, abs=CLOSE)]


PIECES = {
    "bert": "The gardener was t ##h ##o ##u ##g ##h ##t ##f ##u ##l .",
    "roberta": "The Ġgardener Ġwas Ġt h o u g h t f u l .",
    "albert": "▁The ▁garden er ▁wa s ▁th o u g h t f u l .",
    "gpt2": "The Ġgardener Ġwas Ġt h o u g h t f u l .",
    "llama": "▁The ▁garden er ▁wa s ▁th o u g h t f u l .",
    "bare": "The Ġgardener Ġwas Ġt h o u g h t f u l .",
}


@pytest.mark.parametrize(("name", "pieces"), PIECES.items())
def test_tiny_tokenizers_split_as_the_cases_assume(tokenizer_of, name, pieces):
    assert tokenizer_of(name).tokenize("The gardener was thoughtful.") == pieces.split()
    assert len(tokenizer_of(name).tokenize(" kind")) == 1


@pytest.mark.parametrize("name", MASKED)
def test_token_that_spans_the_border_of_the_attribute_is_read_whole_and_counted(scorer_of, row, name):
    rows = [row("It was kBLANK.", ["It was kind."]), row("It was BLANK.", ["It was kind."])]
    scorer = scorer_of(name)
    (inside,), (whole,) = scorer.score(rows)
    assert inside == whole
    assert (scorer.plan(rows[:1]).straddling, scorer.plan(rows[1:]).straddling) == (1, 0)
