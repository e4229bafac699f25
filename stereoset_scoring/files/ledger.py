"""What a run has computed so far, on disk: files that only grow, and that any later run of the same thing reads.

Every process writes one file of its own, so nothing depends on how many there are. A line is

    <check sum> {"of": <digest of an identity>, "rows": [[key of a row, its values in nats], …]}

one batch of one config, whole or not at all, its values doubles in base64, which takes a quarter of the time of
decimals; when a part of a config is done, a line with "part" and "done" says what came of it, and the first lines spell
out the identities. A line that is torn or changed fails its check sum, and its rows are computed again. Files of other
names are nobody's business, and of what has such a name only what holds a line of this kind is ever removed.
"""

import base64
import hashlib
import json
import os
import re
import struct
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from stereoset_scoring.refusal import Refusal

SYNC = 2  # seconds that a machine's sudden death may cost; the process's own death costs the batch at hand
SUFFIX = ".jsonl"
NAME = re.compile(r"[0-9a-f]{32}\.jsonl")
BEGUN = re.compile(rb"[0-9a-f]{0,16}|[0-9a-f]{16} .*")  # a first line that was torn

Identity = Mapping[str, Any]  # ready for JSON
Record = Mapping[str, Any]  # what a line holds
Key = str | int  # of a row, by which it is known in any run of the same thing
Rows = dict[Key, list[float]]  # a row's values in nats
Parts = dict[tuple[int, int], Any]  # what came of the examples from the first number to the second, ready for JSON


class Ledger:
    """The values of some configs' rows, in a folder.

    Args:
        folder: made by `open`, if need be.
        identities: {config: identity}, the identity a mapping, ready for JSON, of all that the values depend on.

    Attributes:
        damaged: how many lines `read` had to leave out.
        done: what `read` found of parts that are done: {config: {(start, stop): what came of it}}.
    """

    def __init__(self, folder: str | Path, identities: Mapping[str, Identity]):
        self.folder = Path(folder)
        self.damaged = 0
        self.done: dict[str, Parts] = {config: {} for config in identities}
        self._identities = {config: {"config": config, **identity} for config, identity in identities.items()}
        self._configs = {_digest(identity): config for config, identity in self._identities.items()}
        self._digests = {config: digest for digest, config in self._configs.items()}
        self._file: int | None = None
        self._synced = 0.0

    def read(self) -> dict[str, Rows]:
        """What the files of the folder hold: {config: {key of a row: its values}}.

        Raises:
            ValueError: if they are of another run; the message says what differs.
            OSError: if they cannot be read.
        """
        self.damaged = 0
        records = list(chain.from_iterable(map(self._records, self._files())))
        batches = [record for record in records if "rows" in record]
        parts = [record for record in records if "part" in record]
        self._check_is_ours(
            [*batches, *parts], {record["of"]: record["identity"] for record in records if "identity" in record}
        )
        found: dict[str, Rows] = {config: {} for config in self._identities}
        for batch in batches:
            rows = found[self._configs[batch["of"]]]
            for key, values in batch["rows"]:
                rows.setdefault(key, _unpacked(values))
        for one in parts:
            start, stop = one["part"]
            self.done[self._configs[one["of"]]][start, stop] = one["done"]
        return found

    def _check_is_ours(self, batches: Sequence[Record], described: Mapping[str, Identity]) -> None:
        """See that what was recorded is of this run.

        Args:
            batches: the records of rows and parts.
            described: {digest: the identity that it is of}.
        """
        digests = (batch["of"] for batch in batches)
        other = next((digest for digest in digests if digest not in self._configs), None)
        if other is not None:
            raise Refusal(
                f"{self.folder} is the progress of another run ({self._difference(described.get(other))}): "
                "repeat that run's command to go on with it, give another folder, or set it aside with --restart."
            )

    def open(self) -> None:
        """Begin a file of this process's own.

        Raises:
            OSError: if the folder cannot be written to.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.folder / f"{uuid4().hex}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        for config, identity in self._identities.items():
            self._write({"of": self._digests[config], "identity": identity})
        self._sync()

    def add(self, config: str, values: Mapping[Any, Sequence[float]]) -> None:
        """Record the values of some rows: {key: values}.

        Raises:
            OSError: if they cannot be written; what was recorded before stays.
        """
        packed = [(key, _packed(of_row)) for key, of_row in sorted(values.items())]
        self._add({"of": self._digests[config], "rows": packed})

    def add_done(self, config: str, part: tuple[int, int], done: Any) -> None:
        """Record what came of a part of a config, ready for JSON; its rows need not be looked at again.

        Raises:
            OSError: as `add`.
        """
        self._add({"of": self._digests[config], "part": part, "done": done})

    def _add(self, record: Record) -> None:
        try:
            self._write(record)
            if not 0 <= time.monotonic() - self._synced < SYNC:
                self._sync()
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: what was computed cannot be recorded, so make room and start again; what was "
                "recorded before is not lost",
                str(self.folder),
            ) from error

    def close(self) -> None:
        """End this process's file; what was recorded stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def reopen(self) -> None:
        """In a fork of the process that opened it: begin a file of its own.

        Raises:
            OSError: as `open`.
        """
        self.close()
        self.open()

    def remove(self) -> None:
        """Delete what runs have recorded in the folder, and the folder where nothing else is in it."""
        self.close()
        for path in filter(_is_recorded, self._files()):
            path.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _files(self) -> list[Path]:
        """The files of the folder that are named as a ledger names them."""
        return [path for path in sorted(self.folder.glob(f"*{SUFFIX}")) if NAME.fullmatch(path.name)]

    def _records(self, path: Path) -> Iterator[Record]:
        """The sound records of a file; the others are counted."""
        *lines, rest = path.read_bytes().split(b"\n")
        self.damaged += bool(rest)
        for line in lines:
            text = _sound(line)
            if text is None:
                self.damaged += 1
            else:
                yield json.loads(text)

    def _write(self, record: Record) -> None:
        text = json.dumps(record, separators=(",", ":")).encode()
        line = _checksum(text).encode() + b" " + text + b"\n"
        while line:
            line = line[os.write(self._open_file, line) :]

    def _sync(self) -> None:
        os.fsync(self._open_file)
        self._synced = time.monotonic()

    @property
    def _open_file(self) -> int:
        if self._file is None:
            raise RuntimeError("Nothing can be recorded before the ledger is opened, or after it is closed.")
        return self._file

    def _difference(self, other: Identity | None) -> str:
        """In what another identity differs, in words."""
        if other is None:
            return "its description is damaged"
        ours = self._identities.get(other["config"])
        if ours is None:
            return f"it scores {other['config']}, which this one does not"
        return difference(other, ours)


