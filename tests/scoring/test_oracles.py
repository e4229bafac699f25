"""Option scores of the released codes on tiny models, in float64: ours must be their logarithms."""

import json
from functools import cache
from math import exp

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoTokenizer

from stereoset_metric.compute_score import compute_score
from stereoset_scoring import load_scorer
from stereoset_scoring.scorer import Scorer

RELATIVE = 1e-9
# T5's layer norm and softmax are computed in float32 whatever the model's dtype.
RELATIVE_T5 = 1e-4
# Written as they are; all others as exponentials of ours.
LOGARITHMS = ("crows_", "stereoset_pll_", "biasbench_crows_", "stereoset_inter_gpt2_generative_en")

UNROUNDED = {"decimals": None}
MODERN = {"sentence_space": False}  # the released code, run with a transformers that adds no space
ORACLES = [
    # file, preset, method, options, examples
    ("stereoset_intra_bert_en", "stereoset", None, {}, 42),
    ("stereoset_intra_roberta_en", "stereoset", None, MODERN, 42),
    ("stereoset_intra_roberta_en__tf2.7.0", "stereoset", None, {}, 42),
    ("stereoset_intra_albert_en", "stereoset", None, MODERN, 42),
    ("stereoset_intra_gpt2_en", "stereoset", None, {}, 42),
    ("slds_intra_bert_en", "multilingual", None, {}, 42),
    ("slds_intra_bert_de", "multilingual", None, {}, 40),
    ("slds_intra_bert_tr", "multilingual", None, {}, 42),
    ("slds_intra_gpt2_en", "multilingual", None, {}, 42),
    ("biasbench_intra_bert_en", "bias-bench", None, {}, 42),
    ("biasbench_intra_roberta_en", "bias-bench", None, {}, 42),
    ("biasbench_intra_albert_en", "bias-bench", None, {}, 42),
    ("biasbench_intra_gpt2_en", "bias-bench", None, {}, 42),
    ("stereoset_inter_bert_nsp_en", "stereoset", None, {}, 40),
    ("slds_inter_bert_nsp_en", "multilingual", None, {}, 40),
    ("slds_inter_bert_nsp_en", None, None, {}, 40),
    ("slds_inter_gpt2_generative_c_en", "multilingual", "joint", {}, 40),
    ("slds_inter_gpt2_generative_d_en", "multilingual", "conditional", {}, 40),
    ("slds_inter_gpt2_generative_d_en", None, None, {}, 40),
    ("slds_inter_gpt2_generative_b_en", "multilingual", "conditional_share", {}, 40),
    ("slds_inter_gpt2_generative_e_en", "multilingual", "gain", {}, 40),
    ("slds_inter_gpt2_generative_orig_en", "multilingual", "ratio", {}, 40),
    ("stereoset_inter_gpt2_generative_en", "stereoset", None, {}, 40),
    pytest.param("stereoset_intra_xlnet_en", "stereoset", None, {}, 42, marks=pytest.mark.thorough),
    ("slds_intra_t5_en", "multilingual", None, {}, 42),
    ("slds_intra_mt5_de", "multilingual", None, {}, 40),
    ("slds_inter_t5_generative_en", "multilingual", None, {}, 40),
    ("crows_bert", "crows-pairs", None, UNROUNDED, 40),
    ("crows_roberta", "crows-pairs", None, {**UNROUNDED, **MODERN}, 40),
    ("crows_roberta__tf2.8.0", "crows-pairs", None, UNROUNDED, 40),
    ("stereoset_pll_bert", "crows-pairs", None, UNROUNDED, 42),
    ("stereoset_pll_roberta", "crows-pairs", None, {**UNROUNDED, **MODERN}, 42),
    ("stereoset_pll_roberta__tf2.8.0", "crows-pairs", None, UNROUNDED, 42),
    ("biasbench_crows_bert_gender", "bias-bench", None, UNROUNDED, 10),
    ("biasbench_crows_bert_race-color", "bias-bench", None, UNROUNDED, 13),
]
# Models as transformers 2 computed them: (file, preset, options, examples, what was different then, tolerance).
OF_THEIR_TIME = [
    ("stereoset_intra_albert_en__tf2.7.0", "stereoset", MODERN, 42, "head's epsilon", RELATIVE),
    ("crows_albert__tf2.8.0", "crows-pairs", UNROUNDED, 40, "head's epsilon", RELATIVE),
    ("stereoset_pll_albert__tf2.8.0", "crows-pairs", UNROUNDED, 42, "head's epsilon", RELATIVE),
    # The tanh approximation of then and of now differ in their last digits.
    pytest.param(
        *("stereoset_intra_xlnet_en__tf2.7.0", "stereoset", {}, 42, "tanh for gelu", 4e-6), marks=pytest.mark.thorough
    ),
]
# Where the default and the released code read different attributes: text glued to BLANK, or two BLANKs.
MALFORMED = {950, 1139, 1158, 1809, 1933}


@pytest.fixture(scope="module")
def oracle(shared):
    """oracle(file): the released code's scores, its model's folder, and its examples as rows of the data set."""

    def read(name):
        found = json.loads((shared / "oracles" / "scores" / f"{name}.json").read_text(encoding="utf-8"))
        fields = ("id", "sentence", "gold_label")
        if found["language"] != "en":  # the English data stores no word
            fields += ("word",)
        rows = [
            {
                "id": example["id"],
                "row": example["row"],
                # The oracle calls pairs of intrasentence examples by their contexts, which nobody read.
                "context": "" if "pairs" in found["task"] else example["context"],
                "direction": example.get("stereo_antistereo", "stereo"),
                "sentences": [{field: option[field] for field in fields} for option in example["options"]],
            }
            for example in found["examples"]
        ]
        scores = [[option["score"] for option in example["options"]] for example in found["examples"]]
        return scores, shared / "oracles" / found["model"], rows

    return read


