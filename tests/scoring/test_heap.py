"""Memory that is kept while scoring: less is asked of the system, and all of it goes back."""

import platform
import resource

import psutil
import pytest
import torch

from stereoset_scoring.engines.heap import KEPT, LARGEST, kept_heap

GLIBC = platform.libc_ver()[0] == "glibc"
BYTES = LARGEST // 4


def page_faults_of(turns):
    """How many pages the system hands out while several large tensors are made and freed, turn after turn."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(turns):
        tensors = [torch.zeros(BYTES, dtype=torch.int8) for _ in range(6)]
        del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@pytest.mark.skipif(not GLIBC, reason="another C library than glibc, whose heap is left alone")
def test_what_one_batch_freed_is_there_for_the_next_and_goes_back_at_the_end():
    pages = 6 * BYTES // resource.getpagesize()
    process = psutil.Process()
    with kept_heap():
        page_faults_of(1)
        assert page_faults_of(5) < pages  # of 5 times as many
        kept = process.memory_info().rss
    assert kept - process.memory_info().rss > 6 * BYTES / 2
    assert 6 * BYTES < KEPT


def test_without_glibc_nothing_changes(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr("ctypes.CDLL", lambda name: pytest.fail("asked for the C library"))
    with kept_heap():
        pass
