"""Whole runs of a model behind a server: the table, what is recorded, and going on after it died."""

import json

import pytest
from transformers import AutoModelForCausalLM, AutoTokenizer

from stereoset_scoring.served import client
from tests.completions import Completions, serving

KEY = "secret-7"


@pytest.fixture
def completions(sample_model, monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.001)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model, tokenizer = (one.from_pretrained(sample_model) for one in (AutoModelForCausalLM, AutoTokenizer))
    return Completions(model, tokenizer, key=KEY)


def options(address, sample_model, output):
    where = ["--server", address, "--model", "tiny", "--tokenizer", sample_model, "--concurrency", 2]
    return [*where, "--sample", "--limit", 8, "--max-tokens", 96, "--output-dir", output]


def scores_in(folder):
    return json.loads((folder / "scores.json").read_text())


def flat(scores):
    return {one["id"]: one["score"] for task in ("intrasentence", "intersentence") for one in scores[task]}


def test_a_run_goes_on_after_its_server_died(completions, score_here, sample_model, tmp_path):
    with serving(completions) as address:
        score_here(*options(address, sample_model, tmp_path / "whole"))
        record = json.loads((tmp_path / "whole" / "run.json").read_text())
        completions.left = record["costs"]["requests"] // 2
        with pytest.raises(SystemExit, match="does not answer"):
            score_here(*options(address, sample_model, tmp_path / "broken"))
    completions.left = None
    before = sum(completions.seen.values())
    with serving(completions) as address:  # elsewhere
        score_here(*options(address, sample_model, tmp_path / "broken"))
    assert sum(completions.seen.values()) - before < record["costs"]["requests"]
    assert scores_in(tmp_path / "broken") == scores_in(tmp_path / "whole")


def test_scores_are_those_of_the_checkpoint_and_the_record_says_what_they_cost(
    completions, score_here, sample_model, tmp_path
):
    with serving(completions) as address:
        output = score_here(*options(address, sample_model, tmp_path / "served"))
    score_here("--model", sample_model, "--sample", "--limit", 8, "--output-dir", tmp_path / "local")
    served, local = (flat(scores_in(tmp_path / name)) for name in ("served", "local"))
    assert served == pytest.approx(local, abs=1e-5)
    assert f"tiny ({address}), causal" in output
    costs = json.loads((tmp_path / "served" / "run.json").read_text())["costs"]
    assert costs["requests"] == sum(completions.seen.values())
    assert costs["tokens"] > costs["requests"]
    files = [path.read_bytes() for path in (tmp_path / "served").rglob("*") if path.is_file()]
    assert not any(KEY.encode() in content for content in files)


@pytest.mark.parametrize(
    ("words", "mistake"),
    [
        (["--server", "http://a/v1", "--sample"], "give the --model that the server serves"),
        (["--server", "http://a/v1", "--model", "baseline:ideal"], "served nowhere"),
        (["--server", "http://a/v1", "--model", "a", "--revisions", "b"], "leave --revisions out"),
        (["--model", "a", "--tokenizer", "b"], "give --server"),
    ],
)
def test_what_makes_no_sense_is_said(score_here, tmp_path, capsys, words, mistake):
    with pytest.raises(SystemExit):
        score_here(*words, "--output-dir", tmp_path)
    assert mistake in capsys.readouterr().err
