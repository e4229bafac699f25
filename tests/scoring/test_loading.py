"""From a folder or a model in memory to a scorer: what kind it is, which heads it has, what its weights are."""

import json
import shutil

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AutoModel,
    AutoModelForSeq2SeqLM,
    BertConfig,
    BertForMaskedLM,
    BertForNextSentencePrediction,
    BertForPreTraining,
    BertLMHeadModel,
    BigBirdConfig,
    BigBirdForPreTraining,
    FlaubertConfig,
    FlaubertWithLMHeadModel,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2DoubleHeadsModel,
    GPT2LMHeadModel,
    MixtralConfig,
    MixtralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen2Model,
    RobertaForCausalLM,
    RobertaForMaskedLM,
    XLMConfig,
    XLMWithLMHeadModel,
    XLNetConfig,
    XLNetLMHeadModel,
)

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.families import family_of
from stereoset_scoring.checkpoints.fingerprints import fingerprint
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.planning.units import unit_of
from stereoset_scoring.reading import Unreadable
from stereoset_scoring.refusal import Refusal

BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 140}

FAMILIES = [
    # config, the architecture it was saved as, family
    (BertConfig(), "BertForMaskedLM", "masked"),
    (BertConfig(), "BertForPreTraining", "masked"),
    (BertConfig(), "BertForNextSentencePrediction", "masked"),
    (BertConfig(), None, "masked"),
    (BertConfig(), "BertLMHeadModel", "causal"),
    (BertConfig(is_decoder=True), None, "causal"),
    (BertConfig(is_decoder=True), "BertForMaskedLM", "masked"),
    (GPT2Config(), "GPT2LMHeadModel", "causal"),
    (GPT2Config(), "GPT2DoubleHeadsModel", "causal"),
    (GPT2Config(), None, "causal"),
    (XLMConfig(), "XLMWithLMHeadModel", "masked"),
    (XLMConfig(causal=True), "XLMWithLMHeadModel", "causal"),
    (XLMConfig(causal=True), None, "causal"),
    (FlaubertConfig(), "FlaubertWithLMHeadModel", "masked"),
    (FlaubertConfig(causal=True), "FlaubertWithLMHeadModel", "causal"),
]


@pytest.mark.parametrize(("config", "saved_as", "family"), FAMILIES)
def test_family_is_that_of_the_architecture(config, saved_as, family):
    config.architectures = saved_as and [saved_as]
    assert family_of(config) == family


@pytest.mark.parametrize(("name", "family"), [("bert", "masked"), ("llama", "causal"), ("albert", "masked")])
def test_name_of_the_folder_says_nothing(folder, tmp_path, name, family):
    misleading = tmp_path / "gpt2-t5-bert"
    shutil.copytree(folder(name), misleading)
    assert load_scorer(misleading, device="cpu").source.family == family


def test_folder_may_be_given_as_text(folder, intrasentence):
    by_text = load_scorer(str(folder("gpt2")), device="cpu").score(intrasentence)
    assert by_text == load_scorer(folder("gpt2"), device="cpu").score(intrasentence)


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "gpt2", "llama", "bare"])
def test_model_in_memory_equals_its_folder(scorer_of, model_of, tokenizer_of, intrasentence, name):
    scorer = scorer_of(name)
    model = model_of(name, scorer.source.family)
    in_memory = load_scorer(model=model, tokenizer=tokenizer_of(name))
    # Not to the last bit: where in memory the weights lie decides which instructions add them up.
    expected = [pytest.approx(one, abs=1e-12) for one in scorer.score(intrasentence)]
    assert in_memory.score(intrasentence) == expected
    assert in_memory.source.head(scorer.source.family).engine.model is model


def test_one_model_in_memory_with_both_heads_serves_both_tasks(
    scorer_of, folder, tokenizer_of, intrasentence, intersentence
):
    model = BertForPreTraining.from_pretrained(folder("bert"), dtype=torch.float64)
    in_memory = load_scorer(model=model, tokenizer=tokenizer_of("bert"))
    rows = intrasentence + intersentence
    assert in_memory.score(rows) == [pytest.approx(one, abs=1e-12) for one in scorer_of("bert").score(rows)]


def test_next_sentence_model_in_memory_serves_intersentence(scorer_of, model_of, tokenizer_of, intersentence):
    in_memory = load_scorer(model=model_of("bert", "next_sentence"), tokenizer=tokenizer_of("bert"))
    assert in_memory.score(intersentence) == scorer_of("bert").score(intersentence)


