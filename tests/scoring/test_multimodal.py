"""Models of text and images or sound, asked with text alone: as their own forward pass answers, one text at a time."""

import pytest
import torch
import transformers
from transformers import CONFIG_MAPPING, PreTrainedConfig

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.families import MULTIMODAL, family_of
from stereoset_scoring.planning.units import unit_of
from stereoset_scoring.refusal import Refusal

CLOSE = 1e-5  # float32, in nats
SIZES = {
    **dict.fromkeys(("hidden_size", "embed_dim", "d_model", "projection_dim", "out_hidden_size"), 32),
    **dict.fromkeys(("num_hidden_layers", "num_layers", "encoder_layers", "depth"), 2),
    **dict.fromkeys(("num_attention_heads", "num_heads", "encoder_attention_heads", "linear_num_value_heads"), 4),
    **dict.fromkeys(("num_key_value_heads", "linear_num_key_heads", "full_attention_interval"), 2),
    **dict.fromkeys(("intermediate_size", "encoder_ffn_dim", "intermediate_size_mlp"), 48),
    **dict.fromkeys(("head_dim", "linear_key_head_dim", "linear_value_head_dim"), 8),
    **dict.fromkeys(("num_experts", "num_local_experts"), 4),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size"), 16),
    "num_experts_per_tok": 2,
    "max_position_embeddings": 256,
    "vision_feature_layer": -1,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
PLACES = ("image_token_id", "image_token_index", "video_token_id", "vision_start_token_id", "vision_end_token_id")
ASKED = [
    *("llava", "mistral3", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_5", "qwen3_5_moe", "llama4", "gemma3"),
    *("paligemma", "smolvlm", "internvl", "mllama", "glm4v", "qwen2_audio"),
]


def shrink(config, size):
    """A default configuration, its parts too, made tiny in place."""
    for value in vars(config).copy().values():
        if isinstance(value, PreTrainedConfig):
            shrink(value, size)
    places = {name: size - 1 - i for i, name in enumerate(PLACES)}
    for name, value in {**SIZES, **places, "vocab_size": size}.items():
        if isinstance(vars(config).get(name), int):
            setattr(config, name, value)
    kinds = list(dict.fromkeys(getattr(config, "layer_types", None) or ()))
    if kinds:
        config.layer_types = (kinds * 2)[:2]
    rotary = getattr(config, "rope_parameters", None) or {}
    if "mrope_section" in rotary or "vl" in config.model_type or "glm4v" in config.model_type:
        rotary["mrope_section"] = [1, 1, 2]
    return config


@pytest.fixture
def model_of_kind(tokenizer_of):
    """model_of_kind(kind): a tiny model of text and something else, with weights that all say something."""

    def make(kind):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(3)
            config = shrink(CONFIG_MAPPING[kind](), len(tokenizer_of("gpt2")))
            model = getattr(transformers, MULTIMODAL[kind])(config).eval()
            for weight in model.parameters():
                if weight.dim() == 2:
                    weight.data += 0.15 * torch.randn_like(weight)
        return model

    return make


def by_hand(model, tokenizer, row):
    """Of each option, the mean ln P of its tokens: each given those before it, and the first the end of texts."""
    types = {"token_type_ids": 1} if model.config.model_type == "paligemma" else {}  # what it goes on with
    scores = []
    for option in row["sentences"]:
        ids, logs = tokenizer.encode(option["sentence"], add_special_tokens=False), []
        for i, token in enumerate(ids):
            given = torch.tensor([ids[:i] or [tokenizer.bos_token_id]])
            more = {name: torch.full_like(given, value) for name, value in types.items()}
            with torch.no_grad():
                logits = model(input_ids=given, **more).logits
            logs.append(logits[0, -1].log_softmax(-1)[token].item())
        scores.append(sum(logs) / len(logs))
    return scores


@pytest.mark.parametrize("kind", ASKED)
def test_text_alone_is_scored_as_by_the_models_own_forward_pass(
    model_of_kind, tokenizer_of, tmp_path, intrasentence, kind
):
    model, tokenizer = model_of_kind(kind), tokenizer_of("gpt2")
    rows = intrasentence[:2]
    expected = [pytest.approx(by_hand(model, tokenizer, row), abs=CLOSE) for row in rows]
    in_memory = load_scorer(model=model, tokenizer=tokenizer)
    assert in_memory.source.family == "causal"
    assert in_memory.source.head("causal").longest_input in (256, None)
    assert in_memory.score(rows) == expected
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    assert load_scorer(tmp_path, device="cpu", dtype="float32").score(rows) == expected


def test_paligemma_does_not_see_what_it_is_asked(model_of_kind, tokenizer_of, row):
    scorer = load_scorer(model=model_of_kind("paligemma"), tokenizer=tokenizer_of("gpt2"))
    engine = scorer.source.head("causal").engine
    read = [scorer.plan([row("It was BLANK.", [text])]).rows[-1] for text in ("It was calm and", "It was calm or")]
    values = [engine.log_probs([unit_of([one])])[0] for one in read]
    assert values[0][0] == pytest.approx(values[1][0], abs=CLOSE)


BLIND = [
    # model type, why it cannot be asked with text alone
    ("blip-2", "pixel_values"),
    ("kosmos-2", "pixel_values"),
    ("idefics", "pixel_values"),
]


@pytest.mark.parametrize(("kind", "why"), BLIND)
def test_model_that_wants_an_image_is_refused(model_of_kind, tokenizer_of, intrasentence, kind, why):
    with pytest.raises(Refusal, match=f"A {kind} model cannot be asked with text alone: give a language model .*{why}"):
        load_scorer(model=model_of_kind(kind), tokenizer=tokenizer_of("gpt2")).score(intrasentence)


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("whisper", "reads audio, not text: give a model whose encoder reads text"),
        ("pix2struct", "reads images, not text: give a model whose encoder reads text"),
        ("udop", "is no encoder-decoder that reads and writes plain text: give another"),
        ("musicgen", "is no encoder-decoder that reads and writes plain text: give another"),
    ],
)
def test_encoder_decoder_that_reads_no_text_is_refused_for_that(kind, why):
    with pytest.raises(Refusal, match=f"A {kind} checkpoint {why}"):
        family_of(CONFIG_MAPPING[kind]())


def test_model_in_training_draws_no_random_numbers_when_it_is_first_asked(model_of_kind, tokenizer_of):
    model = model_of_kind("llava").train()
    before = torch.get_rng_state()
    load_scorer(model=model, tokenizer=tokenizer_of("gpt2")).source.head("causal")
    assert torch.equal(torch.get_rng_state(), before)
    assert model.training
