"""The training script, from the command line to a folder that score.py scores; two processes; what it refuses."""

import json
import random
import re
import runpy
import sys

import pytest

from stereoset_scoring.checkpoints.weight_files import read_weights

QUICK = ["--epochs", "1", "--max-steps", "3", "--batch-size", "5", "--pairs-at-once", "2", "--measure-every", "2"]
QUICK += ["--max-length", "32", "--held-out", "0.2"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A text file of documents with words of their own."""
    draw, path = random.Random(0), tmp_path_factory.mktemp("corpus") / "corpus.txt"
    subjects = ["My sister", "The old man", "A doctor", "Nobody here"]
    verbs = ["reads", "sells", "paints", "likes"]
    path.write_text(
        "\n\n".join(
            " ".join(f"{draw.choice(subjects)} {draw.choice(verbs)} book {document}." for _ in range(4))
            for document in range(12)
        ),
        encoding="utf-8",
    )
    return path


@pytest.fixture
def train(repository, torchrun, warm_python):
    """train(processes, *options): the script on several processes of this machine; what it prints."""

    def run(processes, *options):
        done = warm_python.run([*torchrun(processes), repository / "scripts" / "train_next_sentence.py", *options])
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def run_here(repository, monkeypatch, capsys):
    """Run a script in this process; what it prints."""

    def run(script, *options):
        monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
        monkeypatch.setattr(sys, "argv", [script, *map(str, options)])
        runpy.run_path(str(repository / "scripts" / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_two_processes_train_one_model_that_score_py_scores(train, shared, corpus, tmp_path, run_here):
    # Its XLNet has weights that no gradient reaches.
    model = shared / "oracles" / "models" / "xlnet"
    printed = train(2, "--model", model, "--corpus", corpus, *QUICK, "--output-dir", tmp_path / "head")
    lines = [line for line in printed.splitlines() if line.startswith("update ")]
    assert len(lines) == 2
    assert all(
        re.fullmatch(r"update \d: held-out accuracy [\d.]+, loss [\d.]+, training loss [\d.]+", x) for x in lines
    )
    record = json.loads((tmp_path / "head" / "training.json").read_text())
    assert [measured["step"] for measured in record["history"]] == [2, 3]

    options = ["--sample", "--tasks", "intersentence", "--output-dir", tmp_path / "scores"]
    table = run_here("score.py", "--model", tmp_path / "head" / "last", *options)
    assert "intersentence:next_sentence(follows=1)" in table
    scores = json.loads((tmp_path / "scores" / "scores.json").read_text())["intersentence"]
    assert all(entry["score"] < 0 for entry in scores)


def test_an_interrupted_run_is_resumed_from_the_command_line(shared, corpus, tmp_path, run_here):
    options = ["--model", shared / "oracles" / "models" / "gpt2", "--corpus", corpus, *QUICK]
    run_here("train_next_sentence.py", *options, "--output-dir", tmp_path)
    before = read_weights(tmp_path / "last" / "model.safetensors")
    printed = run_here("train_next_sentence.py", *options, "--output-dir", tmp_path, "--resume")
    assert printed.splitlines()[-1].startswith("Best: update ")
    after = read_weights(tmp_path / "last" / "model.safetensors")
    assert all(after[name].equal(tensor) for name, tensor in before.items())
    with pytest.raises(SystemExit, match="holds a run already: go on with --resume"):
        run_here("train_next_sentence.py", *options, "--output-dir", tmp_path)


def test_a_head_is_scored_beside_its_language_model(shared, tmp_path, run_here):
    oracles = shared / "oracles"
    options = ["--next-sentence-head", oracles / "nsp" / "gpt2.safetensors", "--follows", "0", "--output-dir", tmp_path]
    printed = run_here("score.py", "--sample", "--model", oracles / "models" / "gpt2", *options)
    assert "intrasentence:likelihood|intersentence:next_sentence|" in printed
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["model"]["next_sentence_head"].endswith("gpt2.safetensors")
    assert set(record["model"]["heads"]) == {"causal", "next_sentence"}


REFUSALS = [
    (["--model", "t5"], "t5 model is an encoder-decoder"),
    (["--model", "gpt2", "--pooling", "pooler"], "A gpt2 model has no pooler"),
    (["--model", "gpt2", "--batch-size", "0"], "batch_size cannot be 0"),
    (["--model", "gpt2", "--max-documents", "1"], "negative pairs need two"),
]


@pytest.mark.parametrize(("options", "words"), REFUSALS)
def test_what_cannot_be_trained_is_refused_in_a_sentence(
    shared, corpus, tmp_path, run_here, monkeypatch, options, words
):
    monkeypatch.chdir(shared / "oracles" / "models")
    with pytest.raises(SystemExit, match=re.escape(words)):
        run_here("train_next_sentence.py", *options, "--corpus", corpus, "--output-dir", tmp_path)