@cache  # loading a tiny model and trying it out take longer than its scores
def source_of(folder):
    return load_scorer(folder, dtype="float64", device="cpu").source


def scores_of(folder, rows, preset=None, method=None, max_tokens=None, **options):
    return Scorer(source_of(folder), method, preset, options, max_tokens).score(rows)


def assert_equal(scores, expected, file, relative):
    if not file.startswith(LOGARITHMS):
        scores = [[exp(score) for score in one] for one in scores]
    assert scores == [pytest.approx(one, rel=relative) for one in expected]


@pytest.mark.parametrize(("file", "preset", "method", "options", "count"), ORACLES, ids=str)
def test_preset_gives_the_scores_of_the_released_code(oracle, file, preset, method, options, count):
    expected, folder, rows = oracle(file)
    assert len(expected) == count
    scores = scores_of(folder, rows, preset=preset, method=method, **options)
    assert_equal(scores, expected, file, RELATIVE_T5 if "t5_" in file else RELATIVE)


@pytest.mark.parametrize(("file", "preset", "options", "count", "difference", "relative"), OF_THEIR_TIME, ids=str)
def test_preset_gives_the_scores_of_the_released_code_with_the_library_of_its_time(
    oracle, file, preset, options, count, difference, relative
):
    expected, folder, rows = oracle(file)
    assert len(expected) == count
    if difference == "head's epsilon":
        model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float64)
        model.predictions.LayerNorm.eps = 1e-5
    else:
        model = AutoModelForCausalLM.from_pretrained(folder, ff_activation="gelu_new").double()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    scores = load_scorer(model=model, tokenizer=tokenizer, preset=preset, **options).score(rows)
    assert_equal(scores, expected, file, relative)


def test_a_t5_is_teacher_forced_by_default(oracle, shared):
    _, folder, rows = oracle("slds_intra_t5_en")
    found = json.loads((shared / "oracles" / "scores" / "slds_intra_t5_en.json").read_text(encoding="utf-8"))
    expected = [[one["score_teacher_forced"] for one in example["options"]] for example in found["examples"]]
    scores = scores_of(folder, rows, text="pasted")
    assert_equal(scores, expected, "slds_intra_t5_en", RELATIVE_T5)


def test_a_text_to_text_model_answers_whether_the_option_follows(oracle, shared):
    expected, folder, rows = oracle("slds_inter_t5_nsp_en")
    weights = load_file(shared / "oracles" / "nsp" / "t5.safetensors")
    model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64)
    prefix = "module.core_model."
    core = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
    assert not model.load_state_dict(core, strict=False).unexpected_keys
    arguments = {"model": model, "tokenizer": AutoTokenizer.from_pretrained(folder), "method": "next_sentence"}
    scores = load_scorer(preset="multilingual", **arguments).score(rows)
    assert_equal(scores, expected, "slds_inter_t5_nsp_en", RELATIVE_T5)


PRINTED = [
    # file: overall, stereo, antistereo, as the released script printed them
    ("crows_bert", 37.5, 46.67, 10.0),
    ("crows_roberta", 57.5, 56.67, 60.0),
    ("crows_roberta__tf2.8.0", 62.5, 66.67, 50.0),
    ("crows_albert__tf2.8.0", 65.0, 60.0, 80.0),
    ("biasbench_crows_bert_gender", 60.0, 40.0, 80.0),
]


@pytest.mark.parametrize(("file", "overall", "stereo", "antistereo"), PRINTED)
def test_pairs_are_counted_as_the_released_script_counts_them(oracle, file, overall, stereo, antistereo):
    expected, _, rows = oracle(file)
    references = [
        {"target": "", "bias_type": "x", "direction": row["direction"], "gold_label": ["stereotype", "anti-stereotype"]}
        for row in rows
    ]
    rounded = [[round(score, 3) for score in one] for one in expected]
    found = compute_score(rounded, references, average="example", breakdown="direction")
    assert found["ss"] == pytest.approx(overall, abs=0.005)
    directions = {name: numbers["ss"] for name, numbers in found["direction"].items()}
    assert directions == pytest.approx({"stereo": stereo, "antistereo": antistereo}, abs=0.005)


def differing_rows(left, right, rows):
    return {
        row["row"]
        for one, other, row in zip(left, right, rows, strict=True)
        if one != pytest.approx(other, rel=RELATIVE)
    }


@pytest.mark.parametrize(
    ("file", "differing"), [("stereoset_intra_bert_en", MALFORMED), ("stereoset_intra_gpt2_en", set())]
)
def test_default_differs_from_the_released_code_at_malformed_contexts_only(oracle, file, differing):
    _, folder, rows = oracle(file)
    default, released = scores_of(folder, rows), scores_of(folder, rows, preset="stereoset")
    assert differing_rows(default, released, rows) == differing


@pytest.mark.parametrize("max_tokens", [60, 100_000])
def test_oracle_scores_do_not_depend_on_the_batch(oracle, max_tokens):
    expected, folder, rows = oracle("stereoset_intra_bert_en")
    scores = scores_of(folder, rows, preset="stereoset", max_tokens=max_tokens)
    assert [[exp(s) for s in one] for one in scores] == [pytest.approx(one, rel=RELATIVE) for one in expected]
