"""From rows and scores to results: the metric's numbers by language, task and bias type, and the alarms."""

from collections import defaultdict

from stereoset_metric.compute_score import compute_score, confidences, flat_reference
from stereoset_report.alarms import (
    equal_options,
    equal_texts,
    few_letters,
    low_lms,
    many_ties,
    one_place,
    turned_round,
    unknown_tokens,
    unused_chat_template,
)
from stereoset_scoring.questions.configs import CONTEXT_TASKS, PAIR_TASKS, config_name, split_config

COLUMNS = ("count", "ss", "lms", "icat", "icat_macro", "ties")
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
    results = defaultdict(dict)
    for language, some in _by_language(flat).items():
        for task, part in some.items():
            numbers = _pair_numbers if task in PAIR_TASKS else _numbers
            results[language][task] = numbers(*part, **options)
    return dict(results)


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


def find_alarms(results, parts, record=None):
    """What says that the results must not be read as they stand: alarms, as `stereoset_report.alarms` has them.

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
                found.append(many_ties(of, rows, scores))
                of_task = record.get("tasks", {}).get(config_name(task, language), {})
                found += _alarms_of_texts(of, of_task, rows, scores)
    if record.get("model", {}).get("chat_template") and not all(map(is_chat, record.get("tasks", {}).values())):
        found.append(unused_chat_template(record["model"]["name"]))
    return [alarm for alarm in found if alarm]


def _alarms_of_texts(of, task, rows, scores):
    """What a task's record tells of its texts and tokens; of equal options, without a record, what the texts do."""
    equal = task["equal_options"] if "equal_options" in task else equal_texts(rows, scores)
    return [
        equal_options(of, equal, len(rows)),
        unknown_tokens(of, task.get("unknown_tokens", 0), task.get("text_tokens", 0)),
        few_letters(of, task.get("observed", {})),
        one_place(of, task.get("observed", {})),
    ]


def is_chat(task):
    """Whether a task's record says that it was asked in the words of a chat template."""
    return task.get("method") == "choice" or bool(task.get("options", {}).get("chat"))


def alarms_of_results(results):
    """The alarms that need nothing but the results."""
    return [
        alarm
        for language, tasks in results.items()
        for task, groups in tasks.items()
        if (alarm := low_lms(f"{task} ({language})", groups[ALL]["lms"]))
    ]


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
