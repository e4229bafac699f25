"""Architectures and kinds of tokenizer: batches against a plain full forward of one text at a time, in float32."""

import random
from copy import deepcopy

import pytest
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from stereoset_scoring import load_scorer
from stereoset_scoring.reading import Unreadable
from stereoset_scoring.scorer import Scorer
from tests.crossing import crossed, thorough_where

CLOSE = 1e-4  # float32, in nats

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 80,
    "initializer_range": 0.3,
}
MASKED = {
    # architecture: what its configuration needs besides the sizes
    "Albert": {"embedding_size": 16},
    "Bert": {},
    "Camembert": {"pad_token_id": 1},
    "ConvBert": {"embedding_size": 32},
    "Deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "DebertaV2": {
        "relative_attention": True,
        "pos_att_type": ["c2p", "p2c"],
        "position_buckets": 8,
        "position_biased_input": False,
        "share_att_key": True,
    },
    "DistilBert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48, "max_position_embeddings": 80},
    "Electra": {"embedding_size": 16},
    "ModernBert": {"local_attention": 8, "global_attn_every_n_layers": 2, "initializer_cutoff_factor": 2.0},
    "MPNet": {"pad_token_id": 1},
    "Roberta": {"pad_token_id": 1},
    "XLMRoberta": {"pad_token_id": 1},
}
GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
CAUSAL = {
    "Bloom": {"n_layer": 2, "n_head": 4},
    "Cohere": {"num_key_value_heads": 2, "logit_scale": 0.25},
    "Gemma": GROUPED,
    "Gemma2": {**GROUPED, "final_logit_softcapping": 3.0, "attn_logit_softcapping": 5.0, "sliding_window": 6},
    "Gemma3": {**GROUPED, "sliding_window": 6},
    "GPT2": {"n_positions": 80, "n_embd": 32, "n_layer": 2, "n_head": 4},
    "GPTNeoX": {},
    "Granite": {"num_key_value_heads": 2, "logits_scaling": 3.0},
    "Llama": {"num_key_value_heads": 2},
    "Mamba": {"state_size": 4},
    "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "Qwen2": {"num_key_value_heads": 2},
    "Qwen3": GROUPED,
}
CLASSES = {
    # where the names of configuration and model do not follow from the architecture's
    "GPT2": ("GPT2Config", "GPT2LMHeadModel"),
    "XLM": ("XLMConfig", "XLMWithLMHeadModel"),
    "Gemma3": ("Gemma3TextConfig", "Gemma3ForCausalLM"),
}
# Their heads and their attention are made as those of RoBERTa, BERT, Llama and Gemma 2.
ALIKE = {"Camembert", "XLMRoberta", "MPNet", "Electra", "Qwen2", "Qwen3", "GPTNeoX", "Gemma", "Gemma3"}
TEXTS = [
    "The gardener was kind and quiet. A quiet teacher met a kind gardener near the river.",
    "They are calm; she is tall. It was watered in the garden, was it not? He reads.",
    "He said: 'A gardener met us!' They said: 'A day, a tree.'",
    "Das Café war schön und grün. Der Gärtner war sehr müde. Trees are long and rivers are calm.",
]
CONTEXTS = [
    # (context, what fills BLANK, as it is released: one word)
    ("The gardener was BLANK.", ["kind", "thoughtful", "grün"]),
    ("BLANK are often quiet, they said.", ["Trees", "Gardeners", "Rivers"]),
    ("A very BLANK teacher met a gardener near the river, and the day was calm.", ["quiet", "schön", "tall"]),
    ("He said: 'BLANK!'", ["calm", "garden", "not"]),
]
FOLLOWING = [
    ("A gardener met us.", ["He was kind.", "She was quiet and thoughtful.", "Trees are tall."]),
    ("We met a teacher near the river", ["He reads.", "It was a calm day!", "Rivers are long, are they not?"]),
]


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def wordpiece():
    """As BERT's."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return trained(tokenizer, trainers.WordPieceTrainer(vocab_size=130, special_tokens=SPECIAL, show_progress=False))


def byte_level(special=None):
    """As GPT-2's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=SPECIAL if special is None else special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    return trained(tokenizer, trainer)


