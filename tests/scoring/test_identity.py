"""What tells one run from another: the model's settings, and the code that scores."""

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoModel, AutoModelForCausalLM

import stereoset_scoring
from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.next_sentence_head import HeadSpec, NextSentenceModel, save_trained_head
from stereoset_scoring.checkpoints.settings import settings
from stereoset_scoring.runs.record import code_sha256, identity, model_record, versions

PACKAGE = Path(stereoset_scoring.__file__).parent
ROOMS = sorted(path.name for path in PACKAGE.iterdir() if path.is_dir() and any(path.glob("*.py")))


@pytest.mark.parametrize("room", [".", *ROOMS])
def test_a_change_of_the_code_in_any_room_is_seen(room, tmp_path, monkeypatch):
    shutil.copytree(PACKAGE, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(stereoset_scoring, "__file__", str(tmp_path / "package" / "__init__.py"))
    before = code_sha256.__wrapped__()
    with next((tmp_path / "package" / room).glob("*.py")).open("a") as file:
        file.write("# changed\n")
    assert code_sha256.__wrapped__() != before


def test_the_rooms_are_folders_of_the_package():
    assert {"engines", "methods", "runs", "planning"} <= set(ROOMS)


@pytest.fixture
def trained(folder, tmp_path):
    """The folder of a next-sentence head that reads the first position."""
    scorer = load_scorer(folder("bert"), device="cpu")
    core = AutoModel.from_pretrained(folder("bert"))
    save_trained_head(tmp_path, NextSentenceModel(core, HeadSpec(pooling="first")), scorer.source.tokenizer.hub)
    return tmp_path


def identity_of(folder, rows):
    scorer = load_scorer(folder, device="cpu")
    job, method = scorer.plan(rows), scorer.method("intersentence")
    record = {
        "model": model_record(scorer.source, ["next_sentence"]),
        "float32_matmul_precision": "highest",
        "versions": versions(),
    }
    return identity(record, method, rows, job, scorer.source.tokenizer)


def test_a_trained_head_that_is_asked_otherwise_is_another(trained, intersentence):
    before = identity_of(trained, intersentence)
    path = trained / "next_sentence.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"pooling": "mean"}))
    after = identity_of(trained, intersentence)
    assert before["weights"] == after["weights"]
    assert before["next_sentence head"]["trained_head"]["pooling"] == "first"
    assert after["next_sentence head"]["trained_head"]["pooling"] == "mean"
    assert {name for name in before if before[name] != after[name]} == {"next_sentence head"}


def test_settings_are_the_same_after_writing_and_reading(scorer_of):
    found = settings(scorer_of("bert").source.head("masked").engine.model)
    assert json.loads(json.dumps(found)) == found
    assert not {"_name_or_path", "transformers_version"} & found["configuration"].keys()


CODE = """
from transformers import GPT2Config, GPT2LMHeadModel

class OwnConfig(GPT2Config):
    model_type = "own"

class OwnModel(GPT2LMHeadModel):
    config_class = OwnConfig
"""


def test_code_that_comes_with_a_checkpoint_is_part_of_it(folder, tmp_path):
    own = shutil.copytree(folder("gpt2"), tmp_path / "own")
    maps = {"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnModel"}
    config = json.loads((own / "config.json").read_text()) | {"model_type": "own", "auto_map": maps}
    (own / "config.json").write_text(json.dumps(config))
    found = []
    for code in (CODE, CODE, CODE + "\nSCALE = 2\n"):
        (own / "own.py").write_text(code)
        model = AutoModelForCausalLM.from_pretrained(own, trust_remote_code=True)
        found.append(settings(model)["code_sha256"])
    assert found[0] == found[1] != found[2]
    assert None not in found