def difference(there: Identity, here: Identity) -> str:
    """In what two identities differ, in words."""
    return "; ".join(
        f"{name}: {_short(one)} there, {_short(other)} here" for name, one, other in _differing(there, here)
    )


def check_place(folder: str | Path) -> None:
    """See that progress can be kept in a folder.

    Raises:
        Refusal: if a link or a file stands in its place: what would be removed in the end is not the run's own.
    """
    folder = Path(folder)
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        kind = "link" if folder.is_symlink() else "file"
        raise Refusal(f"{folder} is a {kind} where a run keeps its progress: move it away, or give another folder.")


def set_aside(folder: str | Path) -> Path | None:
    """Rename a folder, if it is there, such that nothing of it is lost or read; returns the new path, or None."""
    folder = Path(folder)
    try:
        return folder.rename(unused(folder))
    except FileNotFoundError:
        return None


def unused(path: Path) -> Path:
    """The first of path-1, path-2, … that is not there."""
    numbered = (path.with_name(f"{path.name}-{n}") for n in range(1, 10**6))
    return next(one for one in numbered if not os.path.lexists(one))


def _is_recorded(path: Path) -> bool:
    """Whether a file is a ledger's: a line of it is sound, or it was torn in the first one."""
    try:
        *lines, rest = path.read_bytes().split(b"\n")
    except FileNotFoundError:  # another process of the run has removed it
        return False
    return any(map(_sound, lines)) if lines else bool(BEGUN.fullmatch(rest))


def _sound(line: bytes) -> bytes | None:
    """The text of a line whose check sum holds; None for any other."""
    check, _, text = line.partition(b" ")
    return text if check.decode("latin-1") == _checksum(text) else None


def _packed(values: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(values)}d", *values)).decode("ascii")


def _unpacked(text: str) -> list[float]:
    packed = base64.b64decode(text)
    return list(struct.unpack(f"<{len(packed) // 8}d", packed))


def _checksum(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def _digest(identity: Identity) -> str:
    return _checksum(json.dumps(identity, sort_keys=True).encode())


def _differing(there: Identity, here: Identity) -> Iterator[tuple[str, Any, Any]]:
    """(name, value there, value here) of all that differs between two mappings, and in mappings within them."""
    for name in dict.fromkeys([*there, *here]):
        one, other = there.get(name), here.get(name)
        if one and other and isinstance(one, dict) and isinstance(other, dict):
            yield from ((f"{name}, {inner}", mine, its) for inner, mine, its in _differing(one, other))
        elif one != other:
            yield name, one, other


def _short(value: Any) -> Any:
    return value[:16] if isinstance(value, str) and len(value) == 64 else value
