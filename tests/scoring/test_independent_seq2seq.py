"""Encoder-decoders of every make, each against its definition: one row at a time, no batch, no library code."""

from copy import deepcopy
from functools import cache

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, processors
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BigBirdPegasusConfig,
    BigBirdPegasusForConditionalGeneration,
    BlenderbotConfig,
    BlenderbotForConditionalGeneration,
    EncoderDecoderConfig,
    EncoderDecoderModel,
    FNetConfig,
    FSMTConfig,
    FSMTForConditionalGeneration,
    GPT2Config,
    LEDConfig,
    LEDForConditionalGeneration,
    LongT5Config,
    LongT5ForConditionalGeneration,
    M2M100Config,
    M2M100ForConditionalGeneration,
    MarianConfig,
    MarianMTModel,
    MBartConfig,
    MBartForConditionalGeneration,
    MusicgenConfig,
    MvpConfig,
    MvpForConditionalGeneration,
    NllbMoeConfig,
    NllbMoeForConditionalGeneration,
    PegasusConfig,
    PegasusForConditionalGeneration,
    PegasusXConfig,
    PegasusXForConditionalGeneration,
    Pix2StructConfig,
    PLBartConfig,
    PLBartForConditionalGeneration,
    PreTrainedTokenizerFast,
    ProphetNetConfig,
    ProphetNetForConditionalGeneration,
    SeamlessM4TConfig,
    Speech2TextConfig,
    SwitchTransformersConfig,
    SwitchTransformersForConditionalGeneration,
    T5Gemma2Config,
    T5GemmaConfig,
    T5GemmaForConditionalGeneration,
    T5GemmaModuleConfig,
    UMT5Config,
    UMT5ForConditionalGeneration,
    VisionEncoderDecoderConfig,
    ViTConfig,
    WhisperConfig,
)

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.families import family_of
from stereoset_scoring.engines.sharing import Sharing
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.refusal import Refusal
from tests.crossing import thorough, thorough_where

CLOSE = {"float64": 1e-9, "float32": 1e-5}  # in nats
CLOSE_IN_FLOAT32 = 1e-4  # norms or softmax in float32, whatever the model's dtype

