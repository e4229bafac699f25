"""How a checkpoint is loaded: where its parts go, in what form, with which attention; the scores stay the same."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, LlamaConfig, LlamaForCausalLM

from stereoset_scoring import load_scorer
from stereoset_scoring.engines.devices import gpus_of
from stereoset_scoring.runs.record import beginning_record, model_record
from tests.crossing import crossed, thorough

NAMES = ["bert", "gpt2", "llama", "xlnet", "t5"]
CLOSE = 1e-4  # float32, in nats; T5's norms are float32 in float64 too


@pytest.fixture
def scores_of(folder, intrasentence):
    """scores_of(name, **options): the scores of a checkpoint, and its scorer."""

    def score(name, **options):
        options |= {"passage": "It was calm."} if name == "xlnet" else {}
        scorer = load_scorer(folder(name), **options)
        return scorer.score(intrasentence), scorer

    return score


def near(scores, close=CLOSE):
    return [pytest.approx(one, abs=close) for one in scores]


@pytest.mark.parametrize(("device_map", "name"), crossed(["auto", {"": "cpu"}], NAMES), ids=str)
def test_spread_model_gives_the_same_scores(scores_of, name, device_map):
    expected, alone = scores_of(name, device="cpu")
    found, scorer = scores_of(name, device_map=device_map)
    assert found == near(expected)
    family = alone.source.family
    assert scorer.source.head(family).fingerprint == alone.source.head(family).fingerprint


ON_DISK = {
    "gpt2": {"transformer.h.1": "disk", "transformer.h.0": "cpu", "transformer.ln_f": "cpu", "transformer.wte": "cpu"}
    | {"transformer.wpe": "cpu", "lm_head": "cpu"},
    "llama": {"model.layers.0": "disk", "model.layers.1": "cpu", "model.embed_tokens": "disk", "model.norm": "cpu"}
    | {"model.rotary_emb": "cpu", "lm_head": "disk"},
    "bert": {"bert.encoder.layer.0": "disk", "bert.encoder.layer.1": "cpu", "bert.embeddings": "cpu", "cls": "cpu"},
}


@pytest.mark.parametrize("name", ON_DISK)
def test_model_partly_on_disk_gives_the_same_scores_and_fingerprint(scores_of, name):
    expected, alone = scores_of(name, device="cpu")
    found, scorer = scores_of(name, device_map=ON_DISK[name])
    assert found == near(expected)
    family = alone.source.family
    model = scorer.source.head(family).engine.model
    assert any(parameter.device.type == "meta" for parameter in model.parameters())
    assert scorer.source.head(family).fingerprint == alone.source.head(family).fingerprint
    assert "disk" in model_record(scorer.source, [family])["heads"][family]["devices"]


@pytest.mark.parametrize(("name", "kind"), [("gpt2", AutoModelForCausalLM), ("bert", AutoModelForMaskedLM)])
def test_dispatched_model_in_memory_is_scored_where_it_is(scores_of, folder, tokenizer_of, intrasentence, name, kind):
    expected, _ = scores_of(name, device="cpu")
    model = kind.from_pretrained(folder(name), device_map=ON_DISK[name])
    scorer = load_scorer(model=model, tokenizer=tokenizer_of(name))
    assert scorer.score(intrasentence) == near(expected)
    assert str(scorer.source.device) == "cpu"


GPUS = [
    # local rank, GPUs per model, GPUs there are, those it takes
    (0, 1, 1, [0]),
    (0, 2, 8, [0, 1]),
    (1, 2, 8, [2, 3]),
    (3, 2, 8, [6, 7]),
    (1, 4, 8, [4, 5, 6, 7]),
    (0, 8, 8, [0, 1, 2, 3, 4, 5, 6, 7]),
    (1, 3, 7, [3, 4, 5]),
]


@pytest.mark.parametrize(("rank", "per_model", "available", "expected"), GPUS)
def test_each_process_takes_its_own_gpus(rank, per_model, available, expected):
    assert list(gpus_of(rank, per_model, available)) == expected


@pytest.mark.parametrize(("rank", "per_model", "available"), [(0, 1, 0), (0, 2, 1), (4, 2, 8), (2, 3, 8)])
def test_process_without_enough_gpus_is_refused(rank, per_model, available):
    with pytest.raises(ValueError, match=rf"^Process {rank} .* there are {available}: start fewer processes"):
        gpus_of(rank, per_model, available)


def test_gpus_of_a_model_and_no_others_get_its_weights(folder, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gpu: (1000 + gpu, 5000))
    state = SimpleNamespace(local_process_index=2, device=torch.device("cpu"))
    monkeypatch.setattr("stereoset_scoring.checkpoints.placement.processes", lambda: state)
    asked = loads_with(monkeypatch, folder, gpus_per_model=2)
    assert asked["device_map"] == "auto"
    assert asked["max_memory"] == {4: 1004, 5: 1005}


def loads_with(monkeypatch, folder, **options):
    """What from_pretrained is asked."""
    seen = {}

    def from_pretrained(name, **asked):
        seen.update(asked)
        raise ImportError("Using `bitsandbytes` requires something\nthat is not here")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", from_pretrained)
    with pytest.raises(ValueError, match=r"cannot be loaded with .*bitsandbytes. requires something that is not here"):
        load_scorer(folder("gpt2"), **options).source.head("causal")
    return seen


def test_quantization_reaches_the_library(monkeypatch, folder):
    config = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    asked = loads_with(monkeypatch, folder, quantization_config=config, device="cpu")
    assert asked["quantization_config"] == config
    assert asked["device_map"] == {"": "cpu"}


def test_unknown_quantization_is_refused_by_the_library(folder):
    with pytest.raises(ValueError, match="nonesuch"):
        load_scorer(folder("gpt2"), quantization_config={"quant_method": "nonesuch"}).source.head("causal")


NONSENSE = [
    ({"device": "cpu", "device_map": "auto"}, "leave one of them out"),
    ({"device": "cpu", "gpus_per_model": 2}, "leave one of them out"),
    ({"device_map": {"": "cpu"}, "gpus_per_model": 2}, "gpus_per_model chooses the devices itself"),
    ({"gpus_per_model": 0}, "give a number of GPUs"),
    ({"gpus_per_model": 1000}, "start fewer processes, or take fewer GPUs per model"),
]


@pytest.mark.parametrize(("options", "words"), NONSENSE, ids=str)
def test_places_that_contradict_each_other_are_refused(folder, options, words):
    with pytest.raises(ValueError, match=words):
        load_scorer(folder("gpt2"), **options)


@pytest.mark.parametrize("options", [{"attention": "eager"}, {"compile": True}, {"device_map": "auto"}], ids=str)
def test_model_in_memory_is_not_prepared_anew(model_of, tokenizer_of, options):
    with pytest.raises(ValueError, match="as it is: place and prepare it beforehand"):
        load_scorer(model=model_of("gpt2", "causal"), tokenizer=tokenizer_of("gpt2"), **options)


# An untrained tiny model exaggerates: its logits are as large as a trained one's, and its states are not.
HALF = {"float32": 1e-4, "bfloat16": 0.6, "float16": 0.06}


@pytest.mark.parametrize(("dtype", "name"), crossed(HALF, NAMES))
def test_dtypes_give_nearly_the_same_scores(scores_of, name, dtype):
    expected, _ = scores_of(name, device="cpu", dtype="float64")
    found, scorer = scores_of(name, device="cpu", dtype=dtype)
    assert found == near(expected, HALF[dtype])
    head = model_record(scorer.source, [scorer.source.family])["heads"][scorer.source.family]
    assert head["dtype"] == dtype


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_rotary_frequencies_are_never_narrowed(folder, dtype):
    wanted = getattr(torch, dtype)
    model = load_scorer(folder("llama"), device="cpu", dtype=dtype).source.head("causal").engine.model
    assert {parameter.dtype for parameter in model.parameters()} == {wanted}
    assert {buffer.dtype for buffer in model.buffers()} == {torch.promote_types(torch.float32, wanted)}


@pytest.mark.parametrize(("attention", "name"), crossed(["eager", "sdpa"], ["bert", "gpt2", "llama"]))
def test_attention_is_the_one_asked_for_and_recorded(scores_of, name, attention):
    expected, plain = scores_of(name, device="cpu")
    found, scorer = scores_of(name, device="cpu", attention=attention)
    assert found == near(expected)
    family = plain.source.family
    assert scorer.source.head(family).engine.model.config._attn_implementation == attention
    assert model_record(scorer.source, [family])["heads"][family]["attention"] == attention


def test_unknown_attention_is_refused(folder):
    with pytest.raises(ValueError, match="nonesuch"):
        load_scorer(folder("gpt2"), device="cpu", attention="nonesuch").source.head("causal")


@pytest.fixture
def one_layer(folder, tmp_path):
    """one_layer(name): a tiny checkpoint cut to its first layer, for compiling takes seconds a layer."""

    def cut(name):
        place = shutil.copytree(folder(name), tmp_path / name)
        config = json.loads((place / "config.json").read_text())
        depths = {"num_hidden_layers", "n_layer", "num_layers", "num_decoder_layers"} & config.keys()
        (place / "config.json").write_text(json.dumps(config | dict.fromkeys(depths, 1) | {"layer_types": None}))
        return place

    return cut


# The one that takes least stands for all.
COMPILED = ["bert", *(thorough(name) for name in ("gpt2", "llama", "t5"))]


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_model_gives_the_same_scores(one_layer, places_read, intrasentence, monkeypatch, name):
    compile = torch.compile
    calls = []

    def quickly(*args, **options):
        calls.append(options)
        return compile(*args, **options, backend="eager")

    monkeypatch.setattr(torch, "compile", quickly)
    place = one_layer(name)
    expected = load_scorer(place, device="cpu").score(intrasentence)
    scorer = load_scorer(place, device="cpu", compile=True)
    assert scorer.score(intrasentence) == near(expected)
    assert calls == [{"dynamic": True}] * (2 if name == "t5" else 1)
    family = scorer.source.family
    assert model_record(scorer.source, [family])["heads"][family]["compiled"]
    if name != "t5":
        shapes = []
        projection = scorer.source.head(family).engine.model.get_output_embeddings()
        compute = projection.forward
        projection.forward = lambda hidden: shapes.append(len(hidden)) or compute(hidden)
        scorer.score(intrasentence)
        assert shapes == places_read(scorer.plan(intrasentence))  # the head is still looked into


def test_tensor_float_is_the_processes_choice(folder):
    before = torch.get_float32_matmul_precision()
    try:
        load_scorer(folder("gpt2"), device="cpu")
        assert torch.get_float32_matmul_precision() == before
        load_scorer(folder("gpt2"), device="cpu", tf32=True)
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


BEGINNINGS = [
    ("gpt2", {}, {"origin": "bos", "text": "<|endoftext|>", "bos": "released"}),
    ("gpt2", {"bos": "none"}, {"origin": "bos", "text": "<|endoftext|>", "bos": "none"}),
    ("llama", {}, {"origin": "bos", "text": "<s>", "bos": "context"}),
    ("bare", {}, {"origin": "none", "text": "", "bos": "none"}),
    ("bare", {"bos_text": "7"}, {"origin": "bos_text", "text": "7", "bos": "released"}),
    ("bert", {}, None),
]


@pytest.mark.parametrize(("name", "options", "expected"), BEGINNINGS)
def test_what_a_first_token_is_conditioned_on_is_recorded(scorer_of, name, options, expected):
    scorer = scorer_of(name, **options)
    assert beginning_record(scorer.method("intrasentence"), scorer.source) == expected
    json.dumps(expected)


def test_rotary_model_in_half_precision_is_as_the_library_loads_it(tmp_path, tokenizer_of, row):
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer_of("llama")), **sizes)).save_pretrained(tmp_path)
    tokenizer_of("llama").save_pretrained(tmp_path)
    asked = load_scorer(tmp_path, device="cpu", dtype="bfloat16")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.bfloat16)
    expected = load_scorer(model=plain, tokenizer=tokenizer_of("llama"))
    rows = [row("It was BLANK.", ["It was calm."])]
    assert asked.score(rows) == expected.score(rows)
