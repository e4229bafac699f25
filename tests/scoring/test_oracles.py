"""Option scores of the released codes on tiny models, in float64: ours must be their logarithms."""

import json
from math import exp

import pytest

from stereoset_scoring import load_scorer

RELATIVE = 1e-9

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
                "context": example["context"],
                "sentences": [{field: option[field] for field in fields} for option in example["options"]],
            }
            for example in found["examples"]
        ]
        scores = [[option["score"] for option in example["options"]] for example in found["examples"]]
        return scores, shared / "oracles" / found["model"], rows

    return read


def scores_of(folder, rows, **arguments):
    return load_scorer(folder, dtype="float64", device="cpu", **arguments).score(rows)


@pytest.mark.parametrize(("file", "preset", "method", "options", "count"), ORACLES, ids=str)
def test_preset_gives_the_scores_of_the_released_code(oracle, file, preset, method, options, count):
    expected, folder, rows = oracle(file)
    scores = scores_of(folder, rows, preset=preset, method=method, **options)
    assert len(expected) == count
    assert [[exp(s) for s in one] for one in scores] == [pytest.approx(one, rel=RELATIVE) for one in expected]


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
