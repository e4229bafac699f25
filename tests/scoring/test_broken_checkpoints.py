"""Checkpoints whose files are truncated, empty, missing or hostile: one sentence each, and nothing in them is run."""

import json
import os
import pickle
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM

from stereoset_scoring import load_scorer
from stereoset_scoring.refusal import Refusal

WEIGHTS, PICKLED, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"


class Hostile:
    """What would make a folder where it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder / "executed"),)


def cut(path, by=100):
    path.write_bytes(path.read_bytes()[:-by])


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def pickled(content, save):
    def harm(folder):
        (folder / WEIGHTS).unlink()
        with open(folder / PICKLED, "wb") as file:
            save(content(folder), file)

    return harm


def truncated_pickle(folder):
    torch.save(load_file(folder / WEIGHTS), folder / PICKLED)
    (folder / WEIGHTS).unlink()
    cut(folder / PICKLED, 300)


def sharded(folder):
    """The last of the shards of a folder."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    (folder / WEIGHTS).unlink()
    model.save_pretrained(folder, max_shard_size="20KB")
    return max(folder.glob("model-*"))


def sharded_with(index):
    def harm(folder):
        sharded(folder)
        (folder / INDEX).write_text(index)

    return harm


def configured(**values):
    def harm(folder):
        config = {**json.loads((folder / "config.json").read_text()), **values}
        (folder / "config.json").write_text(json.dumps({name: value for name, value in config.items() if value != ""}))

    return harm


BROKEN = {
    # what is done to the folder: parts of the one sentence
    "truncated": (lambda folder: cut(folder / WEIGHTS), [WEIGHTS, "not the whole of one", "download it again"]),
    "empty": (write(WEIGHTS, b""), [WEIGHTS, "but empty", "download it again"]),
    "garbage": (write(WEIGHTS, b"\xff" * 500), [WEIGHTS, "not the whole of one", "download it again"]),
    "a header of exabytes": (write(WEIGHTS, (2**60).to_bytes(8, "little")), [WEIGHTS, "download it again"]),
    "a pointer": (write(WEIGHTS, b"version https://git-lfs.github.com/spec/v1\n"), [WEIGHTS, "git lfs pull"]),
    "no weights": (lambda folder: (folder / WEIGHTS).unlink(), ["not within reach", "download all", WEIGHTS]),
    "hostile state dict": (pickled(lambda folder: {"a": Hostile(folder)}, torch.save), [PICKLED, "mkdir", "is run"]),
    "hostile pickle": (pickled(Hostile, pickle.dump), [PICKLED, "nothing in it is run", "state dict"]),
    "empty pickle": (pickled(lambda folder: b"", lambda content, file: file.write(content)), [PICKLED, "but empty"]),
    "truncated pickle": (truncated_pickle, [PICKLED, "not the whole of one", "download it again"]),
    "no state dict": (pickled(lambda folder: [1, 2], torch.save), [PICKLED, "list", "no state dict"]),
    "a missing shard": (lambda folder: sharded(folder).unlink(), [INDEX, "names model-0", "not there", "download all"]),
    "a truncated shard": (
        lambda folder: cut(sharded(folder)),
        ["model-0", "not the whole of one", "download it"],
    ),
    "broken index": (sharded_with("{"), [INDEX, "no JSON", "restore"]),
    "list as index": (sharded_with("[]"), [INDEX, "no JSON object", "restore"]),
    "index of nothing": (sharded_with("{}"), [INDEX, "weight_map", "restore"]),
    "broken config": (write("config.json", b'{"model_type": "gpt2",'), ["config.json", "no JSON", "restore"]),
    "empty config": (write("config.json", b""), ["config.json", "no JSON", "restore"]),
    "config in bytes": (write("config.json", b"\xff\xfe\x00"), ["config.json", "no JSON", "restore"]),
    "list as config": (write("config.json", b'["gpt2"]'), ["config.json", "no JSON object", "restore"]),
    "null as config": (write("config.json", b"null"), ["config.json", "no JSON object", "restore"]),
    "no model type": (configured(model_type=""), ["config.json", "has no model_type", "give the folder"]),
    "unknown model type": (configured(model_type="gpt9"), ["config.json", "'gpt9'", "update transformers"]),
    "impossible config": (configured(n_embd="many"), ["config.json", "no possible model", "restore", "n_embd"]),
    "heads that do not divide": (configured(n_head=3), ["cannot be opened", "mend its files", "divisible"]),
    "another shape": (configured(n_embd=64), ["weights missing or of another shape", "random", "choose another"]),
    "another depth": (configured(n_layer=3), ["weights missing or of another shape", "h.2.", "choose another"]),
    "no config": (
        lambda folder: (folder / "config.json").unlink(),
        ["neither a folder with a model", "check the name"],
    ),
    "broken head": (write("next_sentence.json", b"{"), ["next_sentence.json", "no JSON", "restore"]),
    "list as head": (write("next_sentence.json", b"[]"), ["next_sentence.json", "no JSON object", "restore"]),
    "half a head": (write("next_sentence.json", b'{"follows": 1}'), ["next_sentence.json", "must hold", "restore"]),
    "impossible head": (
        write("next_sentence.json", b'{"follows": {}, "pooling": "mean", "join": "none"}'),
        ["next_sentence.json", "restore", "follows is 0 or 1"],
    ),
    "own code": (
        configured(model_type="own", auto_map={"AutoConfig": "conf.Own"}),
        ["code of its own", "nothing runs unasked", "trust_remote_code=True"],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_checkpoint_is_refused_in_a_sentence(folder, tmp_path, intrasentence, name):
    harm, parts = BROKEN[name]
    broken = shutil.copytree(folder("gpt2"), tmp_path / "model")
    (broken / "conf.py").write_text(f"import os; os.mkdir({str(broken / 'executed')!r})")
    harm(broken)
    with pytest.raises((Refusal, OSError), match=".*".join(map(re.escape, parts))) as refusal:
        load_scorer(broken, device="cpu").score(intrasentence)
    assert "\n" not in str(refusal.value)
    assert str(broken) in str(refusal.value)
    assert not (broken / "executed").exists()


@pytest.mark.parametrize("options", [{}, {"attention": "eager"}])
def test_missing_library_is_named_with_the_options_that_want_it(folder, monkeypatch, options):
    def from_pretrained(name, **asked):
        raise ImportError("`something` is\nnot here")

    monkeypatch.setattr(AutoModelForCausalLM, "from_pretrained", from_pretrained)
    said = (
        r"loaded with attn_implementation, for .* leave the option out" if options else r"loaded, for .* install it \("
    )
    with pytest.raises(Refusal, match=said):
        load_scorer(folder("gpt2"), device="cpu", **options).source.head("causal")
