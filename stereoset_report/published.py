"""Published numbers to set beside computed ones, from files in one of two layouts.

    {model: {bias type or "overall": {task or "overall": {"lms": …, "ss": …, "icat": …}}}}
        StereoSet's tables by domain. The file does not say which split it is of: give it as SPLIT=FILE.
    {"table2_…": {model: {"lms": {language: …}, "ss": {…}, "icat": {…}}}, "table5_…": …}
        The multilingual study's tables by number; "icat_macro" and "icat_micro" for icat in Tables 5, 8 and 9.
    {model: {task: {bias type or "overall": {"LM Score": …, "SS Score": …, "ICAT Score": …}}, "overall": {…}}}
        What StereoSet's own evaluation writes, as published for Portuguese. The file says neither language nor split:
        it holds for the development set, and any language, unless given as LANGUAGE=FILE or SPLIT=FILE.

Percent, to two decimals; null where nothing was published. Models have the names of the inputs, in any letter case.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stereoset_scoring.files.store import read_json
from stereoset_scoring.questions.configs import ENGLISH, STEREOSET
from stereoset_scoring.refusal import Refusal

SPLITS = ("validation", "test")
EVALUATION = {"LM Score": "lms", "SS Score": "ss", "ICAT Score": "icat"}  # what StereoSet's evaluation calls them

Key = tuple[str, ...]
Published = Mapping[Key, float]  # see `read_published`


def read_published(words: Iterable[str]) -> Published:
    """{key: percent} of some files, each given as FILE, SPLIT=FILE or LANGUAGE=FILE.

    Keys are (split, language, model, task, bias type, number) and ("multilingual-2", model, language, number), the
    model in lower case.

    Raises:
        OSError: if a file is missing.
        ValueError: if a file is in neither layout, or lacks its split.
    """
    cells: dict[Key, float | None] = {}
    of: str | None
    for word in words:
        of, separator, path = word.partition("=")
        if not separator or of not in (*SPLITS, *STEREOSET):
            of, path = None, word
        try:
            found = dict(_cells(read_json(path), of, path))
        except (AttributeError, TypeError):
            raise Refusal(f"{path} is in neither layout of published numbers: see scripts/published.py.") from None
        for key, value in found.items():
            if not _is_percent(value):
                raise Refusal(f"{path} gives {' '.join(key[1:])!r} as {value!r:.80}: give a number in percent.")
        cells |= found
    return {key: value for key, value in cells.items() if value is not None}


def _is_percent(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100)


def _cells(content: Any, of: str | None, path: str) -> Iterator[tuple[Key, Any]]:
    for name, block in content.items():
        number = re.match(r"table(\d+)_", name)
        if number:
            yield from _multilingual(f"multilingual-{number[1]}", block)
        elif EVALUATION.keys() <= block.get("overall", {}).keys():
            yield from _evaluation(of, name, block)
        elif of in SPLITS:
            yield from _by_domain(of, name, block)
        else:
            raise Refusal(f"Which split {path} is of, it does not say: give it as validation=FILE or test=FILE.")


def _by_domain(split: str, model: str, block: Any) -> Iterator[tuple[Key, Any]]:
    for domain, tasks in block.items():
        for task, numbers in tasks.items():
            for number, value in numbers.items():
                yield (split, ENGLISH, model.lower(), task, domain, number), value


def _evaluation(of: str | None, model: str, block: Any) -> Iterator[tuple[Key, Any]]:
    split = of if of in SPLITS else SPLITS[0]
    for task, domains in block.items():
        for domain, numbers in ({"overall": domains} if task == "overall" else domains).items():
            for name, number in EVALUATION.items():
                for language in [of] if of in STEREOSET else STEREOSET:
                    yield (split, language, model.lower(), task, domain, number), numbers.get(name)


def _multilingual(table: str, block: Any) -> Iterator[tuple[Key, Any]]:
    for model, numbers in block.items():
        for number, by_language in numbers.items():
            for language, value in by_language.items():
                yield (table, model.lower(), language, number), value
