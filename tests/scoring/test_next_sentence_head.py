"""Trained next-sentence heads: what they read, which files they come from, and which files are refused."""

import json
import os
import pickle
import re

import pytest
import torch
from transformers import AutoModel, AutoTokenizer

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.next_sentence_head import (
    HeadSpec,
    NextSentenceModel,
    read_weights,
    released_pooling,
    save_trained_head,
)

EXAMPLE = {
    "id": "e1",
    "context": "My professor is a man.",
    "sentences": [
        {"id": "o1", "sentence": "He is clever."},
        {"id": "o2", "sentence": "He has not read any of the very many books that he was given in the last years."},
        {"id": "o3", "sentence": "Cats have sharp claws."},
    ],
}
BLANK = {
    "id": "e2",
    "context": "My professor is BLANK.",
    "sentences": [{"id": f"o{word}", "sentence": f"My professor is {word}."} for word in ("kind", "cruel", "blue")],
}
# (core, pooling)
CORES = [
    ("bert", "pooler"),
    ("roberta", "first"),
    ("albert", "pooler"),
    ("xlnet", "first"),
    ("xlnet", "last"),
    ("gpt2", "mean"),
    ("gpt2", "last"),
]


@pytest.fixture(scope="module")
def oracles(shared):
    return shared / "oracles"


@pytest.fixture(scope="module")
def trained(oracles, tmp_path_factory):
    """A function from a core and a pooling to the folder of a head, trained by nobody, on that core."""

    def folder(core, pooling=None):
        path = tmp_path_factory.mktemp(core)
        torch.manual_seed(0)
        model = NextSentenceModel(AutoModel.from_pretrained(oracles / "models" / core), HeadSpec(pooling=pooling))
        save_trained_head(path, model, AutoTokenizer.from_pretrained(oracles / "models" / core))
        return path

    return folder


@pytest.mark.parametrize(("core", "pooling"), CORES)
def test_a_score_does_not_depend_on_its_neighbours(trained, core, pooling):
    folder = trained(core, pooling)
    alone = load_scorer(folder, device="cpu", dtype="float64", max_tokens=64)  # one row a batch, or two short ones
    together = load_scorer(folder, device="cpu", dtype="float64", max_tokens=4096)
    assert len(together.plan([EXAMPLE]).batches) == 1 < len(alone.plan([EXAMPLE]).batches)
    assert together.score([EXAMPLE])[0] == pytest.approx(alone.score([EXAMPLE])[0], rel=1e-9)


@pytest.mark.parametrize(
    ("core", "pooling"), [("bert", "pooler"), ("roberta", "pooler"), ("xlnet", "first"), ("gpt2", "mean")]
)
def test_what_is_read_by_default_is_what_the_released_code_reads(oracles, core, pooling):
    assert released_pooling(AutoModel.from_pretrained(oracles / "models" / core)) == pooling


def test_a_folder_keeps_the_original_names_of_the_weights(trained):
    names = read_weights(trained("gpt2") / "model.safetensors").keys()
    heads = {f"nsp_head.{n}.{part}" for n in range(3) for part in ("weight", "bias")}
    assert {name for name in names if not name.startswith("core_model.")} == heads


def test_a_head_in_memory_scores_as_its_folder_does(trained):
    from_folder = load_scorer(trained("gpt2"), device="cpu")
    source = from_folder.source
    in_memory = load_scorer(model=source.head("next_sentence").engine.model, tokenizer=source.tokenizer.hub)
    assert in_memory.score([EXAMPLE]) == from_folder.score([EXAMPLE])


def test_with_a_language_model_the_head_scores_intersentence_and_the_model_the_rest(oracles, trained):
    folder, model = trained("bert"), oracles / "models" / "bert"
    both = load_scorer(model, next_sentence_head=folder, device="cpu")
    assert both.score([EXAMPLE, BLANK]) == (
        load_scorer(folder, device="cpu").score([EXAMPLE]) + load_scorer(model, device="cpu").score([BLANK])
    )


def test_the_class_that_follows_and_the_space_between_are_the_heads_own_unless_given(trained):
    folder = trained("gpt2")
    spec = {"follows": 0, "pooling": "mean", "join": "space"}
    own = load_scorer(folder, device="cpu", follows=0, join="space").score([EXAMPLE])
    assert own != load_scorer(folder, device="cpu").score([EXAMPLE])
    (folder / "next_sentence.json").write_text(json.dumps(spec))
    assert load_scorer(folder, device="cpu").score([EXAMPLE]) == own


