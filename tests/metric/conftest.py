"""The data set's rows, prepared once, and the metric as users load it."""

import functools
import shutil
from pathlib import Path

import evaluate
import pytest

from stereoset_dataset import load_stereoset


@pytest.fixture(scope="session")
def rows_of(upstream):
    """A function from a config to its rows, each with the columns that the metric and the alignment read."""

    @functools.cache
    def rows(config):
        split = "test" if config == "crows_pairs" else "validation"
        dataset = load_stereoset(config, split=split, data_dir=upstream)
        return dataset.select_columns(["id", "target", "bias_type", "sentences"]).to_list()

    return rows


@pytest.fixture
def metric(repository):
    """The metric, loaded by its folder."""
    return evaluate.load(str(repository / "stereoset_metric"))


@pytest.fixture(scope="session")
def installed(repository):
    """The module in the cache of `evaluate`, where it is found by the name "stereoset" without the hub."""
    cache = Path(evaluate.loading.init_dynamic_modules())
    folder = cache / "metrics" / "evaluate-metric--stereoset" / ("0" * 64)
    folder.mkdir(parents=True, exist_ok=True)
    for one in (folder, folder.parent, folder.parent.parent):
        (one / "__init__.py").touch()
    shutil.copy(repository / "stereoset_metric" / "stereoset_metric.py", folder / "stereoset.py")
    shutil.copy(repository / "stereoset_metric" / "compute_score.py", folder)
