"""Results as a table that a terminal shows, with warnings and notes below."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from stereoset_report.alarms import Alarm, lines_of
from stereoset_report.results import ALL, COLUMNS, DIFFERENCES, Numbers, Results, alarms_of_results

LABEL, NUMBER, INTERVAL = 20, 11, 16  # columns of text, where there is room
GAP = 2  # likewise, between columns where there is not
NOTED = 1e-4  # nats that another order of requests may move: what batches move in float32 is not noted

Row = tuple[str, str, Sequence[str]] | str  # two labels and cells; or a text that stands across


def find_notes(record: Mapping[str, Any]) -> list[str]:
    """What the record of a run says of how its tasks were scored, a line for each reason; see run.json."""
    notes = defaultdict(list)
    for config, task in record.get("tasks", {}).items():
        if task.get("fallback"):
            notes["NOTE", fallback_words(task["method"], task["fallback"])].append(config)
        if task.get("truncated"):
            notes["NOTE", "longer than the model, and so scored with the end of their context."].append(
                f"{task['truncated']} of {config}"
            )
        if task.get("observed"):
            notes["NOTE", f"asked by {task['method']}, another question than likelihood."].append(
                f"{config} ({observed_words(task['observed'])})"
            )
        if task.get("options", {}).get("prompt") == "changed":
            notes["NOTE", "asked with more than the example: shots, an instruction or a chat template."].append(config)
    for head in record.get("model", {}).get("heads", {}).values():
        if (head.get("order_spread") or 0) > NOTED:
            reason = f"log-probabilities move by up to {head['order_spread']:.2g} nats when asked in another order."
            notes["NOTE", reason].append(head["server"])
    for config, some in record.get("left_out", {}).items():
        notes["NOTE", f"left out, the first for this: {next(iter(some.values()))}"].append(f"{len(some)} of {config}")
    for config, reason in record.get("unscored", {}).items():
        notes["NOT SCORED", reason].append(config)
    return [f"{kind}: {', '.join(some)}: {reason}" for (kind, reason), some in notes.items()]


def observed_words(observed: Mapping[str, float]) -> str:
    """What was observed beside the scores of a choice, in a line."""
    places = [f"{name} {share:.0%}" for name, share in observed.items() if name.startswith("place ")]
    words = [f"on no letter {1 - observed['letters']:.1%}", f"likeliest {', '.join(places)}"]
    if "agreement" in observed:
        words.append(f"wordings agree on {observed['agreement']:.0%}, spread {observed['spread']:.2f} nats")
    return "; ".join(words)


def fallback_words(method: str, reason: str) -> str:
    """Which method took the place of a task's usual default, and why."""
    return f"scored by {method}, not by the usual default, for {reason}."


