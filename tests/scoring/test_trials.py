"""What a model has to show: that branches of a tree, padding and what follows do not change what it says."""

import pytest
import torch
import transformers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertLMHeadModel,
    FNetConfig,
    FNetForMaskedLM,
    FunnelConfig,
    FunnelForMaskedLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoConfig,
    GPTNeoForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    RobertaConfig,
    RobertaForCausalLM,
)

import stereoset_scoring.engines.causal as causal_engines
from stereoset_scoring import load_scorer
from stereoset_scoring.engines.trials import may_change_between, sketch
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.refusal import Refusal

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "initializer_range": 0.3,
    "vocab_size": 340,
    "pad_token_id": 0,
}
GROUPED = {**TINY, "num_key_value_heads": 2, "head_dim": 8}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
LINEAR = {  # of gated delta nets
    **GROUPED,
    "layer_types": ["linear_attention", "full_attention"],
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
}
MAMBA = {"mamba_d_ssm": 64, "mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 8, "mamba_n_groups": 1}
ATTENTION = {
    "GPT2": {"vocab_size": 340, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3},
    "Llama": {**TINY, "num_key_value_heads": 2},
    "Mixtral": {**GROUPED, **EXPERTS},
    "GptOss": {**GROUPED, **EXPERTS},
}
HYBRID = {
    "FalconH1": {**GROUPED, **MAMBA},
    "Lfm2": {**GROUPED, "layer_types": ["conv", "full_attention"]},
    "Qwen3Next": {
        **LINEAR,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 16,
        "shared_expert_intermediate_size": 16,
    },
}


def made(config, model, dtype=torch.float32):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return model(config).to(dtype).eval()


def causal(name, more, dtype):
    if name == "GPT2":
        return made(GPT2Config(**more), GPT2LMHeadModel, dtype)
    config, model = (getattr(transformers, f"{name}{kind}") for kind in ("Config", "ForCausalLM"))
    return made(config(**more), model, dtype)


def engine_after(model, tokenizer, rows, kind="causal"):
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    scorer.plan(rows)
    return scorer.source.head(kind).engine


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_alone_earns_trees_in_every_dtype(tokenizer_of, intersentence, name, dtype):
    trial = engine_after(causal(name, ATTENTION[name], dtype), tokenizer_of("gpt2"), intersentence).trial
    assert (trial.packs, trial.pads, trial.virtual) == (True, True, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", HYBRID)
def test_layers_that_run_along_a_tree_do_not_earn_it_in_any_dtype(tokenizer_of, intersentence, name, dtype):
    model = causal(name, HYBRID[name], dtype)
    assert not engine_after(model, tokenizer_of("gpt2"), intersentence).trial.packs


def by_hand(model, tokenizer, sentence):
    """SCORING's causal likelihood, as GPT-2's tokenizer begins texts: one text at a time."""
    ids, bos = tokenizer.encode(sentence, add_special_tokens=False), tokenizer.bos_token_id
    with torch.no_grad():
        at = [model(torch.tensor([some])).logits[0].float().log_softmax(-1) for some in ([bos], ids)]
    logs = [at[0][0, ids[0]], *at[1][range(len(ids) - 1), ids[1:]]]
    return (sum(logs) / len(logs)).item()


LONG = " ".join(["The gardener was kind and quiet, and they planted a tree in the garden."] * 5)
LATER = [
    # what begins later than a short trial sees: a local window in places of a tree, and frequencies for long texts
    (
        GPTNeoConfig(
            vocab_size=340,
            hidden_size=32,
            num_layers=2,
            num_heads=4,
            attention_types=[[["global", "local"], 1]],
            window_size=120,
            max_position_embeddings=600,
            initializer_range=0.3,
        ),
        GPTNeoForCausalLM,
    ),
    (
        Phi3Config(
            **TINY,
            num_key_value_heads=2,
            max_position_embeddings=600,
            original_max_position_embeddings=50,
            rope_scaling={"rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [8.0] * 4},
        ),
        Phi3ForCausalLM,
    ),
]


@pytest.mark.parametrize(("config", "model"), LATER)
def test_what_begins_at_some_length_is_tried_at_the_lengths_of_the_job(tokenizer_of, row, config, model):
    tokenizer, model = tokenizer_of("gpt2"), made(config, model)
    rows = [
        row("It was BLANK.", ["It was calm.", "It was long.", "It was not."], id="short"),
        row(f"{LONG} It was BLANK.", [f"{LONG} It was {word}." for word in ("calm", "thoughtful", "not")], id="long"),
    ]
    expected = [[by_hand(model, tokenizer, one["sentence"]) for one in of_row["sentences"]] for of_row in rows]
    scores = load_scorer(model=model, tokenizer=tokenizer, max_tokens=100_000).score(rows)
    assert scores == [pytest.approx(one, abs=1e-4) for one in expected]


@pytest.mark.parametrize(
    ("found", "tried", "needed", "expected"),
    [
        ({"window_size": 256}, 12, 100, False),
        ({"window_size": 256}, 12, 128, True),  # a window may reach to both sides
        ({"window_size": 256}, 256, 300, False),
        ({"layers": 12, "hidden_size": 768}, 12, 100, False),
        ({"text_config": {"rope": [{"original": 4096}]}}, 12, 5000, True),
        ({"flag": True, "name": "512"}, 0, 5000, False),
    ],
)
def test_number_between_the_lengths_may_be_a_limit(found, tried, needed, expected):
    class Config:
        def to_dict(self):
            return found

    assert may_change_between(Config(), tried, needed) is expected


BROKEN = [
    (BertConfig(**TINY), BertLMHeadModel),
    (RobertaConfig(**{**TINY, "pad_token_id": 1}), RobertaForCausalLM),
    (LlamaConfig(**TINY, is_causal=False), LlamaForCausalLM),
    (Gemma3TextConfig(**GROUPED, use_bidirectional_attention=True), Gemma3ForCausalLM),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("config", "model"), BROKEN, ids=lambda one: getattr(one, "__name__", ""))
def test_causal_model_that_sees_what_follows_is_refused(tokenizer_of, intersentence, config, model, dtype):
    loaded = made(config, model, dtype)
    if "is_causal" in config.to_dict():
        for module in loaded.modules():
            if hasattr(module, "is_causal"):
                module.is_causal = False
    with pytest.raises(Refusal, match=r"asked as a causal model.*depends on those after it: load it"):
        load_scorer(model=loaded, tokenizer=tokenizer_of("gpt2")).plan(intersentence)


def test_masked_model_that_sees_only_what_precedes_is_refused(tokenizer_of, intrasentence):
    model = made(BertConfig(**TINY, is_decoder=True), BertForMaskedLM)
    with pytest.raises(Refusal, match=r"asked as a masked model.*does not depend on what follows"):
        load_scorer(model=model, tokenizer=tokenizer_of("bert")).plan(intrasentence)


def test_trial_leaves_nothing_behind_in_a_model_in_training(tokenizer_of, intersentence):
    more = {**ATTENTION["GPT2"], "resid_pdrop": 0.5, "attn_pdrop": 0.5, "embd_pdrop": 0.5}
    model = causal("GPT2", more, torch.float32).train()
    before = torch.get_rng_state()
    engine = engine_after(model, tokenizer_of("gpt2"), intersentence)
    assert engine.trial.packs
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_sketch_is_two_rows_that_share_a_beginning_and_a_short_one():
    long, sibling, short = (row.ids for row in sketch([Row("causal", tuple(range(20, 50)), ())]))
    assert long[:2] == sibling[:2]
    assert long[2] != sibling[2]
    assert len(short) < len(sibling) <= len(long) == 6


PROMPTS = ["PromptTuningConfig", "PromptEncoderConfig", "PrefixTuningConfig"]


@pytest.mark.parametrize("kind", PROMPTS)
def test_virtual_tokens_in_front_do_not_shift_what_is_read(tokenizer_of, row, kind):
    peft = pytest.importorskip("peft")
    tokenizer, model = tokenizer_of("gpt2"), causal("GPT2", ATTENTION["GPT2"], torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        config = getattr(peft, kind)(task_type="CAUSAL_LM", num_virtual_tokens=5)
        tuned = peft.get_peft_model(model, config).eval()
        for parameter in tuned.prompt_encoder.parameters():
            parameter.data += 0.5 * torch.randn_like(parameter)

    def log_softmax(ids):
        with torch.no_grad():
            logits = tuned(input_ids=torch.tensor([ids]), attention_mask=torch.ones(1, len(ids))).logits[0]
        return logits[-len(ids) :].log_softmax(-1)

    def expected(sentence):
        ids = tokenizer.encode(sentence, add_special_tokens=False)
        first, rest = log_softmax([tokenizer.bos_token_id]), log_softmax(ids)
        logs = [first[0, ids[0]], *rest[range(len(ids) - 1), ids[1:]]]
        return (sum(logs) / len(logs)).item()

    sentences = ["It was calm.", "It was thoughtful and very quiet.", "It was not."]
    scores = load_scorer(model=tuned, tokenizer=tokenizer).score([row("It was BLANK.", sentences)])
    assert scores == [pytest.approx([expected(sentence) for sentence in sentences], abs=1e-5)]


class Early(GPT2LMHeadModel):
    """Answers its inputs two tokens late."""

    def forward(self, **inputs):
        output = super().forward(**inputs)
        output.logits = output.logits[:, 2:]
        return output


class Longer(BertForMaskedLM):
    """Says one thing more than it was asked."""

    def forward(self, **inputs):
        output = super().forward(**inputs)
        output.logits = torch.cat([output.logits[:, :1], output.logits], 1)
        return output


def test_model_with_other_outputs_than_inputs_is_refused(tokenizer_of, intersentence, intrasentence):
    few = made(GPT2Config(**ATTENTION["GPT2"]), Early)
    with pytest.raises(Refusal, match=r"A Early gives \d+ outputs for \d+ tokens"):
        load_scorer(model=few, tokenizer=tokenizer_of("gpt2")).plan(intersentence)
    many = made(BertConfig(**TINY), Longer)
    with pytest.raises(Refusal, match=r"A Longer gives \d+ outputs for \d+ tokens"):
        load_scorer(model=many, tokenizer=tokenizer_of("bert")).plan(intrasentence)


POOLING = {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "block_sizes": [2, 2, 2], "vocab_size": 340}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [5, 6, 8, 9])
def test_padding_that_shows_at_some_lengths_alone_is_found_in_any_dtype(tokenizer_of, row, length, dtype):
    # It pools by twos and fours: what stands behind a whole number of tokens hardly shows.
    model = made(FunnelConfig(**POOLING), FunnelForMaskedLM)
    numbers = torch.Generator().manual_seed(5)
    for weight in model.parameters():
        if weight.dim() == 1:
            weight.data += 0.1 * torch.randn(weight.shape, generator=numbers)
        else:
            weight.data.normal_(0, 0.3, generator=numbers)
    engine = load_scorer(model=model.to(dtype), tokenizer=tokenizer_of("bert")).source.head("masked").engine
    rows = [Row("masked", tuple(range(20, 20 + some)), ()) for some in (length, length + 12)]
    engine.try_out([rows])
    assert not engine.trial.pads


SPECTRAL = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 48, "vocab_size": 340}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_model_that_cannot_be_computed_in_its_dtype_is_refused(tokenizer_of, intrasentence, dtype):
    model = made(FNetConfig(**SPECTRAL), FNetForMaskedLM, dtype)  # there is no such Fourier transform on a CPU
    name = str(dtype).removeprefix("torch.")
    words = rf"A FNetForMaskedLM cannot be computed in {name} on cpu: choose another dtype, such as float32 \(.+\)\.$"
    with pytest.raises(Refusal, match=words):
        load_scorer(model=model, tokenizer=tokenizer_of("bert")).plan(intrasentence)


class Narrow(GPT2LMHeadModel):
    """Fails in every dtype but float32, as code does that makes tensors of its own; here for more tokens than one."""

    def forward(self, **inputs):
        output = super().forward(**inputs)
        if inputs["input_ids"].shape[1] > 1:
            output.logits = output.logits @ torch.eye(output.logits.shape[-1])
        return output


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_causal_model_whose_code_knows_one_dtype_is_refused_in_others(tokenizer_of, intersentence, dtype):
    model = made(GPT2Config(**ATTENTION["GPT2"]), Narrow, dtype)
    with pytest.raises(Refusal, match=r"A Narrow cannot be computed in .* choose another dtype, such as float32"):
        load_scorer(model=model, tokenizer=tokenizer_of("gpt2")).plan(intersentence)
    assert load_scorer(model=model.float(), tokenizer=tokenizer_of("gpt2")).plan(intersentence)


def test_rows_as_long_as_the_jobs_are_tried_once_where_no_window_parts_them(tokenizer_of, row, monkeypatch):
    tried = []
    known = causal_engines.try_causal
    monkeypatch.setattr(causal_engines, "try_causal", lambda *some: tried.append(some) or known(*some))
    config = GPTNeoConfig(
        vocab_size=340, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
        window_size=120, max_position_embeddings=600,
    )  # fmt: skip
    rows = [row(f"{LONG} It was BLANK.", [f"{LONG} It was {word}." for word in ("calm", "tall", "not")])]
    engine_after(made(config, GPTNeoForCausalLM), tokenizer_of("gpt2"), rows)
    assert len(tried) == 1
