"""Results as a table that a terminal shows, with warnings and notes below."""

from collections import defaultdict

from stereoset_report.alarms import lines_of
from stereoset_report.results import ALL, COLUMNS, DIFFERENCES, alarms_of_results


def find_notes(record):
    """What the record of a run says of how its tasks were scored, a line for each reason; see run.json."""
    notes = defaultdict(list)
    for config, task in record.get("tasks", {}).items():
        if task.get("fallback"):
            notes["NOTE", fallback_words(task["method"], task["fallback"])].append(config)
        if task.get("truncated"):
            notes["NOTE", "longer than the model, and so scored with the end of their context."].append(
                f"{task['truncated']} of {config}"
            )
    for config, reason in record.get("unscored", {}).items():
        notes["NOT SCORED", reason].append(config)
    return [f"{kind}: {', '.join(some)}: {reason}" for (kind, reason), some in notes.items()]


def fallback_words(method, reason):
    """Which method took the place of a task's usual default, and why."""
    return f"scored by {method}, not by the usual default, for {reason}."


def render(results, title, signature=None, partial=None, alarms=None, notes=()):
    """The results as text: a block for each language, a line for each bias type, overall last, warnings below.

    Args:
        results: as `make_results` returns them.
        title: what was scored.
        signature: a line to print beside the numbers.
        partial: what part of the data was scored; None for all of it.
        alarms: as `find_alarms` returns them; None for those that the results alone give.
        notes: lines that stand below the table.
    """
    stamp = f"  PARTIAL: {partial}" if partial else ""
    lines = []
    for language, tasks in results.items():
        intervals = [name for name in DIFFERENCES if any(f"{name}_low" in groups[ALL] for groups in tasks.values())]
        columns = [*COLUMNS, *(f"{name} interval" for name in intervals)]
        lines += ["", f"{title}, {language}{stamp}", _line("task", "bias type", columns)]
        for task, groups in tasks.items():
            lines.append("")
            for group, numbers in groups.items():
                cells = [_cell(numbers[column]) for column in COLUMNS]
                lines.append(_line(task, group, cells + [_interval(numbers, name) for name in intervals]))
            for label, spread in groups[ALL].get("confidence", {}).items():
                lines.append(_confidence(label, spread))
    below = lines_of(alarms_of_results(results) if alarms is None else alarms)
    for block in ([*below, *notes], [signature] if signature else []):
        lines += ["", *block] if block else []
    return "\n".join(lines).strip("\n")


def render_difference(first, second, first_name, second_name):
    """What changes between two results of the same data, as text: ss, lms and icat, second minus first.

    A task that only one of them has is left out.
    """
    lines = ["", f"{second_name} minus {first_name}, percentage points", _line("task", "language", DIFFERENCES)]
    for language, tasks in first.items():
        for task, groups in tasks.items():
            if task not in second.get(language, {}):
                continue
            pairs = [(groups[ALL][name], second[language][task][ALL][name]) for name in DIFFERENCES]
            cells = ["-" if None in pair else f"{pair[1] - pair[0]:+.2f}" for pair in pairs]
            lines.append(_line(task, language, cells))
    return "\n".join(lines)


def _line(task, group, cells):
    return f"{task:<20}{group:<20}" + "".join(
        f"{cell:>{16 if i >= len(COLUMNS) else 11}}" for i, cell in enumerate(cells)
    )


def _confidence(label, spread):
    if not spread["count"]:
        return f"  never prefers the {label}"
    return (
        f"  prefers the {label} {spread['count']} times, with confidence {spread['median']:.2f} % "
        f"(median; quartiles {spread['low']:.2f} to {spread['high']:.2f})"
    )


def _interval(numbers, name):
    low, high = numbers[f"{name}_low"], numbers[f"{name}_high"]
    return "-" if low is None else f"{low:.2f}-{high:.2f}"


def _cell(value):
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
