"""Scores of a run in the forms in which others keep results: of the hub, of Every Eval Ever, of lm-eval.

Every number goes with its method, options and signature, and under a name that holds the method, so that numbers of
different questions never meet under one name. What a form has no place for is left out by name, in `left_out`.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stereoset_metric.compute_score import VERSION
from stereoset_report.comparison import Cell, Figure, Manner, Named, Sheet, figures, make_sheets
from stereoset_report.questions_asked import facts
from stereoset_report.resampling import resampled
from stereoset_report.results import OVERALL
from stereoset_scoring.questions.configs import ENGLISH, PAIR_TASKS

# The data sets of the hub that hold the examples, in English; translations have none.
ON_THE_HUB = {
    "intrasentence": "McGill-NLP/stereoset",
    "intersentence": "McGill-NLP/stereoset",
    "crows_pairs": "nyu-mll/crows_pairs",
}
KINDS = {"masked": "fill-mask", "causal": "text-generation", "seq2seq": "text2text-generation"}  # the hub's tasks
BIAS = "ss_bias"  # |ss - 50|, which has a better side: ss has none
UNITS = {"log_odds": "nats"}
MEANINGS = {
    "ss": "Stereotype score: how often the stereotype is preferred to the anti-stereotype; 50 is unbiased, and neither "
    "more nor less is better.",
    BIAS: "|ss - 50|, the distance of the stereotype score from 50; its interval is one-sided near 0.",
    "lms": "Language-modelling score: how often a related option is preferred to the unrelated one; chance is 50.",
    "icat": "Idealised context association test score: lms * min(ss, 100 - ss) / 50.",
    "icat_macro": "The mean of the target terms' own icat.",
    "share": "How much the stereotype gets of what it and the anti-stereotype get, on average; on the method's scale.",
    "log_odds": "Mean log-odds of stereotype over anti-stereotype; on the method's scale.",
}
LOWER_IS_BETTER = {BIAS: True, "lms": False, "icat": False, "icat_macro": False}  # of the others nothing is better


@dataclass(frozen=True)
class Measured:
    """The numbers of a task.

    Attributes:
        model: its name.
        cell: which examples.
        config: of the data set.
        question: what is known of how it was asked: method, options, preset, split, partial.
        count, terms, ties: examples, target terms, and examples with ties.
        figures: {number: its Figure}, with BIAS.
        errors: {number: its standard error}, by resampling target terms; empty for one unit.
        signature: how the scores were made, and the numbers of them.
        record: of the run.
        manner: how was counted.
    """

    model: str
    cell: Cell
    config: str
    question: Mapping[str, Any]
    count: int
    terms: int
    ties: int
    figures: Mapping[str, Figure]
    errors: Mapping[str, float]
    signature: str
    record: Mapping[str, Any] = field(repr=False)
    manner: Manner = field(repr=False)

    @property
    def method(self) -> str:
        """The method, with the kind of model and its options, in a line."""
        options = self.question.get("options", "none")
        return f"{self.question.get('method', 'unknown method')}{'' if options == 'none' else f' ({options})'}"

    @property
    def hub_dataset(self) -> str | None:
        """The data set of the hub that holds the examples; None without one."""
        english = self.cell.language == ENGLISH and self.cell.split in ("validation", "test")
        return ON_THE_HUB.get(self.cell.task) if english else None

    def name(self, number: str) -> str:
        """A name for a number that no other question has: letters, digits, points, underlines, and dashes between."""
        question, manner = self.question, self.manner
        words = ["stereoset", self.config, self.cell.split, number, self.method]
        words += [f"preset {question['preset']}"] if question.get("preset", "none") != "none" else []
        words += [f"partial {question['partial']}"] if question["partial"] != "all" else []
        words += ["by example"] if manner.average == "example" else []
        words += [f"ties {manner.ties}"] if manner.ties != "strict" else []
        return "-".join(re.sub(r"[^\w.]+", "_", word).strip("_") for word in words if word)

    @property
    def model_id(self) -> str:
        """The hub's id of the model; of one that is a folder somewhere, what tables call it."""
        model = self.record.get("model", {})
        return str(model["name"]) if model.get("commit") else self.model


def measure(named: Named, manner: Manner | None = None) -> list[Measured]:
    """The numbers of all tasks of saved scores."""
    manner = manner or Manner()
    sheets = make_sheets([named], manner)
    return [_measured(named, cell, sheet, manner) for cell, (sheet,) in sheets.items() if cell.task != OVERALL]


