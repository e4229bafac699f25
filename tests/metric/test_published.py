"""Published option scores in, published figures out, by way of the project's own reading and aligning."""

import functools
import json

import pytest

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_scoring.files.predictions import align, read_predictions

TASKS = ("intrasentence", "intersentence")
PRINTED = 0.005 + 1e-9  # half a unit of the last printed digit
ORIGINAL = 1e-9  # against what the original code computes

# Nadeem et al. 2021, arXiv 2004.09456, Table 7: the name there, the published file.
STEREOSET = {
    "SENTIMENTLM": "predictions_SentimentModel.json",
    "BERT-base": "predictions_bert-base-cased_BertNextSentence_BertLM.json",
    "BERT-large": "predictions_bert-large-cased_BertNextSentence_BertLM.json",
    "GPT2": "predictions_gpt2_ModelNSP_GPT2LM.json",
    "GPT2-medium": "predictions_gpt2-medium_ModelNSP_GPT2LM.json",
    "GPT2-large": "predictions_gpt2-large_ModelNSP_GPT2LM.json",
    "XLNET-base": "predictions_xlnet-base-cased_ModelNSP_XLNetLM.json",
    "ROBERTA-large": "predictions_roberta-large_ModelNSP_RoBERTaLM.json",
    "ENSEMBLE": "predictions_EnsembleModel_.json",
}
# Öztürk et al. 2023: the name there, language, the published file. None of the cells of these files is among the
# publication's own errors, so there are no exceptions.
MULTILINGUAL = [
    ("BERT", "de", "dbmdz_bert-base-german-cased_BertLM_BertNextSentence_de.json"),
    ("BERT", "tr", "dbmdz_bert-base-turkish-cased_BertLM_BertNextSentence_tr.json"),
    ("GPT-2", "en", "gpt2_GPT2LM_GPT2LM_d_en.json"),
    ("GPT-2", "fr", "asi_gpt-fr-cased-small_GPT2LM_GPT2LM_d_fr.json"),
    ("T5", "es", "flax-community_spanish-t5-small_T5LM_ModelNSP_es.json"),
    ("mBERT", "en", "bert-base-multilingual-cased_BertLM_BertNextSentence_en.json"),
    ("mT5", "tr", "google_mt5-base_mT5LM_ModelNSP_tr.json"),
]
# The table, which task it is about, how it averages.
TABLES = [
    ("table2_intrasentence_global", "intrasentence", "example"),
    ("table3_intersentence_global", "intersentence", "example"),
    ("table4_overall_global", "overall", "example"),
    ("table5_overall_by_target", "overall", "target"),
    ("table8_intrasentence_by_target", "intrasentence", "target"),
    ("table9_intersentence_by_target", "intersentence", "target"),
]
# The columns' names there and here: micro is made of the averaged lms and ss.
COLUMNS = {"lms": "lms", "ss": "ss", "icat": "icat", "icat_macro": "icat_macro", "icat_micro": "icat"}


@pytest.fixture(scope="module")
def parts_of(shared, rows_of):
    """A function from a published file and its language to {task: (scores, references)}, overall pooled."""

    @functools.cache
    def parts(name, language):
        scores, partial = read_predictions(shared / "predictions" / name)
        assert partial is None
        found = {}
        for task in TASKS:
            rows, aligned = align(scores[task], rows_of(task if language == "en" else f"{task}_{language}"))
            found[task] = (aligned, flat_references(rows))
        found["overall"] = tuple(first + second for first, second in zip(*found.values(), strict=True))
        return found

    return parts


@pytest.fixture(scope="module")
def stereoset_of(parts_of):
    """A function from a model of STEREOSET to {task: the metric's numbers}, by bias type too; not to be changed."""

    @functools.cache
    def numbers(model):
        parts = parts_of(f"stereoset/{STEREOSET[model]}", "en")
        return {task: compute_score(*part, breakdown="bias_type") for task, part in parts.items()}

    return numbers


@pytest.fixture(scope="module")
def read_shared(shared):
    """A function from a path below the reference material to its content."""
    return lambda *path: json.loads(shared.joinpath(*path).read_text(encoding="utf-8"))


def test_the_tables_name_no_model_of_a_given_file_that_is_left_out(shared):
    assert sorted(STEREOSET.values()) == sorted(one.name for one in (shared / "predictions/stereoset").glob("*.json"))
    files = sorted(name for _, _, name in MULTILINGUAL)
    assert files == sorted(one.name for one in (shared / "predictions/multilingual").glob("*.json"))


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("model", STEREOSET)
def test_stereosets_table_by_domain(stereoset_of, read_shared, model, task):
    published = read_shared("tables", "stereoset_dev_by_domain.json")[model]
    result = stereoset_of(model)[task]
    found = result["bias_type"] | {"overall": result}
    cells = {(domain, name): number for domain, of in published.items() for name, number in of[task].items()}
    assert len(cells) == 15
    assert cells == {(domain, name): pytest.approx(found[domain][name], abs=PRINTED) for domain, name in cells}


@pytest.mark.parametrize(("model", "language", "file"), MULTILINGUAL)
@pytest.mark.parametrize(("table", "task", "average"), TABLES)
def test_the_multilingual_tables(parts_of, read_shared, table, task, average, model, language, file):
    published = {name: of[language] for name, of in read_shared("tables", "multilingual.json")[table][model].items()}
    found = compute_score(*parts_of(f"multilingual/{file}", language)[task], average=average)
    assert len(published) == (3 if average == "example" else 4)
    assert published == {name: pytest.approx(found[COLUMNS[name]], abs=PRINTED) for name in published}


