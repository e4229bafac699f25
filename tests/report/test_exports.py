"""stereoset export: what others' own code reads back is what was measured, under a name that says the question."""

import csv
import io
import json

import pytest
import yaml
from huggingface_hub import ModelCardData, parse_eval_result_entries
from huggingface_hub.repocard_data import model_index_to_eval_results

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_report.comparison import Manner, Named
from stereoset_report.exports import BIAS, every_eval_ever, lm_eval, measure, model_index
from stereoset_report.resampling import Resampling
from stereoset_report.saved import Saved, read_saved

GPT2 = "predictions/stereoset/predictions_gpt2_ModelNSP_GPT2LM.json"


@pytest.fixture
def measured(make_run):
    return measure(Named("some model", read_saved(make_run("a"))))


@pytest.fixture(scope="module")
def published(shared, upstream):
    return measure(Named("GPT-2", read_saved(shared / GPT2, data_dir=upstream)))


def numbers_of(named):
    rows, scores = named.saved.parts["intrasentence"]
    return compute_score(scores, flat_references(rows), confidence_level=0.95)


def test_what_is_measured_is_the_metrics_and_the_distance_from_50(make_run):
    named = Named("a", read_saved(make_run("a", bias=2.0)))
    found, expected = measure(named)[0], numbers_of(named)
    for name in ("ss", "lms", "icat", "icat_macro"):
        figure = found.figures[name]
        bounds = (expected[name], expected[f"{name}_low"], expected[f"{name}_high"])
        assert (figure.value, figure.low, figure.high) == pytest.approx(bounds, abs=1e-9)
    assert found.figures[BIAS].value == pytest.approx(abs(expected["ss"] - 50))
    assert 0 <= found.figures[BIAS].low <= found.figures[BIAS].high


def test_the_hub_reads_a_model_index_back(measured):
    read = ModelCardData(**yaml.safe_load(model_index(measured)))
    again = model_index_to_eval_results(yaml.safe_load(model_index(measured))["model-index"])[1]
    assert read.model_name == "some model"
    assert [one.metric_value for one in again] == [figure.value for one in measured for figure in one.figures.values()]
    first = again[0]
    assert (first.task_type, first.dataset_config, first.dataset_split) == (
        "text-generation",
        "intrasentence",
        "sample",
    )
    assert first.metric_type == "stereoset-intrasentence-sample-ss-causal_likelihood"
    assert first.metric_args["method"] == "causal likelihood"
    assert first.metric_args["low"] < first.metric_value < first.metric_args["high"]
    assert "average:target|ties:strict" in first.metric_args["signature"]


def test_the_hub_reads_its_eval_results_back(stereoset, shared, upstream, published):
    printed = stereoset("export", f"GPT-2={shared / GPT2}", "--to", "eval-results", "--data-dir", upstream)
    entries = parse_eval_result_entries(yaml.safe_load(printed))
    assert [one.value for one in entries] == [figure.value for one in published for figure in one.figures.values()]
    assert {one.dataset_id for one in entries} == {"McGill-NLP/stereoset"}
    assert entries[0].value == pytest.approx(61.93, abs=0.005)
    assert "95% interval 59.64 to 64.34; scores:" in entries[0].notes
    assert len({one.task_id for one in entries}) == len(entries)


def test_what_the_hub_has_no_data_set_of_is_refused_or_named(stereoset, make_run):
    assert "The hub has no data set of intrasentence (sample)" in stereoset(
        "export", make_run("a"), "--to", "eval-results"
    )


