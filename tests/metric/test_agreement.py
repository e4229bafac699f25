"""How far annotators agree, in the metric: the published shares, the examples that are judged, what is refused."""

import pytest

from stereoset_metric.compute_score import Refusal, compare_scores, compute_score, flat_references, sign
from stereoset_scoring.files.predictions import align, read_predictions

# Share of examples in which the stereotype is preferred, where 3, 4 and 5 of five annotators agree, as counted by the
# data's curators from the published predictions.
SHARES = {
    "bert-base-cased_BertNextSentence_BertLM": {
        "intrasentence": (54.7, 58.5, 62.3),
        "intersentence": (60.1, 59.0, 62.3),
    },
    "gpt2_ModelNSP_GPT2LM": {"intrasentence": (58.9, 61.7, 64.7), "intersentence": (50.4, 51.5, 53.9)},
}


@pytest.fixture(scope="module")
def parts(shared, upstream):
    from stereoset_dataset import load_stereoset

    def read(model, task):
        scores, _ = read_predictions(shared / "predictions" / "stereoset" / f"predictions_{model}.json")
        rows, aligned = align(scores[task], load_stereoset(task, "validation", upstream).to_list())
        return aligned, flat_references(rows)

    return read


@pytest.mark.parametrize(("model", "task"), [(model, task) for model, tasks in SHARES.items() for task in tasks])
def test_stereotypes_are_preferred_more_often_where_annotators_agree(parts, model, task):
    scores, references = parts(model, task)
    found = compute_score(scores, references, average="example", breakdown="agreement")["agreement"]
    assert tuple(round(found[count]["ss"], 1) for count in (3, 4, 5)) == SHARES[model][task]
    most = compute_score(scores, references, average="example", min_agreement=5)
    assert most == found[5]
    assert compute_score(scores, references, min_agreement=3) == compute_score(scores, references)


def reference(agreement):
    return {"target": "a", "bias_type": "b", "gold_label": [1, 0, 2], "agreement": agreement}


def test_fewer_examples_are_judged_and_the_signature_says_so():
    references, scores = [reference(3), reference(4), reference(5)], [[3, 2, 1], [2, 3, 1], [3, 2, 1]]
    result = compute_score(scores, references, min_agreement=4, signature=True)
    assert (result["count"], result["ss"]) == (2, 50)
    assert "|agreement:>=4|" in result["signature"]
    assert "agreement" not in sign("target", "strict", 3, 1)
    assert compare_scores(scores, [[1, 2, 3]] * 3, references, min_agreement=5)["ss"] == 100


@pytest.mark.parametrize(
    ("options", "references", "words"),
    [
        ({"min_agreement": 4}, [reference(None)], "Example 0 has no agreement: give references with it"),
        ({"min_agreement": 6}, [reference(5)], "no example on which 6 annotators agree: lower min_agreement"),
        ({"min_agreement": "4"}, [reference(5)], "min_agreement is '4': give a number"),
        ({"breakdown": "agreement"}, [reference(None)], "No reference has an agreement"),
        ({}, [reference("many")], "the agreement 'many': give a number of annotators"),
    ],
)
def test_what_agreement_cannot_say_is_refused(options, references, words):
    with pytest.raises(Refusal, match=words):
        compute_score([[3, 2, 1]], references, **options)
