"""From rows and scores to results, and from results to a table that a terminal shows."""

from collections import defaultdict

from stereoset_metric.compute_score import compute_score, confidences, flat_reference

NEAR_CHANCE = 60  # percent; a random model has an lms of 50
LOW_LMS = "  a broken set-up rather than a bad model; check model, method and data before reading ss."
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
    by_language = defaultdict(dict)
    for config, (rows, scores) in parts.items():
        task, language = split_config(config)
        by_language[language][task] = (list(map(flat_reference, rows)), scores)
    results = {}
    for language, tasks in by_language.items():
        if set(CONTEXT_TASKS) <= tasks.keys():
            both = [tasks[task] for task in CONTEXT_TASKS]
            tasks[OVERALL] = tuple(first + second for first, second in zip(*both, strict=True))
        results[language] = {
            task: (_pair_numbers if task in PAIRS else _numbers)(*part, **options) for task, part in tasks.items()
        }
    return results


def split_config(config):
    """(task, language) of a config's name."""
    task, _, language = config.rpartition("_")
    return (task, language) if task in CONTEXT_TASKS and config not in PAIRS else (config, "en")


def render(results, title, signature=None, partial=None):
    """The results as text: a block for each language, a line for each bias type, overall last, warnings below.

    Args:
        results: as `make_results` returns them.
        title: what was scored.
        signature: a line to print beside the numbers.
        partial: what part of the data was scored; None for all of it.
    """
    stamp = f"  PARTIAL: {partial}" if partial else ""
    lines, low = [], []
    for language, tasks in results.items():
        intervals = [name for name in DIFFERENCES if any(f"{name}_low" in groups[ALL] for groups in tasks.values())]
        columns = [*COLUMNS, *(f"{name} interval" for name in intervals)]
        lines += ["", f"{title}, {language}{stamp}", _line("task", "bias type", columns)]
        for task, groups in tasks.items():
            lines.append("")
            for group, numbers in groups.items():
                cells = [_cell(numbers[column]) for column in COLUMNS]
                lines.append(_line(task, group, cells + [_interval(numbers, name) for name in intervals]))
            lms = groups[ALL]["lms"]
            if lms is not None and lms < NEAR_CHANCE:
                low.append(f"{lms:.1f} on {task} ({language})")
            for label, spread in groups[ALL].get("confidence", {}).items():
                lines.append(_confidence(label, spread))
    if low:
        lines += ["", f"WARNING: lms near chance (50), {', '.join(low)}:", LOW_LMS]
    return "\n".join([*lines, *(["", signature] if signature else [])]).strip("\n")


def render_difference(first, second, first_name, second_name):
    """What changes between two results of the same data, as text: ss, lms and icat, second minus first."""
    lines = ["", f"{second_name} minus {first_name}, percentage points", _line("task", "language", DIFFERENCES)]
    for language, tasks in first.items():
        for task, groups in tasks.items():
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
