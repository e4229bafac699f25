"""A callback of transformers' Trainer, and of those that inherit from it: ss, lms and icat at its evaluations."""

import math
import random
import sys
import warnings
from collections import defaultdict
from collections.abc import Mapping, MutableMapping, Sequence
from types import FrameType
from typing import Any

from transformers import PreTrainedModel, TrainerCallback, TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import CallbackHandler

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_scoring.planning.job import Job
from stereoset_scoring.processes.peers import Peers
from stereoset_scoring.reading import score_everywhere
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.roles import Rows
from stereoset_scoring.scorer import Scorer, load_scorer

NAMES = ("ss", "lms", "icat")
Numbers = dict[str, float]


class StereosetCallback(TrainerCallback):
    """eval_ss, eval_lms and eval_icat of the model in training, among the metrics of its evaluations.

    They are in the log and with every reporter, and may choose the best model (`metric_for_best_model="eval_icat"`) or
    stop the training early. All processes of the training share the work. The training's own weights, modes, gradients
    and random numbers stay as they would be without it.

    Args:
        examples: rows with gold labels, as `load_stereoset` gives them; or {name: rows}, whose metrics are called
            eval_<name>_ss and so on.
        tokenizer: the model's; None for the Trainer's processing_class.
        every: score at every n-th evaluation, the first one among them.
        draw: how many examples to draw, once, of each rows given; as many of each bias type as it has its share of
            all. None for all.
        seed: of the draw.
        breakdown: "bias_type" or "target", or both: also eval_<value>_ss and so on of each of their values.
        average, ties: as the metric takes them.
        strict: whether a failure ends the training; else it is a warning, and that evaluation has no such metrics.
        options: further arguments of `load_scorer`: method, preset, max_tokens and the methods' options.

    Raises:
        Refusal, ValueError: if there are no examples, or they cannot be judged, or a number is none.
    """

    def __init__(
        self,
        examples: Rows | Mapping[str, Rows],
        *,
        tokenizer: Any = None,
        every: int = 1,
        draw: int | None = None,
        seed: int = 0,
        breakdown: str | Sequence[str] | None = None,
        average: str = "target",
        ties: str = "strict",
        strict: bool = False,
        **options: Any,
    ):
        _check_count("every", every)
        if draw is not None:
            _check_count("draw", draw)
        data = examples if isinstance(examples, Mapping) else {"": examples}
        self.examples = {name: drawn(rows, draw, seed) for name, rows in data.items()}
        self.tokenizer, self.every, self.strict, self.options = tokenizer, every, strict, options
        self._counting: dict[str, Any] = {"breakdown": breakdown, "average": average, "ties": ties}
        self._references = {name: flat_references(rows) for name, rows in self.examples.items()}
        for references in self._references.values():  # refused now, if at all, and not hours later
            self._count([list(range(len(one["gold_label"] or ()))) for one in references], references)
        self._prepared: tuple[Any, Scorer, dict[str, Job]] | None = None
        self._evaluations = 0
        self._evaluation: tuple[str, int, set[str]] = ("", -1, set())  # its name, its step, the sets of data seen in it
        self._found: Numbers | None = None  # of the evaluation that was logged and has not ended

    def on_init_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Stand before those who report."""
        self._come_first()

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Refuse what would fail at the first evaluation that is left out.

        Raises:
            Refusal: if the best model is chosen by what is not there at every evaluation.
        """
        if self.every > 1 and _is_ours(best := _best(args), "eval"):
            raise Refusal(f"The best model is chosen by {best} at every evaluation: leave every={self.every} out.")
        if not self._come_first():
            warnings.warn("StereoSet's numbers reach the log, and reporters that were added later alone.", stacklevel=2)

    def on_prediction_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Stand before those who report, where an evaluation is the first thing that happens."""
        self._come_first()

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: MutableMapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Score where an evaluation is logged, and add the numbers to it before anybody else sees it."""
        prefix = _evaluated(logs or {})
        if logs is None or prefix is None:
            return
        self._found = self._evaluate(prefix, state, kwargs.get("model"), kwargs.get("processing_class"))
        logs.update(self._found)
        if state.log_history:
            state.log_history[-1].update(self._found)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: MutableMapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Add the numbers to what chooses the best model, which may be another mapping than was logged."""
        prefix = _evaluated(metrics or {})
        if metrics is None or prefix is None:
            return
        if self._found is None:  # it was not logged
            self._found = self._evaluate(prefix, state, kwargs.get("model"), kwargs.get("processing_class"))
        metrics.update(self._found)
        if self._failed and _is_ours(best := _best(args), _root(prefix)):
            metrics.setdefault(best, math.nan)  # better than nothing, and no number: the training goes on
        self._found = None

    _failed = False  # whether the evaluation at hand was to be scored and was not

    def _evaluate(self, prefix: str, state: TrainerState, model: Any, tokenizer: Any) -> Numbers:
        """The numbers to add to an evaluation; none where it is left out, was scored already, or cannot be scored."""
        self._failed = False
        if not self._begins(prefix, state.global_step):
            return {}
        self._evaluations += 1
        if (self._evaluations - 1) % self.every:
            return {}
        try:
            return self._numbers(_root(prefix), model, self.tokenizer or tokenizer)
        except Exception as error:  # of any make: a training is worth more than a number
            if self.strict:
                raise
            self._failed = True
            words = f"{type(error).__name__}: {error}"
            warnings.warn(f"StereoSet is not scored at step {state.global_step} ({words})", stacklevel=2)
            return {}

    def _begins(self, prefix: str, step: int) -> bool:
        """Whether an evaluation begins, and not the next of several sets of data of the one that was scored."""
        root, last, seen = self._evaluation
        if (root, last) == (_root(prefix), step) and prefix not in seen:
            seen.add(prefix)
            return False
        self._evaluation = _root(prefix), step, {prefix}
        return True

    def _numbers(self, root: str, model: PreTrainedModel, tokenizer: Any) -> Numbers:
        scorer, jobs = self._prepare(model, tokenizer)
        numbers: Numbers = {}
        for name, job in jobs.items():
            result = self._count(score_everywhere(scorer, job), self._references[name])
            numbers |= named(f"{root}_{name}" if name else root, result)
        return numbers

    def _prepare(self, model: Any, tokenizer: Any) -> tuple[Scorer, dict[str, Job]]:
        """The scorer and what it reads, made once for a model; sharding gives it another class."""
        key = model, type(model), tokenizer
        if self._prepared is None or any(one is not other for one, other in zip(self._prepared[0], key, strict=True)):
            self._prepared = key, *Peers().together(lambda: self._plan(model, tokenizer))
        return self._prepared[1:]

    def _plan(self, model: Any, tokenizer: Any) -> tuple[Scorer, dict[str, Job]]:
        if tokenizer is None:
            raise Refusal("The Trainer has no processing_class: give StereosetCallback a tokenizer.")
        scorer = load_scorer(model=model, tokenizer=tokenizer, **self.options)
        return scorer, scorer.plan_all(self.examples)

    def _count(self, scores: Any, references: Any) -> dict[str, Any]:
        return compute_score(scores, references, **self._counting)

    def _come_first(self) -> bool:
        """Stand first among the Trainer's callbacks, if that can be had: the numbers are then in what all others see.

        The Trainer calls those who report before those who were given to it, and tells no callback of the others: the
        list is its handler's, which is calling just now.
        """
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not _calls(frame.f_locals.get("self"), self):
            frame = frame.f_back
        if frame is None:
            return False
        callbacks = frame.f_locals["self"].callbacks
        if callbacks[0] is not self:  # moved in place: who is calling them one by one leaves nobody out
            callbacks.insert(0, callbacks.pop(next(i for i, one in enumerate(callbacks) if one is self)))
        return True


def drawn(rows: Rows, count: int | None, seed: int) -> list[Mapping[str, Any]]:
    """As many rows as count says, in their order; of each bias type its share, larger remainders first."""
    rows = list(rows)
    if not rows:
        raise Refusal("There are no examples to score: give rows of the data set.")
    if count is None or count >= len(rows):
        return rows
    groups: dict[str, list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[str(row.get("bias_type"))].append(i)
    shares = {name: count * len(group) / len(rows) for name, group in sorted(groups.items())}
    sizes = {name: int(share) for name, share in shares.items()}
    for name in sorted(shares, key=lambda name: sizes[name] - shares[name])[: count - sum(sizes.values())]:
        sizes[name] += 1
    generator = random.Random(seed)
    chosen = [i for name, size in sizes.items() for i in generator.sample(groups[name], size)]
    return [rows[i] for i in sorted(chosen)]


def named(prefix: str, result: Mapping[str, Any]) -> Numbers:
    """The metric's numbers under names of metrics: prefix_ss, …, prefix_<value>_ss, …; without what there is not."""
    found = {f"{prefix}_{name}": result[name] for name in NAMES if result[name] is not None}
    for groups in result.values():
        if isinstance(groups, Mapping):
            for value, group in groups.items():
                found |= named(f"{prefix}_{value}", group)
    return found


def _evaluated(logs: Mapping[str, Any]) -> str | None:
    """The prefix of the metrics of an evaluation, such as "eval"; None for anything else that is logged."""
    prefixes = [name.removesuffix("_runtime") for name in logs if name.endswith("_runtime")]
    return next((one for one in prefixes if one != "train" and f"{one}_samples_per_second" in logs), None)


def _root(prefix: str) -> str:
    """The prefix of our metrics: "eval" also where it has several sets of data, such as "eval_news"."""
    return "eval" if prefix.startswith("eval_") else prefix


def _best(args: TrainingArguments) -> str:
    """The metric by which the best model is chosen, by its whole name; "" where there is none."""
    name = args.metric_for_best_model or ""
    return name if name.startswith("eval_") or not name else f"eval_{name}"


def _is_ours(metric: str, root: str) -> bool:
    return metric.startswith(f"{root}_") and metric.endswith(tuple(f"_{name}" for name in NAMES))


def _calls(who: Any, callback: TrainerCallback) -> bool:
    return isinstance(who, CallbackHandler) and any(one is callback for one in who.callbacks)


def _check_count(name: str, number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise Refusal(f"{name} is {number!r}: give a whole number, 1 or more.")
