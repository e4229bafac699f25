"""Trained next-sentence heads against the released codes, which scored the same tiny models in float64."""

import json
import math
import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import XLNetModel

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.checkpoint import Checkpoint
from stereoset_scoring.checkpoints.opening import Loading
from stereoset_scoring.methods.next_sentence import NextSentence

# (file of scores, its model, options)
ORACLES = [
    ("stereoset_inter_roberta-base_modelnsp_en", "roberta", {"preset": "stereoset", "follows": 0}),
    ("stereoset_inter_roberta-large_modelnsp_en", "roberta", {"preset": "stereoset"}),
    ("stereoset_inter_gpt2_modelnsp_en", "gpt2", {"preset": "stereoset"}),
    ("stereoset_inter_xlnet_modelnsp_en__tf2.7.0", "xlnet", {"preset": "stereoset"}),
    ("slds_inter_gpt2_modelnsp_en_bs1", "gpt2", {"preset": "multilingual"}),
]
PADDED = "slds_inter_gpt2_modelnsp_en_bs8"


@pytest.fixture
def oracle(shared):
    """A function from the name of a file of scores to (rows of the data set, probabilities)."""

    def read(name):
        content = json.loads((shared / "oracles" / "scores" / f"{name}.json").read_text(encoding="utf-8"))
        rows = [{**example, "sentences": example["options"]} for example in content["examples"]]
        return rows, [[option["score"] for option in example["options"]] for example in content["examples"]]

    return read


@pytest.fixture
def as_transformers_2(monkeypatch, shared, tmp_path):
    """The folder of a model, with XLNet's arithmetic of transformers 2.7: another gelu, and sines in float64."""
    sines = XLNetModel.positional_embedding

    def in_float64(positions, frequencies, *rest):
        return sines(positions.double(), frequencies, *rest)

    monkeypatch.setattr(XLNetModel, "positional_embedding", staticmethod(in_float64))

    def folder(model):
        copied = shutil.copytree(shared / "oracles" / "models" / model, tmp_path / model, copy_function=shutil.copyfile)
        config = json.loads((copied / "config.json").read_text(encoding="utf-8"))
        (copied / "config.json").write_text(json.dumps(config | {"ff_activation": "gelu_new"}), encoding="utf-8")
        return copied

    return folder


@pytest.mark.parametrize(("name", "model", "options"), ORACLES, ids=[name for name, *_ in ORACLES])
def test_every_option_scores_as_the_released_code_scored_it(oracle, as_transformers_2, shared, name, model, options):
    rows, expected = oracle(name)
    head = shared / "oracles" / "nsp" / f"{model}.safetensors"
    scorer = load_scorer(as_transformers_2(model), next_sentence_head=head, dtype="float64", device="cpu", **options)
    for scores, probabilities in zip(scorer.score(rows), expected, strict=True):
        assert [math.exp(score) for score in scores] == pytest.approx(probabilities, rel=1e-9)


def test_a_mean_over_padding_gives_the_scores_of_the_released_batches_of_eight(oracle, shared):
    """What no method offers, since it makes a score depend on its neighbours; the weights and rows are the same."""
    rows, expected = oracle(PADDED)
    oracles = shared / "oracles"
    source = Checkpoint(
        oracles / "models" / "gpt2", Loading(dtype="float64"), next_sentence_head=oracles / "nsp" / "gpt2.safetensors"
    )
    model, pad = source.head("next_sentence").engine.model, source.tokenizer.hub.vocab_size
    pairs = [
        NextSentence().pair(row["context"], option["sentence"], source.tokenizer)[0]
        for row in rows
        for option in row["sentences"]
    ]
    found = []
    for start in range(0, len(pairs), 8):
        batch = pairs[start : start + 8]
        width = max(map(len, batch))
        ids = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in batch])  # (B, T)
        with torch.no_grad():
            hidden = model.core_model(ids, attention_mask=(ids != pad).long()).last_hidden_state  # (B, T, H)
            found += model.nsp_head(hidden.mean(1)).softmax(-1)[:, 1].tolist()
    assert found == pytest.approx([score for scores in expected for score in scores], rel=1e-9)


def test_the_core_comes_from_the_heads_file(shared):
    oracles = shared / "oracles"
    path = oracles / "nsp" / "roberta.safetensors"
    model = Checkpoint(oracles / "models" / "roberta", next_sentence_head=path).head("next_sentence").engine.model
    saved = load_file(path)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, saved[f"module.{name}"]), name
