"""Packed matrices: the same numbers, where they are faster, of models that stay as they are."""

from copy import deepcopy

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from stereoset_scoring import load_scorer
from stereoset_scoring.engines import prepacked
from stereoset_scoring.engines.prepacked import packed_matrices, prepack
from stereoset_scoring.sample.examples import load_sample

pytestmark = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")),
    reason="this torch has no oneDNN",
)
IDS = torch.tensor([[5, 6, 7, 8], [9, 8, 7, 6]])
WIDE = 256


def gpt2():
    return GPT2LMHeadModel(GPT2Config(n_embd=WIDE, n_layer=2, n_head=4, vocab_size=300))


def bert():
    return BertForMaskedLM(
        BertConfig(hidden_size=WIDE, num_hidden_layers=2, num_attention_heads=4, intermediate_size=512, vocab_size=300)
    )


def t5():
    config = T5Config(d_model=WIDE, d_kv=64, d_ff=512, num_layers=2, num_heads=4, vocab_size=300)
    return T5ForConditionalGeneration(config)


def with_adapter():
    return get_peft_model(gpt2(), LoraConfig(target_modules=["c_attn"], init_lora_weights=False, fan_in_fan_out=True))


@pytest.fixture(autouse=True)
def faster(monkeypatch):
    """A machine on which it pays."""
    monkeypatch.setattr(prepacked, "_pays", lambda: True)
    torch.manual_seed(0)


def outputs(model):
    """Logits; also of an encoder-decoder."""
    more = {"decoder_input_ids": IDS} if model.config.is_encoder_decoder else {}
    with torch.no_grad():
        return model.eval()(input_ids=IDS, **more).logits


@pytest.mark.parametrize(
    ("make", "count"),
    # Of a layer: GPT-2 four, BERT six, T5 six and in the decoder ten. Of BERT's head one, the projection of none.
    [(gpt2, 8), (bert, 13), (t5, 32), (with_adapter, 8)],
)
def test_a_model_gives_the_same_logits(make, count):
    model = make()
    before = outputs(model)
    prepack(model)
    assert packed_matrices(model) == count
    torch.testing.assert_close(outputs(model), before, rtol=0, atol=1e-5)


def hooked(model):
    for module in model.modules():
        module.forward = module.forward  # as accelerate puts hooks


@pytest.mark.parametrize(
    "change",
    [
        nn.Module.bfloat16,
        nn.Module.double,
        lambda model: model.to("meta"),
        hooked,
    ],
    ids=["bfloat16", "float64", "nowhere", "hooked"],
)
def test_what_is_no_plain_matrix_of_full_precision_is_left_as_it_is(change):
    model = gpt2()
    change(model)
    prepack(model)
    assert packed_matrices(model) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [("_pays", lambda: False), ("NARROWEST", WIDE + 1), ("MOST", 10**6), ("EXACT", -1.0)],
    ids=["slower", "narrow", "large", "inexact"],
)
def test_matrices_are_not_packed_where_they_would_be(monkeypatch, name, value):
    monkeypatch.setattr(prepacked, name, value)
    model = gpt2()
    prepack(model)
    assert packed_matrices(model) == 0


def gradients(model):
    model.train(False)(input_ids=IDS, labels=IDS).loss.backward()
    return [parameter.grad for parameter in model.parameters()]


def test_a_packed_model_can_be_trained():
    model = gpt2()
    expected = gradients(deepcopy(model))
    prepack(model)
    found = gradients(model)
    assert all(map(torch.equal, found, expected))


def halve(model):
    """Change every weight in place."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(0.5)


def test_a_changed_weight_counts():
    plain, packed = gpt2(), gpt2()
    plain.load_state_dict(packed.state_dict())
    prepack(packed)
    halve(plain)
    halve(packed)
    assert torch.equal(outputs(packed), outputs(plain))


def test_a_copy_is_a_model_of_its_own():
    model = gpt2()
    prepack(model)
    before, copy = outputs(model), deepcopy(model)
    assert packed_matrices(copy) == 0
    halve(copy)
    assert torch.equal(outputs(model), before)
    assert not torch.allclose(outputs(copy), before)


def test_a_packed_matrix_takes_no_rows_too_and_heeds_autocast():
    layer = nn.Sequential(nn.Linear(WIDE, WIDE))
    prepack(layer)
    with torch.no_grad():
        assert layer(torch.empty(0, WIDE)).shape == (0, WIDE)
        with torch.autocast("cpu", torch.bfloat16):
            assert layer(torch.ones(2, WIDE)).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("text", "pays"),
    [("processor : 0\nvendor_id\t: AuthenticAMD\n", True), ("vendor_id\t: GenuineIntel\n", False), (None, False)],
)
def test_it_pays_on_the_processors_on_which_it_was_measured(monkeypatch, tmp_path, text, pays):
    monkeypatch.undo()
    monkeypatch.setattr(prepacked, "PROCESSORS", tmp_path / "cpuinfo")
    if text:
        (tmp_path / "cpuinfo").write_text(text)
    assert prepacked._pays.__wrapped__() is pays


def test_a_checkpoint_is_packed_as_it_is_loaded_and_a_live_model_is_not(tmp_path, tokenizer_of):
    tokenizer = tokenizer_of("gpt2")
    model = GPT2LMHeadModel(GPT2Config(n_embd=WIDE, n_layer=2, n_head=4, vocab_size=len(tokenizer)))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded, live = load_scorer(tmp_path), load_scorer(model=model, tokenizer=tokenizer)
    rows = load_sample("intrasentence")
    found, expected = loaded.score(rows), live.score(rows)
    assert [loaded.source.head("causal").record["packed_matrices"], packed_matrices(model)] == [8, 0]
    assert found == [pytest.approx(some, abs=1e-5) for some in expected]