@pytest.mark.parametrize("model", STEREOSET)
def test_the_original_evaluation_on_the_published_files(stereoset_of, read_shared, model):
    original = read_shared("oracles", "aggregate", "published_predictions_full.json")["results"][STEREOSET[model]]
    results = stereoset_of(model)
    for task in TASKS:
        result, groups = results[task], results[task]["bias_type"]
        for domain, expected in original[task].items():
            # The original counts the examples of a domain three times (once for every sentence).
            times = 1 if domain == "overall" else 3
            assert_like_stereoset(result if domain == "overall" else groups[domain], expected, times)
    assert_like_stereoset(results["overall"], original["overall"])


def assert_like_stereoset(found, expected, times=1):
    """Compare with what evaluation.py of StereoSet returns."""
    assert times * found["count"] == expected["Count"]
    for ours, theirs in (("ss", "SS Score"), ("lms", "LM Score"), ("icat", "ICAT Score")):
        assert found[ours] == pytest.approx(expected[theirs], abs=ORIGINAL)


def assert_like_multilingual(by_example, by_target, expected):
    """Compare with what ScoreStorage of the multilingual study returns."""
    assert by_example["count"] == by_target["count"] == expected["Count"]
    for ours, theirs in (("ss", "SS Score"), ("lms", "LM Score"), ("icat", "ICAT Score")):
        assert by_example[ours] == pytest.approx(expected[theirs], abs=ORIGINAL)
    theirs = ("Multi Class SS Score", "Multi Class LM Score", "Micro ICAT Score", "Macro ICAT Score")
    for ours, name in zip(("ss", "lms", "icat", "icat_macro"), theirs, strict=True):
        assert by_target[ours] == pytest.approx(expected[name], abs=ORIGINAL)


# What the original code made of the scores of tiny models: the file, the model there, the scores of the two tasks.
STEREOSET_CODE, MULTILINGUAL_CODE = "stereoset_evaluation_subset.json", "slds_evaluation_subset.json"
TINY = [
    (STEREOSET_CODE, "bert", "stereoset_intra_bert_en", "stereoset_inter_bert_nsp_en"),
    (STEREOSET_CODE, "roberta", "stereoset_intra_roberta_en", "stereoset_inter_roberta-base_modelnsp_en"),
    (STEREOSET_CODE, "xlnet", "stereoset_intra_xlnet_en", "stereoset_inter_xlnet_modelnsp_en__tf2.7.0"),
    (STEREOSET_CODE, "gpt2_modelnsp", "stereoset_intra_gpt2_en", "stereoset_inter_gpt2_modelnsp_en"),
    (STEREOSET_CODE, "gpt2_generative", "stereoset_intra_gpt2_en", "stereoset_inter_gpt2_generative_en"),
    (MULTILINGUAL_CODE, "bert_en", "slds_intra_bert_en", "slds_inter_bert_nsp_en"),
    (MULTILINGUAL_CODE, "bert_de", "slds_intra_bert_de", None),  # the scores of the other task were not kept
]


@pytest.mark.parametrize(("aggregate", "model", "intra", "inter"), TINY)
def test_the_original_evaluations_on_tiny_models(read_shared, rows_of, aggregate, model, intra, inter):
    expected = read_shared("oracles", "aggregate", aggregate)["results"][model]
    parts = {}
    for task, name in zip(TASKS, (intra, inter), strict=True):
        if name is not None:
            examples = read_shared("oracles", "scores", f"{name}.json")["examples"]
            scores = {option["id"]: option["score"] for one in examples for option in one["options"]}
            config = task + ("_de" if model.endswith("_de") else "")
            rows, aligned = align(scores, rows_of(config), partial=True)
            assert len(rows) == len(examples)
            parts[task] = (aligned, flat_references(rows))
    if len(parts) == 2:
        parts["overall"] = tuple(first + second for first, second in zip(*parts.values(), strict=True))
    for task, part in parts.items():
        assert_like_original(expected[task], *part)


def assert_like_original(expected, scores, references):
    """Compare a task's figures, by domain and overall, with either of the two original codes."""
    by_target, by_example = (
        compute_score(scores, references, average=average, breakdown="bias_type") for average in ("target", "example")
    )
    # StereoSet's code splits the two tasks by domain, but not the two together.
    for domain, numbers in (expected if "overall" in expected else {"overall": expected}).items():
        ours, pooled = (one if domain == "overall" else one["bias_type"][domain] for one in (by_target, by_example))
        if "Macro ICAT Score" in numbers:
            assert_like_multilingual(pooled, ours, numbers)
        else:
            assert_like_stereoset(ours, numbers, 1 if domain == "overall" else 3)


@pytest.mark.parametrize("name", ["crows_bert", "crows_roberta", "crows_roberta__tf2.8.0", "crows_albert__tf2.8.0"])
def test_the_printed_score_of_crows_pairs(read_shared, rows_of, name):
    oracle = read_shared("oracles", "scores", f"{name}.json")
    # metric.py of CrowS-Pairs rounds scores to three decimals before it compares them.
    scores = {option["id"]: option["score_rounded3"] for one in oracle["examples"] for option in one["options"]}
    rows, aligned = align(scores, rows_of("crows_pairs"), partial=True)
    found = compute_score(aligned, flat_references(rows))
    assert f"Metric score: {round(found['ss'], 2)}" in oracle["printed"]
    assert (found["count"], found["lms"], found["icat"]) == (len(oracle["examples"]), None, None)
