"""A mirror of the upstream files, filled where there is internet for machines that have none."""

import os
from http.client import HTTPException
from pathlib import Path
from urllib.request import Request, urlopen

from stereoset_dataset.parsing import check_test_set
from stereoset_dataset.upstream import BASE_URL, UpstreamFile

PATIENCE = 60  # seconds that a server may be silent


def fetch_file(file: UpstreamFile, mirror: Path, address: str = BASE_URL, standard: UpstreamFile | None = None) -> bool:
    """Have an upstream file in a mirror, whole and verified; one that is there and sound is left alone.

    Args:
        file: what to fetch.
        mirror: the folder; the file lies in it at its `location`.
        address: of the server, whose layout is the mirror's.
        standard: the file, in the mirror already, beside which one is judged whose sum is not known in full.

    Returns:
        Whether it was downloaded.

    Raises:
        ConnectionError: if it cannot be downloaded.
        ValueError: if what comes is not the pinned file; nothing of that is kept.
        OSError: if the mirror cannot be read or written to.
    """
    path, url = mirror / file.location, f"{address}/{file.location}"
    beside = None if standard is None else _read_standard(file, mirror / standard.location)
    if path.is_file() and _is_pinned(file, path.read_bytes(), beside):
        return False
    data = _download(url)
    if not _is_pinned(file, data, beside):
        raise ValueError(
            f"{url} answers with other bytes than those of {file.path} of {file.repository}, as a proxy may: try "
            "again, or from another network."
        )
    try:
        _write(path, data)
    except OSError as error:
        raise OSError(
            f"{mirror} cannot take {file.location} ({error.strerror}): make room there, or give a folder of yours."
        ) from error
    return True


def _read_standard(file, path):
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is absent, and {file.path} of {file.repository} is judged beside it: fetch both."
        )
    return path.read_bytes()


def _is_pinned(file, data, beside):
    """Whether bytes are the file's."""
    try:
        file.check(data, file.location)
        if file.sha256 is None:
            check_test_set(data, beside, file.examples)
    except ValueError:
        return False
    return True


def _download(url):
    try:
        with urlopen(Request(url, headers={"User-Agent": "stereoset"}), timeout=PATIENCE) as answer:
            return answer.read()
    except (OSError, HTTPException) as error:
        raise ConnectionError(
            f"{url} cannot be downloaded ({error}): check the network; what was fetched stays."
        ) from error


def _write(path, data):
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(unfinished, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