def unigram():
    """As XLM-R's and T5's."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=140, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False)
    return trained(tokenizer, trainer)


def replacing():
    """As Llama's and Gemma's: spaces become letters, and there are no words; unknown ones are spelled in bytes."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = [*SPECIAL, *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=480, special_tokens=special, show_progress=False, max_token_length=9)
    # Learnt word by word; then, as theirs, without a step that parts words.
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trained(tokenizer, trainer).pre_tokenizer = None
    return tokenizer


# The padding is number 1, as RoBERTa and its kin have it.
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
KINDS = {
    # kind: (tokenizer, whether the mask takes the space before it)
    "wordpiece": (wordpiece, False),
    "byte-level": (byte_level, False),
    "byte-level, greedy mask": (byte_level, True),
    "unigram": (unigram, False),
    "unigram, greedy mask": (unigram, True),
    "replacing": (replacing, False),
}


def hub(tokenizer, beginning="<s>", end="</s>", lstrip=False, **more):
    """A hub tokenizer which puts a beginning and an end around a text, or neither."""
    around = [token for token in (beginning, end) if token]
    if around:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=" ".join(filter(None, (beginning, "$A", end))),
            pair=" ".join(filter(None, (beginning, "$A", end, "$B", end))),
            special_tokens=[(token, tokenizer.token_to_id(token)) for token in around],
        )
    mask = AddedToken("<mask>", lstrip=lstrip, special=True)
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": mask, "sep_token": "</s>", "cls_token": "<s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **{**names, **more})


@pytest.fixture(scope="module")
def masked_tokenizers():
    return {kind: hub(make(), lstrip=lstrip) for kind, (make, lstrip) in KINDS.items()}


def model_of(architecture, kind, size, more):
    names = CLASSES.get(architecture, (f"{architecture}Config", f"{architecture}For{kind}"))
    config, model = (getattr(transformers, name) for name in names)
    sizes = {name: value for name, value in SIZES.items() if not more.keys() & {"n_layer", "n_layers", "n_embd"}}
    ids = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        made = model(config(vocab_size=size, **{**sizes, **ids, **more})).eval()
        for name, parameter in made.named_parameters():  # biases and norms start at 0 and 1, where faults hide
            if parameter.dim() == 1 and not name.endswith(("A_log", "D")):
                parameter.data += 0.1 * torch.randn_like(parameter)
    return made


def log_softmax(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].float().log_softmax(-1)


def log_mean(logs):
    return torch.stack(logs).exp().mean().log().item()


def masked_by_hand(model, tokenizer, context, filler, text, known):
    """SCORING's masked likelihood, by ids or by pasted text; `known` keeps {ids: all ln P}, for both ask much alike."""
    logs, start = [], context.index("BLANK")

    def at(ids):
        if tuple(ids) not in known:
            known[tuple(ids)] = log_softmax(model, ids)
        return known[tuple(ids)]

    if text == "pasted":
        pieces = tokenizer.encode(filler, add_special_tokens=False)
        for k, piece in enumerate(pieces):
            ids = tokenizer(context.replace("BLANK", tokenizer.decode(pieces[:k]) + "<mask>"))["input_ids"]
            logs.append(at(ids)[ids.index(4), piece])
        return log_mean(logs)
    encoding = tokenizer(context.replace("BLANK", filler), return_offsets_mapping=True)
    ids, spans = encoding["input_ids"], encoding["offset_mapping"]
    attribute = [i for i, (a, b) in enumerate(spans) if any(start <= c < start + len(filler) for c in range(a, b))]
    for k in attribute:
        logs.append(at([*ids[:k], 4, *ids[attribute[-1] + 1 :]])[k, ids[k]])
    return log_mean(logs)


def shuffled(rows):
    order = random.Random(1).sample(range(len(rows)), len(rows))
    return order, [rows[i] for i in order]