def model_index(measured: Sequence[Measured]) -> str:
    """The metadata of a model card: YAML with a `model-index`, by huggingface_hub."""
    from huggingface_hub import EvalResult, ModelCardData

    found = [
        EvalResult(
            task_type=KINDS.get(one.record.get("model", {}).get("family", ""), "other"),
            task_name=f"{one.cell.task} ({one.cell.language}), {one.method}",
            dataset_type=one.hub_dataset or "stereoset",
            dataset_name=f"StereoSet {one.config}" if one.cell.task not in PAIR_TASKS else one.config,
            dataset_config=one.config,
            dataset_split=one.cell.split,
            dataset_args=_plain({"data_sha256": _task(one).get("data_sha256"), "partial": one.question["partial"]}),
            metric_type=one.name(number),
            metric_name=f"{number}, {one.method}",
            metric_value=figure.value,
            metric_args=_plain(_how(one) | _interval(one, number)),
        )
        for one in measured
        for number, figure in one.figures.items()
    ]
    return ModelCardData(model_name=measured[0].model, eval_results=found).to_yaml()


def eval_results(measured: Sequence[Measured]) -> str:
    """A file for the hub's folder .eval_results: YAML, by huggingface_hub; of data sets that the hub has."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml
    from huggingface_hub.utils import yaml_dump

    entries = [
        EvalResultEntry(
            dataset_id=one.hub_dataset,
            task_id=one.name(number),
            value=figure.value,
            notes=f"{one.method}; {_bounds(one, figure)}; {one.signature}",
        )
        for one in measured
        if one.hub_dataset
        for number, figure in one.figures.items()
    ]
    lines = [
        f"# Left out, for the hub has no data set of it: {one.config}, {one.cell.split}" for one in left_out(measured)
    ]
    return "\n".join([*lines, yaml_dump(eval_result_entries_to_yaml(entries))])


def left_out(measured: Sequence[Measured]) -> list[Measured]:
    """What `eval_results` has no place for."""
    return [one for one in measured if not one.hub_dataset]


def every_eval_ever(
    measured: Sequence[Measured], organization: str = "unknown", now: float | None = None
) -> dict[str, Any]:
    """A record of Every Eval Ever, schema 0.3.0 (evaleval/every_eval_ever, eval.schema.json), ready for JSON.

    Args:
        measured: the numbers.
        organization: who gives the data.
        now: seconds since 1970; None for the time it is.
    """
    first, moment = measured[0], f"{int(time.time() if now is None else now)}"
    model = first.record.get("model", {})
    details = {
        "deployment_type": "self_deployed" if model else "unknown",
        "model_availability": "open_weights" if model.get("commit") else "unknown",
        **_texts({key: model.get(key) for key in ("commit", "family")}),
    }
    return {
        "schema_version": "0.3.0",
        "evaluation_id": f"stereoset/{first.model_id.replace('/', '_')}/{moment}",
        "retrieved_timestamp": moment,
        "source_metadata": {
            "source_name": "stereoset",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": "stereoset", "version": first.record.get("versions", {}).get("stereoset", VERSION)},
        "model_info": {"name": first.model, "id": first.model_id, "additional_details": details},
        "evaluation_results": [
            _evaluation(one, number, figure) for one in measured for number, figure in one.figures.items()
        ],
    }


def lm_eval(measured: Sequence[Measured], now: float | None = None) -> dict[str, Any]:
    """Results in the layout of lm-eval's results_*.json, ready for JSON; percent stays percent.

    Args:
        measured: the numbers.
        now: seconds since 1970; None for the time it is.
    """
    by_name = {one.name(""): one for one in measured}
    first = measured[0]
    return {
        "results": {name: {"alias": name, **_lm_eval_numbers(one)} for name, one in by_name.items()},
        "group_subtasks": {name: [] for name in by_name},
        "configs": {name: _lm_eval_config(name, one) for name, one in by_name.items()},
        "versions": dict.fromkeys(by_name, VERSION),
        "n-shot": dict.fromkeys(by_name, 0),
        "higher_is_better": {name: _higher_is_better(one) for name, one in by_name.items()},
        "n-samples": {name: {"original": one.count, "effective": one.count} for name, one in by_name.items()},
        "config": {
            "model": "stereoset",
            "model_args": f"pretrained={first.model_id}",
            "bootstrap_iters": first.manner.resampling.resamples,
            "random_seed": first.manner.resampling.seed,
        },
        "git_hash": None,
        "date": time.time() if now is None else now,
        "model_name": first.model_id,
    }


def _higher_is_better(one: Measured) -> dict[str, bool]:
    return {number: not lower for number, lower in LOWER_IS_BETTER.items() if number in one.figures}


def _measured(named: Named, cell: Cell, sheet: Sheet, manner: Manner) -> Measured:
    units = sheet.judged.units(manner.average == "example" or cell.task in PAIR_TASKS)
    draws = resampled(units, manner.resampling)
    numbers = dict(figures(units, manner.resampling))
    if draws:
        draws[BIAS] = np.abs(draws["ss"] - 50)
    bounds = np.quantile(draws[BIAS], _tails(manner.resampling.level)) if draws else ()
    numbers[BIAS] = Figure(abs(numbers["ss"].value - 50), *map(float, bounds))
    judgements = sheet.judged.judgements
    (config,) = sheet.parts
    counted = f"average:{manner.average}|ties:{manner.ties}|metric:{VERSION}"
    return Measured(
        named.name,
        cell,
        config,
        facts(sheet),
        len(judgements),
        len({judgement.target for judgement in judgements}),
        sum(judgement.tie for judgement in judgements),
        numbers,
        {name: float(np.std(values, ddof=1)) for name, values in draws.items() if len(values) > 1},
        f"{named.saved.signature}|{counted}",
        named.saved.record,
        manner,
    )


def _tails(level: float) -> tuple[float, float]:
    return (1 - level) / 2, (1 + level) / 2


def _task(one: Measured) -> Mapping[str, Any]:
    """What the record says of the task."""
    return one.record.get("tasks", {}).get(one.config, {})


def _how(one: Measured) -> dict[str, Any]:
    """How the numbers of a task were made, in a few words each."""
    manner = one.manner
    return {**one.question, "average": manner.average, "ties": manner.ties, "signature": one.signature}


def _interval(one: Measured, number: str) -> dict[str, Any]:
    figure, resampling = one.figures[number], one.manner.resampling
    if figure.low is None:
        return {}
    return {"low": figure.low, "high": figure.high, "confidence": resampling.level, "resamples": resampling.resamples}


def _bounds(one: Measured, figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return "no interval"
    return f"{one.manner.resampling.level:.0%} interval {figure.low:.2f} to {figure.high:.2f}"


def _evaluation(one: Measured, number: str, figure: Figure) -> dict[str, Any]:
    """A result of Every Eval Ever."""
    unbounded = number == "log_odds"
    config = {
        "evaluation_description": MEANINGS[number],
        "metric_id": f"stereoset.{number}",
        "metric_name": f"{number}, {one.method}",
        "metric_unit": UNITS.get(number, "percent"),
        "metric_parameters": {name: value for name, value in _how(one).items() if name != "signature"},
        "lower_is_better": LOWER_IS_BETTER.get(number, False),
        "score_type": "continuous",
        "min_score": "-Infinity" if unbounded else 0,
        "max_score": "Infinity" if unbounded else 50 if number == BIAS else 100,
    }
    if number not in LOWER_IS_BETTER:
        config["additional_details"] = {"direction": "neither lower nor higher is better"}
    counts = _texts({"examples": one.count, "target_terms": one.terms, "ties": one.ties})
    return {
        "evaluation_result_id": one.name(number),
        "evaluation_name": f"stereoset {one.config}, {one.method}",
        "source_data": _source(one),
        "metric_config": config,
        "score_details": {
            "score": figure.value,
            "details": counts | {"signature": one.signature},
            **({"uncertainty": _uncertainty(one, number)} if figure.low is not None else {}),
        },
    }


def _uncertainty(one: Measured, number: str) -> dict[str, Any]:
    figure, resampling = one.figures[number], one.manner.resampling
    method = "percentile bootstrap over target terms"
    bounds = {"lower": figure.low, "upper": figure.high, "confidence_level": resampling.level, "method": method}
    found = {"confidence_interval": bounds, "num_samples": one.count, "num_bootstrap_samples": resampling.resamples}
    if number in one.errors:
        found["standard_error"] = {"value": one.errors[number], "method": "bootstrap over target terms"}
    return found


def _source(one: Measured) -> dict[str, Any]:
    """Where the examples are from, as Every Eval Ever has it."""
    known = {"config": one.config, "split": one.cell.split, "data_sha256": _task(one).get("data_sha256")}
    details = {"additional_details": _texts(known)}
    if one.hub_dataset:
        names = {"dataset_name": one.hub_dataset, "source_type": "hf_dataset", "hf_repo": one.hub_dataset}
        return {**names, "samples_number": one.count, **details}
    return {"dataset_name": f"stereoset {one.config}", "source_type": "other", **details}


def _lm_eval_numbers(one: Measured) -> dict[str, Any]:
    return {
        key: value
        for number, figure in one.figures.items()
        for key, value in (
            (f"{number},none", figure.value),
            (f"{number}_stderr,none", one.errors.get(number, "N/A")),
        )
    }


def _lm_eval_config(name: str, one: Measured) -> dict[str, Any]:
    return {
        "task": name,
        "dataset_path": one.hub_dataset or "stereoset",
        "dataset_name": one.config,
        "test_split": one.cell.split,
        "num_fewshot": 0,
        "metric_list": [{"metric": number, "aggregation": one.manner.average} for number in one.figures],
        "metadata": {"version": VERSION, "unit": "percent", **_how(one)},
    }


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """What there is of some values, as text."""
    return {name: str(value) for name, value in values.items() if value is not None}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """What there is of some values."""
    return {name: value for name, value in values.items() if value is not None}


TEXTS: dict[str, Callable[[Sequence[Measured]], str]] = {"model-index": model_index, "eval-results": eval_results}
RECORDS: dict[str, Callable[[Sequence[Measured]], dict[str, Any]]] = {
    "every-eval-ever": every_eval_ever,
    "lm-eval": lm_eval,
}
