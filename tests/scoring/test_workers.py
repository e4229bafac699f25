"""Forks that share out a process's work: who is free takes the next, nobody's end is missed, and none outlives it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from types import SimpleNamespace

import psutil
import pytest
import torch

from stereoset_scoring.place import Lost
from stereoset_scoring.processes import workers
from stereoset_scoring.processes.interruption import Interrupted, listening, undisturbed
from stereoset_scoring.processes.workers import begun_by_worker, can_fork, done_by_workers
from stereoset_scoring.runs.asked import Model, Questions
from stereoset_scoring.runs.plan import Plan
from stereoset_scoring.runs.run import _read

pytestmark = pytest.mark.skipif(not can_fork(2), reason="only Linux's processes fork with all that they have imported")


class Unsendable(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


def nothing(word):
    """Tell nobody."""


def test_each_thing_is_done_once_in_forks_on_one_thread_each_which_begin_once_and_tell_how_it_goes():
    begun, told = [], []

    def work(thing, tell):
        tell(("begins", thing))
        time.sleep(0.05)
        return thing, os.getpid(), len(begun), torch.get_num_threads()

    done = list(done_by_workers(range(8), work, 2, told.append, lambda: begun.append(1)))
    assert sorted(thing for thing, *_ in done) == list(range(8))
    assert sorted(told) == [("begins", thing) for thing in range(8)]
    pids = {pid for _, pid, *_ in done}
    assert len(pids - {os.getpid()}) == 2
    assert {(begins, threads) for _, _, begins, threads in done} == {(1, 1)}
    assert not begun
    assert not any(map(psutil.pid_exists, pids))


def test_of_fewer_things_than_workers_each_is_done():
    assert list(done_by_workers([7], lambda thing, _: thing + 1, 3, nothing)) == [8]
    assert list(done_by_workers([], lambda thing, _: thing, 2, nothing)) == []


@pytest.mark.parametrize(
    ("raised", "caught", "words"),
    [
        (ValueError("no such thing"), ValueError, "no such thing"),
        (OSError(28, "No room", "progress"), OSError, "[Errno 28] No room: 'progress'"),
        (Interrupted(), Interrupted, "75"),
        (Unsendable("one", "other"), RuntimeError, "Unsendable: one and other"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_raised_here_and_the_others_end_when_they_have_finished_what_they_are_at(
    tmp_path, raised, caught, words
):
    def work(thing, _):
        if thing == 1:
            while not (tmp_path / "at it").exists():
                time.sleep(0.01)
            raise raised
        with undisturbed():
            (tmp_path / "at it").touch()
            time.sleep(0.3)
            (tmp_path / "finished").touch()
        return thing

    with listening(), pytest.raises(caught) as found:
        list(done_by_workers(range(5), work, 2, nothing))
    assert str(found.value) == words
    assert "in work" in "".join(found.value.__notes__)
    assert (tmp_path / "finished").exists()


def test_a_worker_that_is_killed_is_missed():
    def work(thing, _):
        if thing == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return thing

    with pytest.raises(
        Lost, match=r"was killed \(status -9\), .* start again on fewer cores, as with OMP_NUM_THREADS=1"
    ):
        list(done_by_workers(range(9), work, 2, nothing))


def test_who_takes_no_more_of_what_is_done_leaves_nobody_working():
    done = done_by_workers(range(9), lambda thing, _: os.getpid(), 2, nothing)
    pid = next(done)
    done.close()
    assert not psutil.pid_exists(pid)


def test_who_goes_on_to_something_else_waits_for_no_worker_whose_answer_nobody_takes(capfd):
    def work(thing, tell):
        tell("at it")
        return bytes(10**7)  # more than lies in a line

    def fail(word):
        time.sleep(0.5)  # until the worker waits
        raise KeyError(word)

    with listening(), pytest.raises(KeyError, match="at it"):
        list(done_by_workers(range(4), work, 2, fail))
    assert capfd.readouterr().err == ""


def test_a_worker_does_one_thing_while_this_process_does_another():
    with begun_by_worker(lambda: (os.getpid(), time.sleep(0.2))) as found:
        began = time.monotonic()
        time.sleep(0.2)
        pid, _ = found()
    assert time.monotonic() - began < 0.35
    assert pid != os.getpid()
    assert not psutil.pid_exists(pid)


def test_what_a_worker_fails_of_is_raised_where_it_is_asked_for():
    with begun_by_worker(lambda: int("none")) as found, pytest.raises(ValueError, match="'none'"):
        found()


def test_who_does_not_ask_what_a_worker_has_done_does_not_wait_for_it(capfd):
    def fail_meanwhile():
        with begun_by_worker(lambda: time.sleep(30)):
            time.sleep(0.1)  # until it is at it
            raise KeyError("something else")

    began = time.monotonic()
    with listening(), pytest.raises(KeyError, match="something else"):
        fail_meanwhile()
    assert time.monotonic() - began < 5
    assert capfd.readouterr().err == ""


ORPHANS = """
import os, time
from stereoset_scoring.processes.workers import done_by_workers

