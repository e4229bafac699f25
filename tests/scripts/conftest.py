"""Scripts as their users meet them: imported from their folder, or run in this process."""

import runpy
import signal
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
def score_here(repository, monkeypatch, capsys):
    """Run a script in this process, which has imported what takes seconds; its output."""

    def run(*options, script="score.py"):
        monkeypatch.setattr(sys, "argv", [script, *map(str, options)])
        before = signal.getsignal(signal.SIGTERM)
        try:
            runpy.run_path(str(repository / "scripts" / script), run_name="__main__")
        finally:
            signal.signal(signal.SIGTERM, before)
        return capsys.readouterr().out

    return run
