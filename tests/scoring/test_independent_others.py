"""XLNet, T5 and mT5, each against its definition: one text at a time, no batch, no library code."""

import json
from copy import deepcopy
from functools import cache
from itertools import product

import pytest
import torch
from tokenizers import models
from transformers import AutoModelForCausalLM, TextGenerationPipeline

from stereoset_scoring import load_scorer
from tests.crossing import crossed

CLOSE = {"float64": 1e-10, "float32": 1e-4}  # in nats
CLOSE_T5 = 1e-4  # its layer norm and softmax are computed in float32 whatever the model's dtype

PASSAGE = "It was a calm day in the garden."
RELEASED_PASSAGE = TextGenerationPipeline.XL_PREFIX.replace("</s> <eos>", "")
# transformers' second stream adds float32 positions to whatever the model's dtype is, and fails in any other.
DTYPE = {"content": "float64", "query": "float32"}
INTRASENTENCE = {
    # case: (context, what fills BLANK)
    "one piece or many": ("The gardener was BLANK.", ["kind", "thoughtful"]),
    "several words": ("The river was BLANK, he said.", ["very calm", "calm"]),
    "BLANK begins the context": ("BLANK are often quiet.", ["Gardeners", "Trees"]),
    "BLANK ends the context": ("It was BLANK", ["watered", "calm"]),
}
INTERSENTENCE = [
    ("A gardener met us.", ["He was kind.", "Trees are thoughtful."]),
    ("Das Café war schön!", ["Der Gärtner war müde.", "Grün."]),
]


@pytest.fixture(scope="module")
def scorer_of(scorer_of_one):
    """Nothing here changes a model."""
    return scorer_of_one


def steps(tokenizer, context, filler, text, placeholder, pasted):
    """[(ids with a placeholder, its position, the token to be read)] of an option."""
    number = tokenizer.convert_tokens_to_ids(placeholder)
    if text == "pasted":
        pieces = tokenizer.encode(filler, add_special_tokens=False)
        found = []
        for k, piece in enumerate(pieces):
            ids = tokenizer(context.replace("BLANK", tokenizer.decode(pieces[:k]) + pasted))["input_ids"]
            found.append((ids, ids.index(number) if number in ids else None, piece))
        return found
    whole = tokenizer(context.replace("BLANK", filler), return_offsets_mapping=True)
    ids, spans, start = whole["input_ids"], whole["offset_mapping"], context.index("BLANK")
    inside = [i for i, (a, b) in enumerate(spans) if any(start <= c < start + len(filler) for c in range(a, b))]
    return [([*ids[:k], number, *ids[inside[-1] + 1 :]], k, ids[k]) for k in range(inside[0], inside[-1] + 1)]


def averaged(logs, average="probability"):
    logs = torch.stack(logs)
    return (logs.exp().mean().log() if average == "probability" else logs.mean()).item()


def xlnet_by_hand(model, tokenizer, ids, position, token, passage, reading):
    """<passage> <sep> <sentence> <sep> <cls>, read at the mask or by a query."""
    before = tokenizer.encode(passage, add_special_tokens=False)
    sep, cls = tokenizer.convert_tokens_to_ids(["<sep>", "<cls>"])
    assert list(ids[-2:]) == [sep, cls]
    whole = torch.tensor([[*before, sep, *ids]])
    types = torch.tensor([[0] * (len(before) + 1) + [1] * (len(ids) - 1) + [2]])
    at, asked = len(before) + 1 + position, {}
    if reading == "query":
        size = whole.shape[1]
        asked = {"perm_mask": torch.zeros(1, size, size), "target_mapping": torch.zeros(1, 1, size)}
        asked["perm_mask"][0, :, at], asked["target_mapping"][0, 0, at] = 1, 1
    with torch.no_grad():
        logits = model(whole, token_type_ids=types, **asked).logits[0]
    return logits[0 if reading == "query" else at].log_softmax(-1)[token]