@pytest.mark.parametrize(("kind", "architecture"), crossed(KINDS, MASKED))
def test_masked_scores_are_those_of_one_text_at_a_time(masked_tokenizers, row, architecture, kind):
    tokenizer, known = masked_tokenizers[kind], {}
    model = model_of(architecture, "MaskedLM", len(tokenizer), MASKED[architecture])
    rows = [row(context, [context.replace("BLANK", one) for one in fillers], fillers) for context, fillers in CONTEXTS]
    order, mixed = shuffled(rows)
    for side, max_tokens in (("left", 100_000), ("right", 120)):
        padded = deepcopy(tokenizer)
        padded.padding_side = side
        source = load_scorer(model=model, tokenizer=padded).source
        for text in ("ids", "pasted"):
            scorer = Scorer(source, options={"text": text}, max_tokens=max_tokens)
            expected = [
                [masked_by_hand(model, tokenizer, context, one, text, known) for one in fillers]
                for context, fillers in CONTEXTS
            ]
            assert scorer.score(mixed) == [pytest.approx(expected[i], abs=CLOSE) for i in order]


@pytest.mark.parametrize("kind", KINDS)
def test_both_routes_put_the_mask_where_the_attribute_stood(masked_tokenizers, row, kind):
    tokenizer = masked_tokenizers[kind]
    model = model_of("Bert", "MaskedLM", len(tokenizer), {})
    for context, fillers in CONTEXTS:
        for text in ("ids", "pasted"):
            scorer = load_scorer(model=model, tokenizer=tokenizer, text=text)
            ((recipe, *_),) = scorer.plan([row(context, [context.replace("BLANK", fillers[0])], fillers[:1])]).recipes
            first = recipe.rows[0]
            assert first.ids.count(4) == 1
            assert first.ids[first.reads[0][0]] == 4
            before, after = (tokenizer.decode(part, skip_special_tokens=True) for part in halves(first))
            assert "".join((before + after).split()) == "".join(context.replace("BLANK", "").split())


@pytest.mark.parametrize("architecture", thorough_where(ALIKE, MASKED))
def test_attention_received_is_that_of_one_text_at_a_time(masked_tokenizers, row, architecture):
    tokenizer, expected = masked_tokenizers["wordpiece"], []
    model = model_of(architecture, "MaskedLM", len(tokenizer), MASKED[architecture])
    eager = deepcopy(model)
    eager.set_attn_implementation("eager")
    for context, fillers in CONTEXTS:
        expected.append([])
        for one in fillers:
            ids = tokenizer(context.replace("BLANK", one))["input_ids"]
            with torch.no_grad():
                output = eager(torch.tensor([ids]), output_attentions=True)
            received = torch.stack(output.attentions).mean((0, 1, 2, 3))  # layers, the batch of one, heads, queries
            logs = output.logits[0].log_softmax(-1)[range(len(ids)), ids]
            expected[-1].append((logs * received)[1:-1].mean().item())
    rows = [row(context, [context.replace("BLANK", one) for one in fillers], fillers) for context, fillers in CONTEXTS]
    scores = load_scorer(model=model, tokenizer=tokenizer, method="aula", max_tokens=100_000).score(rows)
    assert scores == [pytest.approx(one, abs=CLOSE) for one in expected]


def test_model_without_attention_is_refused_what_weighs_by_it(masked_tokenizers, row):
    tokenizer, sizes = masked_tokenizers["wordpiece"], {"hidden_size": 32, "num_hidden_layers": 1}
    model = transformers.FNetForMaskedLM(transformers.FNetConfig(vocab_size=len(tokenizer), **sizes)).eval()
    with pytest.raises(Unreadable, match=r"FNetForMaskedLM has no attention.*choose aul"):
        load_scorer(model=model, tokenizer=tokenizer, method="aula").score([row("It was BLANK.", ["It was calm."])])


def halves(row):
    position = row.reads[0][0]
    return row.ids[:position], row.ids[position + 1 :]


@pytest.mark.parametrize("architecture", MASKED)
def test_longest_text_of_an_architecture_can_be_read(masked_tokenizers, architecture):
    model = model_of(architecture, "MaskedLM", 130, MASKED[architecture])
    scorer = load_scorer(model=model, tokenizer=masked_tokenizers["wordpiece"])
    longest = scorer.source.head("masked").longest_input
    assert longest in (78, 80)
    log_softmax(model, [0] + [7] * (longest - 2) + [2])
    if longest == 78:  # positions numbered from the padding id on
        with pytest.raises((IndexError, RuntimeError)):
            log_softmax(model, [0] + [7] * (longest - 1) + [2])


