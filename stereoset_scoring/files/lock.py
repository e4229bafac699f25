"""A file that says which process has a folder, and that holds no longer than the process lives.

Where the disk knows flock, the kernel lets go of it however the process ends. Elsewhere the process that the file names
is looked for. Either way what a killed process left is taken over, and one that ends leaves nothing.
"""

import errno
import json
import os
import socket
import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None  # type: ignore[assignment]

WITHOUT_FLOCK = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK, errno.EINVAL)
WRITTEN = 2  # seconds after which a file that names nobody is not about to be written

_held: weakref.WeakSet["Lock"] = weakref.WeakSet()


class Held(OSError):
    """Another process has it; the message names it, where it is known."""


class Lock:
    """A lock that one process at a time holds, and each thread of it, but no fork.

    Args:
        path: its file.
    """

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._file: int | None = None

    def acquire(self) -> None:
        """Take it, at once or not at all.

        Raises:
            Held: if another process has it.
            OSError: if the file cannot be written.
        """
        while self._file is None:
            file, made = self._open()
            try:
                if self._have(file, made):
                    os.ftruncate(file, 0)
                    os.pwrite(file, json.dumps(_process()).encode(), 0)
                    self._file = file
                    _held.add(self)
            finally:
                if self._file is None:
                    os.close(file)

    def release(self) -> None:
        """Let go of it, and remove the file."""
        file, self._file = self._file, None
        if file is None:
            return
        if _is_at(file, self._path):
            self._path.unlink()
        os.close(file)

    def forget(self) -> None:
        """In a fork of the process that has it: it stays that one's alone, and ends with it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _open(self) -> tuple[int, bool]:
        """(the file, whether it was made just now)."""
        while True:
            try:
                return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), True
            except FileExistsError:
                pass
            try:
                return os.open(self._path, os.O_RDWR), False
            except FileNotFoundError:
                pass  # let go of between the two

    def _have(self, file: int, made: bool) -> bool:
        """Whether an open file is now ours; if not, look again. Raises Held."""
        flocked = _flock(file)
        if flocked is False:
            raise Held(_words(_named_in(file)))
        if not _is_at(file, self._path):
            return False  # let go of before we had it
        if flocked or made:
            return True
        self._clear_abandoned(file)
        return False

    def _clear_abandoned(self, file: int) -> None:
        """Move the file of a process that is gone out of the way. Raises Held, if it is not gone."""
        if not _named_in(file):
            time.sleep(WRITTEN)
        holder = _named_in(file)
        if holder and holder["place"] != _place():
            raise Held(f"{_words(holder)} It cannot be seen from here: if it has ended, delete {self._path}.")
        if holder and holder["started"] == _started(holder["pid"]):
            raise Held(_words(holder))
        aside = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            os.rename(self._path, aside)
        except FileNotFoundError:
            return  # another one was faster
        if not _is_at(file, aside):  # and this is its own
            os.link(aside, self._path)
        aside.unlink()


def _forget_all() -> None:
    for lock in list(_held):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def _flock(file: int) -> bool | None:
    """True: we have it; False: another process has; None: this disk has no flock."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES):
            return False
        if error.errno in WITHOUT_FLOCK:
            return None
        raise
    return True


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file is the one at a path."""
    try:
        return os.path.samestat(os.fstat(file), os.stat(path))
    except FileNotFoundError:
        return False


def _process() -> dict[str, Any]:
    """What names this process."""
    return {"pid": os.getpid(), "started": _started(os.getpid()), "host": socket.gethostname(), "place": _place()}


def _named_in(file: int) -> dict[str, Any] | None:
    """The process that a lock's file names; None for nobody."""
    try:
        found = json.loads(os.pread(file, 4096, 0))
        return found if found.keys() == _process().keys() else None
    except (ValueError, AttributeError):
        return None


def _words(holder: Mapping[str, Any] | None) -> str:
    return f"It is process {holder['pid']} of {holder['host']}." if holder else ""


def _place() -> str:
    """Where numbers name processes: a host, and a container on it."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str | None:
    """When a process started, in the system's ticks, since its number may be another's by now; None if it is gone."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # somebody else's
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return "unknown"