@pytest.fixture
def in_training(folder):
    """A model with dropout, in training mode."""
    return BertForPreTraining.from_pretrained(folder("bert"), hidden_dropout_prob=0.5).train()


def test_model_in_training_is_scored_without_dropout_and_stays_in_training(
    scorer_of, in_training, tokenizer_of, intrasentence, intersentence
):
    scorer = load_scorer(model=in_training, tokenizer=tokenizer_of("bert"))
    rows = intrasentence + intersentence
    first, second = scorer.score(rows), scorer.score(rows)
    assert first == second == [pytest.approx(one, abs=1e-4) for one in scorer_of("bert").score(rows)]
    assert all(module.training for module in in_training.modules())


def test_frozen_parts_of_a_model_in_training_stay_in_evaluation_mode(in_training, tokenizer_of, intrasentence):
    in_training.bert.embeddings.eval()
    before = [module.training for module in in_training.modules()]
    load_scorer(model=in_training, tokenizer=tokenizer_of("bert")).score(intrasentence)
    assert [module.training for module in in_training.modules()] == before


def test_part_in_training_mode_of_a_model_in_evaluation_mode_is_scored_without_dropout(
    in_training, tokenizer_of, intrasentence
):
    in_training.eval().bert.encoder.train()
    scorer = load_scorer(model=in_training, tokenizer=tokenizer_of("bert"))
    assert scorer.score(intrasentence) == scorer.score(intrasentence)
    assert in_training.bert.encoder.training


def test_model_is_in_training_mode_again_after_an_error(in_training, tokenizer_of, intrasentence, monkeypatch):
    scorer = load_scorer(model=in_training, tokenizer=tokenizer_of("bert"))
    monkeypatch.setattr(scorer, "log_probs", lambda rows: 1 / 0)
    with pytest.raises(Unreadable, match="ZeroDivisionError"):
        scorer.score(intrasentence)
    assert in_training.training


def test_scoring_leaves_no_gradients_and_allows_them_afterwards(in_training, tokenizer_of, intrasentence):
    load_scorer(model=in_training, tokenizer=tokenizer_of("bert")).score(intrasentence)
    assert all(parameter.grad is None for parameter in in_training.parameters())
    in_training(torch.tensor([[5, 6, 7]])).prediction_logits.sum().backward()
    assert in_training.bert.embeddings.word_embeddings.weight.grad.abs().sum() > 0


def test_scores_follow_the_weights_during_training(folder, tokenizer_of, intrasentence):
    model = GPT2LMHeadModel.from_pretrained(folder("gpt2"))
    scorer = load_scorer(model=model, tokenizer=tokenizer_of("gpt2"))
    before = scorer.score(intrasentence)
    with torch.no_grad():
        model.transformer.ln_f.weight.mul_(2)
    assert scorer.score(intrasentence) != before


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_wrapped_model_is_accepted(scorer_of, model_of, tokenizer_of, intrasentence, name):
    scorer = scorer_of(name)
    wrapped = torch.nn.DataParallel(model_of(name, scorer.source.family))
    in_memory = load_scorer(model=wrapped, tokenizer=tokenizer_of(name))
    expected = [pytest.approx(one, abs=1e-12) for one in scorer.score(intrasentence)]
    assert in_memory.score(intrasentence) == expected


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_compiled_model_is_accepted(scorer_of, model_of, tokenizer_of, intrasentence, name):
    scorer = scorer_of(name)
    compiled = torch.compile(model_of(name, scorer.source.family), backend="eager")
    in_memory = load_scorer(model=compiled, tokenizer=tokenizer_of(name))
    assert in_memory.score(intrasentence) == [pytest.approx(one, abs=1e-12) for one in scorer.score(intrasentence)]


def test_subclass_of_a_known_architecture_is_accepted(scorer_of, folder, tokenizer_of, intrasentence):
    class OwnBert(BertForMaskedLM):
        pass

    model = OwnBert.from_pretrained(folder("bert"), dtype=torch.float64)
    in_memory = load_scorer(model=model, tokenizer=tokenizer_of("bert"))
    assert in_memory.score(intrasentence) == scorer_of("bert").score(intrasentence)


def test_model_that_returns_tuples_is_accepted(scorer_of, folder, tokenizer_of, intrasentence, intersentence):
    model = BertForPreTraining.from_pretrained(folder("bert"), dtype=torch.float64, return_dict=False)
    rows = intrasentence + intersentence
    expected = [pytest.approx(one, abs=1e-12) for one in scorer_of("bert").score(rows)]
    assert load_scorer(model=model, tokenizer=tokenizer_of("bert")).score(rows) == expected


