"""The benchmark's modules, imported as running it from its folder would, with the built-in sample as data."""

import importlib
import sys

import pytest


@pytest.fixture
def benchmarks(repository, monkeypatch, tmp_path):
    """A function that imports a module of the benchmark."""
    folder = repository / "benchmarks"
    monkeypatch.setenv("STEREOSET_SHARED", str(tmp_path / "absent"))
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module
    for module in folder.glob("*.py"):
        sys.modules.pop(module.stem, None)