def work(thing, tell):
    tell(os.getpid())
    time.sleep(60)

list(done_by_workers(range(2), work, 2, lambda pid: print(pid, flush=True)))
"""


def test_workers_end_with_a_process_that_is_killed(one_thread_each):
    process = subprocess.Popen([sys.executable, "-c", ORPHANS], env=one_thread_each, stdout=subprocess.PIPE, text=True)
    orphans = [psutil.Process(int(process.stdout.readline())) for _ in range(2)]
    process.kill()
    process.wait()
    assert psutil.wait_procs(orphans, 10)[1] == []


def test_a_daemon_has_no_workers():
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe()
    process = context.Process(target=lambda: there.send(can_fork(0)), daemon=True)
    process.start()
    process.join()
    assert here.recv() is False


GIB = 2**30


@pytest.mark.parametrize(
    ("free", "limits", "most"),
    [
        (4 * GIB, [], 8),
        (4 * GIB, ["max\n"], 8),
        (4 * GIB, ["9223372036854771712\n"], 8),  # what cgroups 1 says where there is no limit
        (4 * GIB, [f"{3 * GIB}\n"], 4),  # one of which this process has
        (4 * GIB, [f"{GIB // 2}\n"], 0),
        (GIB // 4, [], 0),
    ],
)
def test_forks_have_room_in_the_machine_and_in_its_container(monkeypatch, tmp_path, free, limits, most):
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=free))
    monkeypatch.setattr(psutil.Process, "memory_info", lambda self: SimpleNamespace(rss=GIB))
    paths = [tmp_path / "none", *(tmp_path / str(i) for i in range(len(limits)))]
    for path, text in zip(paths[1:], limits, strict=True):
        path.write_text(text)
    monkeypatch.setattr(workers, "LIMITS", paths)
    assert max((count for count in range(1, 20) if can_fork(count)), default=0) == most


@pytest.mark.parametrize("given", [None, "true"])
def test_a_fork_tokenizes_on_one_thread_and_this_process_as_before(monkeypatch, given):
    name = "TOKENIZERS_PARALLELISM"
    monkeypatch.delenv(name, raising=False)
    if given:
        monkeypatch.setenv(name, given)
    assert list(done_by_workers([0], lambda *_: os.environ.get(name), 1, nothing)) == ["false"]
    assert os.environ.get(name) == given


HEAD = {"devices": ["cpu"], "compiled": False, "quantization": None, "code_sha256": None}


@pytest.mark.parametrize(
    ("heads", "width", "suits"),
    [
        ([{}], 768, True),
        ([{}, {}], 1024, True),
        ([], 768, False),  # a baseline
        ([{}], None, False),  # a model that is elsewhere
        ([{}], 1025, False),  # a batch would take one core long
        ([{}, {"devices": ["cuda:0"]}], 768, False),
        ([{"devices": ["cpu", "disk"]}], 768, False),
        ([{"compiled": True}], 768, False),
        ([{"quantization": "bitsandbytes"}], 768, False),
        ([{}, {"code_sha256": "0" * 64}], 768, False),
    ],
)
def test_forks_compute_what_torch_alone_computes_on_a_cpu_within_seconds(heads, width, suits):
    record = {"model": {"heads": {str(i): HEAD | head for i, head in enumerate(heads)}}}
    plan = Plan(SimpleNamespace(width=width), {}, {}, {}, {}, {}, record)
    assert plan.suits_forks is suits


@pytest.mark.parametrize(
    ("size", "device", "data_file", "forks"),
    [
        (1, "cpu", None, True),
        (2, "cpu", None, False),  # the other one imports meanwhile
        (1, "cuda", None, False),
        (1, "cpu", {"path": "own.json"}, False),  # read before, and as large as it likes
    ],
)
def test_a_process_that_is_alone_on_a_cpu_has_published_data_read_by_a_fork(size, device, data_file, forks):
    asked = SimpleNamespace(model=Model(name="random"), questions=Questions(data_file=data_file))
    state = SimpleNamespace(device=torch.device(device))
    team = SimpleNamespace(size=size, state=state, is_first_of_machine=True, first_of_machine_first=nullcontext)
    assert (_read(asked, team, os.getpid) != os.getpid()) is forks
