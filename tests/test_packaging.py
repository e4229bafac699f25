"""What `pip install` gives: built from the sources' archive, installed into environments of their own, run there."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest

from stereoset_cli.main import COMMANDS
from stereoset_scoring import __version__

# What a checkout may hold and nobody ships: environments, caches, the history, one's own runs.
LEFT_OUT = (".git", ".venv*", "__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "build", "dist", "runs", "wt")
EXTRAS = ("torch", "transformers", "accelerate", "peft", "sentencex")
OTHER_PYTHONS = ("3.12", "3.13")
HELPS = """
import contextlib, io, json, sys
from stereoset_cli.main import COMMANDS, main
printed = {}
for name in COMMANDS:
    sys.argv = ["stereoset", name, "--help"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main()
    printed[name] = out.getvalue()
print(json.dumps(printed))
"""
GPT2 = "predictions/stereoset/predictions_gpt2_ModelNSP_GPT2LM.json"

pytestmark = pytest.mark.thorough
pytest.importorskip("setuptools", minversion="77", reason="setuptools>=77 builds the wheel")


def environment(**settings):
    """This process's, without what would lead to the checkout or to another environment."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return kept | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PIP_NO_INPUT": "1", **settings}


def run(*words, cwd, check=True, **settings):
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=environment(**settings), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0 or not check, f"{words}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done


def build(what, folder, into):
    """Build a distribution from a folder of sources, as pip does without a network; its path."""
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{what}(sys.argv[1]))"
    return into / run(sys.executable, "-c", code, into, cwd=folder).stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(repository, tmp_path_factory):
    """The archive of the sources."""

    def left_out(folder, names):
        top = Path(folder) == repository
        return {name for name in names if any(fnmatch(name, one) for one in LEFT_OUT[: None if top else -4])}

    place = tmp_path_factory.mktemp("sources")
    shutil.copytree(repository, place / "checkout", ignore=left_out, symlinks=True)
    return build("sdist", place / "checkout", place)


@pytest.fixture(scope="module")
def unpacked(sdist):
    """The folder that the archive unpacks to."""
    with tarfile.open(sdist) as archive:
        archive.extractall(sdist.parent, filter="data")
    return sdist.with_name(f"stereoset-{__version__}")


@pytest.fixture(scope="module")
def wheel(unpacked):
    """The wheel, built from the archive: what is missing there is missing here."""
    return build("wheel", unpacked, unpacked.parent)


class Installed:
    """An environment that the wheel is installed in, and an empty folder to run it from.

    Args:
        folder: where to make it.
        wheel: what to install.
        python: what to make it with.
        packages: a folder to take everything else from, so that nothing is downloaded; None for none.
    """

    def __init__(self, folder, wheel, python=sys.executable, packages=None):
        self.bin, self.cwd = folder / "env" / "bin", folder / "elsewhere"
        self.cwd.mkdir()
        run(python, "-m", "venv", "--without-pip", folder / "env", cwd=folder)
        (site,) = (folder / "env" / "lib").glob("python*/site-packages")
        if packages:
            (site / "others.pth").write_text(f"{packages}\n")
        self.pip("install", "--quiet", "--no-deps", "--no-index", wheel)

    def pip(self, *words):
        return run(sys.executable, "-m", "pip", "--python", self.bin / "python", *words, cwd=self.cwd)

    def stereoset(self, *words, **options):
        """The console script."""
        return run(self.bin / "stereoset", *words, cwd=self.cwd, **options)

    def python(self, *words, **options):
        return run(self.bin / "python", *words, cwd=self.cwd, **options)


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """With all extras."""
    return Installed(tmp_path_factory.mktemp("installed"), wheel, packages=sysconfig.get_path("purelib"))


@pytest.fixture(scope="module")
def without_extras(wheel, tmp_path_factory):
    """Without what the extras bring."""
    folder = tmp_path_factory.mktemp("base")
    (folder / "packages").mkdir()
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(EXTRAS):
            (folder / "packages" / path.name).symlink_to(path)
    return Installed(folder, wheel, packages=folder / "packages")


