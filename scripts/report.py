"""From rows and scores to results, and from results to a table that a terminal shows."""

from collections import defaultdict

from stereoset_metric.compute_score import compute_score, confidences, flat_reference
from stereoset_scoring.alarms import (
    equal_options,
    equal_texts,
    lines_of,
    low_lms,
    many_ties,
    turned_round,
    unknown_tokens,
    unused_chat_template,
)

COLUMNS = ("count", "ss", "lms", "icat", "icat_macro", "ties")
CONTEXT_TASKS = ("intrasentence", "intersentence")
PAIRS = ("crows_pairs", "intrasentence_pairs")
DIFFERENCES = ("ss", "lms", "icat")
OVERALL = "overall"
ALL = "all"


def make_results(parts, **options):
    """The metric's numbers for every part and what it splits into.

    Args:
        parts: {config: (rows, scores)}; rows of the data set, scores[i][j] of option j of row i.
        options: arguments of `compute_score`.

    Returns:
        {language: {task: {"all": numbers, bias type: numbers, …}}}; where a language has both tasks, also the
        task "overall", whose examples are pooled first.

    Raises:
        ValueError: as `compute_score`.
    """
    flat = {config: (list(map(flat_reference, rows)), scores) for config, (rows, scores) in parts.items()}
    return {
        language: {
            task: (_pair_numbers if task in PAIRS else _numbers)(*part, **options) for task, part in some.items()
        }
        for language, some in _by_language(flat).items()
    }


def _by_language(parts):
    """{language: {task: (rows, scores)}} of {config: (rows, scores)}, with "overall" where both tasks are there."""
    by_language = defaultdict(dict)
    for config, part in parts.items():
        task, language = split_config(config)
        by_language[language][task] = part
    for tasks in by_language.values():
        if set(CONTEXT_TASKS) <= tasks.keys():
            both = [tasks[task] for task in CONTEXT_TASKS]
            tasks[OVERALL] = tuple(first + second for first, second in zip(*both, strict=True))
    return by_language


def split_config(config):
    """(task, language) of a config's name."""
    task, _, language = config.rpartition("_")
    return (task, language) if task in CONTEXT_TASKS and config not in PAIRS else (config, "en")


def find_alarms(results, parts, record=None):
    """What says that the results must not be read as they stand: alarms, as `stereoset_scoring.alarms` has them.

    Args:
        results: as `make_results` returns them.
        parts: {config: (rows, scores)} that they were made of.
        record: of the run that they come from, as run.json holds it; None for scores of anybody's.
    """
    record, found = record or {}, []
    for language, tasks in _by_language(parts).items():
        for task, (rows, scores) in tasks.items():
            of, lms = f"{task} ({language})", results[language][task][ALL]["lms"]
            found.append(turned_round(of, lms, rows, scores) or low_lms(of, lms))
            if task != OVERALL:
                config = task if language == "en" else f"{task}_{language}"
                found.append(many_ties(of, rows, scores))
                found += _alarms_of_texts(of, record.get("tasks", {}).get(config, {}), rows, scores)
    if record.get("model", {}).get("chat_template"):
        found.append(unused_chat_template(record["model"]["name"]))
    return [alarm for alarm in found if alarm]


def _alarms_of_texts(of, task, rows, scores):
    """What a task's record tells of its texts and tokens; of equal options, without a record, what the texts do."""
    equal = task["equal_options"] if "equal_options" in task else equal_texts(rows, scores)
    return [
        equal_options(of, equal, len(rows)),
        unknown_tokens(of, task.get("unknown_tokens", 0), task.get("text_tokens", 0)),
    ]


def _alarms_of_results(results):
    """The alarms that need nothing but the results."""
    return [
        alarm
        for language, tasks in results.items()
        for task, groups in tasks.items()
        if (alarm := low_lms(f"{task} ({language})", groups[ALL]["lms"]))
    ]


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
    below = lines_of(_alarms_of_results(results) if alarms is None else alarms)
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


def _numbers(references, scores, **options):
    numbers = compute_score(scores, references, **{**options, "breakdown": "bias_type"})
    groups = numbers.pop("bias_type")
    return {**groups, ALL: numbers}


def _pair_numbers(references, scores, **options):
    """Pairs counted as by Nangia et al.: one pool, the directions apart, and how sure the model is of its choice."""
    options = {**options, "average": "example", "breakdown": ["bias_type", "direction"]}
    numbers = compute_score(scores, references, **options)
    groups = {**numbers.pop("bias_type"), **numbers.pop("direction")}
    return {**groups, ALL: {**numbers, "confidence": confidences(scores, references)}}


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
