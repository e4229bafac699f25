"""From rows and scores to results: the metric's numbers by language, task and bias type, and the alarms."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from stereoset_metric.compute_score import compute_score, confidences, flat_reference
from stereoset_report.alarms import (
    Alarm,
    Rows,
    Scores,
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

Part = tuple[Rows, Scores]
Numbers = dict[str, Any]  # the metric's
Groups = dict[str, Numbers]  # by bias type, and ALL
Results = Mapping[str, Mapping[str, Mapping[str, Numbers]]]  # {language: {task: {group of examples: numbers}}}


def make_results(parts: Mapping[str, Part], **options: Any) -> Results:
    """The metric's numbers for every part and what it splits into.

    Args:
        parts: {config: (rows, scores)}.
        options: arguments of `compute_score`. What `breakdown` names comes beside the bias types, as "agreement 3", in
            those tasks whose rows have it.

    Returns:
        {language: {task: {"all": numbers, bias type: numbers, …}}}; where a language has both tasks, also the
        task "overall", whose examples are pooled first.

    Raises:
        ValueError: as `compute_score`.
    """
    flat: dict[str, Part] = {
        config: (list(map(flat_reference, rows)), scores) for config, (rows, scores) in parts.items()
    }
    results: dict[str, dict[str, Groups]] = defaultdict(dict)
    for language, some in by_language(flat).items():
        for task, part in some.items():
            numbers = _pair_numbers if task in PAIR_TASKS else _numbers
            results[language][task] = numbers(*part, **options)
    return dict(results)


def by_language(parts: Mapping[str, Part]) -> dict[str, dict[str, Part]]:
    """{language: {task: (rows, scores)}} of {config: (rows, scores)}, with "overall" where both tasks are there."""
    by_language: dict[str, dict[str, Part]] = defaultdict(dict)
    for config, part in parts.items():
        task, language = split_config(config)
        by_language[language][task] = part
    for tasks in by_language.values():
        if set(CONTEXT_TASKS) <= tasks.keys():
            both = [tasks[task] for task in CONTEXT_TASKS]
            tasks[OVERALL] = tuple(first + second for first, second in zip(*both, strict=True))
    return by_language


def find_alarms(results: Results, parts: Mapping[str, Part], record: Mapping[str, Any] | None = None) -> list[Alarm]:
    """What says that the results must not be read as they stand: alarms, as `stereoset_report.alarms` has them.

    Args:
        results: as `make_results` returns them.
        parts: {config: (rows, scores)} that they were made of.
        record: of the run that they come from, as run.json holds it; None for scores of anybody's.
    """
    record = record or {}
    found: list[Alarm | None] = []
    for language, tasks in by_language(parts).items():
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


def _alarms_of_texts(of: str, task: Mapping[str, Any], rows: Rows, scores: Scores) -> list[Alarm | None]:
    """What a task's record tells of its texts and tokens; of equal options, without a record, what the texts do."""
    equal = task["equal_options"] if "equal_options" in task else equal_texts(rows, scores)
    return [
        equal_options(of, equal, len(rows)),
        unknown_tokens(of, task.get("unknown_tokens", 0), task.get("text_tokens", 0)),
        few_letters(of, task.get("observed", {})),
        one_place(of, task.get("observed", {})),
    ]


def is_chat(task: Mapping[str, Any]) -> bool:
    """Whether a task's record says that it was asked in the words of a chat template."""
    return task.get("method") == "choice" or bool(task.get("options", {}).get("chat"))


def alarms_of_results(results: Results) -> list[Alarm]:
    """The alarms that need nothing but the results."""
    return [
        alarm
        for language, tasks in results.items()
        for task, groups in tasks.items()
        if (alarm := low_lms(f"{task} ({language})", groups[ALL]["lms"]))
    ]


def _numbers(references: Rows, scores: Scores, breakdown: Sequence[str] = (), **options: Any) -> Groups:
    more = [name for name in breakdown if _says(references, name)]
    numbers = compute_score(scores, references, **{**options, "breakdown": ["bias_type", *more]})
    groups = {**numbers.pop("bias_type"), **_named(numbers, more)}
    return {**groups, ALL: numbers}


def _says(references: Rows, name: str) -> bool:
    """Whether any example has a value of a column."""
    return any(reference.get(name) is not None for reference in references)


def _named(numbers: Numbers, names: Sequence[str]) -> Groups:
    """The groups of some breakdowns, taken out of the numbers, each under its name and value."""
    return {f"{name} {value}": found for name in names for value, found in numbers.pop(name).items()}


def _pair_numbers(references: Rows, scores: Scores, breakdown: Sequence[str] = (), **options: Any) -> Groups:
    """Pairs counted as by Nangia et al.: one pool, the directions apart, and how sure the model is of its choice."""
    more = [name for name in breakdown if _says(references, name)]
    options = {**options, "average": "example", "breakdown": ["bias_type", "direction", *more]}
    numbers = compute_score(scores, references, **options)
    groups = {**numbers.pop("bias_type"), **numbers.pop("direction"), **_named(numbers, more)}
    return {**groups, ALL: {**numbers, "confidence": confidences(scores, references)}}