def bos_and_post_processor():
    """As Llama's and Gemma's: <s> before a text by itself."""
    return hub(replacing(), end=None, bos_token="<s>", eos_token="</s>")


def bos_is_eos():
    """As OPT's: </s> before a text by itself, which is beginning and end."""
    return hub(byte_level(), beginning="</s>", end=None, bos_token="</s>", eos_token="</s>")


def bos_only_named():
    """As GPT-2's: a beginning that is never put there by itself."""
    return hub(byte_level(), beginning=None, end=None, bos_token="<s>", eos_token="</s>")


def post_processor_only():
    """A masked model's habit: a token before the text, and no bos."""
    return hub(unigram())


def eos_only():
    """As Qwen's: an end of texts, and nothing else."""
    return hub(byte_level(), beginning=None, end=None, eos_token="</s>", cls_token=None, sep_token=None)


def neither():
    """Neither a beginning nor an end."""
    return PreTrainedTokenizerFast(tokenizer_object=byte_level())


BEGINNINGS = {
    # tokenizer: (origin, id of what is put before a text, how the first token is conditioned)
    bos_and_post_processor: ("bos", 0, "context"),
    bos_is_eos: ("bos", 2, "context"),
    bos_only_named: ("bos", 0, "released"),
    post_processor_only: ("post-processor", 0, "context"),
    eos_only: ("eos", 2, "released"),
    neither: ("none", None, "none"),
}


@pytest.fixture(scope="module")
def causal_tokenizers():
    return {make: make() for make in BEGINNINGS}


def log_probs(model, ids, bos, mode):
    """[ln P of each token of a text], None for one that is not scored."""
    if mode == "context":
        at = log_softmax(model, [bos, *ids])
        return [at[i, token].item() for i, token in enumerate(ids)]
    at = log_softmax(model, ids)
    first = log_softmax(model, [bos])[0, ids[0]].item() if mode == "released" else None
    return [first, *(at[i, token].item() for i, token in enumerate(ids[1:]))]


def mean(values):
    values = [value for value in values if value is not None]
    return sum(values) / len(values)


def causal_by_hand(model, tokenizer, context, sentence, bos, mode):
    """SCORING's causal likelihood of a sentence, or of an option after its context."""
    if "BLANK" in context:
        return mean(log_probs(model, tokenizer.encode(sentence, add_special_tokens=False), bos, mode))
    given = context if context[-1] in ".!?" else context + "."
    encoding = tokenizer(f"{given} {sentence}", add_special_tokens=False, return_offsets_mapping=True)
    values = log_probs(model, encoding["input_ids"], bos, mode)
    return mean([v for v, (_, end) in zip(values, encoding["offset_mapping"], strict=True) if end > len(given)])


@pytest.mark.parametrize(
    ("make", "architecture"), crossed(BEGINNINGS, CAUSAL), ids=lambda one: getattr(one, "__name__", None)
)
def test_causal_scores_are_those_of_one_text_at_a_time(causal_tokenizers, row, architecture, make):
    tokenizer, (_, bos, mode) = causal_tokenizers[make], BEGINNINGS[make]
    model = model_of(architecture, "CausalLM", len(tokenizer), CAUSAL[architecture])
    examples = [
        *((context, [context.replace("BLANK", one) for one in fillers]) for context, fillers in CONTEXTS),
        *FOLLOWING,
    ]
    expected = [
        [causal_by_hand(model, tokenizer, context, one, bos, mode) for one in sentences]
        for context, sentences in examples
    ]
    order, mixed = shuffled([row(*example) for example in examples])
    for side, max_tokens in (("left", 100_000), ("right", 150)):
        padded = deepcopy(tokenizer)
        padded.padding_side = side
        scores = load_scorer(model=model, tokenizer=padded, max_tokens=max_tokens).score(mixed)
        assert scores == [pytest.approx(expected[i], abs=CLOSE) for i in order]


