"""What every test shares: no network, caches of its own, no progress bars, and the reference material."""

import os
import tempfile
from pathlib import Path

# Before any hub library is imported: their caches are read from the environment once, at import.
_CACHE = tempfile.mkdtemp(prefix="stereoset-tests-")
os.environ.update(
    HF_HOME=_CACHE,
    HF_HUB_OFFLINE="1",
    HF_DATASETS_DISABLE_PROGRESS_BARS="1",
    HF_HUB_DISABLE_PROGRESS_BARS="1",
    TOKENIZERS_PARALLELISM="false",
    TRANSFORMERS_VERBOSITY="error",
)

import pytest  # noqa: E402

REPOSITORY = Path(__file__).resolve().parent.parent
# Files that start many processes take longest: begun first, they keep nobody waiting at the end.
LONG = ("test_resume.py", "test_readme.py", "test_score.py", "test_train_next_sentence.py", "test_architectures.py")


def pytest_collection_modifyitems(items):
    """The longest files first."""
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


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
