"""Which examples count: those without some flags, and on which enough annotators agree; and what that changes."""

import csv
import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

from stereoset_dataset.quality import FLAGS, text_flags
from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_report.results import ALL, DIFFERENCES, by_language
from stereoset_scoring.questions.configs import PAIR_TASKS, PAIRS, asked_as
from stereoset_scoring.questions.examples import gold_labels, options_of, read_task
from stereoset_scoring.refusal import Refusal

UNSCORABLE = ("empty_sentence", "forced_tie")  # flags of pairs in which nothing can be preferred

Row = Mapping[str, Any]
Parts = Mapping[str, tuple[Sequence[Row], Sequence[Any]]]  # {config: (rows, scores)}


@dataclass(frozen=True)
class Selection:
    """Which examples are left out.

    Args:
        without: those that have one of these flags.
        min_agreement: those on which fewer annotators agree; None for none.
        own: {id: flags} of one's own, beside those that examples have.

    Raises:
        Refusal: if there is no such flag.
    """

    without: Sequence[str] = ()
    min_agreement: int | None = None
    own: Mapping[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known = [*FLAGS, *sorted({flag for some in self.own.values() for flag in some} - FLAGS.keys())]
        for flag in self.without:
            if flag not in known:
                nearest = difflib.get_close_matches(flag, known, n=1)
                hint = f" (nearest: {nearest[0]})" if nearest else ""
                raise Refusal(f"{flag!r} is no flag{hint}: there are {', '.join(known)}.")

    def __bool__(self) -> bool:
        return bool(self.without) or self.min_agreement is not None

    def __str__(self) -> str:
        words = [f"without {' '.join(self.without)}"] if self.without else []
        words += [] if self.min_agreement is None else [f"agreement of {self.min_agreement} or more"]
        return ", ".join(words)

    def keeps(self, row: Row) -> bool:
        """Whether an example counts.

        Raises:
            Refusal: if agreement matters and nobody's labels of the example are known.
        """
        if self.min_agreement is not None and row.get("agreement") is None:
            raise Refusal(
                f"Example {row['id']!r} has no annotators' labels, and so no agreement: leave --min-agreement out."
            )
        agreed = self.min_agreement is None or row["agreement"] >= self.min_agreement
        return agreed and not set(self.without) & {*flags_of(row), *self.own.get(row["id"], ())}

    def rows(self, data: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
        """{config: the rows that count}.

        Raises:
            Refusal: if none does, or one's own flags name an example that is not there.
        """
        self._check_ids(row["id"] for rows in data.values() for row in rows)
        kept = {config: list(filter(self.keeps, rows)) for config, rows in data.items()}
        self._check_rest(kept)
        return kept

    def parts(self, parts: Parts) -> dict[str, tuple[list[Row], list[Any]]]:
        """{config: (rows that count, their scores)}; as `rows`."""
        self._check_ids(row["id"] for rows, _ in parts.values() for row in rows)
        kept = {config: self._part(*part) for config, part in parts.items()}
        self._check_rest({config: rows for config, (rows, _) in kept.items()})
        return kept

    def _part(self, rows: Sequence[Row], scores: Sequence[Any]) -> tuple[list[Row], list[Any]]:
        pairs = [pair for pair in zip(rows, scores, strict=True) if self.keeps(pair[0])]
        return [row for row, _ in pairs], [score for _, score in pairs]

    def _check_ids(self, ids: Iterable[str]) -> None:
        unknown = self.own.keys() - set(ids)
        if unknown:
            raise Refusal(
                f"{len(unknown)} of {len(self.own)} ids with flags of your own are of no example here, first "
                f"{min(unknown)!r}: give ids of examples that are scored."
            )

    def _check_rest(self, kept: Mapping[str, Sequence[Any]]) -> None:
        for config, some in kept.items():
            if not some:
                raise Refusal(f"No example of {config} is left ({self}): leave out less.")


def flags_of(row: Row) -> Sequence[str]:
    """The flags of an example: as the data set has them; of one's own examples, those that its texts call for."""
    if row.get("flags") is not None:
        return row["flags"]
    options = [{**option, "gold_label": label} for option, label in zip(options_of(row), gold_labels(row), strict=True)]
    return text_flags({"context": row["context"], "sentences": options}, read_task(row))


def read_own_flags(path: Path | None) -> dict[str, set[str]]:
    """{id: flags} of a CSV with the columns id and flag, a line for each flag of an example; none without a file.

    Raises:
        OSError: if there is no such file.
        Refusal: if it is laid out otherwise.
    """
    if path is None:
        return {}
    found: dict[str, set[str]] = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} is no text in UTF-8 ({error.reason}): save it so.") from None
    for number, line in enumerate(csv.DictReader(lines), 2):
        if not line.get("id") or not line.get("flag"):
            raise Refusal(f"{path}, line {number}, has no id or no flag: give a CSV with the columns id and flag.")
        found.setdefault(line["id"].strip(), set()).add(line["flag"].strip())
    if not found:
        raise Refusal(f"{path} holds no flags: give a CSV with the columns id and flag.")
    return found


def check_pairs(data: Mapping[str, Sequence[Row]]) -> None:
    """Refuse pairs in which nothing can be preferred, by name.

    Raises:
        Refusal: if there are any.
    """
    for config, rows in data.items():
        if asked_as(config) != PAIRS:
            continue
        flagged = {row["id"]: _unscorable(row) for row in rows}
        bad = {name: flags for name, flags in flagged.items() if flags}
        if bad:
            named = ", ".join(f"{name!r} ({' '.join(flags)})" for name, flags in bad.items())
            found = set(chain.from_iterable(bad.values()))
            needed = [flag for flag in UNSCORABLE if flag in found]
            raise Refusal(
                f"{config} has pairs in which nothing can be preferred, {named}: leave them out by "
                f"--without {' '.join(needed)}."
            )


def _unscorable(row: Row) -> list[str]:
    return [flag for flag in flags_of(row) if flag in UNSCORABLE]


def effect(parts: Parts, kept: Parts, level: float, **options: Any) -> list[str]:
    """How far leaving examples out moves the figures, in words.

    A change is small if the figure without them lies within the interval of the figure with them, which resampling the
    target terms gives.

    Args:
        parts: {config: (rows, scores)} of all examples.
        kept: likewise, of those that are left.
        level: of the intervals.
        options: `average` and `ties` of `compute_score`.
    """
    moved, gone, all_left = [], [], by_language(kept)
    for language, tasks in by_language(parts).items():
        for task, (rows, scores) in tasks.items():
            left_rows, left_scores = all_left[language][task]
            gone.append(f"{len(rows) - len(left_rows)} of {len(rows)} in {task} ({language})")
            whole = _numbers(task, rows, scores, confidence_level=level, **options)
            without = _numbers(task, left_rows, left_scores, **options)
            moved += [
                f"{name} of {task} ({language})"
                for name in DIFFERENCES
                if whole[name] is not None and not whole[f"{name}_low"] <= without[name] <= whole[f"{name}_high"]
            ]
    small = f"The effect is small: every figure lies within the {level:.0%} interval that it has with all examples."
    beyond = f"The effect is not small: beyond the {level:.0%} interval with all examples lie {', '.join(moved)}."
    return [f"Left out: {', '.join(gone)}.", beyond if moved else small]


def _numbers(task: str, rows: Sequence[Row], scores: Sequence[Any], **options: Any) -> dict[str, Any]:
    pooled = {"average": "example"} if task in PAIR_TASKS else {}
    return compute_score(scores, flat_references(rows), **{**options, **pooled})


def difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """{language: {task: {number: second minus first}}} of two results; None where there is no such number."""
    return {language: _differences_by_task(tasks, second[language]) for language, tasks in first.items()}


def _differences_by_task(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {task: _differences(groups[ALL], second[task][ALL]) for task, groups in first.items()}


def _differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _minus(second[name], first[name]) for name in DIFFERENCES}


def _minus(value: float | None, other: float | None) -> float | None:
    return None if value is None or other is None else value - other
