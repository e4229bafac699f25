"""Padding on every third example of English StereoSet, at the default budgets of tokens: planned, not computed."""

import pytest

from stereoset_dataset import load_stereoset
from stereoset_scoring.planning.plan import make_job
from stereoset_scoring.scorer import MAX_TOKENS, MAX_TOKENS_ELSEWHERE, load_scorer
from tests.crossing import thorough

LEAST = 0.05  # of the tokens that are no padding
ASKED = [
    # checkpoint, task, method
    ("bert", "intrasentence", "likelihood"),
    ("bert", "intersentence", "next_sentence"),
    ("bert", "intersentence", "aul"),
    ("gpt2", "intrasentence", "likelihood"),
    ("gpt2", "intersentence", "conditional"),
    ("t5", "intrasentence", "likelihood"),
    ("t5", "intersentence", "conditional"),
]
# Rows of much the same lengths, by other methods and tokenizers.
ALIKE = [
    ("bert", "intrasentence", "word_l2r"),
    ("bert", "intrasentence", "aul"),
    ("roberta", "intrasentence", "likelihood"),
    ("albert", "intrasentence", "likelihood"),
    ("gpt2", "intersentence", "gain"),
    ("gpt2", "intersentence", "ratio"),
    ("t5", "intersentence", "next_sentence"),
    ("mt5", "intersentence", "conditional"),
]


@pytest.fixture(scope="module")
def english(upstream):
    return {
        task: list(load_stereoset(task, split="validation", data_dir=upstream))[::3]
        for task in ("intrasentence", "intersentence")
    }


@pytest.mark.parametrize(("name", "task", "method"), [*ASKED, *(thorough(*one) for one in ALIKE)])
def test_hardly_anything_is_padding(shared, english, name, task, method):
    scorer = load_scorer(shared / "oracles" / "models" / name, device="cpu", method={task: method})
    recipes = scorer.plan(english[task]).recipes
    for max_tokens in (MAX_TOKENS_ELSEWHERE, *MAX_TOKENS.values()):
        job = make_job(recipes, max_tokens, lambda head: scorer.source.head(head).engine.shares_prefixes)
        assert 0 <= job.padded_tokens - job.forward_tokens < LEAST * job.forward_tokens
