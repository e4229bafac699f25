"""Runs and prediction files on a command line, with what to call them: NAME=PATH, NAME:LANGUAGE=PATH, or PATH."""

import argparse
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from stereoset_cli.arguments import add_selection, read_label, selection_of
from stereoset_report.comparison import Named
from stereoset_report.saved import Saved, read_saved
from stereoset_report.selection import Selection
from stereoset_scoring.files.predictions import printable
from stereoset_scoring.questions.configs import ENGLISH, LANGUAGES
from stereoset_scoring.refusal import Refusal

HELP = (
    "a run folder, a prediction file or a log of lm-eval, and what to call it; NAME:LANGUAGE=PATH where a file does "
    "not say its language and it is not English; without a NAME, what the run calls itself, or the file's name"
)


def add_saved(group: argparse._ArgumentGroup) -> None:
    """The options that say what the scores are of, and which examples count."""
    group.add_argument("--split", choices=("validation", "test"), default="validation", help="of prediction files")
    group.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    group.add_argument("--data-file", type=Path, metavar="FILE", help="the examples of your own that were scored")
    add_selection(group)


def read_asked(words: Iterable[str], args: argparse.Namespace, whole: bool = False) -> list[Named]:
    """Saved scores as the options of `add_saved` say; see `read_labelled`. Scores of some examples are stamped so.

    Raises:
        OSError, Refusal: as `read_labelled` and `selection_of`.
    """
    selection = selection_of(args)
    models = read_labelled(words, args.split, args.data_dir, args.data_file, whole)
    return [replace(model, saved=_selected(model.saved, selection)) for model in models] if selection else models


def _selected(saved: Saved, selection: Selection) -> Saved:
    stamp = ", ".join(filter(None, (saved.partial, str(selection))))
    return replace(saved, parts=selection.parts(saved.parts), partial=stamp)


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
