"""Pairs with their scores, from a CSV as the released code of CrowS-Pairs writes it.

Columns sent_more, sent_less, sent_more_score, sent_less_score, stereo_antistereo, bias_type; the first one numbers the
pairs, whatever its name. People save such tables with commas, semicolons or tabs, in UTF-8 or in the character set of
old Macintoshes.
"""

import csv
import math
from pathlib import Path
from typing import Any

from stereoset_dataset.parsing import as_row
from stereoset_scoring.refusal import Refusal

SENTENCES = {"more": "stereotype", "less": "anti-stereotype"}
COLUMNS = ("sent_more", "sent_less", "sent_more_score", "sent_less_score", "stereo_antistereo", "bias_type")
DIRECTIONS = ("stereo", "antistereo")


def read_scored_pairs(path: Path) -> tuple[list[dict[str, Any]], list[list[float]]]:
    """(rows, scores) of the pairs of a CSV: rows as those of the data set, scores[i][j] of option j of row i.

    Raises:
        OSError: if there is no such file.
        Refusal: if it is laid out otherwise, or a score is no number.
    """
    lines = _text(path.read_bytes()).splitlines(keepends=True)
    delimiter = max(",;\t", key=(lines or [""])[0].count)
    table = csv.DictReader(lines, delimiter=delimiter)
    missing = [name for name in COLUMNS if name not in (table.fieldnames or ())]
    if missing:
        raise Refusal(
            f"{path} has no column {missing[0]}: give a table with {', '.join(COLUMNS)}, as CrowS-Pairs' own code "
            "writes it."
        )
    number = (table.fieldnames or [""])[0]
    pairs = [(f"{path}, line {table.line_num}", pair) for pair in table]
    if not pairs:
        raise Refusal(f"{path} holds no pairs: give a table with a line for each.")
    rows = [_row(where, pair, str(i) if number in COLUMNS else pair[number]) for i, (where, pair) in enumerate(pairs)]
    if len({row["id"] for row in rows}) < len(rows):
        raise Refusal(f"{path} numbers two pairs alike: give each line a number of its own.")
    return rows, [_scores(where, pair) for where, pair in pairs]


def _text(data):
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("mac_roman")


def _row(where, pair, name):
    if None in pair or None in pair.values():
        raise Refusal(f"{where} has more or fewer cells than the header: mend it.")
    direction = pair["stereo_antistereo"]
    if direction not in DIRECTIONS:
        raise Refusal(f"{where} has the stereo_antistereo {direction!r:.80}: give stereo or antistereo.")
    return as_row(
        {
            "id": name,
            "target": "",
            "bias_type": pair["bias_type"],
            "context": "",
            "sentences": [
                {"sentence": pair[f"sent_{which}"], "id": f"{name}:{which}", "labels": [], "gold_label": gold_label}
                for which, gold_label in SENTENCES.items()
            ],
            "direction": direction,
        }
    )


def _scores(where, pair):
    return [_score(where, pair, f"sent_{which}_score") for which in SENTENCES]


def _score(where, pair, column):
    try:
        score = float(pair[column])
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise Refusal(f"{where} has the {column} {pair[column]!r:.80}: give a number.")
    return score
