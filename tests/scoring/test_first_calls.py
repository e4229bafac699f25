"""Functions that one thread calls before several do."""

import pytest
import torch

from stereoset_scoring.engines.first_calls import FUNCTIONS, make_first_calls
from stereoset_scoring.engines.masked import MaskedEngine


@pytest.fixture
def called(monkeypatch):
    """What was called with which dtype, each time with one element."""
    calls = []

    def spy(function):
        def call(values):
            assert values.shape == (1,)
            calls.append((function.__name__, values.dtype))
            return function(values)

        return call

    monkeypatch.setattr("stereoset_scoring.engines.first_calls.FUNCTIONS", tuple(map(spy, FUNCTIONS)))
    make_first_calls.cache_clear()
    yield calls
    make_first_calls.cache_clear()


def test_an_engine_has_made_them_all_with_one_element_and_once(called):
    for _ in range(2):
        MaskedEngine(torch.nn.Linear(1, 1), 0, set())
    assert sorted(called, key=str) == sorted(
        ((function.__name__, dtype) for function in FUNCTIONS for dtype in (torch.float32, torch.float64)), key=str
    )