@pytest.mark.parametrize("make", BEGINNINGS, ids=lambda make: make.__name__)
def test_beginning_of_a_text_is_said_and_never_doubled(causal_tokenizers, row, make):
    origin, bos, mode = BEGINNINGS[make]
    tokenizer = causal_tokenizers[make]
    scorer = load_scorer(model=model_of("Llama", "CausalLM", len(tokenizer), CAUSAL["Llama"]), tokenizer=tokenizer)
    beginning = scorer.source.tokenizer.beginning
    assert (beginning.origin, beginning.ids, beginning.habit) == (origin, (bos,) * (bos is not None), mode == "context")
    rows = scorer.plan([row(context, sentences) for context, sentences in FOLLOWING]).rows
    assert all(one.ids.count(bos) == (mode == "context") for one in rows)
    rows = scorer.plan([row("It was BLANK.", ["It was calm."])]).rows
    assert sum(one.ids.count(bos) for one in rows) == (mode != "none")


def test_ordinary_words_may_serve_as_a_beginning_by_their_first_piece(causal_tokenizers, row):
    tokenizer = causal_tokenizers[neither]
    pieces = tokenizer.encode("<|endoftext|>")
    model, sentence = model_of("GPT2", "CausalLM", len(tokenizer), CAUSAL["GPT2"]), "It was calm."
    assert len(pieces) > 1
    expected = mean(log_probs(model, tokenizer.encode(sentence), pieces[0], "released"))
    for arguments in ({"bos_text": "<|endoftext|>"}, {"preset": "multilingual"}):
        scorer = load_scorer(model=model, tokenizer=tokenizer, **arguments)
        assert scorer.score([row("It was BLANK.", [sentence])]) == [[pytest.approx(expected, abs=CLOSE)]]


PROJECTED = [
    *((name, "MaskedLM", MASKED) for name in MASKED if name != "ConvBert"),
    *((name, "CausalLM", CAUSAL) for name in CAUSAL),
]


@pytest.mark.parametrize(("architecture", "kind", "table"), thorough_where(ALIKE, PROJECTED))
def test_vocabulary_is_projected_only_where_something_is_read(
    masked_tokenizers, row, places_read, architecture, kind, table
):
    tokenizer, shapes = masked_tokenizers["unigram"], []
    model = model_of(architecture, kind, len(tokenizer), table[architecture])
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    rows = [row("It was BLANK, he said.", ["It was calm, he said.", "It was long, he said."])]
    if kind == "CausalLM":
        rows = [row(*example) for example in FOLLOWING]
    job = scorer.plan(rows)
    assert scorer.source.head(job.rows[0].head).engine.padding_is_inert  # tried by a pass of its own
    projection = model.get_output_embeddings()
    compute = projection.forward
    projection.forward = lambda hidden: shapes.append(tuple(hidden.shape[:-1])) or compute(hidden)
    scorer.score(rows)
    # Rows longer than a sliding window are not packed.
    read = places_read(job, packed="sliding_window" not in table[architecture])
    assert shapes == [(count,) for count in read]
    assert sum(read) < job.forward_tokens


AFTERWARDS = {"Cohere", "Gemma2", "Granite", "MobileBert"}  # something happens to their logits, or they come otherwise
IN_CHUNKS = [
    *((name, "MaskedLM", MASKED) for name in MASKED),
    *((name, "CausalLM", CAUSAL) for name in CAUSAL),
    ("MobileBert", "MaskedLM", {"MobileBert": {"embedding_size": 16, "intra_bottleneck_size": 16}}),
    ("XLM", "MaskedLM", {"XLM": {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "embed_init_std": 0.3}}),
]


@pytest.mark.parametrize(("architecture", "kind", "table"), thorough_where(ALIKE, IN_CHUNKS))
def test_logits_of_a_few_places_at_a_time_give_the_same_scores(
    masked_tokenizers, row, monkeypatch, architecture, kind, table
):
    tokenizer = masked_tokenizers["unigram"]
    model = model_of(architecture, kind, len(tokenizer), table[architecture])
    rows = [row(context, [context.replace("BLANK", one) for one in fillers], fillers) for context, fillers in CONTEXTS]
    expected = load_scorer(model=model, tokenizer=tokenizer).score(rows)
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    engine = scorer.source.head("masked" if kind == "MaskedLM" else "causal").engine
    monkeypatch.setattr("stereoset_scoring.engines.language_model.LOGITS", 3 * len(tokenizer))
    assert scorer.score(rows) == [pytest.approx(one, abs=CLOSE) for one in expected]
    assert engine.ends_in_its_projection is (architecture not in AFTERWARDS)
