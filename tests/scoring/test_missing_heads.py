"""A head that a checkpoint lacks is told from one that cannot be loaded, and not looked for by loading the rest."""

import re

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig, AutoModelForMaskedLM, AutoModelForPreTraining, BertForMaskedLM, BertForPreTraining
from transformers.models.auto.modeling_auto import MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints import opening
from stereoset_scoring.checkpoints.checkpoint import Checkpoint
from stereoset_scoring.checkpoints.heads import Head
from stereoset_scoring.refusal import MissingHead, Refusal

SMALL = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "embedding_size": 16,
    "intra_bottleneck_size": 16,
}


def refused(kind, *parts):
    return pytest.raises(kind, match=".*".join(map(re.escape, parts)))


@pytest.fixture
def opened(monkeypatch):
    """The names of the heads that weights were loaded for, in order."""
    found = []
    load = opening._from_pretrained
    monkeypatch.setattr(opening, "_from_pretrained", lambda *asked: found.append(asked[1]) or load(*asked))
    return found


def as_safetensors(model, place):
    model.save_pretrained(place)


def as_shards(model, place):
    model.save_pretrained(place, max_shard_size="20KB")
    assert (place / "model.safetensors.index.json").exists()


def as_pickle(model, place):
    model.save_pretrained(place)
    torch.save(load_file(place / "model.safetensors"), place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()


def as_old_names(model, place):
    """As BERT's first checkpoints were saved, in names that the library knows."""
    model.save_pretrained(place)
    weights = load_file(place / "model.safetensors")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    renamed = {re.sub(r"LayerNorm\.\w+$", lambda found: old[found[0]], name): one for name, one in weights.items()}
    torch.save(renamed, place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()


@pytest.mark.parametrize("save", [as_safetensors, as_shards, as_pickle])
def test_a_next_sentence_head_that_no_file_names_is_not_looked_for_by_loading(
    folder, tokenizer_of, tmp_path, intersentence, opened, save
):
    save(BertForMaskedLM.from_pretrained(folder("bert")), tmp_path)
    tokenizer_of("bert").save_pretrained(tmp_path)
    scorer = load_scorer(tmp_path, device="cpu")
    scorer.score(intersentence)
    assert scorer.fallback("intersentence") == f"{tmp_path} holds no next-sentence head"
    assert opened == ["masked"]
    with refused(MissingHead, f"{tmp_path} holds no next-sentence head", "4 weights missing", "bert.pooler.dense.bias"):
        scorer.source.head("next_sentence")


@pytest.mark.parametrize("save", [as_safetensors, as_shards, as_pickle, as_old_names])
def test_a_next_sentence_head_that_is_there_is_loaded(folder, tokenizer_of, tmp_path, opened, save):
    save(BertForPreTraining.from_pretrained(folder("bert")), tmp_path)
    tokenizer_of("bert").save_pretrained(tmp_path)
    assert isinstance(Checkpoint(tmp_path).head("next_sentence"), Head)
    assert opened == ["next_sentence"]


@pytest.mark.parametrize("model_type", sorted(MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES))
@pytest.mark.parametrize(("auto", "holds"), [(AutoModelForMaskedLM, False), (AutoModelForPreTraining, True)])
def test_names_tell_of_every_architecture_what_loading_tells(tokenizer_of, tmp_path, model_type, auto, holds):
    tokenizer = tokenizer_of("bert")
    auto.from_config(AutoConfig.for_model(model_type, vocab_size=len(tokenizer), **SMALL)).save_pretrained(tmp_path)
    repository = opening.Repository(tmp_path)
    _, report = opening._from_pretrained(repository, "next_sentence", torch.float32, {})
    assert opening._lacking_by_name(repository, "next_sentence") == sorted(report["missing_keys"])
    assert bool(report["missing_keys"]) is not holds


def test_what_keeps_a_head_from_being_loaded_is_said_and_no_reason_to_pass_it_over(
    folder, tokenizer_of, tmp_path, intersentence, monkeypatch
):
    asked = []
    load = opening._from_pretrained

    def fail(repository, head, *more):
        asked.append(head)
        if head == "next_sentence":
            raise Refusal("A library is missing: install it.")
        return load(repository, head, *more)

    monkeypatch.setattr(opening, "_from_pretrained", fail)
    scorer = load_scorer(folder("bert"), device="cpu")
    for call in (scorer.score, lambda rows: scorer.unanswerable({"intersentence": rows})):
        with refused(Refusal, "A library is missing: install it."):
            call(intersentence)
    with refused(Refusal, "A library is missing: install it."):
        scorer.fallback("intersentence")
    assert asked == ["next_sentence"]


def test_a_model_in_memory_tells_them_apart_too(model_of, tokenizer_of):
    scorer = load_scorer(model=model_of("roberta", "masked"), tokenizer=tokenizer_of("roberta"))
    with refused(MissingHead, "RobertaForMaskedLM in memory has no next-sentence head"):
        scorer.source.head("next_sentence")
