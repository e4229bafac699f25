"""A part of the sweep that holds every mechanism, and the sweep's own judgement."""

import pytest

from tests.crossing import crossed, thorough
from tests.sweep.architectures import MAPPINGS, Architecture, windows
from tests.sweep.page import page
from tests.sweep.trial import DTYPES, Trial, trials_of
from tests.sweep.variants import Variant

PART = [
    # (mapping, model type): what it is here for
    ("causal", "llama"),  # rotary positions, grouped heads
    ("causal", "gpt2"),  # learnt positions
    ("causal", "gpt_neo"),  # a local window, indexed by place
    ("causal", "gemma3_text"),  # sliding and full windows
    ("causal", "llama4_text"),  # attention in chunks, layers without positions
    ("causal", "gpt_oss"),  # experts, sinks
    ("causal", "deepseek_v32"),  # latent attention, an index of the best positions
    ("causal", "qwen3_5_text"),  # a gated delta rule
    ("causal", "lfm2"),  # short convolutions
    ("causal", "bamba"),  # state spaces and attention
    ("causal", "mamba"),  # a state space
    ("causal", "rwkv"),  # a recurrence
    ("causal", "phi3"),  # positions scaled by the longest row
    ("masked", "bert"),
    ("masked", "convbert"),  # padding that convolutions see
    ("masked", "modernbert"),  # local attention
    ("masked", "deberta-v2"),  # positions relative to each other
    ("seq2seq", "t5"),  # spans
    ("seq2seq", "switch_transformers"),  # experts on both sides
    ("seq2seq", "bart"),  # denoising
    ("multimodal", "qwen2_5_vl"),  # positions on several axes
]


def trials_in_memory(mapping, model_type, dtype):
    architecture = Architecture(mapping, model_type, MAPPINGS[mapping][model_type])
    return trials_of(architecture, windows(architecture)[0], dtypes=[dtype], sources=["memory"])


@pytest.mark.parametrize(("mapping", "model_type", "dtype"), crossed(PART, DTYPES))
def test_scores_are_those_of_the_models_own_forward_pass_row_by_row(mapping, model_type, dtype):
    trials = trials_in_memory(mapping, model_type, dtype)
    assert [trial for trial in trials if trial.wrong or trial.error or trial.refusal] == []
    assert {trial.task for trial in trials} == {"intrasentence", "intersentence"}


@pytest.mark.parametrize("dtype", [thorough("float32"), "bfloat16"])
def test_model_that_sees_what_follows_is_refused_as_a_causal_one(dtype):
    trials = trials_in_memory("causal", "cpmant", dtype)  # it counts positions from the end
    assert trials
    assert all(trial.refusal for trial in trials)


def trial(**more):
    return Trial("llama (causal)", 8, **{"dtype": "bfloat16", "source": "memory", "task": "intrasentence"} | more)


WRONG = [
    ({"dtype": "float32", "deviation": 2e-6, "rms": 1e-6}, False),
    ({"dtype": "float32", "deviation": 2e-4, "rms": 1e-6}, True),
    ({"dtype": "float32", "deviation": float("nan"), "rms": float("nan")}, True),
    ({"deviation": 0.09, "rms": 0.03, "batching_rms": 0.02, "resolution": 0.01}, False),
    ({"deviation": 0.09, "rms": 0.05, "batching_rms": 0.02, "resolution": 0.01}, True),
    ({"deviation": 0.009, "rms": 0.005, "batching_rms": 0.0, "resolution": 0.01}, False),
    ({"refusal": "It has no head: give one that has."}, False),
]


@pytest.mark.parametrize(("found", "wrong"), WRONG)
def test_number_is_wrong_beyond_what_batching_makes_of_it(found, wrong):
    assert trial(**found).wrong is wrong


def test_page_has_a_line_for_each_architecture_with_its_worst_deviation():
    llama, blip = Architecture("causal", "llama", "LlamaForCausalLM"), Architecture("multimodal", "blip", "Blip")
    trials = [
        trial(dtype="float32", method="causal likelihood", packed=True, inert=True, deviation=deviation, rms=1e-7)
        for deviation in (3e-7, 2e-4)
    ]
    written = page([Variant(llama, 8, trials[:1]), Variant(llama, 128, trials[1:]), Variant(blip, unbuilt="no text")])
    assert "Of 2: 0 right, 1 wrong, 0 refused, 0 failed, 1 not built." in written
    assert "| llama | causal | causal likelihood | packed | padded | **0.0002** |  |  |" in written
    assert "| blip | multimodal |  |  |  |  |  | not built: no text |" in written
