"""Scoring with several processes, run as `accelerate launch` runs it."""

import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from stereoset_scoring.engines.sharded import is_sharded
from stereoset_scoring.reading import score_everywhere

HERE = Path(__file__).parent


@pytest.fixture
def agree(torchrun, warm_python):
    """agree(script, folders): that two processes of this machine's CPU do, by a script."""

    def run(script, *folders):
        env = warm_python.environment | {"CUDA_VISIBLE_DEVICES": ""}
        done = warm_python.run([*torchrun(2), HERE / script, *folders], env=env)
        assert done.returncode == 0, done.stderr[-3000:]
        # Their lines may run together.
        assert sorted(re.findall(r"process (\d) of 2 agrees", done.stdout)) == ["0", "1"]

    return run


@pytest.mark.thorough
def test_two_processes_give_the_scores_of_one_and_each_has_them_all(agree, folder):
    agree("two_processes.py", folder("bert"), folder("gpt2"))


@pytest.mark.thorough
def test_two_processes_that_hold_parts_of_each_tensor_give_the_scores_of_the_whole_model(agree, folder, tmp_path):
    tied = tmp_path / "tied"
    model = AutoModelForCausalLM.from_pretrained(folder("llama"), tie_word_embeddings=True)
    model.save_pretrained(tied)
    AutoTokenizer.from_pretrained(folder("llama")).save_pretrained(tied)
    agree("tensor_parallel.py", folder("llama"), tied)


def test_a_model_whose_plain_tensors_are_parts_is_known_by_its_word():
    parts, whole = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    parts.tp_size = 2
    assert is_sharded(parts)
    assert not is_sharded(whole)


def test_one_process_is_enough_for_score_everywhere(scorer_of, intrasentence):
    scorer = scorer_of("bert")
    job = scorer.plan(intrasentence)
    assert score_everywhere(scorer, job, progress=False) == scorer.score(intrasentence)