def xlnet_score(
    model, tokenizer, context, filler, reading="content", text="ids", average="probability", passage=PASSAGE
):
    read = steps(tokenizer, context, filler, text, "<mask>", "<mask>")
    return averaged([xlnet_by_hand(model, tokenizer, *one, passage, reading) for one in read], average)


@pytest.fixture(scope="module")
def xlnet(folder):
    """xlnet(dtype): the tiny XLNet."""
    return cache(lambda dtype: AutoModelForCausalLM.from_pretrained(folder("xlnet")).to(getattr(torch, dtype)).eval())


@pytest.mark.parametrize("reading", DTYPE)
@pytest.mark.parametrize("text", ["ids", "pasted"])
@pytest.mark.parametrize("average", ["probability", "log"])
def test_permutation_likelihood_is_its_definition(scorer_of, xlnet, tokenizer_of, row, reading, text, average):
    dtype, tokenizer, options = DTYPE[reading], tokenizer_of("xlnet"), (reading, text, average)
    model, rows, expected = xlnet(dtype), [], []
    for context, fillers in INTRASENTENCE.values():
        rows.append(row(context, [context.replace("BLANK", filler) for filler in fillers], fillers))
        expected.append([xlnet_score(model, tokenizer, context, filler, *options) for filler in fillers])
    scorer = scorer_of("xlnet", dtype, reading=reading, text=text, average=average, passage=PASSAGE)
    assert scorer.score(rows) == [pytest.approx(one, abs=CLOSE[dtype]) for one in expected]


def test_passage_is_the_released_one_unless_said_otherwise(scorer_of, xlnet, tokenizer_of, row):
    context, filler = "It was BLANK.", "calm"
    expected = xlnet_score(xlnet("float32"), tokenizer_of("xlnet"), context, filler, passage=RELEASED_PASSAGE)
    scores = scorer_of("xlnet", "float32").score([row(context, [context.replace("BLANK", filler)])])
    assert scores == [[pytest.approx(expected, abs=1e-4)]]


def test_preset_of_xlnet_pastes_and_reads_the_content(scorer_of, intrasentence):
    expected = scorer_of("xlnet", text="pasted", passage=PASSAGE).score(intrasentence)
    assert scorer_of("xlnet", preset="stereoset", passage=PASSAGE).score(intrasentence) == expected


@pytest.mark.parametrize("reading", DTYPE)
def test_permutation_conditional_is_its_definition(scorer_of, xlnet, tokenizer_of, row, reading):
    dtype, tokenizer, expected = DTYPE[reading], tokenizer_of("xlnet"), []
    model, mask = xlnet(dtype), tokenizer.convert_tokens_to_ids("<mask>")
    for context, sentences in INTERSENTENCE:
        expected.append([])
        for sentence in sentences:
            whole = tokenizer(f"{context} {sentence}", return_offsets_mapping=True)
            ids, spans = whole["input_ids"], whole["offset_mapping"]
            logs = [
                xlnet_by_hand(model, tokenizer, [*ids[:k], mask, *ids[-2:]], k, ids[k], PASSAGE, reading)
                for k in range(len(ids) - 2)
                if spans[k][1] > len(context)
            ]
            expected[-1].append(averaged(logs, "log"))
    scorer = scorer_of("xlnet", dtype, method="conditional", reading=reading, passage=PASSAGE)
    scores = scorer.score([row(*example) for example in INTERSENTENCE])
    assert scores == [pytest.approx(one, abs=CLOSE[dtype]) for one in expected]


def decoded(model, encoder, decoder):
    """(D, V) ln P at the positions of the decoder, its start token first."""
    return log_softmax(model, tuple(encoder), tuple(decoder))


@cache  # many options of a method read the same
def log_softmax(model, encoder, decoder):
    with torch.no_grad():
        output = model(input_ids=torch.tensor([encoder]), decoder_input_ids=torch.tensor([[0, *decoder]]))
    return output.logits[0].log_softmax(-1)


def greedy(model, encoder):
    return decoded(model, encoder, [])[0].argmax().item()


SENTINELS = {"t5": "<extra_id_0>", "mt5": "▁<extra_id_0>"}

both = pytest.mark.parametrize(("name", "sentinel"), SENTINELS.items())