FLAT = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "init_std": 0.4,
}
T5_LIKE = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "initializer_factor": 1.0,
}
EXPERTS = {"num_experts": 4, "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1}
HIDDEN = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
WINDOWS = {
    "num_key_value_heads": 2,
    "head_dim": 8,
    "sliding_window": 8,
    "layer_types": ["sliding_attention", "full_attention"],
    "initializer_range": 0.4,
}


def flat(config, model, **more):
    return lambda size: model(config(**{"vocab_size": size, "max_position_embeddings": 64, **FLAT, **more}))


def fairseq(config, model, **more):
    """<s> 0, <pad> 1, </s> 2, as in the byte-level tokenizer."""
    return flat(config, model, bos_token_id=0, pad_token_id=1, eos_token_id=2, **more)


def text_to_text(config, model, **more):
    return lambda size: model(config(vocab_size=size, decoder_start_token_id=0, **T5_LIKE, **more))


def led(size):
    positions = {"max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 48}
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    return LEDForConditionalGeneration(LEDConfig(vocab_size=size, attention_window=[8, 8], **positions, **ids, **FLAT))


def fsmt(size):
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    sizes = {"src_vocab_size": size, "tgt_vocab_size": size, "max_position_embeddings": 64}
    return FSMTForConditionalGeneration(FSMTConfig(langs=["en", "de"], **sizes, **ids, **FLAT))


def t5gemma(size):
    side = T5GemmaModuleConfig(vocab_size=size, pad_token_id=1, bos_token_id=0, eos_token_id=2, **HIDDEN, **WINDOWS)
    return T5GemmaForConditionalGeneration(T5GemmaConfig(encoder=side, decoder=side, vocab_size=size))


def two_in_one(encoder):
    """Two models as the sides of one; decoded from the token that begins a sequence."""

    def make(size):
        decoder = GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=4, n_positions=64, initializer_range=0.3)
        sides = EncoderDecoderConfig.from_encoder_decoder_configs(encoder(vocab_size=size, **HIDDEN), decoder)
        sides.decoder_start_token_id = sides.pad_token_id = 0
        return EncoderDecoderModel(sides)

    return make


def prophetnet(size):
    sizes = {"num_encoder_layers": 2, "num_decoder_layers": 2, "max_position_embeddings": 64, "init_std": 0.4}
    heads = {"num_encoder_attention_heads": 4, "num_decoder_attention_heads": 4}
    ids = {"pad_token_id": 1, "decoder_start_token_id": 1}
    dims = {"hidden_size": 32, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    config = ProphetNetConfig(vocab_size=size, **sizes, **heads, **ids, **dims)
    return ProphetNetForConditionalGeneration(config)


PEGASUS = {"pad_token_id": 1, "decoder_start_token_id": 1}
MODELS = {
    # name: (how its tokenizer frames a text, the model, what the decoder reads before a text, the default method)
    "bart": ("<s> A </s>", fairseq(BartConfig, BartForConditionalGeneration), "</s> <s>", "denoising"),
    "mvp": ("<s> A </s>", fairseq(MvpConfig, MvpForConditionalGeneration), "</s> <s>", "denoising"),
    "led": ("<s> A </s>", led, "</s> <s>", "denoising"),
    "mbart": ("A </s> en_XX", fairseq(MBartConfig, MBartForConditionalGeneration), "en_XX", "denoising"),
    "plbart": ("A </s> en_XX", fairseq(PLBartConfig, PLBartForConditionalGeneration), "en_XX", "denoising"),
    "mbart-50": (
        "en_XX A </s>",
        fairseq(MBartConfig, MBartForConditionalGeneration, decoder_start_token_id=2),
        "</s> en_XX",
        "denoising",
    ),
    "m2m_100": ("en_XX A </s>", fairseq(M2M100Config, M2M100ForConditionalGeneration), "</s> en_XX", "denoising"),
    "nllb-moe": (
        "en_XX A </s>",
        fairseq(
            NllbMoeConfig,
            NllbMoeForConditionalGeneration,
            num_experts=4,
            encoder_sparse_step=1,
            decoder_sparse_step=1,
        ),
        "</s> en_XX",
        "denoising",
    ),
    "pegasus": ("A </s>", flat(PegasusConfig, PegasusForConditionalGeneration, **PEGASUS), "<pad>", "denoising"),
    "pegasus_x": (
        "A </s>",
        flat(PegasusXConfig, PegasusXForConditionalGeneration, block_size=8, num_global_tokens=4, **PEGASUS),
        "<pad>",
        "denoising",
    ),
    "bigbird_pegasus": (
        "A </s>",
        flat(BigBirdPegasusConfig, BigBirdPegasusForConditionalGeneration, decoder_start_token_id=2, pad_token_id=1),
        "</s>",
        "denoising",
    ),
    "marian": (
        "A </s> (no mask)",
        fairseq(MarianConfig, MarianMTModel, decoder_start_token_id=1),
        "<pad>",
        "prefix",
    ),
    "blenderbot": (
        "A </s>",  # with a mask: its decoder begins as a language model's does
        fairseq(BlenderbotConfig, BlenderbotForConditionalGeneration, decoder_start_token_id=0),
        "<s>",
        "prefix",
    ),
    "fsmt": ("A </s> (no mask)", fsmt, "</s>", "prefix"),
    "t5gemma": ("<s> A", t5gemma, "<s>", "prefix"),
    "bert and gpt2": ("<s> A </s>", two_in_one(BertConfig), "<s>", "prefix"),
    "fnet and gpt2": ("<s> A </s>", two_in_one(FNetConfig), "<s>", "prefix"),
    "switch": (
        "t5",
        text_to_text(
            SwitchTransformersConfig, SwitchTransformersForConditionalGeneration, expert_capacity=64, **EXPERTS
        ),
        "<pad>",
        "span",
    ),
    "switch that drops tokens": (
        "t5",
        text_to_text(
            SwitchTransformersConfig, SwitchTransformersForConditionalGeneration, expert_capacity=2, **EXPERTS
        ),
        "<pad>",
        "span",
    ),
    "umt5": ("t5", text_to_text(UMT5Config, UMT5ForConditionalGeneration), "<pad>", "span"),
    "longt5": ("t5", text_to_text(LongT5Config, LongT5ForConditionalGeneration, local_radius=3), "<pad>", "span"),
    "longt5 with global tokens": (
        "t5",
        text_to_text(
            LongT5Config,
            LongT5ForConditionalGeneration,
            local_radius=3,
            global_block_size=4,
            encoder_attention_type="transient-global",
        ),
        "<pad>",
        "span",
    ),
}
# What those before and after them have too: how texts are framed, how a side is made, and the library's code for it.
ALIKE = {"mvp", "plbart", "mbart-50", "pegasus", "bert and gpt2", "switch", "longt5"}
# They keep some of what they compute in float32, whatever their dtype.
ROUNDED = {"switch", "switch that drops tokens", "umt5", "longt5", "longt5 with global tokens", "t5gemma"}
# Padding matters to them.
BY_LENGTH = {"fnet and gpt2"}
# Their own pass over one row fails in float64.
NOT_IN_FLOAT64 = {"fsmt": "without overflow"}


@pytest.fixture(scope="module")
def framed(tokenizer_of):
    """framed(how): a tokenizer that puts what it is told around a text "A"; byte-level, or "t5"."""

    @cache
    def make(how):
        if how == "t5":
            return tokenizer_of("t5")
        tokenizer = Tokenizer.from_str(tokenizer_of("roberta").backend_tokenizer.to_str())
        tokenizer.add_special_tokens(["en_XX"])
        frame = how.removesuffix(" (no mask)").replace("A", "$A")
        special = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>", "en_XX")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=frame, pair=f"{frame} $B", special_tokens=special
        )
        mask = {} if "(no mask)" in how else {"mask_token": AddedToken("<mask>", lstrip=True, special=True)}
        names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
        return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names, **mask)

    return make


