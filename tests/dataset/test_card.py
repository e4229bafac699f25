"""The data set's card: its numbers are recounted and its snippets run."""

import collections
import re

import pytest
import yaml

from stereoset_dataset import Stereoset
from stereoset_dataset.card import LANGUAGES, count, filled
from stereoset_dataset.quality import FLAGS
from stereoset_dataset.upstream import TEST


@pytest.fixture(scope="module")
def card(repository):
    return (repository / "stereoset_dataset" / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def header(card):
    return yaml.safe_load(card.split("---\n")[1])


def counted_by_the_card(card):
    """{(config, split): {bias type or "all": number}} from the card's tables."""
    counts, columns = {}, []
    for line in card.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[:2] == ["config", "split"]:
            columns = cells[3:]
        elif not line.startswith("|"):
            columns = []
        elif cells[0] in Stereoset.builder_configs and columns:
            numbers = [int(cell.replace(",", "")) for cell in cells[3:]]
            counts[cells[0], cells[1]] = dict(zip(columns, numbers, strict=True))
    return counts


def test_the_tables_count_what_is_in_the_rows(card, prepared):
    recounted = {
        (config, split): {**collections.Counter(rows["bias_type"][:]), "all": len(rows)}
        for config, splits in prepared.items()
        for split, rows in splits.items()
    }
    assert counted_by_the_card(card) == recounted


def test_the_generated_parts_are_those_that_the_rows_make(card, prepared):
    rows = {(config, split): some for config, splits in prepared.items() for split, some in splits.items()}
    splits = [(name, split) for name, config in Stereoset.builder_configs.items() for split in config.sources]
    assert filled(card, count(rows, "bias_type"), count(rows, "flags"), splits) == card  # stereoset export card


def test_flags_are_of_fixed_words_and_languages_have_names(prepared):
    columns = [rows["flags"][:] for splits in prepared.values() for rows in splits.values()]
    found = {flag for column in columns for flags in column for flag in flags}
    assert found == set(FLAGS)
    assert set(LANGUAGES) == {config.language for config in Stereoset.builder_configs.values()}


def test_the_header_lists_every_config_and_split(header):
    listed = {entry["config_name"]: [file["split"] for file in entry["data_files"]] for entry in header["configs"]}
    assert listed == {name: list(config.sources) for name, config in Stereoset.builder_configs.items()}
    assert set(header["language"]) == {config.language for config in Stereoset.builder_configs.values()}
    assert header["license"] == "cc-by-sa-4.0"


def test_the_sources_are_the_pinned_ones(card):
    for file in [file for config in Stereoset.builder_configs.values() for file in config.files]:
        assert re.search(rf"\[{file.repository}\]\(https://github\.com/{file.repository}\) \| {file.commit} \|", card)
    for task, number in TEST.examples.items():
        assert f"{number:,} ({task})" in card


def test_every_field_is_explained(card):
    section = card.partition("\n## Fields\n")[2].partition("\n## ")[0]
    explained = set(re.findall(r"^\| `([\w.]+)` \|", section, flags=re.MULTILINE))
    fields = set()
    for name in Stereoset.builder_configs:
        features = Stereoset(config_name=name, hash="fields").info.features
        options = getattr(features["sentences"], "feature", features["sentences"])  # what datasets 4 changed
        labels = getattr(options["labels"], "feature", options["labels"])
        fields |= {*features, *(f"sentences.{field}" for field in options)}
        fields |= {f"sentences.labels.{field}" for field in labels}
    assert explained == fields


def test_the_snippets_run(card, prepared, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"```python\n(.*?)```", card, flags=re.DOTALL)
    assert len(snippets) == 4
    for snippet in snippets:
        exec(compile(snippet, "README.md", "exec"), {})