READ = [
    (*one, first, text) for one, first, text in product(SENTINELS.items(), ("sentinel", "greedy"), ("ids", "pasted"))
]


@pytest.mark.parametrize(("name", "sentinel", "first", "text", "case"), crossed(READ, INTRASENTENCE))
def test_span_likelihood_is_its_definition(scorer_of, model_of, tokenizer_of, row, name, sentinel, first, text, case):
    model, tokenizer, (context, fillers) = model_of(name, "seq2seq"), tokenizer_of(name), INTRASENTENCE[case]
    number, expected = tokenizer.convert_tokens_to_ids(sentinel), []
    for filler in fillers:
        logs = []
        for encoder, _, token in steps(tokenizer, context, filler, text, sentinel, "<extra_id_0>"):
            before = number if first == "sentinel" else greedy(model, encoder)
            logs.append(decoded(model, encoder, [before])[1, token])
        expected.append(averaged(logs))
    sentences = [context.replace("BLANK", filler) for filler in fillers]
    scores = scorer_of(name, first=first, text=text).score([row(context, sentences, fillers)])
    assert scores == [pytest.approx(expected, abs=CLOSE_T5)]


@both
def test_sentinel_is_among_the_ids_wherever_blank_stands(scorer_of, tokenizer_of, row, name, sentinel):
    number = tokenizer_of(name).convert_tokens_to_ids(sentinel)
    for context, fillers in INTRASENTENCE.values():
        job = scorer_of(name).plan([row(context, [context.replace("BLANK", filler) for filler in fillers])])
        assert all(one.ids.count(number) == 1 for one in job.rows)


def test_pasted_sentinel_of_an_mt5_is_spelled_out_within_a_word(scorer_of, tokenizer_of, row):
    number = tokenizer_of("mt5").convert_tokens_to_ids("▁<extra_id_0>")
    rows = [row("The gardener was BLANK.", ["The gardener was thoughtful."])]
    counts = [one.ids.count(number) for one in scorer_of("mt5", text="pasted").plan(rows).rows]
    assert sorted(set(counts)) == [0, 1]  # as in the released code; the default never loses it


@both
@pytest.mark.parametrize("end", [True, False])
def test_span_conditional_is_its_definition(scorer_of, model_of, tokenizer_of, row, name, sentinel, end):
    model, tokenizer, expected = model_of(name, "seq2seq"), tokenizer_of(name), []
    number = tokenizer.convert_tokens_to_ids(sentinel)
    for context, sentences in INTERSENTENCE:
        encoder = tokenizer(f"{context} <extra_id_0>")["input_ids"]
        assert number in encoder
        expected.append([])
        for sentence in sentences:
            option = tokenizer(sentence)["input_ids"]
            option = option if end else option[:-1]
            at = decoded(model, encoder, [number, *option])
            values = [at[1 + i, token].item() for i, token in enumerate(option)]
            expected[-1].append(sum(values) / len(values))
    scores = scorer_of(name, end=end).score([row(*example) for example in INTERSENTENCE])
    assert scores == [pytest.approx(one, abs=CLOSE_T5) for one in expected]


def log_share(yes, no):
    return (yes - torch.logaddexp(no, yes)).item()


def label_by_hand(model, encoder, label):
    """ln P of a label, of all its tokens."""
    at = decoded(model, encoder, label)
    return sum(at[i, token] for i, token in enumerate(label))


ANSWERED = product(((2, 2), (2, 1)), ("label", "greedy"), (None, "does it follow: "))