@pytest.fixture(scope="module")
def asked(framed):
    """asked(name, dtype): (model, tokenizer) of MODELS."""

    @cache
    def make(name, dtype):
        how, make_model, *_ = MODELS[name]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            model = make_model(len(framed(how))).eval()
            for parameter in model.parameters():  # biases and norms start at 0 and 1, where faults hide
                if parameter.dim() == 1:
                    parameter.data += 0.1 * torch.randn_like(parameter)
            if hasattr(model, "final_logits_bias"):
                model.final_logits_bias += torch.randn_like(model.final_logits_bias)
        return model.to(getattr(torch, dtype)), framed(how)

    return make


def decoded(model, encoder, decoder):
    """(D, V) ln P at the positions of the decoder, by the model's own pass over one row."""
    with torch.no_grad():
        ids, mask = torch.tensor([encoder]), torch.ones(1, len(encoder), dtype=torch.long)
        output = model(input_ids=ids, attention_mask=mask, decoder_input_ids=torch.tensor([decoder]), use_cache=False)
    return output.logits[0].to(torch.promote_types(model.dtype, torch.float32)).log_softmax(-1)


def read(model, encoder, before, text, wanted):
    """ln P of the wanted positions of a text that the decoder writes after what it reads first."""
    logs = decoded(model, encoder, [*before, *text][:-1])
    return torch.stack([logs[len(before) - 1 + i, text[i]] for i in wanted])