@pytest.fixture
def state_dict(oracles):
    return read_weights(oracles / "nsp" / "gpt2.safetensors")


def test_a_pth_of_the_released_code_is_read_without_the_buffers_of_old_versions(oracles, state_dict, tmp_path):
    for layer in range(2):
        state_dict[f"module.core_model.h.{layer}.attn.bias"] = torch.ones(1, 1, 128, 128).tril()
        state_dict[f"module.core_model.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    torch.save(state_dict, tmp_path / "gpt2.pth")
    old, new = (
        load_scorer(oracles / "models" / "gpt2", next_sentence_head=path, device="cpu")
        for path in (tmp_path / "gpt2.pth", oracles / "nsp" / "gpt2.safetensors")
    )
    assert old.score([EXAMPLE]) == new.score([EXAMPLE])
    assert len(old.source.head("next_sentence").unexpected) == 4


FAULTS = [
    ({"nsp_head.1.bias": None}, "1 weights missing, first 'nsp_head.1.bias'"),
    ({"nsp_head.3.bias": torch.zeros(2)}, "1 weights unexpected, first 'nsp_head.3.bias'"),
    ({"nsp_head.2.bias": torch.zeros(3)}, "1 weights of another shape, first 'nsp_head.2.bias'"),
    ({"core_model.wte.weight": torch.zeros(1700, 32)}, "1 weights of another shape, first 'core_model.wte.weight'"),
]


@pytest.mark.parametrize(("change", "words"), FAULTS)
def test_weights_that_do_not_fit_are_refused_by_name(oracles, state_dict, tmp_path, change, words):
    state_dict |= {f"module.{name}": tensor for name, tensor in change.items()}
    torch.save({name: tensor for name, tensor in state_dict.items() if tensor is not None}, tmp_path / "gpt2.pth")
    scorer = load_scorer(oracles / "models" / "gpt2", next_sentence_head=tmp_path / "gpt2.pth", device="cpu")
    with pytest.raises(ValueError, match=re.escape(words)):
        scorer.score([EXAMPLE])


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("exploded",)


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
@pytest.mark.parametrize(
    "content",
    [Bomb(), {"weights": Bomb()}, b"", [1, 2], {"epoch": 3}],
    ids=["code", "inside", "empty", "list", "other"],
)
def test_a_pickle_that_is_no_file_of_weights_is_refused_and_not_run(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "head.pth"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, Bomb):
        path.write_bytes(pickle.dumps(content))
    else:
        torch.save(content, path)  # with Bomb inside in one case
    with pytest.raises(ValueError, match=r"is no file of weights|is no state dict"):
        read_weights(path)
    assert not (tmp_path / "exploded").exists()


def test_other_tasks_are_refused_where_there_is_only_a_head(trained):
    with pytest.raises(ValueError, match="is a trained next-sentence head without a language model"):
        load_scorer(trained("bert"), device="cpu").score([BLANK])


@pytest.mark.parametrize("model", ["roberta", "gpt2"])
def test_a_model_without_a_trained_head_is_refused_and_told_how_to_get_one(oracles, model):
    with pytest.raises(ValueError, match=r"or train one with scripts/train_next_sentence\.py"):
        load_scorer(oracles / "models" / model, method="next_sentence", device="cpu").score([EXAMPLE])


def test_an_encoder_decoder_is_refused(oracles):
    with pytest.raises(ValueError, match="t5 model is an encoder-decoder"):
        NextSentenceModel(AutoModel.from_pretrained(oracles / "models" / "t5"))


@pytest.mark.parametrize(
    ("path", "words"),
    [("nowhere", "There is no next-sentence head at nowhere"), (".", "has no next_sentence.json")],
)
def test_a_path_without_a_head_is_refused(oracles, tmp_path, monkeypatch, path, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=words):
        load_scorer(oracles / "models" / "gpt2", next_sentence_head=path)


@pytest.mark.parametrize("spec", [{"follows": 2}, {"pooling": "max"}, {"join": ", "}])
def test_a_description_that_makes_no_sense_is_refused(spec):
    with pytest.raises(ValueError, match="A next-sentence head cannot"):
        HeadSpec(**spec)