@pytest.mark.parametrize(
    ("name", "sentinel", "lengths", "before", "prefix"), crossed(SENTINELS.items(), ANSWERED), ids=str
)
def test_text_to_text_next_sentence_is_its_definition(
    model_of, labels_of, row, name, sentinel, before, prefix, lengths
):
    model, tokenizer, expected = model_of(name, "seq2seq"), labels_of(name, lengths), []
    zero, one = (tokenizer.encode(digit, add_special_tokens=False) for digit in "01")
    assert (len(zero), len(one)) == lengths
    for context, sentences in INTERSENTENCE:
        expected.append([])
        for sentence in sentences:
            encoder = tokenizer((prefix or "binary classification: ") + context, sentence)["input_ids"]
            if before == "label":
                no, yes = (label_by_hand(model, encoder, label) for label in (zero, one))
            else:
                no, yes = decoded(model, encoder, [greedy(model, encoder)])[1, [zero[-1], one[-1]]]
            expected[-1].append(log_share(yes, no))
    options = {"before": before} | ({"prefix": prefix} if prefix else {})
    scorer = load_scorer(model=model, tokenizer=tokenizer, method="next_sentence", **options)
    scores = scorer.score([row(*example) for example in INTERSENTENCE])
    assert scores == [pytest.approx(one, abs=CLOSE_T5) for one in expected]


@pytest.fixture
def labels_of(tokenizer_of):
    """labels_of(name, lengths): a tokenizer that cuts the label 0 in two, and the label 1 in two or leaves it whole."""

    def make(name, lengths):
        tokenizer = deepcopy(tokenizer_of(name))
        if lengths == (2, 1):  # as T5's own vocabulary
            vocabulary = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["vocab"]
            renamed = [("▁1" if piece == "1" else piece, score) for piece, score in vocabulary]
            tokenizer.backend_tokenizer.model = models.Unigram(renamed, unk_id=2)
        return tokenizer

    return make


def test_labels_that_look_alike_to_a_tokenizer_are_refused(model_of, labels_of, intersentence):
    tokenizer = labels_of("mt5", (2, 2))
    vocabulary = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["vocab"]
    unknown = [(f"unused {piece}" if piece in "01" else piece, score) for piece, score in vocabulary]
    tokenizer.backend_tokenizer.model = models.Unigram(unknown, unk_id=2)
    scorer = load_scorer(model=model_of("mt5", "seq2seq"), tokenizer=tokenizer, method="next_sentence")
    with pytest.raises(ValueError, match=r"cannot tell the labels 0 and 1 apart.*choose another"):
        scorer.score(intersentence)


BATCHED = [
    ("xlnet", {"passage": PASSAGE}),
    ("xlnet", {"passage": PASSAGE, "text": "pasted"}),
    ("xlnet", {"passage": PASSAGE, "reading": "query"}),
    ("t5", {}),
    ("t5", {"first": "greedy"}),
    ("mt5", {"text": "pasted", "first": "greedy"}),
]


@pytest.mark.parametrize(("name", "options", "max_tokens"), crossed(BATCHED, [200, 100_000]), ids=str)
def test_batches_do_not_matter(scorer_of, intrasentence, name, options, max_tokens):
    expected = [scorer_of(name, "float32", **options).score([one])[0] for one in intrasentence]
    scores = scorer_of(name, "float32", max_tokens=max_tokens, **options).score(intrasentence[::-1])[::-1]
    assert scores == [pytest.approx(one, abs=1e-4, rel=1e-5) for one in expected]


@pytest.mark.parametrize("max_tokens", [200, 100_000])
def test_batches_of_options_after_their_contexts_do_not_matter(scorer_of, intersentence, max_tokens):
    options = {"method": "conditional", "passage": PASSAGE}
    expected = [scorer_of("xlnet", "float32", **options).score([one])[0] for one in intersentence]
    scores = scorer_of("xlnet", "float32", max_tokens=max_tokens, **options).score(intersentence[::-1])[::-1]
    assert scores == [pytest.approx(one, abs=1e-4, rel=1e-5) for one in expected]


@pytest.mark.parametrize(
    ("name", "options"), crossed(SENTINELS, [{}, {"end": True}, {"method": "next_sentence"}]), ids=str
)
def test_batches_of_pairs_of_texts_do_not_matter(scorer_of, intersentence, name, options):
    expected = [scorer_of(name, "float32", **options).score([one])[0] for one in intersentence]
    scores = scorer_of(name, "float32", max_tokens=100_000, **options).score(intersentence)
    assert scores == [pytest.approx(one, abs=1e-4, rel=1e-5) for one in expected]