def bare(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def frame(tokenizer, ids):
    """The ids of a text as the tokenizer frames them."""
    whole = tokenizer("a")["input_ids"]
    (letter,) = bare(tokenizer, "a")
    at = whole.index(letter)
    return [*whole[:at], *ids, *whole[at + 1 :]]


def places(tokenizer, text, start, end):
    """(the ids of a text without special tokens, positions of those that hold any of its characters start to end)."""
    found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    inside = [i for i, (a, b) in enumerate(found["offset_mapping"]) if any(start <= c < end for c in range(a, b))]
    return found["input_ids"], list(range(inside[0], inside[-1] + 1))


def ended(context):
    return context if context[-1] in ".!?" else context + "."


def denoising(model, tokenizer, before, text, start, end):
    ids, span = places(tokenizer, text, start, end)
    encoder = frame(tokenizer, [*ids[: span[0]], tokenizer.mask_token_id, *ids[span[-1] + 1 :]])
    return read(model, encoder, before, ids[: span[-1] + 1], span)


def denoising_within(model, tokenizer, before, context, filler):
    start = context.index("BLANK")
    logs = denoising(model, tokenizer, before, context.replace("BLANK", filler), start, start + len(filler))
    return logs.exp().mean().log()


def denoising_across(model, tokenizer, before, context, sentence):
    text = f"{ended(context)} {sentence}"
    return denoising(model, tokenizer, before, text, len(ended(context)), len(text)).mean()


def prefix(model, tokenizer, before, first, second):
    ids = bare(tokenizer, second)
    encoder = frame(tokenizer, bare(tokenizer, first)) or before
    return read(model, encoder, before, ids, range(len(ids))).mean()


def prefix_within(model, tokenizer, before, context, filler):
    start = context.index("BLANK")
    return prefix(model, tokenizer, before, context[:start].strip(), context[start:].replace("BLANK", filler))


def prefix_across(model, tokenizer, before, context, sentence):
    return prefix(model, tokenizer, before, ended(context), sentence)


def span_within(model, tokenizer, before, context, filler):
    start, sentinel = context.index("BLANK"), tokenizer.convert_tokens_to_ids("<extra_id_0>")
    ids, span = places(tokenizer, context.replace("BLANK", filler), start, start + len(filler))
    rows = [([*ids[:k], sentinel, *ids[span[-1] + 1 :], tokenizer.eos_token_id], ids[k]) for k in span]
    logs = [decoded(model, encoder, [*before, sentinel])[1, token] for encoder, token in rows]
    return torch.stack(logs).exp().mean().log()


def span_across(model, tokenizer, before, context, sentence):
    sentinel = tokenizer.convert_tokens_to_ids("<extra_id_0>")
    encoder, ids = tokenizer(f"{ended(context)} <extra_id_0>")["input_ids"], bare(tokenizer, sentence)
    return read(model, encoder, [*before, sentinel], ids, range(len(ids))).mean()


DEFINITIONS = {
    ("intrasentence", "denoising"): denoising_within,
    ("intersentence", "denoising"): denoising_across,
    ("intrasentence", "prefix"): prefix_within,
    ("intersentence", "prefix"): prefix_across,
    ("intrasentence", "span"): span_within,
    ("intersentence", "span"): span_across,
}
NAMES = {("intrasentence", "span"): "likelihood", ("intersentence", "span"): "conditional"}
EXAMPLES = {
    "intrasentence": [
        ("The gardener was BLANK.", ["kind", "thoughtful"]),
        ("A BLANK teacher met a gardener near the river, and the day was calm.", ["kind", "very thoughtful"]),
        ("BLANK are often quiet.", ["Gardeners", "Trees"]),
        ("It was BLANK and BLANK", ["watered", "calm"]),
    ],
    "intersentence": [
        ("A gardener met us.", ["He was kind.", "Trees are thoughtful."]),
        ("We met a teacher near the river", ["He reads.", "Rivers are long and trees are tall, are they not?"]),
        ("Das Café war schön!", ["Der Gärtner war müde.", "Grün."]),
    ],
}


@pytest.fixture(scope="module")
def rows_of(row):
    """rows_of(task): EXAMPLES in the layout of StereoSet."""

    def make(task):
        if task == "intersentence":
            return [row(context, sentences) for context, sentences in EXAMPLES[task]]
        return [
            row(context, [context.replace("BLANK", filler) for filler in fillers], fillers)
            for context, fillers in EXAMPLES[task]
        ]

    return make


def defined(name, model, tokenizer, task, method):
    """The scores of EXAMPLES by definition."""
    before = tokenizer.convert_tokens_to_ids(MODELS[name][2].split())
    score = DEFINITIONS[task, method]
    return [
        [score(model, tokenizer, before, context, option).item() for option in options]
        for context, options in EXAMPLES[task]
    ]


def tolerance(name, dtype):
    return CLOSE_IN_FLOAT32 if name in ROUNDED else CLOSE[dtype]


@pytest.mark.parametrize("name", thorough_where(ALIKE, MODELS))
def test_default_method_is_its_definition_one_row_at_a_time(asked, rows_of, name):
    # Float64 hides less; what is computed in float32 in any case shows no more there.
    dtype = "float32" if name in ROUNDED | NOT_IN_FLOAT64.keys() else "float64"
    (model, tokenizer), method = asked(name, dtype), MODELS[name][3]
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    for task in EXAMPLES:
        assert scorer.method(task).name == NAMES.get((task, method), method)
        expected = defined(name, model, tokenizer, task, method)
        assert scorer.score(rows_of(task)) == [pytest.approx(one, abs=tolerance(name, dtype)) for one in expected]
    sharing = scorer.source.head("seq2seq").engine.sharing
    assert sharing == (Sharing.LENGTHS if name in BY_LENGTH else Sharing.PASSES)


@pytest.mark.parametrize("name", NOT_IN_FLOAT64)
def test_model_that_overflows_in_float64_is_refused(asked, rows_of, name):
    model, tokenizer = asked(name, "float64")
    with pytest.raises(Refusal, match=f"float64.*{NOT_IN_FLOAT64[name]}"):
        load_scorer(model=model, tokenizer=tokenizer).score(rows_of("intrasentence"))


@pytest.mark.parametrize(("name", "method"), [
    ("bart", "prefix"), ("mbart-50", "prefix"), ("marian", "prefix"), ("blenderbot", "denoising"), ("mbart", "prefix"),
])  # fmt: skip
def test_method_that_is_not_the_default_is_its_definition(asked, rows_of, name, method):
    model, tokenizer = asked(name, "float64")
    scorer = load_scorer(model=model, tokenizer=tokenizer, method=method)
    for task in EXAMPLES:
        expected = defined(name, model, tokenizer, task, method)
        assert scorer.score(rows_of(task)) == [pytest.approx(one, abs=1e-9) for one in expected]


@pytest.mark.parametrize("name", [
    "led", "mbart", thorough("nllb-moe"), "switch that drops tokens", "t5gemma", "fnet and gpt2",
])  # fmt: skip
def test_scores_do_not_depend_on_the_batch(asked, rows_of, name):
    model, tokenizer = asked(name, "float32")
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    for task in EXAMPLES:
        rows = [{**row, "id": f"{row['id']}-{i}"} for i, row in enumerate(rows_of(task) * 2)]
        found = []
        for scorer.max_tokens in (90, 300, 100_000):
            found.append(scorer.score(rows))
        for other in (*found[1:], scorer.score(rows[::-1])[::-1]):
            assert other == [pytest.approx(one, abs=1e-5) for one in found[0]]


@pytest.mark.parametrize("name", ["mbart", "nllb-moe", thorough("switch"), "t5gemma"])
def test_half_precision_differs_from_one_row_at_a_time_by_rounding_alone(asked, rows_of, name):
    model, tokenizer = asked(name, "float32")
    model = deepcopy(model).to(torch.bfloat16)
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    for task in EXAMPLES:
        expected = defined(name, model, tokenizer, task, MODELS[name][3])
        assert scorer.score(rows_of(task)) == [pytest.approx(one, abs=0.15) for one in expected]
    assert scorer.source.head("seq2seq").engine.sharing == Sharing.PASSES


# Of every make of encoder, those that the test above has not.
@pytest.mark.parametrize(
    "name", ["bart", "led", "pegasus_x", "bigbird_pegasus", "fsmt", "bert and gpt2", "longt5", "umt5"]
)
def test_rows_share_passes_in_half_precision_where_padding_changes_nothing(asked, name):
    model, tokenizer = asked(name, "float32")
    scorer = load_scorer(model=deepcopy(model).to(torch.bfloat16), tokenizer=tokenizer)
    engine = scorer.source.head("seq2seq").engine
    engine.try_out([[Row("seq2seq", (5, 6, 7, 8), ((0, 5),), decoder=(6,), start=5)]])
    assert engine.sharing == Sharing.PASSES


def test_options_with_the_same_context_are_encoded_once(asked, rows_of):
    for name, task in (("bart", "intersentence"), ("t5gemma", "intersentence"), ("t5gemma", "intrasentence")):
        model, tokenizer = asked(name, "float32")
        job = load_scorer(model=model, tokenizer=tokenizer).plan(rows_of(task))
        assert len({row.ids for row in job.rows}) == len(EXAMPLES[task]) < len(job.rows)
        assert {len({row.ids for row in unit.rows}) for batch in job.batches for unit in batch} == {1}


def test_mask_takes_the_space_before_it_as_in_a_text(asked, rows_of):
    model, tokenizer = asked("bart", "float32")
    job = load_scorer(model=model, tokenizer=tokenizer).plan(rows_of("intrasentence")[:1])
    assert {row.ids for row in job.rows} == {tuple(tokenizer("The gardener was <mask>.")["input_ids"])}


def test_average_of_logarithms_is_an_option_of_denoising(asked, rows_of):
    model, tokenizer = asked("bart", "float64")
    job = load_scorer(model=model, tokenizer=tokenizer, average="log").plan(rows_of("intrasentence"))
    assert job.recipes[0][1].combine([[-1.0, -3.0]]) == -2.0


def test_trial_leaves_a_model_in_training_as_it_was(asked, rows_of):
    model, tokenizer = asked("bart", "float32")
    model = deepcopy(model).train()
    model.model.encoder.eval()
    before = torch.get_rng_state()
    load_scorer(model=model, tokenizer=tokenizer).plan(rows_of("intersentence"))
    assert torch.equal(torch.get_rng_state(), before)
    assert (model.training, model.model.decoder.training, model.model.encoder.training) == (True, True, False)


class Longer(BartForConditionalGeneration):
    def forward(self, **inputs):
        output = super().forward(**inputs)
        output.logits = torch.cat([output.logits[:, :1], output.logits], 1)
        return output


def experts(**more):
    return fairseq(NllbMoeConfig, NllbMoeForConditionalGeneration, num_experts=4, decoder_sparse_step=1, **more)


BROKEN = {
    # what a model does: (how its tokenizer frames a text, the model, what the refusal says)
    "drops tokens for others": ("en_XX A </s>", experts(moe_eval_capacity_token_fraction=0.3), "when others follow"),
    "draws experts": (
        "en_XX A </s>",
        experts(second_expert_policy="random"),
        "when it is asked a second time",
    ),
    "looks at how many tokens there are": ("<s> A </s>", prophetnet, "when others follow"),
    "looks at them in half precision": (
        "<s> A </s>",
        lambda size: prophetnet(size).to(torch.bfloat16),
        "when others follow",
    ),
    "gives NaN": ("<s> A </s>", lambda size: prophetnet(size).double(), "in float64 gives no numbers"),
    "adds outputs": ("<s> A </s>", fairseq(BartConfig, Longer), "11 outputs for 10 inputs"),
    "starts with nothing": (
        "A </s>",
        flat(MBartConfig, MBartForConditionalGeneration, bos_token_id=None, pad_token_id=1, eos_token_id=2),
        "does not say what its decoder starts with: set decoder_start_token_id",
    ),
}


@pytest.mark.parametrize("case", BROKEN.values(), ids=BROKEN.keys())
def test_model_that_breaks_the_promises_of_its_family_is_refused(framed, rows_of, case):
    how, make_model, words = case
    torch.manual_seed(7)
    model = make_model(len(framed(how))).eval()
    with pytest.raises(ValueError, match=words):
        load_scorer(model=model, tokenizer=framed(how)).score(rows_of("intersentence"))


LONG = "It was calm. " * 8
TOO_LONG = {
    # which side: (context, sentence, the refusal)
    "decoder": ("It was calm.", LONG * 2, "tokens for a decoder and that of LEDForConditionalGeneration reads 48"),
    "encoder": (LONG * 4, "It was calm.", "tokens and LEDForConditionalGeneration reads 64"),
}


@pytest.mark.parametrize("case", TOO_LONG.values(), ids=TOO_LONG.keys())
def test_text_longer_than_either_side_is_refused_by_name(asked, row, case):
    (model, tokenizer), (context, sentence, words) = asked("led", "float32"), case
    with pytest.raises(ValueError, match=rf"Option 'e-0' of example 'e' has \d+ {words}"):
        load_scorer(model=model, tokenizer=tokenizer, method="prefix").score([row(context, [sentence])])


def test_prefix_of_nothing_is_refused_where_no_token_begins_a_sequence(asked, tokenizer_of, row):
    model, _ = asked("marian", "float32")
    rows = [row("BLANK are often quiet.", ["Trees are often quiet."])]
    with pytest.raises(ValueError, match=r"Nothing precedes 'Trees are often quiet\."):
        load_scorer(model=model, tokenizer=tokenizer_of("bare")).score(rows)


class TwoVocabularies(PreTrainedTokenizerFast):
    """As FSMT's: texts are encoded by the first, and the decoder writes in the second."""

    encoder, decoder, tgt_vocab_size = {"a": 1, "b": 2}, {1: "b", 2: "a"}, 2


def test_tokenizer_that_knows_the_vocabulary_of_one_side_alone_is_refused(asked, framed, rows_of):
    model, _ = asked("fsmt", "float32")
    tokenizer = TwoVocabularies(tokenizer_object=framed("A </s> (no mask)").backend_tokenizer, eos_token="</s>")
    with pytest.raises(ValueError, match="the decoder has another: give a model whose two sides share one"):
        load_scorer(model=model, tokenizer=tokenizer).score(rows_of("intersentence"))


READ = [
    (WhisperConfig(), "reads audio, not text"),
    (Speech2TextConfig(), "reads audio, not text"),
    (Pix2StructConfig(), "reads images, not text"),
    (VisionEncoderDecoderConfig.from_encoder_decoder_configs(ViTConfig(), BertConfig()), "reads images, not text"),
    (SeamlessM4TConfig(architectures=["SeamlessM4TForSpeechToText"]), "reads audio, not text"),
    (MusicgenConfig(), "no encoder-decoder that reads and writes plain text"),
]


@pytest.mark.parametrize(("config", "words"), READ)
def test_encoder_decoder_of_something_else_than_text_is_refused_for_that(config, words):
    with pytest.raises(Refusal, match=f"A {config.model_type} checkpoint .*{words}"):
        family_of(config)


def test_encoder_decoder_of_text_and_more_is_one_of_text():
    assert family_of(SeamlessM4TConfig(architectures=["SeamlessM4TForTextToText"])) == "seq2seq"
    assert family_of(T5Gemma2Config(architectures=["T5Gemma2ForConditionalGeneration"])) == "seq2seq"
