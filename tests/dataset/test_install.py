"""After scripts/install.py both names work in another process, from any folder, without the hub."""

import errno
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import datasets
import pytest

from stereoset_cli import install

MODULE = """\
import datasets

import evaluate

from .arithmetic import double


class Doubled(evaluate.Metric):
    def _info(self):
        features = datasets.Features({"predictions": datasets.Value("float64")})
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions):
        return {"doubled": double(sum(predictions))}
"""
HELPER = "def double(number):\n    return %d * number\n"
USE_METRIC = "import evaluate; print(evaluate.load('stereoset').compute(predictions=[1.0, 2.0]))"


def run_fresh(home, folder, *words):
    environment = {**os.environ, "HF_HOME": str(home)}
    return subprocess.run(
        [sys.executable, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def run(warm_python):
    """run(home, folder, *words): a process that was spared the imports of libraries."""
    environment = warm_python.environment
    return lambda home, folder, *words: warm_python.run(
        [sys.executable, *words], cwd=folder, env=environment | {"HF_HOME": str(home)}
    )


@pytest.fixture
def metric_folder(tmp_path):
    folder = tmp_path / "a_metric"
    folder.mkdir()
    (folder / "stereoset_metric.py").write_text(MODULE)
    (folder / "arithmetic.py").write_text(HELPER % 2)
    return folder


def test_a_metric_is_found_by_name_and_the_last_one_installed_wins(run, metric_folder, tmp_path, monkeypatch):
    home = tmp_path / "home"
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", home / "modules")
    first = install.install_metric(metric_folder)
    (metric_folder / "arithmetic.py").write_text(HELPER % 3)
    second = install.install_metric(metric_folder)
    assert first != second
    (metric_folder / "arithmetic.py").write_text(HELPER % 2)
    assert install.install_metric(metric_folder) == first
    used = run(home, tmp_path, "-c", USE_METRIC)
    assert used.stdout == "{'doubled': 6.0}\n", used.stderr


@pytest.mark.parametrize("lost", ["stereoset_metric.py", "arithmetic.py"])
def test_an_incomplete_metric_is_refused_by_name(metric_folder, lost, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", tmp_path / "modules")
    (metric_folder / lost).unlink()
    with pytest.raises(FileNotFoundError, match=f"{lost} is absent"):
        install.install_metric(metric_folder)
    assert not (tmp_path / "modules").exists()


def folders_of(home):
    return home / "modules" / "evaluate_modules" / "metrics" / "evaluate-metric--stereoset"


@pytest.mark.parametrize("broken", ["fsync", "rename"])
def test_an_installation_that_fails_leaves_what_was_there(metric_folder, tmp_path, monkeypatch, broken):
    home = tmp_path / "home"
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", home / "modules")
    before = install.install_metric(metric_folder)
    (metric_folder / "arithmetic.py").write_text(HELPER % 3)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, broken, full)
        with pytest.raises(OSError, match=r"No space left on device\): make room there"):
            install.install_metric(metric_folder)
    assert sorted(path.name for path in folders_of(home).iterdir()) == sorted(["__init__.py", before.parent.name])
    assert install.install_metric(metric_folder).read_text() == MODULE


@pytest.mark.parametrize("written", range(3))
def test_a_kill_in_the_middle_leaves_no_torn_module(metric_folder, tmp_path, monkeypatch, written):
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", tmp_path / "home" / "modules")
    before = install.install_metric(metric_folder)
    (metric_folder / "arithmetic.py").write_text(HELPER % 3)
    child = os.fork()
    if not child:
        left = iter(range(written))  # files
        monkeypatch.setattr(os, "fsync", lambda _: next(left, None) is None and os._exit(9))
        install.install_metric(metric_folder)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    # evaluate looks into folders whose names have 64 characters
    assert [path for path in folders_of(tmp_path / "home").iterdir() if len(path.name) == 64] == [before.parent]
    assert install.install_metric(metric_folder).exists()


def test_a_module_that_an_older_installer_left_torn_is_made_whole(metric_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", tmp_path / "modules")
    main_file = install.install_metric(metric_folder)
    main_file.write_text(MODULE[:20])
    main_file.with_name("arithmetic.py").unlink()
    assert install.install_metric(metric_folder) == main_file
    assert main_file.read_text() == MODULE
    assert main_file.with_name("arithmetic.py").read_text() == HELPER % 2


def test_installations_at_the_same_time_end_well(metric_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_MODULES_CACHE", tmp_path / "home" / "modules")
    with ThreadPoolExecutor(8) as pool:
        (found,) = set(pool.map(install.install_metric, [metric_folder] * 40))
    assert found.read_text() == MODULE
    assert {path.name for path in found.parent.iterdir()} == {"__init__.py", "stereoset.py", "arithmetic.py"}
    assert {path.name for path in found.parent.parent.iterdir()} == {"__init__.py", found.parent.name}


def test_the_metric_is_installed_where_the_data_cannot_be_had(run, repository, tmp_path):
    script, home = repository / "scripts" / "install.py", tmp_path / "home"
    done = run(home, tmp_path, script, "--configs", "crows_pairs", "intrasentence_de")
    assert done.returncode == 1
    assert 'evaluate.load("stereoset")' in done.stdout
    assert "load_dataset" not in done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("install.py: ")]
    assert len(lines) == 3
    assert "or pass --data-dir, a folder that holds nyu-mll/crows-pairs/" in lines[0]
    assert lines[-1] == "install.py: Not installed: crows_pairs, intrasentence_de."
    assert "Traceback" not in done.stderr
    assert len(list(folders_of(home).glob("*/stereoset.py"))) == 1
    assert run(home, tmp_path, script, "--metric-only").returncode == 0


def test_the_script_installs_both_names(run, repository, upstream, tmp_path):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    elsewhere.mkdir()
    configs = ["intrasentence_de", "crows_pairs"]
    script = repository / "scripts" / "install.py"
    installed = run(home, elsewhere, script, "--data-dir", upstream, "--configs", *configs)
    assert installed.returncode == 0, installed.stderr
    assert 'evaluate.load("stereoset")' in installed.stdout
    assert "intrasentence_de, 2,103 rows for validation" in installed.stdout
    code = (
        "import json, datasets, evaluate\n"
        f"rows = [datasets.load_dataset('stereoset', config) for config in {configs}]\n"
        "print(json.dumps([type(evaluate.load('stereoset')).__name__, *(splits.num_rows for splits in rows)]))"
    )
    used = run(home, elsewhere, "-c", code)
    assert used.returncode == 0, used.stderr
    assert json.loads(used.stdout) == ["Stereoset", {"validation": 2103}, {"test": 1508}]


def test_the_script_fails_with_one_sentence(run, repository, tmp_path):
    done = run(
        tmp_path / "home",
        tmp_path,
        repository / "scripts" / "install.py",
        "--data-dir",
        "nowhere",
        "--configs",
        "crows_pairs",
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"install.py: {tmp_path / 'nowhere'}")
    assert "is absent: put https://" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_installer_needs_no_torch(repository, tmp_path):
    heavy = "{'torch', 'transformers', 'evaluate'}"
    code = f"import sys, runpy; runpy.run_path(sys.argv[1]); print({heavy} & set(sys.modules))"
    done = run_fresh(tmp_path / "home", tmp_path, "-c", code, repository / "scripts" / "install.py")
    assert done.stdout == "set()\n", done.stderr
