"""One run at a time in a folder, on disks that know flock and on those that do not."""

import errno
import fcntl
import json
import os
import subprocess
import sys

import pytest

from stereoset_scoring.files import lock
from stereoset_scoring.files.store import claimed

CLAIM = "import sys; from stereoset_scoring.files.store import claimed\nwith claimed(sys.argv[1]): "


@pytest.fixture(params=["flock", errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP], ids=str)
def disk(request, monkeypatch):
    """A disk that knows flock, or answers it with an error."""
    if request.param == "flock":
        return "flock"

    def refuse(*_):
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)
    monkeypatch.setattr(lock, "WRITTEN", 0.1)
    return "none"


def a_dead_process():
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    return process.pid


def test_nothing_is_left_at_the_end(disk, tmp_path):
    with claimed(tmp_path / "runs"):
        assert os.listdir(tmp_path / "runs") == [".lock"]
    assert os.listdir(tmp_path / "runs") == []
    with pytest.raises(KeyError), claimed(tmp_path / "runs"):
        raise KeyError
    assert os.listdir(tmp_path / "runs") == []


def test_a_second_run_is_refused_and_told_by_whom(disk, tmp_path):
    refused = pytest.raises(OSError, match=rf"Another run is writing to .* It is process {os.getpid()} of ")
    with claimed(tmp_path), refused, claimed(tmp_path):
        pass
    with claimed(tmp_path):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")
def test_a_fork_holds_nothing_and_takes_nothing_away(disk, tmp_path):
    with claimed(tmp_path):
        read, write = os.pipe()
        child = os.fork()
        if not child:  # it stays until the pipe is closed
            os.close(write)
            os.read(read, 1)
            os._exit(0)
        assert os.listdir(tmp_path) == [".lock"]
    with claimed(tmp_path):
        assert os.listdir(tmp_path) == [".lock"]
    os.close(write)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("left", ["", "no record", "{}", None], ids=["empty", "text", "object", "of a dead process"])
def test_what_others_left_does_not_hold(disk, tmp_path, left):
    record = lock._process() | {"pid": a_dead_process()}
    (tmp_path / ".lock").write_text(json.dumps(record) if left is None else left)
    with claimed(tmp_path):
        assert json.loads((tmp_path / ".lock").read_text())["pid"] == os.getpid()
    assert os.listdir(tmp_path) == []


def test_another_process_with_the_number_of_the_dead_one_does_not_hold(disk, tmp_path):
    (tmp_path / ".lock").write_text(json.dumps(lock._process() | {"started": "1"}))
    with claimed(tmp_path):
        pass


def test_without_flock_a_process_of_another_host_holds_and_the_mend_is_named(disk, tmp_path):
    (tmp_path / ".lock").write_text(json.dumps(lock._process() | {"host": "node7", "place": "node7"}))
    if disk == "flock":  # then the kernel knows better
        with claimed(tmp_path):
            return
    refused = pytest.raises(OSError, match=r"It is process \d+ of node7\. .* if it has ended, delete .*\.lock")
    with refused, claimed(tmp_path):
        pass


def test_a_killed_process_leaves_a_lock_that_does_not_hold(repository, tmp_path):
    code = CLAIM + "import os; os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=repository, check=False)
    assert os.listdir(tmp_path) == [".lock"]
    with claimed(tmp_path):
        pass


def test_of_many_that_begin_at_once_one_is_in_at_a_time(disk, tmp_path):
    ends = []
    for _ in range(4):
        child = os.fork()
        if not child:
            status = 1
            try:
                for _ in range(200):
                    _enter(tmp_path)
                status = 0
            finally:
                os._exit(status)
        ends.append(child)
    assert [os.waitpid(child, 0)[1] for child in ends] == [0, 0, 0, 0]


def _enter(folder):
    """Claim a folder, and find nobody else's mark in it; or be refused."""
    try:
        with claimed(folder):
            file = os.open(folder / "mark", os.O_CREAT | os.O_EXCL)
            os.close(file)
            (folder / "mark").unlink()
    except OSError as error:
        if isinstance(error, FileExistsError) or "Another run" not in str(error):
            raise