def render(
    results: Results,
    title: str,
    signature: str | None = None,
    partial: str | None = None,
    alarms: Iterable[Alarm] | None = None,
    notes: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """The results as text: a block for each language, a line for each bias type, overall last, warnings below.

    Args:
        results: as `make_results` returns them.
        title: what was scored.
        signature: a line to print beside the numbers.
        partial: what part of the data was scored; None for all of it.
        alarms: as `find_alarms` returns them; None for those that the results alone give.
        notes: lines that stand below the table.
        width: how many columns of text the table may take; narrower ones are set closer, and wrap by whole columns of
            numbers. None for as many as it likes.
    """
    stamp = f"  PARTIAL: {partial}" if partial else ""
    lines: list[str] = []
    for language, tasks in results.items():
        given: set[str] = set().union(*(groups[ALL] for groups in tasks.values()))
        intervals = [name for name in DIFFERENCES if f"{name}_low" in given]
        columns = [*COLUMNS, *(f"{name} interval" for name in intervals)]
        blocks = [_block(task, groups, intervals) for task, groups in tasks.items()]
        lines += ["", f"{title}, {language}{stamp}", *_table([("task", "bias type", columns)], blocks, width)]
    below = lines_of(alarms_of_results(results) if alarms is None else alarms)
    for block in ([*below, *notes], [signature] if signature else []):
        lines += ["", *block] if block else []
    return "\n".join(lines).strip("\n")


def render_difference(
    first: Results, second: Results, first_name: str, second_name: str, width: int | None = None
) -> str:
    """What changes between two results of the same data, as text: ss, lms and icat, second minus first.

    A task that only one of them has is left out.
    """
    rows: list[Row] = []
    for language, tasks in first.items():
        for task, groups in tasks.items():
            if task not in second.get(language, {}):
                continue
            pairs = [(groups[ALL][name], second[language][task][ALL][name]) for name in DIFFERENCES]
            cells = ["-" if None in pair else f"{pair[1] - pair[0]:+.2f}" for pair in pairs]
            rows.append((task, language, cells))
    table = _table([("task", "language", DIFFERENCES), *rows], [], width)
    return "\n".join(["", f"{second_name} minus {first_name}, percentage points", *table])


def render_curve(results: Mapping[str, Results], title: str, width: int | None = None) -> str:
    """How ss, lms and icat go over the revisions of a model, as text: a block for each task of each language.

    Args:
        results: {revision: its results, as `make_results` returns them}, in order.
        title: what was scored.
        width: as in `render`.
    """
    blocks: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for revision, languages in results.items():
        for language, tasks in languages.items():
            for task, groups in tasks.items():
                cells = [_cell(groups[ALL][name]) for name in DIFFERENCES]
                blocks[language, task].append((f"{task} ({language})", revision, cells))
    heading = f"{title}, by revision".removeprefix(", ")
    return "\n".join(["", heading, *_table([("task", "revision", DIFFERENCES)], list(blocks.values()), width)])


def _block(task: str, groups: Mapping[str, Numbers], intervals: Sequence[str]) -> list[Row]:
    """The lines of a task: (task, bias type, cells), or a text that stands across."""
    rows: list[Row] = []
    for group, numbers in groups.items():
        cells = [_cell(numbers[column]) for column in COLUMNS]
        rows.append((task, group, cells + [_interval(numbers, name) for name in intervals]))
    return rows + [_confidence(label, spread) for label, spread in groups[ALL].get("confidence", {}).items()]


def _table(header: Sequence[Row], blocks: Sequence[Sequence[Row]], width: int | None) -> list[str]:
    """A header and blocks of rows as lines, an empty one before each block; within a width, if there is one."""
    rows = [row for row in [*header, *chain.from_iterable(blocks)] if not isinstance(row, str)]
    count = len(rows[0][2])
    labels, cells = [LABEL, LABEL], [NUMBER if i < len(COLUMNS) else INTERVAL for i in range(count)]
    if width is not None and sum(labels) + sum(cells) > width:
        labels = _widths([row[:2] for row in rows])
        cells = _widths([row[2] for row in rows])
    lines: list[str] = []
    for first, last in _parts(cells, None if width is None else width - sum(labels)):
        for block in [header, *blocks]:
            lines += ["", *(_line(row, labels, cells, first, last) for row in block)]
    return lines[1:]


def _widths(rows: Iterable[Sequence[str]]) -> list[int]:
    """How wide the columns of some rows are, with a gap."""
    return [max(map(len, column)) + GAP for column in zip(*rows, strict=True)]


def _parts(widths: Sequence[int], room: int | None) -> Iterator[tuple[int, int]]:
    """(first, last) of the columns that stand beside each other where there is so much room, at least one each time."""
    first = 0
    while first < len(widths):
        last = first + 1
        while last < len(widths) and (room is None or sum(widths[first : last + 1]) <= room):
            last += 1
        yield first, last
        first = last


def _line(row: Row, labels: Sequence[int], widths: Sequence[int], first: int, last: int) -> str:
    """A row as text, its cells from the first to before the last."""
    if isinstance(row, str):
        return row
    cells = [f"{cell:>{width}}" for cell, width in zip(row[2], widths, strict=True)]
    return "".join(f"{label:<{width}}" for label, width in zip(row, labels, strict=False)) + "".join(cells[first:last])


def _confidence(label: str, spread: Numbers) -> str:
    if not spread["count"]:
        return f"  never prefers the {label}"
    return (
        f"  prefers the {label} {spread['count']} times, with confidence {spread['median']:.2f} % "
        f"(median; quartiles {spread['low']:.2f} to {spread['high']:.2f})"
    )


def _interval(numbers: Numbers, name: str) -> str:
    low, high = numbers[f"{name}_low"], numbers[f"{name}_high"]
    return "-" if low is None else f"{low:.2f}-{high:.2f}"


def _cell(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
