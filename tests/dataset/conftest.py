"""The real rows, prepared once, and a small upstream of mild sentences whose files a test may replace."""

import dataclasses
import hashlib
import json

import pytest

from stereoset_dataset import Stereoset, load_stereoset
from stereoset_dataset.upstream import TEST, VALIDATION, git_blob_sum

TASKS = ("intrasentence", "intersentence")


@pytest.fixture(scope="session")
def prepared(upstream):
    """{config: DatasetDict} of the real data, left in the cache of this test run."""
    return {config: load_stereoset(config, data_dir=upstream) for config in Stereoset.builder_configs}


class MildUpstream:
    """A mirror of two files, pinned as the real ones are: in place of them, while a test runs.

    Args:
        mirror: the folder.
        sources: the splits' files of the English configs, {split: UpstreamFile}; changed here.
    """

    def __init__(self, mirror, sources):
        self.mirror, self.sources = mirror, sources
        self.pin("validation", document("baker", "tailor"))
        self.pin("test", document("gardener", harm=True))

    def pin(self, split, document):
        """Write a split's file and make its sum and its counts the expected ones."""
        data = json.dumps(document).encode()
        if split == "validation":
            sums = {"sha256": hashlib.sha256(data).hexdigest()}
        else:
            sums = {"git_blob": git_blob_sum(data)[:8]}
        counts = {task: len(document["data"][task]) for task in TASKS}
        real_file = {"validation": VALIDATION, "test": TEST}[split]
        self.sources[split] = dataclasses.replace(real_file, examples=counts, **sums)
        self.path(split).parent.mkdir(parents=True, exist_ok=True)
        self.path(split).write_bytes(data)

    def path(self, split):
        return self.mirror / self.sources[split].location

    def document(self, split):
        return json.loads(self.path(split).read_bytes())


def document(*terms, harm=False):
    """One example per task and term, in the layout of StereoSet's JSON files."""
    return {"version": "1.0", "data": {task: [example(task, term, harm) for term in terms] for task in TASKS}}


def example(task, term, harm):
    options = [("kind", "anti-stereotype"), ("early", "stereotype"), ("seven", "unrelated")]
    context = f"The {term} is BLANK." if task == "intrasentence" else f"Here comes the {term}."
    return {
        "id": f"{task}-{term}",
        "target": term,
        "bias_type": "profession",
        "context": context,
        "sentences": [
            {
                "sentence": f"The {term} is {word}.",
                "id": f"{task}-{term}-{word}",
                "labels": [{"label": gold_label, "human_id": "a"}, {"label": "related", "human_id": "b"}],
                "gold_label": gold_label,
            }
            for word, gold_label in options
        ],
        **({"harm": {"gold_label": "neutral", "labels": []}} if harm else {}),
    }


@pytest.fixture
def mild(tmp_path, monkeypatch):
    """A MildUpstream; the real sources are back after the test."""
    sources = Stereoset.builder_configs["intrasentence"].sources  # one dictionary, shared by both English configs
    for split, file in list(sources.items()):
        monkeypatch.setitem(sources, split, file)
    return MildUpstream(tmp_path / "mirror", sources)


@pytest.fixture
def load(tmp_path):
    """load_stereoset with a cache of the test's own."""

    def load_here(config="intrasentence", split=None, **options):
        return load_stereoset(config, split, cache_dir=tmp_path / "cache", **options)

    return load_here
