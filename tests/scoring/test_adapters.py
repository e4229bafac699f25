"""Adapters of PEFT: a folder that holds little, and names the model that it was learned on."""

import json
import re
import shutil
from pathlib import Path

import peft
import pytest
import torch
from peft import (
    IA3Config,
    LoraConfig,
    PrefixTuningConfig,
    PromptEncoderConfig,
    PromptTuningConfig,
    get_peft_model,
)
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.fingerprints import fingerprint
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.runs.record import model_record, versions

CLOSE = 1e-5  # float32, in nats
OPENED = {"causal": AutoModelForCausalLM, "masked": AutoModelForMaskedLM, "seq2seq": AutoModelForSeq2SeqLM}
LORA = {"r": 2, "lora_alpha": 8}
IA3 = {"target_modules": ["c_attn", "c_proj"], "feedforward_modules": ["c_proj"], "fan_in_fan_out": True}
LEARNED = [
    # base, kind, configuration of the adapter
    ("gpt2", "causal", LoraConfig(task_type="CAUSAL_LM", fan_in_fan_out=True, **LORA)),
    ("gpt2", "causal", IA3Config(task_type="CAUSAL_LM", **IA3)),
    ("llama", "causal", LoraConfig(task_type="CAUSAL_LM", modules_to_save=["lm_head"], use_dora=True, **LORA)),
    ("llama", "causal", LoraConfig(target_modules="all-linear", **LORA)),
    ("bert", "masked", LoraConfig(target_modules=["query", "value"], modules_to_save=["predictions"], **LORA)),
    ("t5", "seq2seq", LoraConfig(task_type="SEQ_2_SEQ_LM", **LORA)),
]
NAMES = ["lora", "ia3", "dora-with-head", "lora-of-no-task", "masked-with-head", "t5"]
PROMPTS = [
    PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
    PromptEncoderConfig(task_type="CAUSAL_LM", num_virtual_tokens=3, encoder_hidden_size=16),
    PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3),
]


def learned(model, config, seed=1):
    """The model with an adapter whose weights all say something."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapted = get_peft_model(model, config).eval()
        for _, weight in sorted(adapted.named_parameters()):
            if weight.requires_grad:
                weight.data += 0.2 * torch.randn_like(weight)
    return adapted


@pytest.fixture
def adapter(folder, fresh_model, tmp_path):
    """adapter(name, kind, config, seed): the folder of an adapter for a tiny checkpoint, and the model in memory."""

    def make(name="gpt2", kind="causal", config=None, seed=1):
        config = config or LoraConfig(task_type="CAUSAL_LM", fan_in_fan_out=True, **LORA)
        adapted = learned(fresh_model(name, kind), config, seed)
        adapted.save_pretrained(tmp_path / f"adapter-{seed}")
        return tmp_path / f"adapter-{seed}", adapted

    return make


@pytest.fixture
def fresh_model(folder):
    """fresh_model(name, kind): a tiny checkpoint's model in float32, to be changed at will."""
    return lambda name, kind: OPENED[kind].from_pretrained(folder(name), dtype=torch.float32).eval()


def change(folder, **values):
    """Other values in an adapter's description; None takes one away."""
    path = folder / "adapter_config.json"
    described = {**json.loads(path.read_text()), **values}
    path.write_text(json.dumps({name: value for name, value in described.items() if value is not None}))


def near(scores):
    return [pytest.approx(one, abs=CLOSE) for one in scores]


@pytest.mark.parametrize(("name", "kind", "config"), LEARNED, ids=NAMES)
def test_adapter_folder_scores_as_the_model_into_which_it_is_merged(
    adapter, scorer_of, tokenizer_of, intrasentence, name, kind, config
):
    folder, adapted = adapter(name, kind, config)
    scorer = load_scorer(folder, device="cpu", dtype="float32")
    found = scorer.score(intrasentence)
    assert load_scorer(model=adapted, tokenizer=tokenizer_of(name)).score(intrasentence) == near(found)
    merged = load_scorer(model=adapted.merge_and_unload(), tokenizer=tokenizer_of(name))
    assert found == [pytest.approx(one, abs=1e-4) for one in merged.score(intrasentence)]
    assert found != near(scorer_of(name, dtype="float32").score(intrasentence))
    assert scorer.source.family == kind


@pytest.mark.parametrize("config", PROMPTS, ids=["prompt", "p-tuning", "prefix"])
def test_prompts_that_were_learned_are_loaded_and_take_positions(adapter, scorer_of, config):
    folder, adapted = adapter("gpt2", "causal", config)
    head = load_scorer(folder, device="cpu", dtype="float32").source.head("causal")
    assert head.longest_input == scorer_of("gpt2").source.head("causal").longest_input - 3
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        assert torch.equal(head.engine.model(input_ids=ids).logits, adapted(input_ids=ids).logits)


def test_fingerprint_covers_base_and_adapter_and_how_strong_it_is(adapter, scorer_of):
    one, _ = adapter(seed=1)
    other, _ = adapter(seed=2)
    stronger = shutil.copytree(one, one.parent / "stronger")
    change(stronger, lora_alpha=9)
    found = {load_scorer(path, device="cpu").source.head("causal").fingerprint for path in (one, other, stronger)}
    assert len(found | {fingerprint(scorer_of("gpt2", dtype="float32").source.head("causal").engine.model)}) == 4
    copied = shutil.copytree(one, one.parent / "copied")
    assert load_scorer(copied, device="cpu").source.head("causal").fingerprint in found


