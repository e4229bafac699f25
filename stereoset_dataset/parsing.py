"""Upstream layouts into examples: bytes or records in, dictionaries with the data set's fields out."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

Example = dict[str, Any]  # by the names of the data set's fields

GOLD_LABELS = ["anti-stereotype", "stereotype", "unrelated"]
LABELS = [*GOLD_LABELS, "related"]


def as_row(example: Example) -> Example:
    """The example as `datasets` shows it: lists of dictionaries become dictionaries of lists."""
    options = [
        {**option, "labels": _columns(option["labels"], ("label", "human_id"))} for option in example["sentences"]
    ]
    return {**example, "sentences": _columns(options, options[0])}


def _columns(records, names):
    return {name: _column(records, name) for name in names}


def _column(records, name):
    return [record[name] for record in records]


def stereoset_examples(data: bytes, task: str) -> list[Example]:
    """The examples of one task of a StereoSet JSON file.

    Args:
        data: dev.json or test.json.
        task: "intrasentence" or "intersentence".

    Returns:
        Examples. The test set's verdict on how harmful an example is, `harm`, is left out: the development set has
        none, and both splits share their columns.
    """
    keys = ("id", "target", "bias_type", "context", "sentences")
    return [_chosen(example, keys) for example in json.loads(data)["data"][task]]


def _chosen(example, keys):
    return {key: example[key] for key in keys}


def check_test_set(data: bytes, validation: bytes, examples: dict[str, int]) -> None:
    """Raise ValueError unless a JSON file holds what is known of StereoSet's test set.

    Known are the number of examples (from the paper), that every example has one option of each kind, that no id
    occurs twice, and that its target terms are not those of the development set, from which it was split by term.

    Args:
        data: test.json.
        validation: dev.json.
        examples: the number of examples by task.
    """
    try:
        rows = {task: stereoset_examples(data, task) for task in examples}
        every = [example for task in examples for example in rows[task]]
        ids = [example["id"] for example in every]
        ids += [option["id"] for example in every for option in example["sentences"]]
        kinds = [sorted(_column(example["sentences"], "gold_label")) for example in every]
        labels = {label["label"] for example in every for option in example["sentences"] for label in option["labels"]}
        known_terms = {example["target"] for task in examples for example in stereoset_examples(validation, task)}
        shared_terms = known_terms & {example["target"] for example in every}
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"it is not laid out as StereoSet's files are ({error!r})") from error
    counts = {task: len(rows[task]) for task in examples}
    if counts != examples:
        raise ValueError(f"it holds {counts} examples where the paper counts {examples}")
    if any(kind != GOLD_LABELS for kind in kinds) or not labels <= set(LABELS):
        raise ValueError("not every example has one option of each kind, labelled as StereoSet labels")
    if len(set(ids)) != len(ids):
        raise ValueError("ids occur twice")
    if shared_terms:
        raise ValueError(f"it shares target terms with the validation split, such as {min(shared_terms)!r}")


def portuguese_examples(data: bytes, task: str) -> list[Example]:
    """The examples of one task of the Portuguese file, which is laid out as StereoSet's and has no annotators' labels.

    Args:
        data: dev_ptbr.json.
        task: "intrasentence" or "intersentence".
    """
    return [_without_labels(example) for example in stereoset_examples(data, task)]


def _without_labels(example):
    return {**example, "sentences": [{**option, "labels": []} for option in example["sentences"]]}


def translated_examples(records: Iterable[dict[str, Any]]) -> list[Example]:
    """The examples of a translated development set.

    Args:
        records: the data frame's rows, with columns c1_sentence to c3_gold_label.

    Returns:
        Examples. `target` is the English term, by which examples are grouped: translation merges some terms and
        splits others. The stored filler becomes `sentences.word` where there is one (intrasentence).
    """
    return [
        {
            "id": record["id"],
            "target": record["target_original"],
            "bias_type": record["bias_type"],
            "context": record["context"],
            "sentences": _translated_options(record),
            "target_translated": record["target"],
        }
        for record in records
    ]


def _translated_options(record):
    return [_translated_option(record, f"c{number}_") for number in (1, 2, 3)]


def _translated_option(record, prefix):
    """An option of a translated example, from the columns that begin with its prefix."""
    keys = ("sentence", "id", "labels", "gold_label", "word")
    return {key: record[prefix + key] for key in keys if prefix + key in record}


def crows_pairs_examples(
    data: bytes,
    encoding: str = "utf-8",
    delimiter: str = ",",
    number: str = "",
    more: str = "sent_more",
    less: str = "sent_less",
) -> list[Example]:
    """The pairs of CrowS-Pairs, or of a table like it.

    Args:
        data: crows_pairs_anonymized.csv, whose first column numbers the pairs.
        encoding: of the table.
        delimiter: of its columns.
        number: the name of the column that numbers the pairs.
        more, less: the names of the columns of the sentences, the more stereotyping one first.

    Returns:
        Examples of two options each. CrowS-Pairs names no target terms and gives no context: both are empty, and so
        are the annotators' labels, since its annotators judged pairs and not sentences. A table without bias types is
        of gender alone.
    """
    pairs = csv.DictReader(io.StringIO(data.decode(encoding), newline=""), delimiter=delimiter)
    return [
        {
            "id": pair[number],
            "target": "",
            "bias_type": pair.get("bias_type", "gender"),
            "context": "",
            "sentences": [
                _one_of_pair(pair[more], f"{pair[number]}:more", "stereotype"),
                _one_of_pair(pair[less], f"{pair[number]}:less", "anti-stereotype"),
            ],
            "direction": pair["stereo_antistereo"],
        }
        for pair in pairs
    ]


def revised_pairs_examples(data: bytes) -> list[Example]:
    """The pairs of the revised CrowS-Pairs, in English or French: a table with tabs."""
    return crows_pairs_examples(data, delimiter="\t")


def dutch_pairs_examples(data: bytes) -> list[Example]:
    """The pairs of the Dutch CrowS-Pairs, which are written in the Macintosh's character set of old."""
    return crows_pairs_examples(data, encoding="mac_roman", number="id")


def gender_pairs_examples(data: bytes) -> list[Example]:
    """The gender pairs in one of ten languages; beside them stands the English that they translate."""
    return crows_pairs_examples(data, number="ID", more="A_x", less="B_x")


def pair_comments(data: bytes) -> dict[str, str]:
    """{number of a pair: the French translators' comment on it}, of pairs that have one.

    Args:
        data: crows_pairs_EN_revised_FR_with_comments.csv. It numbers one pair twice.
    """
    pairs = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""), delimiter="\t")
    found = [(pair[""], " ".join(pair["translation comments"].split())) for pair in pairs]
    return {number: comment for number, comment in found if comment}


def _one_of_pair(sentence, number, gold_label):
    return {"sentence": sentence, "id": number, "labels": [], "gold_label": gold_label}
