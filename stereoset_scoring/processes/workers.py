"""Forks of this process that share out its work, one on each core: weights, libraries and data are there once.

A core that works by itself waits for no other at the end of every operation, and what Python does between operations is
done on all of them at once.
"""

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import torch
from accelerate.utils import patch_environment

from stereoset_scoring.place import Lost

T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W")

ROOM = 2**29  # bytes of its own; measured are 280 MB of a model that is 1,024 wide
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))  # of a container
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG, from Linux's prctl.h
TOLD, DONE, FAILED = range(3)  # what a worker's word is


def can_fork(count: int) -> bool:
    """Whether this process can have so many workers, each with ROOM of its own.

    Elsewhere than on Linux, libraries do not outlive a fork, or there is none; and a daemon of multiprocessing, such as
    a process of a Pool, may have no children.
    """
    may = sys.platform == "linux" and not multiprocessing.current_process().daemon
    return may and count * ROOM <= _free_memory()


def _free_memory() -> int:
    """Bytes that forks of this process may take, of the machine's and of what its container may have."""
    import psutil  # comes with accelerate

    free = psutil.virtual_memory().available
    for path in LIMITS:
        try:
            limit = int(path.read_text())
        except (OSError, ValueError):  # no such limit, or "max"
            continue
        free = min(free, limit - psutil.Process().memory_info().rss)
    return free


def done_by_workers(
    things: Iterable[T],
    work: Callable[[T, Callable[[W], object]], R],
    count: int,
    told: Callable[[W], object],
    begin: Callable[[], object] = lambda: None,
) -> Iterator[R]:
    """What comes of each thing, when it is there; a worker that is free is given the next.

    To be called where no thread but the caller's holds what workers need: a fork has none of the others. A worker
    computes on one thread, for those that OpenMP started before a fork do not live in it. It ends with this process,
    however that ends; where this one goes on to something else, because of an error or a request to end, its workers
    are asked to end, and waited for.

    Args:
        things: what there is to do; they are sent to workers, what comes of them is sent back.
        work: done in a worker: from a thing, and what to call to tell how it goes on, to what comes of it.
        count: how many workers.
        told: called here with what work tells there.
        begin: called once in each worker.

    Raises:
        Lost: if a worker was killed.
        BaseException: what work raised; how it came there is a note to it.
    """
    rest = iter(things)
    with _started(count, work, begin) as workers:
        busy = {line: process for line, process in workers.items() if _give_next(line, process, rest)}
        for line, done in _answers(busy, told):
            yield done
            if not _give_next(line, busy[line], rest):
                del busy[line]


@contextmanager
def begun_by_worker(work: Callable[[], R]) -> Iterator[Callable[[], R]]:
    """Inside, a fork of this process does some work; gives what to call, once, for what comes of it.

    Raises:
        Lost, BaseException: as `done_by_workers`, where it is called.
    """
    with _started(1, lambda *_: work(), lambda: None) as workers:
        ((line, process),) = workers.items()
        _give_next(line, process, iter([None]))
        yield lambda: _word_of(line, process)[1]
        _give_next(line, process, iter([]))


@contextmanager
def _started(
    count: int, work: Callable[..., Any], begin: Callable[[], object]
) -> Iterator[dict[Connection, BaseProcess]]:
    """Workers, each with the line to it; at the end they have ended."""
    fork = multiprocessing.get_context("fork")
    workers: dict[Connection, BaseProcess] = {}
    try:
        with patch_environment(tokenizers_parallelism="false"):  # else tokenizers warns of forks, or waits in them
            for _ in range(count):
                here, there = fork.Pipe()
                given = (there, [*workers, here], os.getpid(), work, begin)
                process: BaseProcess = fork.Process(target=_serve, args=given, daemon=True)
                process.start()
                there.close()
                workers[here] = process
        yield workers
    except BaseException:
        for one in workers.values():
            one.terminate()
        raise
    finally:
        for line in workers:
            line.close()  # who sends what nobody takes would wait
        for one in workers.values():
            one.join()


def _give_next(line: Connection, process: BaseProcess, rest: Iterator[Any]) -> bool:
    """Send a worker a list of the next thing, or of nothing, with which it ends; whether there was one."""
    things = list(islice(rest, 1))
    with _missed(process):
        line.send(things)
    return bool(things)


def _answers(busy: Mapping[Connection, BaseProcess], told: Callable[[Any], object]) -> Iterator[tuple[Connection, Any]]:
    """What workers have done, with whose line it is; until none is busy."""
    while busy:
        for line in wait(list(busy)):
            assert isinstance(line, Connection)
            kind, content = _word_of(line, busy[line])
            if kind == TOLD:
                told(content)
            else:
                yield line, content


def _word_of(line: Connection, process: BaseProcess) -> tuple[int, Any]:
    """What a worker says; where that is why it failed, it is raised."""
    with _missed(process):
        kind, content = line.recv()
    if kind == FAILED:
        raise content
    return kind, content


@contextmanager
def _missed(process: BaseProcess) -> Iterator[None]:
    """Inside, a worker that is not there any more is Lost."""
    try:
        yield
    except (EOFError, ConnectionError):
        process.join()
        raise Lost(
            f"A process that computed for this one was killed (status {process.exitcode}), as systems do for want of "
            "memory: start again on fewer cores, as with OMP_NUM_THREADS=1."
        ) from None


def _serve(
    line: Connection,
    ends: Iterable[Connection],
    parent: int,
    work: Callable[..., Any],
    begin: Callable[[], object],
) -> None:
    """A worker, from start to end; other ends of lines are its parent's alone, or it would not see that they close."""
    _die_with(parent)
    for end in ends:
        end.close()
    try:
        torch.set_num_threads(1)
        begin()
        while things := line.recv():
            line.send((DONE, work(*things, lambda word: line.send((TOLD, word)))))
    except BaseException as error:  # of any make: it is the other process's to handle
        with suppress(ConnectionError):  # nobody listens any more
            line.send((FAILED, _as_sent(error)))


def _die_with(parent: int) -> None:
    """Be killed when the parent ends, however it ends."""
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def _as_sent(error: BaseException) -> BaseException:
    """An error such that it can be sent, with the way that it took."""
    try:
        sent = pickle.loads(pickle.dumps(error))
    except Exception:  # of any make, as the error is
        sent = RuntimeError(f"{type(error).__name__}: {error}")
    sent.add_note("".join(traceback.format_exception(error)))
    return sent
