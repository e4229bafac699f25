"""What a run has computed so far, on disk: files that only grow, and that any later run of the same thing reads.

Every process writes one file of its own, so nothing depends on how many there are. A line is

    <check sum> {"of": <digest of an identity>, "rows": [[index of a row in its job, [values in nats, …]], …]}

one batch of one config, whole or not at all; the first lines spell out the identities. A line that is torn or changed
fails its check sum, and its rows are computed again.
"""

import hashlib
import json
import os
import time
from pathlib import Path
from uuid import uuid4

from stereoset_scoring.refusal import Refusal

SYNC = 2  # seconds that a machine's sudden death may cost; the process's own death costs the batch at hand
SUFFIX = ".jsonl"


class Ledger:
    """The values of some configs' rows, in a folder.

    Args:
        folder: made by `open`, if need be.
        identities: {config: identity}, the identity a mapping, ready for JSON, of all that the values depend on.

    Attributes:
        damaged: how many lines `read` had to leave out.
    """

    def __init__(self, folder, identities):
        self.folder = Path(folder)
        self.damaged = 0
        self._identities = {config: {"config": config, **identity} for config, identity in identities.items()}
        self._configs = {_digest(identity): config for config, identity in self._identities.items()}
        self._digests = {config: digest for digest, config in self._configs.items()}
        self._file, self._synced = None, 0.0

    def read(self):
        """What the files of the folder hold: {config: {index of a row: its values}}.

        Raises:
            ValueError: if they are of another run; the message says what differs.
            OSError: if they cannot be read.
        """
        found = {config: {} for config in self._identities}
        described, strangers = {}, []
        self.damaged = 0
        for path in sorted(self.folder.glob(f"*{SUFFIX}")):
            for record in self._records(path):
                if "identity" in record:
                    described[record["of"]] = record["identity"]
                elif record["of"] not in self._configs:
                    strangers.append(record["of"])
                else:
                    rows = found[self._configs[record["of"]]]
                    for index, values in record["rows"]:
                        rows.setdefault(index, values)
        if strangers:
            raise Refusal(
                f"{self.folder} is the progress of another run ({self._difference(described.get(strangers[0]))}): "
                "repeat that run's command to go on with it, give another folder, or set it aside with --restart."
            )
        return found

    def open(self):
        """Begin a file of this process's own.

        Raises:
            OSError: if the folder cannot be written to.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.folder / f"{uuid4().hex}{SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        for config, identity in self._identities.items():
            self._write({"of": self._digests[config], "identity": identity})
        self._sync()

    def add(self, config, values):
        """Record the values of some rows: {index: values}.

        Raises:
            OSError: if they cannot be written; what was recorded before stays.
        """
        try:
            self._write({"of": self._digests[config], "rows": sorted(values.items())})
            if not 0 <= time.monotonic() - self._synced < SYNC:
                self._sync()
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror}: what was computed cannot be recorded, so make room and start again; what was "
                "recorded before is not lost",
                str(self.folder),
            ) from error

    def close(self):
        """End this process's file; what was recorded stays."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def remove(self):
        """Delete the files of the folder, and the folder where nothing else is in it."""
        self.close()
        for path in self.folder.glob(f"*{SUFFIX}"):
            path.unlink(missing_ok=True)
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _records(self, path):
        """The sound records of a file; the others are counted."""
        *lines, rest = path.read_bytes().split(b"\n")
        self.damaged += bool(rest)
        for line in lines:
            check, _, text = line.partition(b" ")
            if check.decode("latin-1") == _checksum(text):
                yield json.loads(text)
            else:
                self.damaged += 1

    def _write(self, record):
        text = json.dumps(record, separators=(",", ":")).encode()
        line = _checksum(text).encode() + b" " + text + b"\n"
        while line:
            line = line[os.write(self._file, line) :]

    def _sync(self):
        os.fsync(self._file)
        self._synced = time.monotonic()

    def _difference(self, other):
        """In what another identity differs, in words."""
        if other is None:
            return "its description is damaged"
        ours = self._identities.get(other["config"])
        if ours is None:
            return f"it scores {other['config']}, which this one does not"
        return "; ".join(
            f"{name}: {_short(other.get(name))} there, {_short(ours.get(name))} here"
            for name in dict.fromkeys([*other, *ours])
            if other.get(name) != ours.get(name)
        )


def set_aside(folder):
    """Rename a folder, if it is there, such that nothing of it is lost or read; returns the new path, or None."""
    folder = Path(folder)
    aside = next(path for n in range(1, 10**6) if not (path := folder.with_name(f"{folder.name}-{n}")).exists())
    try:
        return folder.rename(aside)
    except FileNotFoundError:
        return None


def _checksum(text):
    return hashlib.sha256(text).hexdigest()[:16]


def _digest(identity):
    return _checksum(json.dumps(identity, sort_keys=True).encode())


def _short(value):
    return value[:16] if isinstance(value, str) and len(value) == 64 else value