def test_kind_of_a_model_in_memory_is_that_of_its_class(folder, tokenizer_of, intrasentence):
    model = RobertaForCausalLM.from_pretrained(folder("roberta"), is_decoder=True)
    scorer = load_scorer(model=model, tokenizer=tokenizer_of("roberta"))
    assert scorer.source.family == "causal"
    scorer.score(intrasentence)


def test_kind_of_a_model_made_from_a_configuration_is_that_of_its_class(tokenizer_of, intrasentence):
    model = BertLMHeadModel(BertConfig(**BERT, is_decoder=True))
    assert load_scorer(model=model, tokenizer=tokenizer_of("bert")).source.family == "causal"
    model = BertForMaskedLM(BertConfig(**BERT))
    assert load_scorer(model=model, tokenizer=tokenizer_of("bert")).source.family == "masked"


def test_checkpoint_saved_without_its_head_is_refused_though_tied_weights_leave_nothing_missing(
    folder, tmp_path, tokenizer_of
):
    AutoModel.from_pretrained(folder("gpt2")).save_pretrained(tmp_path)  # GPT-2's head is its embedding
    tokenizer_of("gpt2").save_pretrained(tmp_path)
    with pytest.raises(Refusal, match="was saved as a GPT2Model, without a causal-language-model head"):
        load_scorer(tmp_path, device="cpu").source.head("causal")


def test_weights_that_a_head_does_not_use_are_reported(scorer_of):
    source = scorer_of("bert").source
    assert any(key.startswith("cls.seq_relationship") for key in source.head("masked").unexpected)
    assert any(key.startswith("cls.predictions") for key in source.head("next_sentence").unexpected)
    assert scorer_of("gpt2").source.head("causal").unexpected == ()
    assert source.head("masked").missing == ()


def test_head_is_loaded_once(scorer_of):
    source = scorer_of("bert").source
    assert source.head("masked") is source.head("masked")


def tiny(dtype=torch.float32):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        return BertForMaskedLM(BertConfig(**BERT)).to(dtype)


def test_fingerprint_is_equal_for_equal_weights(folder):
    assert fingerprint(tiny()) == fingerprint(tiny())
    one, other = (load_scorer(folder("bert"), device="cpu").source.head("masked").fingerprint for _ in range(2))
    assert one == other


def test_fingerprint_differs_when_one_bit_does():
    model, changed = tiny(), tiny()
    with torch.no_grad():
        changed.bert.embeddings.word_embeddings.weight.view(torch.int32)[3, 5] ^= 1
    assert fingerprint(model) != fingerprint(changed)


def test_fingerprint_sees_where_a_value_stands():
    model, changed = tiny(), tiny()
    with torch.no_grad():
        weight = changed.bert.embeddings.word_embeddings.weight
        weight[[3, 4]] = weight[[4, 3]]
    assert fingerprint(model) != fingerprint(changed)


def test_fingerprint_differs_between_dtypes():
    assert len({fingerprint(tiny(dtype)) for dtype in (torch.float32, torch.float64, torch.bfloat16)}) == 3


def test_fingerprint_does_not_depend_on_memory_layout_or_mode():
    model, other = tiny(), tiny().train()
    weight = other.bert.encoder.layer[0].intermediate.dense.weight
    weight.data = weight.data.t().contiguous().t()
    assert not weight.is_contiguous()
    assert fingerprint(model) == fingerprint(other)


def test_fingerprint_of_a_model_in_memory_follows_its_weights(folder, tokenizer_of):
    model = GPT2LMHeadModel.from_pretrained(folder("gpt2"))
    source = load_scorer(model=model, tokenizer=tokenizer_of("gpt2")).source
    before = source.head("causal").fingerprint
    with torch.no_grad():
        model.transformer.ln_f.weight.mul_(2)
    assert source.head("causal").fingerprint != before


LONGEST = [("bert", 64), ("roberta", 64), ("albert", 64), ("gpt2", 64), ("llama", 64)]


@pytest.mark.parametrize(("name", "longest"), LONGEST)
def test_longest_input_is_what_the_model_can_number(scorer_of, name, longest):
    source = scorer_of(name).source
    head = source.head(source.family)
    assert head.longest_input == longest
    row = Row(source.family, ids=(5,) * longest, reads=((longest - 1, 5),))
    assert len(head.engine.log_probs([unit_of([row])])[0]) == 1


