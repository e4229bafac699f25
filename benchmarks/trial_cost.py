"""What trials cost beside the scoring that they are for: processor time, of both tasks together and of each alone."""

import time
from dataclasses import dataclass

from stereoset_scoring import load_scorer
from stereoset_scoring.engines.base import Engine

LIMIT = 2  # percent of scoring the examples of both tasks, as scripts/score.py does


@dataclass(frozen=True)
class Cost:
    """Seconds of the processor.

    Attributes:
        family: "causal" or "masked".
        trial: of the first trial that a fresh scorer makes, a median.
        scoring: {task: without the trial}.
    """

    family: str
    trial: float
    scoring: dict[str, float]

    def share(self, *tasks: str) -> float:
        """The trial over the scoring of some tasks, in percent; one trial serves all of them."""
        return 100 * self.trial / sum(self.scoring[task] for task in tasks)


def measure_trials(family, model, tokenizer, rows, rounds) -> Cost:
    """The Cost of a model's trials, by {task: rows}; masked models are asked by pseudo-likelihood across sentences."""
    method = {"intersentence": "pseudo_likelihood"} if family == "masked" else None
    trials = []
    for _ in range(rounds + 1):  # the first does not count
        scorer = load_scorer(model=model, tokenizer=tokenizer, method=method)
        trials.append(_seconds_of_trials(scorer, rows))
    scoring = {}
    for task, some in rows.items():
        begun = time.process_time()
        scorer.score(some)  # it has been tried
        scoring[task] = time.process_time() - begun
    return Cost(family, sorted(trials[1:])[rounds // 2], scoring)


def _seconds_of_trials(scorer, rows):
    """Seconds that planning all tasks spends on trials."""
    spent, tried = [], Engine.try_out

    def timed(engine, groups):
        begun = time.process_time()
        tried(engine, groups)
        spent.append(time.process_time() - begun)

    Engine.try_out = timed
    try:
        scorer.plan_all(rows)
    finally:
        Engine.try_out = tried
    return sum(spent)
