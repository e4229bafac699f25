"""Several revisions of a model in one start: each as a run of its own, and the curve over all."""

import json
from shutil import copytree

import pytest
import torch
from transformers import AutoModelForCausalLM

from stereoset_scoring.questions.configs import CONTEXT_TASKS
from stereoset_scoring.sample import load_sample
from stereoset_scoring.scorer import Scorer

FILES = ("scores.json", "results.json")


@pytest.fixture
def revisions(sample_model, tmp_path):
    """The folder of a training with two checkpoints."""
    for step in (1, 2):
        folder = copytree(sample_model, tmp_path / "model" / f"step{step}")
        model = AutoModelForCausalLM.from_pretrained(folder)
        torch.manual_seed(step)
        model.transformer.wte.weight.data += 0.2 * torch.randn_like(model.transformer.wte.weight)
        model.save_pretrained(folder)
    return tmp_path / "model"


@pytest.fixture
def tokenized(monkeypatch):
    """The ids of the examples whose texts were read anew."""
    made, questions = [], Scorer.questions

    def asking(self, portion, rows, leave_out):
        made.extend(row["id"] for row in rows)
        return questions(self, portion, rows, leave_out)

    monkeypatch.setattr(Scorer, "questions", asking)
    return made


def test_each_revision_gives_the_files_of_its_own_run_and_the_text_is_tokenized_once(
    score_here, revisions, tmp_path, tokenized
):
    both = ["--sample", "--model", revisions, "--revisions", "step1", "step2", "--output-dir", tmp_path / "both"]
    printed = score_here(*both)
    assert len(tokenized) == len(set(tokenized)) == sum(len(load_sample(task)) for task in CONTEXT_TASKS)
    for step in ("step1", "step2"):
        score_here("--sample", "--model", revisions / step, "--output-dir", tmp_path / step)
        for name in FILES:
            one, alone = (json.loads((tmp_path / part / step / name).read_text()) for part in ("both", "."))
            assert one.pop("signature", None) == alone.pop("signature", None)
            assert one == alone
    curve = printed[printed.index("model, by revision") :].splitlines()
    for step in ("step1", "step2"):
        numbers = json.loads((tmp_path / step / "results.json").read_text())["results"]["en"]["intrasentence"]["all"]
        cells = [f"{numbers[name]:.2f}" for name in ("ss", "lms", "icat")]
        assert ["intrasentence", "(en)", step, *cells] in [line.split() for line in curve]


def test_an_interrupted_curve_goes_on_and_a_finished_one_computes_nothing(
    score_here, revisions, tmp_path, monkeypatch, tokenized
):
    words = ["--sample", "--tasks", "intrasentence", "--output-dir", tmp_path / "run", "--revisions"]
    folders = [revisions / "step1", revisions / "step2"]
    score_here(*words, folders[0])
    first = (tmp_path / "run" / "step1" / "scores.json").read_bytes()
    printed = score_here(*words, *folders)
    assert (tmp_path / "run" / "step1" / "scores.json").read_bytes() == first
    monkeypatch.setattr(Scorer, "log_probs", lambda self, units: pytest.fail("the model was asked"))
    assert score_here(*words, *folders) == printed


def test_another_tokenizer_is_asked_anew(score_here, revisions, tmp_path, tokenized):
    file = revisions / "step2" / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    tokenizer["pre_tokenizer"]["add_prefix_space"] = True
    file.write_text(json.dumps(tokenizer))
    words = ["--sample", "--tasks", "intrasentence", "--model", revisions, "--revisions", "step1", "step2"]
    score_here(*words, "--output-dir", tmp_path / "run")
    assert len(tokenized) == 2 * len(load_sample("intrasentence"))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--revisions", "step1", "--revision", "main", "--model", "m"], "without --revision"),
        (["--revisions", "step1"], "give the --model whose revisions they are"),
        (["--revisions", "a/step1", "b/step1", "--model", "m"], "one name"),
        (["--revisions", "step1", "--model", "baseline:random"], "a baseline has no revisions"),
        (["--revisions", "s", "--model", "m", "--compare-presets", "defaults", "stereoset"], "--compare-presets"),
    ],
)
def test_what_makes_no_sense_with_revisions_is_refused(score_here, capsys, tmp_path, options, words):
    with pytest.raises(SystemExit):
        score_here("--sample", *options, "--output-dir", tmp_path)
    assert words in capsys.readouterr().err
