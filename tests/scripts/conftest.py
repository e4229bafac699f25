"""Scripts as their users meet them: imported from their folder, or run in this process."""

import importlib
import runpy
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


def _conftest_of(folder):
    """The conftest.py of another folder of tests, as a module."""
    path = Path(__file__).resolve().parent.parent / folder / "conftest.py"
    spec = spec_from_file_location(f"conftest_of_{folder}", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


folder = _conftest_of("scoring").folder  # folder(name): a tiny checkpoint, made at the first call


@pytest.fixture
def scripts(repository, monkeypatch):
    """A function that imports a script as running it from its folder would."""
    folder = repository / "scripts"
    monkeypatch.syspath_prepend(str(folder))
    yield importlib.import_module
    for script in folder.glob("*.py"):
        sys.modules.pop(script.stem, None)


@pytest.fixture
def score_here(repository, monkeypatch, capsys):
    """Run a script in this process, which has imported what takes seconds; its output."""

    def run(*options, script="score.py"):
        monkeypatch.syspath_prepend(str(repository / "scripts"))
        monkeypatch.setattr(sys, "argv", [script, *map(str, options)])
        runpy.run_path(str(repository / "scripts" / script), run_name="__main__")
        return capsys.readouterr().out

    return run
