"""Scoring with several processes, run as `accelerate launch` runs it."""

import re
from pathlib import Path

import pytest

from stereoset_scoring.reading import score_everywhere

SCRIPT = Path(__file__).with_name("two_processes.py")


@pytest.fixture
def launch(torchrun, warm_python):
    """launch(folders): the script on two processes of this machine's CPU."""

    def run(*folders):
        return warm_python.run([*torchrun(2), SCRIPT, *folders])

    return run


@pytest.mark.thorough
def test_two_processes_give_the_scores_of_one_and_each_has_them_all(launch, folder):
    done = launch(str(folder("bert")), str(folder("gpt2")))
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(re.findall(r"process (\d) of 2 agrees", done.stdout)) == ["0", "1"]  # their lines may run together


def test_one_process_is_enough_for_score_everywhere(scorer_of, intrasentence):
    scorer = scorer_of("bert")
    job = scorer.plan(intrasentence)
    assert score_everywhere(scorer, job, progress=False) == scorer.score(intrasentence)
