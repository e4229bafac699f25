"""What every test shares: no network, caches of its own, no progress bars, and the reference material."""

import gc
import os
import socket
import sys
import tempfile
from pathlib import Path

# Before any hub library is imported: their caches are read from the environment once, at import.
# One for all that pytest-xdist starts: the data are prepared once.
_CACHE = os.environ.setdefault("STEREOSET_TESTS_CACHE", tempfile.mkdtemp(prefix="stereoset-tests-"))
os.environ.update(
    HF_HOME=_CACHE,
    HF_HUB_OFFLINE="1",
    HF_DATASETS_DISABLE_PROGRESS_BARS="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    TOKENIZERS_PARALLELISM="false",
    TRANSFORMERS_VERBOSITY="error",
)

# What one process compiles serves the others and the next time, also where Python is told to leave no bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Nothing that is imported goes away: seeking garbage among it takes a second.
gc.disable()

import pytest  # noqa: E402

from tests.warm_python import WarmPython  # noqa: E402

REPOSITORY = Path(__file__).resolve().parent.parent
# What takes longest: begun first, it keeps nobody waiting at the end.
LONG = (
    "test_packaging.py",
    "test_readme.py",
    "test_contributing.py",
    "test_languages.py",
    "test_sweep.py",
    "test_resume.py",
    "test_reproduce.py",
    "test_cache.py",  # prepares all the data
    "test_independent_others.py",
    "test_independent_seq2seq.py",
    "test_score.py",
    "test_oracles.py",
    "test_placement.py",
    "test_inert_pickle.py",
    "test_rows.py",
    "test_served.py",
    "test_browser.py",
    "test_architectures.py",
    "test_compare.py",
    "test_invariance.py",
)


_WARM = "STEREOSET_TESTS_WARM"  # the folder where a WarmPython is that serves all that pytest-xdist starts


def pytest_configure(config):
    """Where there are several processes, one WarmPython does for all: what it imports takes seconds."""
    if getattr(config.option, "numprocesses", None) and _WARM not in os.environ:
        os.environ[_WARM] = tempfile.mkdtemp(prefix="stereoset-warm-")
        warm = WarmPython(_one_thread_each(), os.environ[_WARM])
        config.add_cleanup(warm.stop)


def pytest_collection_modifyitems(items):
    """The longest files first."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def pytest_collection_finish():
    """Seek garbage again: the tests begin."""
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def all_that_was_imported_stays():
    """Else each collection of garbage would go through all of it, which takes longer than many a test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def repository():
    """The checkout."""
    return REPOSITORY


@pytest.fixture(scope="session")
def shared():
    """The folder of real data, published scores and oracles that lies beside the checkout."""
    folder = Path(os.environ.get("STEREOSET_SHARED", REPOSITORY.parent / "shared"))
    if not (folder / "upstream").is_dir():
        pytest.skip(f"{folder} is absent: no real data, published scores or oracles to test against")
    return folder


@pytest.fixture(scope="session")
def upstream(shared):
    """The mirror of the upstream data files."""
    return shared / "upstream"


@pytest.fixture(scope="session")
def free_port():
    """free_port(): a port of this machine that nobody uses, as text."""

    def find():
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return str(probe.getsockname()[1])

    return find


@pytest.fixture(scope="session")
def torchrun(free_port):
    """torchrun(processes, *options): the words before a script that start it on processes of this machine."""

    def words(processes, *options):
        place = options or ("--master_addr", "127.0.0.1", "--master_port", free_port())
        return [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node", str(processes), *place]

    return words


def _one_thread_each():
    return os.environ | {"ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(REPOSITORY)}


@pytest.fixture(scope="session")
def one_thread_each():
    """The environment of processes that share this machine's CPU."""
    return _one_thread_each()


@pytest.fixture(scope="session")
def warm_python(one_thread_each, tmp_path_factory):
    """A WarmPython: starts Pythons that need not import what takes seconds; its caches are this session's."""
    shared = os.environ.get(_WARM)
    warm = WarmPython(one_thread_each, shared or tmp_path_factory.mktemp("warm"), server=not shared)
    yield warm
    warm.stop()


@pytest.fixture(scope="session")
def sample_model():
    """The folder of the sample's model, which takes seconds to build; not to be changed."""
    from filelock import FileLock

    from stereoset_scoring.sample import build_model

    folder = Path(_CACHE, "sample-model")
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            build_model(folder)
    return folder