def find_python(version):
    """Another Python of this machine, if it is there and runs: pyenv's shims are there without one, too."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *sorted(root.glob(f"versions/{version}*/bin/python{version}"))]
    return next(
        (one for one in filter(None, found) if subprocess.run([one, "-c", ""], capture_output=True).returncode == 0),
        None,
    )


def test_the_sdist_holds_what_the_repository_holds(repository, sdist):
    if not (repository / ".git").exists():
        pytest.skip("no checkout: nothing says what belongs to it")
    tracked = run("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=repository).stdout.splitlines()
    with tarfile.open(sdist) as archive:
        held = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in held if name == "PKG-INFO" or name.startswith("stereoset.egg-info/")}
    assert held - made == {name for name in tracked if (repository / name).is_file()}


def test_the_wheel_holds_every_file_of_the_packages(repository, wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    held = {name for name in names if ".dist-info/" not in name}
    packages = [path for folder in repository.glob("stereoset_*") for path in folder.rglob("*") if path.is_file()]
    assert held == {path.relative_to(repository).as_posix() for path in packages if "__pycache__" not in path.parts}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_sdist_runs_its_own_tests(unpacked):
    few = ["tests/dataset/test_files.py"]
    done = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *few, cwd=unpacked, PYTHONPATH=unpacked)
    assert " passed" in done.stdout


def test_the_command_says_what_there_is(installed):
    assert installed.stereoset("--version").stdout == f"stereoset {__version__}\n"
    printed = installed.stereoset("--help").stdout
    assert all(f"  {name} " in printed for name in COMMANDS)
    assert installed.python("-m", "stereoset_cli").stdout == printed
    assert installed.stereoset("nonsense", check=False).returncode == 1


def test_the_code_that_runs_is_the_installed_one(installed):
    code = (
        "import stereoset_cli, stereoset_metric, stereoset_scoring.runs as r; print(stereoset_cli.__file__, r.__file__)"
    )
    printed = installed.python("-c", code).stdout
    assert printed.count(str(installed.bin.parent)) == 2


@pytest.fixture(scope="module")
def helps(without_extras):
    """{command: its help}, printed by one process, which imports but once what takes a second."""
    return json.loads(without_extras.python("-c", HELPS).stdout)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_needs_no_torch(helps, name):
    assert helps[name].startswith(f"usage: stereoset {name} ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["score", "--sample", "--output-dir", "out"],
            "stereoset score: accelerate is missing: pip install 'stereoset[scoring]'.",
        ),
        (
            ["train-head", "--model", "m", "--corpus", "c", "--output-dir", "out"],
            "stereoset train-head: sentencex is missing: pip install 'stereoset[training]'.",
        ),
    ],
)
def test_a_missing_extra_is_named_in_a_sentence(without_extras, words, said):
    done = without_extras.stereoset(*words, check=False)
    assert (done.returncode, done.stderr) == (1, f"{said}\n")


def test_saved_scores_become_a_table_without_torch(without_extras, shared):
    printed = without_extras.stereoset("table", shared / GPT2, "--data-dir", shared / "upstream").stdout
    assert "intrasentence" in printed
    assert "71.89" in printed


def test_the_sample_is_scored_and_its_table_printed_again(installed):
    printed = installed.stereoset("score", "--sample", "--output-dir", "run").stdout
    assert {path.name for path in (installed.cwd / "run").glob("*.json")} == {"run.json", "results.json", "scores.json"}
    again = installed.stereoset("table", "run").stdout
    assert next(line for line in again.splitlines() if "profession" in line) in printed


@pytest.mark.parametrize("launcher", ["accelerate.commands.launch", "torch.distributed.run"])
def test_launchers_start_the_installed_module(installed, launcher):
    words = ["--num_processes", "1"] if launcher.startswith("accelerate") else ["--nproc_per_node", "1"]
    done = installed.python("-m", launcher, *words, "-m", "stereoset_cli.score", "--list-methods")
    assert "| masked | intrasentence | `likelihood` * |" in done.stdout


def test_the_metric_is_installed_under_its_name(without_extras, repository):
    home = without_extras.cwd / "home"
    without_extras.stereoset("install", "--metric-only", HF_HOME=home)
    (module,) = home.glob("modules/evaluate_modules/metrics/evaluate-metric--stereoset/*/stereoset.py")
    assert module.read_bytes() == (repository / "stereoset_metric" / "stereoset_metric.py").read_bytes()


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_other_pythons_run_the_command(version, wheel, tmp_path):
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} here")
    here = Installed(tmp_path, wheel, python)
    assert here.stereoset("--version").stdout == f"stereoset {__version__}\n"
    assert "| masked | intrasentence | `likelihood` * |" in here.stereoset("methods").stdout


def test_pip_brings_all_that_the_base_needs(wheel, tmp_path, shared):
    probe = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "5"]
    if run(*probe, "--dest", tmp_path / "probe", "filelock", cwd=tmp_path, check=False).returncode:
        pytest.skip("no package index within reach")
    python = next(filter(None, map(find_python, reversed(OTHER_PYTHONS))), sys.executable)
    here = Installed(tmp_path, wheel, python)
    here.pip("install", "--quiet", "--no-compile", wheel)
    printed = here.stereoset(
        "table", shared / GPT2, "--data-dir", shared / "upstream", HF_HOME=tmp_path / "home"
    ).stdout
    assert "71.89" in printed