def test_every_eval_ever_has_a_record_of_schema_0_3(measured, published):
    for some in (measured, published):
        record = json.loads(json.dumps(every_eval_ever(some, "us", now=1.5)))
        assert record["schema_version"] == "0.3.0"
        assert record["retrieved_timestamp"] == "1"
        assert {"source_type", "source_organization_name", "evaluator_relationship"} <= record["source_metadata"].keys()
        assert {"deployment_type", "model_availability"} <= record["model_info"]["additional_details"].keys()
        for result in record["evaluation_results"]:
            config, details = result["metric_config"], result["score_details"]
            assert {"lower_is_better", "score_type", "min_score", "max_score"} <= config.keys()
            assert all(isinstance(text, str) for text in details["details"].values())
            assert details["uncertainty"]["confidence_interval"]["lower"] <= details["score"] + 1e-9
        by_name = {
            result["metric_config"]["metric_id"]: result["metric_config"] for result in record["evaluation_results"]
        }
        assert by_name["stereoset.ss"]["additional_details"]["direction"] == "neither lower nor higher is better"
        assert by_name["stereoset.ss_bias"]["lower_is_better"] is True
        assert by_name["stereoset.ss_bias"]["max_score"] == 50


def test_every_eval_ever_is_valid_by_its_own_schema(measured, published):
    jsonschema = pytest.importorskip("jsonschema")
    schema = pytest.importorskip("every_eval_ever.schema", reason="every-eval-ever holds the schema (Python >= 3.12)")
    assert schema.get_schema_version().startswith("0.3.")
    for some in (measured, published):
        record = json.loads(json.dumps(every_eval_ever(some)))
        jsonschema.Draft7Validator(schema.schema_json()).validate(record)


def test_lm_evals_layout_holds_numbers_with_standard_errors(measured):
    found = json.loads(json.dumps(lm_eval(measured, now=1.0)))
    names = ["stereoset-intrasentence-sample-causal_likelihood", "stereoset-intersentence-sample-causal_conditional"]
    for part in ("results", "configs", "versions", "n-shot", "higher_is_better", "n-samples", "group_subtasks"):
        assert list(found[part]) == names
    numbers = found["results"][names[0]]
    assert numbers["ss,none"] == measured[0].figures["ss"].value
    figure = measured[0].figures["ss"]
    assert numbers["ss_stderr,none"] == pytest.approx((figure.high - figure.low) / 3.92, rel=0.15)
    assert "ss" not in found["higher_is_better"][names[0]]
    assert found["configs"][names[0]]["metadata"]["method"] == "causal likelihood"


@pytest.mark.parametrize(
    "other",
    [
        {"methods": {"intrasentence": "gain"}},
        {"of_task": {"options": {"bos": True}}},
        {"preset": "multilingual"},
        {"limit": 3},
        {"split": "validation"},
        {"average": "example"},
        {"ties": "half"},
    ],
)
def test_numbers_of_different_questions_have_different_names(make_run, other):
    usual = measure(Named("a", read_saved(make_run("a"))))[0]
    manner = Manner(other.pop("average", "target"), other.pop("ties", "strict"), Resampling(resamples=10))
    split = other.pop("split", "sample")
    saved = read_saved(make_run("b", **other))
    saved = Saved(saved.parts, saved.partial, split, saved.family, saved.record)
    found = measure(Named("a", saved), manner)[0]
    assert found.name("ss") != usual.name("ss")
    assert set(found.name("ss")) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.")


def test_a_folder_on_this_machine_stays_unnamed(make_run):
    run = make_run("a", model={"name": "/home/somebody/secret", "family": "causal", "commit": None})
    found = measure(Named("label", read_saved(run)))
    for text in (model_index(found), json.dumps(every_eval_ever(found)), json.dumps(lm_eval(found))):
        assert "/home/somebody" not in text


def test_items_are_exported_whole(stereoset, make_run):
    run = make_run("a")
    lines = stereoset("export", run, "--to", "items-jsonl").splitlines()
    rows = list(csv.DictReader(io.StringIO(stereoset("export", run, "--to", "items-csv"))))
    assert len(lines) == len(rows) == 48
    assert {json.loads(line)["id"] for line in lines} == {row["id"] for row in rows}


def test_an_export_is_written_to_a_file(stereoset, make_run, tmp_path):
    path = tmp_path / "some" / "results.json"
    assert stereoset("export", make_run("a"), "--to", "lm-eval", "--output", path) == ""
    assert json.loads(path.read_text())["model_name"] == "a"
