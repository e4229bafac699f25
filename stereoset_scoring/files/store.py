"""The files that a run leaves, written whole or not at all, in a folder that no other run writes to meanwhile."""

import io
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stereoset_scoring.files.lock import Held, Lock
from stereoset_scoring.refusal import Refusal

LOCK = ".lock"


@contextmanager
def claimed(folder: str | Path) -> Iterator[None]:
    """Make a folder, if need be, and keep it for this process until the end of the block, or of the process.

    Raises:
        OSError: if it cannot be written to, or another process has it.
    """
    lock = Lock(Path(folder) / LOCK)
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Held as holder:
        raise OSError(
            f"Another run is writing to {folder}: wait until it has ended, or give another folder. {holder}".rstrip()
        ) from None
    except OSError as error:
        raise OSError(
            f"{folder} cannot be written to ({error.strerror}): give a folder of yours on a disk with room."
        ) from error
    try:
        yield
    finally:
        lock.release()


def read_json(path: str | Path) -> Any:
    """What a file of JSON says.

    Raises:
        OSError: if there is no such file.
        Refusal: if it is no JSON, or a key stands twice: json alone would keep the last and say nothing.
    """
    with open(path, encoding="utf-8") as file:
        try:
            return json.load(file, object_pairs_hook=_without_doubles)
        except (ValueError, RecursionError) as error:
            raise Refusal(f"{path} is not sound JSON ({error}): give a whole file of JSON.") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def write_json(path: str | Path, content: Any) -> None:
    """Write content as JSON, atomically: whoever reads the path sees the old file or the new one.

    Raises:
        OSError: if the folder cannot be written to; the old file is then as it was.
    """
    path = Path(path)
    write_all(path.parent, {path.name: as_text(content)})


def write_all(folder: str | Path, texts: Mapping[str, str]) -> None:
    """Write files, each atomically, and none of them before all are on disk; they get their names in order.

    Args:
        folder: where they go.
        texts: {name: text}.

    Raises:
        OSError: if the folder cannot be written to; the old files are then as they were.
    """
    staged: dict[str, str] = {}
    try:
        for name, text in texts.items():
            handle, staged[name] = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
            _fill(handle, text)
            os.chmod(staged[name], 0o666 & ~_umask())
        for name, place in staged.items():
            os.replace(place, Path(folder) / name)
    except BaseException:
        for place in staged.values():
            Path(place).unlink(missing_ok=True)
        raise


def as_text(content: Any) -> str:
    """Content as a file of JSON has it."""
    text = io.StringIO()
    json.dump(content, text, indent=1, ensure_ascii=False)  # dumps would hold all its pieces, several times the text
    return f"{text.getvalue()}\n"


def _fill(handle: int, text: str) -> None:
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode("utf-8"))
        file.flush()
        os.fsync(file.fileno())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