def test_head_of_a_class_with_the_wrong_kind_is_refused(folder, tokenizer_of):
    model = BertForNextSentencePrediction.from_pretrained(folder("bert"))
    with pytest.raises(ValueError, match=r"BertForNextSentencePrediction in memory has no masked-language-model head"):
        load_scorer(model=model, tokenizer=tokenizer_of("bert")).source.head("masked")


@pytest.mark.parametrize("device", ["cpu", torch.device("cpu")])
def test_checkpoint_goes_to_the_device_asked_for(folder, device):
    source = load_scorer(folder("bert"), device=device).source
    assert source.head("masked").engine.model.device == torch.device("cpu")


def test_config_is_read_and_the_weights_are_left_alone_until_a_head_is_asked(folder, tmp_path):
    shutil.copytree(folder("bert"), tmp_path / "copy")
    (tmp_path / "copy" / "model.safetensors").unlink()
    scorer = load_scorer(tmp_path / "copy", device="cpu")
    assert scorer.method("intrasentence").name == "likelihood"
    assert json.loads((tmp_path / "copy" / "config.json").read_text())["model_type"] == scorer.source.config.model_type


def test_saved_by_another_class_with_the_same_weights(folder, tmp_path, tokenizer_of, intrasentence):
    RobertaForMaskedLM.from_pretrained(folder("roberta")).save_pretrained(tmp_path)
    tokenizer_of("roberta").save_pretrained(tmp_path)
    expected = load_scorer(folder("roberta"), device="cpu").score(intrasentence)
    assert load_scorer(tmp_path, device="cpu").score(intrasentence) == expected


def saved(model, tokenizer, folder):
    """The folder of a model and its tokenizer."""
    for one in (model, tokenizer):
        one.save_pretrained(folder)
    return folder


def both_ways(model, tokenizer, folder):
    """A scorer of a model in memory, and one of its folder."""
    return load_scorer(model=model, tokenizer=tokenizer), load_scorer(saved(model, tokenizer, folder), device="cpu")


BOTH_HEADS = [
    (AlbertForPreTraining, AlbertConfig(embedding_size=16, **BERT)),
    (BigBirdForPreTraining, BigBirdConfig(attention_type="original_full", **BERT)),
]


@pytest.mark.parametrize(("architecture", "config"), BOTH_HEADS)
def test_class_with_both_heads_is_in_memory_what_it_is_as_a_folder(
    tmp_path, tokenizer_of, intrasentence, intersentence, architecture, config
):
    model = architecture(config).eval()
    in_memory, opened = both_ways(model, tokenizer_of("bert"), tmp_path)
    assert in_memory.score(intrasentence) == [pytest.approx(one, abs=1e-5) for one in opened.score(intrasentence)]
    # A sentence-order head is no next-sentence head: by default another method takes its place.
    assert in_memory.method("intersentence").name == opened.method("intersentence").name == "pseudo_likelihood"
    for where in ({"model": model, "tokenizer": tokenizer_of("bert")}, {"name": tmp_path, "device": "cpu"}):
        with pytest.raises(Refusal, match=r"has no next-sentence head: choose another method"):
            load_scorer(**where, method="next_sentence").score(intersentence)


def test_language_model_with_a_head_for_choices_beside_is_a_language_model(tmp_path, tokenizer_of, intrasentence):
    config = GPT2Config(vocab_size=len(tokenizer_of("gpt2")), n_embd=16, n_layer=1, n_head=2, num_labels=1)
    in_memory, opened = both_ways(GPT2DoubleHeadsModel(config).eval(), tokenizer_of("gpt2"), tmp_path)
    assert in_memory.score(intrasentence) == [pytest.approx(one, abs=1e-5) for one in opened.score(intrasentence)]


@pytest.mark.parametrize(
    ("architecture", "config"),
    [(XLMWithLMHeadModel, XLMConfig), (FlaubertWithLMHeadModel, FlaubertConfig)],
)
def test_causal_model_of_a_masked_class_is_scored_as_a_causal_one(tmp_path, tokenizer_of, row, architecture, config):
    tokenizer = tokenizer_of("gpt2")
    sizes = {"emb_dim": 16, "n_layers": 1, "n_heads": 2, "embed_init_std": 0.3}
    model = architecture(config(vocab_size=len(tokenizer), causal=True, **sizes)).eval()
    ids, logs = tokenizer.encode("It was calm."), []
    for i, token in enumerate(ids):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids[:i] or [tokenizer.bos_token_id]])).logits
        logs.append(logits[0, -1].log_softmax(-1)[token].item())
    for scorer in both_ways(model, tokenizer, tmp_path):
        assert scorer.source.family == "causal"
        ((found,),) = scorer.score([row("It was BLANK.", ["It was calm."])])
        assert found == pytest.approx(sum(logs) / len(logs), abs=1e-5)


