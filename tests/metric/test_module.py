"""The module as users load it: by folder, by name, from anywhere, alone; and what `compute` takes."""

import doctest
import math
import os
import pickle
import shutil
import subprocess
import sys

import datasets
import evaluate
import numpy as np
import pytest

LABELS = ["stereotype", "anti-stereotype", "unrelated"]
REFERENCES = [
    {"target": "baker", "bias_type": "profession", "gold_label": LABELS},
    {"target": "baker", "bias_type": "profession", "gold_label": LABELS},
    {"target": "sofa", "bias_type": "furniture", "gold_label": LABELS},
]
PREDICTIONS = [[-1.0, -2.0, -3.0], [-2.0, -1.0, -3.0], [-3.0, -1.0, -2.0]]
EXPECTED = {"ss": 25.0, "lms": 75.0, "icat": 37.5, "icat_macro": 50.0, "count": 3, "ties": 0}


def test_flat_figures_come_first_and_in_order(metric):
    result = metric.compute(predictions=PREDICTIONS, references=REFERENCES, breakdown="target", signature=True)
    assert list(result) == [*EXPECTED, "target", "signature"]
    assert {name: result[name] for name in EXPECTED} == EXPECTED


def test_the_folder_loads_from_any_working_directory(repository, tmp_path, monkeypatch):
    monkeypatch.chdir(repository)
    assert evaluate.load("./stereoset_metric").compute(predictions=PREDICTIONS, references=REFERENCES) == EXPECTED
    monkeypatch.chdir(tmp_path)
    folder = os.path.relpath(repository / "stereoset_metric")
    assert evaluate.load(folder).compute(predictions=PREDICTIONS, references=REFERENCES) == EXPECTED


def test_two_files_copied_alone_into_an_empty_place_load(repository, tmp_path):
    folder = tmp_path / "stereoset"
    folder.mkdir()
    shutil.copy(repository / "stereoset_metric" / "stereoset_metric.py", folder / "stereoset.py")
    shutil.copy(repository / "stereoset_metric" / "compute_score.py", folder)
    code = (
        # Without transformers, which evaluate would import along with torch: seconds, for nothing here.
        "import sys; sys.modules['transformers'] = None; import evaluate\n"
        f"print(evaluate.load({str(folder)!r}).compute(predictions={PREDICTIONS}, references={REFERENCES}))"
    )
    # -I: neither the working directory nor PYTHONPATH helps to find anything of this project
    run = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.strip().splitlines()[-1] == str(EXPECTED)


def test_the_module_is_found_by_name_once_it_is_in_the_cache(installed):
    assert evaluate.load("stereoset").compute(predictions=PREDICTIONS, references=REFERENCES) == EXPECTED


def run_examples(text, name):
    """Run the >>> lines of a text; fences of markdown end an example's output."""
    text = "\n".join("" if line.startswith("```") else line for line in text.splitlines())
    test = doctest.DocTestParser().get_doctest(text, {"evaluate": evaluate}, name, None, 0)
    assert len(test.examples) > 1
    assert doctest.DocTestRunner().run(test).failed == 0


def test_the_examples_of_the_docstring_are_true(installed, metric):
    run_examples(metric.inputs_description, "docstring")
    assert metric.inputs_description in metric.compute.__doc__


def test_the_examples_of_the_card_are_true(installed, repository):
    run_examples((repository / "stereoset_metric" / "README.md").read_text(encoding="utf-8"), "card")


def test_the_card_names_its_space_and_keeps_its_order(repository):
    text = (repository / "stereoset_metric" / "README.md").read_text(encoding="utf-8")
    assert text.startswith("---\ntitle: StereoSet\n")
    parts = ["Metric description", "How to use", "Inputs", "Output values", "Extremes", "Ties", "Values from papers"]
    places = [text.index(f"# {part}\n") for part in [*parts, "Limitations and bias", "Citation"]]
    assert places == sorted(places)


def dataset_of(rows):
    """Rows as the data set yields them: sentences is a mapping of lists, gold labels are class labels."""
    label = datasets.ClassLabel(names=["anti-stereotype", "stereotype", "unrelated"])
    option = {"id": datasets.Value("string"), "gold_label": label}
    features = {name: datasets.Value("string") for name in ("id", "target", "bias_type")}
    features = datasets.Features({**features, "sentences": datasets.Sequence(option)})
    records = [
        {
            "id": str(i),
            "target": row["target"],
            "bias_type": row["bias_type"],
            "sentences": {"id": ["x", "y", "z"], "gold_label": row["gold_label"]},
        }
        for i, row in enumerate(rows)
    ]
    return datasets.Dataset.from_list(records, features=features)


