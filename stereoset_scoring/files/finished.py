"""The files of a finished run, which belong together: its record names the sums of the others, and comes last.

Whoever reads them while they are renamed into place, or after that was cut short, sees files that do not join, and
takes none of them for the other's.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stereoset_scoring.files.ledger import unused
from stereoset_scoring.files.store import as_text, read_json, write_all
from stereoset_scoring.refusal import Refusal

SCORES, RESULTS, RECORD = FILES = ("scores.json", "results.json", "run.json")
SUMS = "files"  # the record's entry of {name: sha256 of the file}
SET_ASIDE = "run"  # such as run-1, the folder of what --restart found


def write_finished(
    folder: Path, scores: Mapping[str, Any], results: Mapping[str, Any], record: Mapping[str, Any]
) -> None:
    """Write the three files of a run, which join.

    Raises:
        OSError: if the folder cannot be written to.
    """
    texts = {SCORES: as_text(scores), RESULTS: as_text(results)}
    sums = {name: _sha256(text.encode("utf-8")) for name, text in texts.items()}
    write_all(folder, texts | {RECORD: as_text({**record, SUMS: sums})})


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a finished run whose files join; those of earlier versions name no sums, and are taken as they are.

    Raises:
        OSError: if there is no record.
        Refusal: if it is no record, or one of the files is missing or not the one that it was written with.
    """
    record = read_json(folder / RECORD)
    if not isinstance(record, dict):
        raise Refusal(f"{folder / RECORD} is no record of a run: give the output folder of a run, or its scores.json.")
    sums = record.get(SUMS)
    if not isinstance(sums, Mapping):
        return record
    for name in (SCORES, RESULTS):
        path = folder / name
        if not path.is_file():
            raise Refusal(f"{folder} lacks {name}, which {RECORD} was written with: score again with --restart.")
        if _sha256(path.read_bytes()) != sums.get(name):
            raise Refusal(
                f"{path} is not the file that {RECORD} beside it was written with (a run was cut short while it wrote, "
                "or somebody changed it): score again with --restart, or give the file for itself."
            )
    return record


def files_of_run(folder: Path) -> list[Path]:
    """Those files of a finished run that are in a folder, be they anybody's."""
    return [folder / name for name in FILES if (folder / name).exists()]


def set_files_aside(folder: Path) -> Path | None:
    """Move the files of a finished run into a folder of their own, where they join as before; it, or None for none."""
    files = files_of_run(folder)
    if not files:
        return None
    aside = unused(folder / SET_ASIDE)
    aside.mkdir()
    for path in reversed(files):  # the record first: what is left without it is no finished run
        path.rename(aside / path.name)
    return aside


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