@pytest.mark.parametrize("tied", [True, False])
def test_model_saved_without_its_head_is_refused_tied_or_not(tmp_path, tokenizer_of, intrasentence, tied):
    tokenizer = tokenizer_of("gpt2")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = Qwen2Config(vocab_size=len(tokenizer), intermediate_size=16, tie_word_embeddings=tied, **sizes)
    whole = Qwen2ForCausalLM(config).eval()
    assert type(whole.model) is Qwen2Model
    scorer = load_scorer(saved(whole.model, tokenizer, tmp_path), device="cpu")
    reason = "was saved as a Qwen2Model" if tied else r"1 weights missing .*first 'lm_head.weight'.*says nothing"
    with pytest.raises(Refusal, match=reason):
        scorer.score(intrasentence)


WANTED = [("float16", {torch.float16, torch.float32}), ("bfloat16", {torch.bfloat16}), ("float64", {torch.float64})]


@pytest.mark.parametrize(("dtype", "expected"), WANTED)
def test_what_a_model_wants_in_float32_is_kept_so(folder, dtype, expected):
    found = load_scorer(folder("t5"), device="cpu", dtype=dtype).source.head("seq2seq").engine.model
    plain = AutoModelForSeq2SeqLM.from_pretrained(folder("t5"), dtype=getattr(torch, dtype))
    assert {weight.dtype for weight in found.parameters()} == expected
    wider = {name for name, weight in found.named_parameters() if weight.dtype != found.dtype}
    assert wider == {name for name, weight in plain.named_parameters() if weight.dtype != plain.dtype}
    assert all(name.endswith("wo.weight") for name in wider)


WIDE = [
    (Gemma2ForCausalLM, Gemma2Config, {"sliding_window": 6}),
    (Gemma2ForCausalLM, Gemma2Config, {"sliding_window": 4096}),
    (MixtralForCausalLM, MixtralConfig, {"num_local_experts": 4}),
]


@pytest.mark.parametrize(("architecture", "config", "more"), WIDE)
def test_float64_gives_the_numbers_of_float32(
    tmp_path, tokenizer_of, intrasentence, intersentence, architecture, config, more
):
    tokenizer = tokenizer_of("gpt2")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    model = architecture(config(vocab_size=len(tokenizer), head_dim=8, intermediate_size=16, **sizes, **more)).eval()
    rows = intrasentence + intersentence
    narrow, wide = (
        load_scorer(saved(model, tokenizer, tmp_path), device="cpu", dtype=dtype) for dtype in ("float32", "float64")
    )
    assert wide.score(rows) == [pytest.approx(one, abs=1e-4) for one in narrow.score(rows)]
    assert wide.source.head("causal").engine.model.dtype == torch.float64


class Holder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model


HELD = [
    # what is given instead of a model, parts of the sentence
    (Holder, r"A Holder is no transformers model: give the transformers model that it holds, its \.model"),
    (lambda model: model.state_dict(), r"is a OrderedDict, not a model: load its weights into a transformers model"),
    (lambda model: "bert-base-cased", r"is the text 'bert-base-cased': give a name or a folder as .* first argument"),
    (lambda model: torch.nn.Linear(2, 2), r"A Linear is no transformers model: give one, such as BertForMaskedLM"),
    (lambda model: type("Trainer", (), {"__init__": lambda self: vars(self).update(model=model)})(), r"its \.model"),
]


@pytest.mark.parametrize(("holder", "said"), HELD)
def test_what_is_no_transformers_model_is_refused_by_what_it_is(model_of, tokenizer_of, holder, said):
    with pytest.raises(Refusal, match=said):
        load_scorer(model=holder(model_of("bert", "masked")), tokenizer=tokenizer_of("bert"))


def test_checkpoint_in_half_precision_is_one_dtype_without_being_asked(tokenizer_of, intrasentence, tmp_path):
    sizes = {"d_model": 32, "n_layer": 1, "n_head": 2, "d_inner": 16}
    tokenizer = tokenizer_of("xlnet")  # whose model declares some of its parameters in float32
    model = XLNetLMHeadModel(XLNetConfig(vocab_size=len(tokenizer), **sizes)).bfloat16()
    scorer = load_scorer(saved(model, tokenizer, tmp_path), device="cpu")
    assert {weight.dtype for weight in scorer.source.head("permutation").engine.model.parameters()} == {torch.bfloat16}
    assert len(scorer.score(intrasentence)) == len(intrasentence)