DATASET = dataset_of(REFERENCES)
FORMS = {
    "flat": REFERENCES,
    "flat with indices": [{**row, "gold_label": [1, 0, 2]} for row in REFERENCES],
    "a Dataset": DATASET,
    "some columns of it": DATASET.select_columns(["sentences", "bias_type", "target"]),
    "its rows": list(DATASET),
    "a slice of it": DATASET[:],
    "StereoSet's JSON": [
        {"id": "e", "context": "…", **row, "gold_label": None, "sentences": [{"gold_label": one} for one in LABELS]}
        for row in REFERENCES
    ],
    "a tuple": tuple(REFERENCES),
}


@pytest.mark.parametrize("form", FORMS)
def test_references_of_any_form(metric, form):
    assert metric.compute(predictions=PREDICTIONS, references=FORMS[form]) == EXPECTED


@pytest.mark.parametrize("kind", [np.array, np.float32, list, tuple])
def test_predictions_of_any_form(metric, kind):
    assert metric.compute(predictions=kind(PREDICTIONS), references=REFERENCES) == EXPECTED


def test_tensors_are_predictions(metric):
    torch = pytest.importorskip("torch")
    for predictions in (torch.tensor(PREDICTIONS), list(torch.tensor(PREDICTIONS, dtype=torch.bfloat16))):
        assert metric.compute(predictions=predictions, references=REFERENCES) == EXPECTED


def test_batches_add_up(metric):
    metric.add_batch(predictions=PREDICTIONS[:2], references=DATASET[:2])
    metric.add(prediction=PREDICTIONS[2], reference=DATASET[2])
    assert len(metric) == 3
    assert metric.compute() == EXPECTED
    assert len(metric) == 0
    metric.add_batch(predictions=PREDICTIONS[:1], references=REFERENCES[:1])
    assert metric.compute(ties="half")["count"] == 1


def test_examples_given_to_compute_join_those_added_before(metric):
    metric.add(prediction=PREDICTIONS[0], reference=REFERENCES[0])
    assert metric.compute(predictions=PREDICTIONS[1:], references=REFERENCES[1:]) == EXPECTED


def test_a_refused_call_leaves_nothing_behind(metric):
    with pytest.raises(ValueError, match="ties is 'x'"):
        metric.compute(predictions=PREDICTIONS, references=REFERENCES, ties="x")
    with pytest.raises(ValueError, match="1 predictions for 3 references"):
        metric.add_batch(predictions=PREDICTIONS[:1], references=REFERENCES)
    assert metric.compute(predictions=PREDICTIONS, references=REFERENCES) == EXPECTED


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        ([], [], "no example"),
        (None, None, "no example"),
        (PREDICTIONS, None, "3 predictions for 0 references"),
        ([[1.0, math.nan, 2.0]], REFERENCES[:1], r"Example 0 \(target 'baker'\) has the score nan"),
        ([PREDICTIONS[0], [None, 1.0, 2.0]], REFERENCES[:2], r"Example 1 \(target 'baker'\) has the score None"),
        (PREDICTIONS[:1], REFERENCES[0], "single row: give a list of rows"),
        (PREDICTIONS[:1], [LABELS], "A reference is list"),
        (PREDICTIONS[:1], [{"target": "baker", "bias_type": "profession"}], "has no gold_label"),
    ],
)
def test_refusals_reach_the_user_as_one_sentence(metric, predictions, references, message):
    with pytest.raises(ValueError, match=message) as refusal:
        metric.compute(predictions=predictions, references=references)
    assert "\n" not in str(refusal.value)


def test_infinite_scores_are_scores(metric):
    predictions = [[math.inf, -math.inf, 0.0], [-math.inf, -math.inf, 0.0]]
    result = metric.compute(predictions=predictions, references=REFERENCES[:2])
    assert (result["ss"], result["lms"], result["ties"]) == (50.0, 25.0, 1)


def test_several_processes_are_refused(repository, tmp_path):
    with pytest.raises(ValueError, match="runs in one process: gather"):
        evaluate.load(
            str(repository / "stereoset_metric"),
            num_process=2,
            process_id=0,
            experiment_id="x",
            cache_dir=str(tmp_path),
        )


def test_results_are_plain_numbers(metric):
    result = metric.compute(predictions=np.float32(PREDICTIONS), references=REFERENCES, confidence_level=0.9)
    assert {type(value) for value in result.values()} == {float, int}
    assert pickle.loads(pickle.dumps(result)) == result
