"""What `stereoset export` writes: read by its folder, and by name from a server that speaks the hub's routes."""

import json
import sys
from pathlib import Path

import datasets
import pytest
import yaml

from stereoset_cli import publish
from stereoset_dataset import load_stereoset

sys.path.insert(0, str(Path(__file__).parent))

from hub import COMMIT, NAME, serving

CONFIGS = ["intrasentence", "intrasentence_pt", "crows_pairs_fr"]
LOAD = """
import json, sys
import datasets, evaluate

rows = datasets.load_dataset(sys.argv[1], "intrasentence_pt", split="validation")
metric = evaluate.load(sys.argv[1])
print(json.dumps([rows[7], metric.compute(predictions=[[1, 2, 3]] * 5, references=rows.select(range(5)))]))
"""


@pytest.fixture(scope="module")
def export(upstream):
    """export(*words): the command in this process."""

    def run(*words):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["stereoset export", *map(str, words)])
            publish.main()

    return run


@pytest.fixture(scope="module")
def folders(export, upstream, tmp_path_factory):
    """(the data set's, the metric's) exported folder."""
    place = tmp_path_factory.mktemp("published")
    export("dataset", place / "dataset", "--data-dir", upstream, "--configs", *CONFIGS)
    export("metric", place / "metric")
    return place / "dataset", place / "metric"


@pytest.mark.parametrize("config", CONFIGS)
def test_the_folder_is_loaded_by_its_path_and_holds_the_same_rows(folders, upstream, tmp_path, config):
    found = datasets.load_dataset(str(folders[0]), config, cache_dir=str(tmp_path))
    ours = load_stereoset(config, data_dir=upstream)
    assert list(found) == list(ours)
    for split, rows in ours.items():
        assert found[split].to_list() == rows.to_list()
        assert found[split].features == rows.features


def test_the_card_promises_what_is_there_and_nothing_else(folders):
    header = yaml.safe_load((folders[0] / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    promised = {(one["config_name"], file["split"]) for one in header["configs"] for file in one["data_files"]}
    there = {(path.parent.name, path.name.partition("-")[0]) for path in folders[0].glob("*/*.parquet")}
    assert (
        promised
        == there
        == {("intrasentence", "validation"), ("intrasentence_pt", "validation"), ("crows_pairs_fr", "test")}
    )
    assert header["language"] == ["en", "fr", "pt"]


def test_eval_yaml_names_a_task_for_each_config(folders):
    content = yaml.safe_load((folders[0] / "eval.yaml").read_text(encoding="utf-8"))
    assert {"name", "description", "evaluation_framework", "tasks"} == content.keys()
    assert content["tasks"][1] == {"id": "intrasentence_pt", "config": "intrasentence_pt", "split": "validation"}


def test_what_is_there_already_is_not_overwritten(export, folders):
    for what, folder in zip(("dataset", "metric"), folders, strict=True):
        with pytest.raises(ValueError, match="is there already: give another folder"):
            export(what, folder, *(["--configs", "crows_pairs_fr"] if what == "dataset" else []))


def test_both_are_loaded_by_name_from_a_hub(folders, upstream, warm_python, tmp_path):
    with serving(datasets=folders[0], spaces=folders[1]) as (address, log):
        env = {**warm_python.environment, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1"}
        env |= {"HF_HUB_OFFLINE": "0", "HF_DATASETS_OFFLINE": "0", "HF_EVALUATE_OFFLINE": "0"}
        done = warm_python.run([sys.executable, "-c", LOAD, NAME], env=env, cwd=tmp_path)
    assert done.returncode == 0, "\n".join([done.stderr, *log])
    row, result = json.loads(done.stdout.splitlines()[-1])
    assert row == load_stereoset("intrasentence_pt", "validation", upstream)[7]
    assert result["count"] == 5
    assert f"GET /spaces/{NAME}/resolve/main/stereoset.py" in " ".join(log) or COMMIT in " ".join(log)
