"""Runs and prediction files on a command line, with what to call them: NAME=PATH, NAME:LANGUAGE=PATH, or PATH."""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from stereoset_cli.arguments import read_label
from stereoset_report.comparison import Named
from stereoset_report.saved import read_saved
from stereoset_scoring.files.predictions import printable
from stereoset_scoring.questions.configs import ENGLISH, LANGUAGES
from stereoset_scoring.refusal import Refusal

HELP = (
    "a run folder or a prediction file, and what to call it; NAME:LANGUAGE=PATH where a file does not say its language "
    "and it is not English; without a NAME, what the run calls itself, or the file's name"
)


def read_labelled(
    words: Iterable[str],
    split: str,
    data_dir: Path | None = None,
    data_file: Path | None = None,
    whole: bool = False,
) -> list[Named]:
    """Saved scores, and what to call them.

    Args:
        words: NAME=PATH, NAME:LANGUAGE=PATH, or a PATH that is there; those without a name that call themselves the
            same are told apart by the names of their folders.
        split, data_dir, data_file, whole: as `read_saved` takes them.

    Raises:
        OSError: if there is no such file.
        Refusal: if a word is none of these, or as `read_saved`.
    """
    names, languages, paths = zip(*map(take_apart, words), strict=True)
    saved = [
        read_saved(path, language or ENGLISH, split, data_dir, data_file, whole)
        for path, language in zip(paths, languages, strict=True)
    ]
    unnamed = Counter(one.label for one, name in zip(saved, names, strict=True) if not name)
    return [
        Named(name or (f"{one.label} ({path.resolve().name})" if unnamed[one.label] > 1 else one.label), one)
        for name, one, path in zip(names, saved, paths, strict=True)
    ]


def take_apart(word: str) -> tuple[str, str, Path]:
    """(name, language, path), the first two empty where they are not given.

    Raises:
        Refusal: if the word is not laid out so.
    """
    if Path(word).exists():
        return "", "", Path(word)
    label, _, path = word.partition("=")
    name, _, language = label.partition(":")
    if not name or not path:
        raise Refusal(
            f"{printable(word)!r} is not NAME=PATH or NAME:LANGUAGE=PATH, nor a file or folder: "
            "say what to call the scores, and where they are."
        )
    if language and language not in LANGUAGES:
        raise Refusal(f"{printable(word)!r} names the language {language!r}: choose one of {', '.join(LANGUAGES)}.")
    try:
        return read_label(name), language, Path(path)
    except argparse.ArgumentTypeError as error:
        raise Refusal(f"{error}.") from None