def test_base_is_named_beside_the_adapter(adapter, folder):
    source = load_scorer(adapter()[0], device="cpu").source
    assert Path(source.base) == folder("gpt2")
    assert model_record(source, ["causal"])["base"] == source.base
    assert load_scorer(folder("gpt2"), device="cpu").source.base is None


def test_record_names_the_version_of_peft():
    assert versions()["peft"] == peft.__version__


@pytest.mark.parametrize("base", ["base", "../base"])
def test_base_may_lie_in_the_adapters_folder_or_beside_it(adapter, folder, intrasentence, base):
    path, _ = adapter()
    expected = load_scorer(path, device="cpu").score(intrasentence)
    shutil.copytree(folder("gpt2"), path / base)
    change(path, base_model_name_or_path=base)
    scorer = load_scorer(path, device="cpu")
    assert scorer.score(intrasentence) == expected
    assert Path(scorer.source.base).resolve() == (path / base).resolve()


def test_tokenizer_is_the_adapters_where_it_has_one(adapter, tokenizer_of):
    path, _ = adapter()
    assert load_scorer(path, device="cpu").source.tokenizer.hub.mask_token is None
    own = tokenizer_of("gpt2")
    own = type(own)(tokenizer_object=own._tokenizer, bos_token="<|endoftext|>", mask_token="<|endoftext|>")
    own.save_pretrained(path)
    assert load_scorer(path, device="cpu").source.tokenizer.hub.mask_token == "<|endoftext|>"


def test_tokens_that_an_adapter_brings_get_their_embeddings(fresh_model, tokenizer_of, tmp_path, intrasentence):
    model = fresh_model("gpt2", "causal")
    model.resize_token_embeddings(len(tokenizer_of("gpt2")) + 3)
    adapted = learned(model, LoraConfig(task_type="CAUSAL_LM", fan_in_fan_out=True, **LORA))
    adapted.save_pretrained(tmp_path, save_embedding_layers=True)
    expected = load_scorer(model=adapted, tokenizer=tokenizer_of("gpt2")).score(intrasentence)
    assert load_scorer(tmp_path, device="cpu", dtype="float32").score(intrasentence) == near(expected)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_adapter_is_never_narrower_than_asked(adapter, dtype):
    model = load_scorer(adapter()[0], device="cpu", dtype=dtype).source.head("causal").engine.model
    assert model.dtype == getattr(torch, dtype)
    narrow = {weight.dtype for weight in model.parameters()} - {torch.promote_types(torch.float32, model.dtype)}
    assert narrow <= {model.dtype}


def remove(name):
    return lambda path: (path / name).unlink()


def cut(path):
    weights = path / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-40])


BROKEN = [
    # what is done to the folder, parts of the one sentence
    (remove("adapter_model.safetensors"), ["adapter_config.json", "no adapter_model.safetensors", "copy the whole"]),
    (cut, ["adapter_model.safetensors", "not the whole of one", "download it again"]),
    (lambda path: (path / "adapter_config.json").write_text("{"), ["adapter_config.json", "no JSON", "restore"]),
    (lambda path: change(path, base_model_name_or_path=None), ["names no base model", "adapter_config.json"]),
    (lambda path: change(path, base_model_name_or_path="/nowhere/at/all"), ["base model /nowhere/at/all", "download"]),
    (lambda path: change(path, task_type="SEQ_CLS"), ["SEQ_CLS", "give one of a language model"]),
    (lambda path: change(path, task_type="SEQ_2_SEQ_LM"), ["SEQ_2_SEQ_LM", "causal", "give the base"]),
    (lambda path: change(path, peft_type="NONESUCH"), ["cannot be put on", "give the base"]),
    (lambda path: change(path, r=3), ["cannot be put on", "give the base"]),
    (lambda path: change(path, target_modules=["c_attn", "c_proj"]), ["does not fit", "c_proj", "give the base"]),
]


@pytest.mark.parametrize(("harm", "parts"), BROKEN)
def test_adapter_that_is_not_whole_is_refused_in_a_sentence(adapter, intrasentence, harm, parts):
    path, _ = adapter()
    harm(path)
    with pytest.raises((Refusal, OSError), match=".*".join(map(re.escape, parts))) as refusal:
        load_scorer(path, device="cpu").score(intrasentence)
    assert "\n" not in str(refusal.value)


def test_adapter_for_another_base_is_refused(adapter, folder, intrasentence):
    path, _ = adapter()
    change(path, base_model_name_or_path=str(folder("llama")))
    with pytest.raises(Refusal, match=r"cannot be put on .*llama.*give the base that it was learned on"):
        load_scorer(path, device="cpu").score(intrasentence)


def test_missing_peft_is_named(adapter, monkeypatch):
    path, _ = adapter()
    monkeypatch.setattr("stereoset_scoring.checkpoints.adapters.find_spec", lambda name: None)
    with pytest.raises(Refusal, match=r"an adapter of PEFT, which is missing: pip install 'stereoset\[peft\]'"):
        load_scorer(path, device="cpu")
