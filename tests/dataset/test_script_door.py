"""The builder's folder by path: a script for `datasets` before 4, refused since."""

import datasets
import pytest

RUNS_SCRIPTS = int(datasets.__version__.partition(".")[0]) < 4


@pytest.fixture
def by_path(repository, tmp_path):
    def load_by_path(config, **options):
        return datasets.load_dataset(
            str(repository / "stereoset_dataset"), config, cache_dir=str(tmp_path / "cache"), **options
        )

    return load_by_path


@pytest.mark.skipif(not RUNS_SCRIPTS, reason="datasets 4 and later run no scripts")
@pytest.mark.parametrize("config", ["intrasentence", "intersentence_tr", "crows_pairs"])
def test_the_folder_loads_as_a_script_and_gives_the_same_rows(by_path, prepared, upstream, config):
    splits = by_path(config, data_dir=str(upstream), trust_remote_code=True)
    assert {split: rows.to_list() for split, rows in splits.items()} == {
        split: rows.to_list() for split, rows in prepared[config].items()
    }


@pytest.mark.skipif(not RUNS_SCRIPTS, reason="datasets 4 and later run no scripts")
def test_the_script_streams(by_path, prepared, upstream):
    rows = by_path(
        "intrasentence_de", data_dir=str(upstream), trust_remote_code=True, split="validation", streaming=True
    )
    assert next(iter(rows)) == prepared["intrasentence_de"]["validation"][0]


@pytest.mark.skipif(RUNS_SCRIPTS, reason="datasets before 4 run scripts")
def test_later_versions_refuse_the_script(by_path):
    with pytest.raises(RuntimeError, match="Dataset scripts are no longer supported"):
        by_path("intrasentence")
