"""From the published layouts to rows of one schema; one function a layout.

Lists of records become records of lists: that is how `datasets` takes a Sequence of them, and how rows look to the
user.
"""

import csv
import json


def rows_of_stereoset(path, task):
    """Rows of a task from StereoSet's JSON files (dev.json, test.json)."""
    with open(path, encoding="utf-8") as file:
        examples = json.load(file)["data"][task]
    return [
        {
            **_pick(example, "id", "target", "bias_type", "context"),
            "sentences": _columns(
                {**_pick(option, "sentence", "id", "gold_label"), "labels": _votes(option["labels"])}
                for option in example["sentences"]
            ),
        }
        for example in examples
    ]


def rows_of_translation(table, task):
    """Rows of a task from the table of a translation: dicts with its columns.

    The target, which groups examples, is the English one: translation merges some terms and splits others.
    """
    return [
        {
            **_pick(example, "id", "bias_type", "context"),
            "target": example["target_original"],
            "target_translated": example["target"],
            "sentences": _columns(
                {
                    **{name: example[f"{option}_{name}"] for name in ("sentence", "id", "gold_label")},
                    "labels": _votes(example[f"{option}_labels"]),
                    **({"word": example[f"{option}_word"]} if task == "intrasentence" else {}),
                }
                for option in ("c1", "c2", "c3")
            ),
        }
        for example in table
    ]


def rows_of_crows_pairs(path):
    """Rows of CrowS-Pairs. It names no targets, no contexts and no votes on labels: those stay empty."""
    with open(path, encoding="utf-8", newline="") as file:
        pairs = list(csv.DictReader(file))
    return [
        {
            "id": pair[""],
            "target": "",
            "bias_type": pair["bias_type"],
            "context": "",
            "direction": pair["stereo_antistereo"],
            "sentences": _columns(
                {
                    "sentence": pair[f"sent_{side}"],
                    "id": f"{pair['']}:{side}",
                    "gold_label": label,
                    "labels": _votes([]),
                }
                for side, label in (("more", "stereotype"), ("less", "anti-stereotype"))
            ),
        }
        for pair in pairs
    ]


def _votes(labels):
    """The annotators' labels of one option."""
    return {name: [label[name] for label in labels] for name in ("label", "human_id")}


def _pick(record, *names):
    return {name: record[name] for name in names}


def _columns(records):
    records = list(records)
    return {name: [record[name] for record in records] for name in records[0]}
