"""Rows are prepared once, also by processes that start together, and are found by name afterwards."""

import sys

import datasets
import pytest

import stereoset_dataset.stereoset_dataset as module


def test_a_second_load_neither_looks_for_files_nor_parses(mild, load, monkeypatch):
    first = load(data_dir=mild.mirror)
    monkeypatch.setattr(module.Stereoset, "_split_generators", None)
    monkeypatch.setattr(module.Stereoset, "_generate_examples", None)
    again = load(data_dir=mild.mirror)
    assert {split: rows.to_list() for split, rows in again.items()} == {
        split: rows.to_list() for split, rows in first.items()
    }
    assert again["test"].cache_files == first["test"].cache_files
    assert load(split="validation").to_list() == first["validation"].to_list()


def test_a_second_load_does_not_parse_again_where_the_test_set_is_absent(mild, load, monkeypatch):
    mild.path("test").unlink()
    load(data_dir=mild.mirror)
    monkeypatch.setattr(module.Stereoset, "_generate_examples", None)
    assert list(load(data_dir=mild.mirror)) == ["validation"]


def test_other_code_has_another_cache(mild, load, monkeypatch):
    before = load(split="validation", data_dir=mild.mirror).cache_files
    monkeypatch.setattr(module, "_fingerprint", lambda: "of other code")
    assert load(split="validation", data_dir=mild.mirror).cache_files != before


def test_prepared_rows_are_found_by_name(prepared):
    rows = datasets.load_dataset("stereoset", "intrasentence_de", split="validation")
    assert rows.to_list() == prepared["intrasentence_de"]["validation"].to_list()


@pytest.mark.parametrize("splits", [("validation", "validation"), ("validation", "test")], ids=" and ".join)
def test_two_processes_may_prepare_at_once(mild, tmp_path, warm_python, splits):
    environment = warm_python.environment | {"HF_HOME": str(tmp_path / "home")}
    file, other = mild.sources.values()
    code = (
        "import sys, dataclasses, stereoset_dataset as s\n"
        "sources = s.Stereoset.builder_configs['intrasentence'].sources\n"
        "counts = {'intrasentence': 1, 'intersentence': 1}\n"
        "pins = {'validation': {'sha256': sys.argv[3]}, 'test': {'git_blob': sys.argv[4], 'examples': counts}}\n"
        "for split, pin in pins.items(): sources[split] = dataclasses.replace(sources[split], **pin)\n"
        "print(s.load_stereoset('intrasentence', sys.argv[1], data_dir=sys.argv[2])['target'][:])"
    )
    started = [
        warm_python.start(
            [sys.executable, "-c", code, split, mild.mirror, file.sha256, other.git_blob], env=environment
        )
        for split in splits
    ]
    terms = {"validation": "['baker', 'tailor']", "test": "['gardener']"}
    assert [process.communicate(timeout=60)[0].strip() for process in started] == [terms[split] for split in splits]
