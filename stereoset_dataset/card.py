"""The parts of the data set's card that are counted or listed, so that no hand has to keep them."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stereoset_dataset.quality import FLAGS
from stereoset_dataset.stereoset_dataset import Stereoset

LANGUAGES = {
    "ar": "Arabic",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "id": "Indonesian",
    "ko": "Korean",
    "nl": "Dutch",
    "pt": "Portuguese",
    "th": "Thai",
    "tr": "Turkish",
    "vi": "Vietnamese",
    "zh": "Chinese",
}
# Whose data a repository holds, and under which licence.
SOURCES = {
    "moinnadeem/StereoSet": ("Nadeem et al. 2021", "CC BY-SA 4.0"),
    "McGill-NLP/bias-bench": ("Nadeem et al. 2021, published by Meade et al. 2022", "CC BY-SA 4.0"),
    "slds-lmu/stereotypes-multi": ("Öztürk et al. 2023", "derived from StereoSet, CC BY-SA 4.0"),
    "firminovitoria/stereoset-ptbr": ("stereoset-ptbr", "CC BY-SA 4.0"),
    "nyu-mll/crows-pairs": ("Nangia et al. 2020", "CC BY-SA 4.0"),
    "JulienBez/MemoireMaster": ("Névéol et al. 2022", "CC BY-SA 4.0"),
    "jerryspan/Dutch-CrowS-Pairs": ("Strazda and Spanakis 2025", "CC0 1.0"),
    "VSteinborn/s_jsd-multilingual-bias": ("Steinborn et al. 2022", "CC BY-SA 4.0"),
}
_PART = re.compile(r"(<!-- begin (?P<name>\w+) -->\n).*?(<!-- end (?P=name) -->)", re.S)

Counts = Mapping[tuple[str, str], Counter[str]]  # {(config, split): how many rows have a bias type, or a flag}


def filled(text: str, bias_types: Counts, flags: Counts, splits: Iterable[tuple[str, str]]) -> str:
    """A card with its generated parts made anew.

    Args:
        text: the card, whose header lies between two lines of dashes, and each generated part between two comments.
        bias_types: how many rows of each bias type a config's split has.
        flags: how many rows have each flag.
        splits: (config, split) of what the header is to list.
    """
    parts = {"counts": "".join(_counts(bias_types)), "flags": "".join(_flags(flags)), "sources": "".join(_sources())}
    body = _PART.sub(lambda part: f"{part[1]}{parts[part['name']]}{part[3]}", text.split("---\n", 2)[2])
    return f"---\n{header(splits)}---\n{body}"


def header(splits: Iterable[tuple[str, str]], folder: str = "") -> str:
    """The card's header: what the hub reads of it.

    Args:
        splits: (config, split) of what there is; the header promises nothing else.
        folder: where the files of the configs lie, with a slash at its end; empty for beside the card.
    """
    by_config: dict[str, list[str]] = {}
    for config, split in splits:
        by_config.setdefault(config, []).append(split)
    languages = sorted({Stereoset.builder_configs[config].language for config in by_config})
    lines = [_HEADER.format(languages="\n".join(f"- {language}" for language in languages))]
    for config, of_config in by_config.items():
        lines.append(f"- config_name: {config}\n  data_files:\n")
        lines += [f"  - split: {split}\n    path: {folder}{config}/{split}-*\n" for split in of_config]
    return "".join(lines)


def count(rows: Mapping[tuple[str, str], Any], column: str) -> dict[tuple[str, str], Counter[str]]:
    """{(config, split): how many rows have each value of a column}, of {(config, split): a Dataset}."""
    return {name: Counter(_flat(some[column][:])) for name, some in rows.items()}


def _flat(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        yield from [value] if isinstance(value, str) else value


def _counts(bias_types: Counts) -> Iterator[str]:
    """A table for each set of bias types."""
    tables: dict[tuple[str, ...], list[tuple[str, str]]] = {}
    for name, found in bias_types.items():
        tables.setdefault(tuple(sorted(found)), []).append(name)
    for columns, names in tables.items():
        yield f"| config | split | language | {' | '.join(columns)} | all |\n"
        yield f"|---|---|---|{'---|' * (len(columns) + 1)}\n"
        for config, split in names:
            found = bias_types[config, split]
            language = LANGUAGES[Stereoset.builder_configs[config].language]
            numbers = [*(found[column] for column in columns), sum(found.values())]
            yield f"| {config} | {split} | {language} | {' | '.join(f'{number:,}' for number in numbers)} |\n"
        yield "\n"


def _flags(flags: Counts) -> Iterator[str]:
    yield "| flag | of an example | found by | examples |\n|---|---|---|---|\n"
    for flag, (meaning, source) in FLAGS.items():
        where = [f"{found[flag]:,} {config}" for (config, _), found in flags.items() if found[flag]]
        yield f"| `{flag}` | {meaning} | {source} | {', '.join(where) or 'none'} |\n"


def _sources() -> Iterator[str]:
    yield "| rows | repository | commit | by | licence |\n|---|---|---|---|---|\n"
    named: dict[tuple[str, str], list[str]] = {}
    for config in Stereoset.builder_configs.values():
        for file in config.files:
            of_file = named.setdefault((file.repository, file.commit), [])
            of_file += [config.name] if config.name not in of_file else []
    for (repository, commit), configs in named.items():
        author, licence = SOURCES[repository]
        link = f"[{repository}](https://github.com/{repository})"
        yield f"| {', '.join(configs)} | {link} | {commit} | {author} | {licence} |\n"


_HEADER = """\
pretty_name: StereoSet
license: cc-by-sa-4.0
language:
{languages}
multilinguality:
- multilingual
- translation
annotations_creators:
- crowdsourced
language_creators:
- crowdsourced
- expert-generated
- machine-generated
size_categories:
- 10K<n<100K
source_datasets:
- extended|McGill-NLP/stereoset
- extended|nyu-mll/crows_pairs
task_categories:
- text-classification
- fill-mask
task_ids:
- text-scoring
tags:
- bias
- stereotypes
- fairness
configs:
"""
