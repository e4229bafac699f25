"""The baselines of Nadeem et al. 2021, §5.3, that ask no model: from rows, and from other models' scores, to scores.

Their scores are numbers to compare within an example and nothing more; see Baseline for how they are run. The fifth
one, sentiment, does ask a model: it is the method of the kind of model "sentiment".
"""

import hashlib
import random
from collections import Counter, defaultdict
from contextlib import nullcontext
from dataclasses import InitVar, dataclass, field
from functools import partial
from math import log
from pathlib import Path

from stereoset_scoring.files.predictions import option_ids, read_predictions
from stereoset_scoring.planning.job import Job
from stereoset_scoring.planning.rows import Recipe
from stereoset_scoring.questions.configs import PAIRS, asked_as, split_config
from stereoset_scoring.questions.examples import gold_labels, read_example
from stereoset_scoring.refusal import Refusal

PREFIX = "baseline:"
PREFERRED, OTHER, UNRELATED = -1.0, -2.0, -3.0  # any three numbers in this order
# What the winner of a pair adds to its score, times its own score: gpt2-large, bert-large-cased, gpt2-medium.
ENSEMBLE_WEIGHTS = {"intrasentence": (10000, 1, 10000), "intersentence": (15, 35, 15)}


@dataclass(frozen=True)
class Ideal:
    """Always related before unrelated; the stereotype in every other example of a target term.

    So lms is 100, and ss is 50 for every term with an even number of examples, within a task and over both; for the
    others it is off by half an example, and they are set against each other so that the means come near 50 too.
    """

    name = "ideal"

    def scores(self, data):
        """{config: scores[i][j] of option j of row i}, of {config: rows}."""
        scores = {}
        for configs in _languages(data):
            stereotyped = _every_other({config: data[config] for config in configs})
            for config in configs:
                scores[config] = [
                    _ranked(row, "stereotype" if (config, i) in stereotyped else "anti-stereotype")
                    for i, row in enumerate(data[config])
                ]
        return scores


@dataclass(frozen=True)
class Stereotyped:
    """Always the stereotype, then the anti-stereotype, then the unrelated option: ss and lms are 100."""

    name = "stereotyped"

    def scores(self, data):
        """{config: scores[i][j] of option j of row i}, of {config: rows}."""
        return {config: [_ranked(row, "stereotype") for row in rows] for config, rows in data.items()}


@dataclass(frozen=True)
class Random:
    """ln of a uniform number per option id: the same in any order, in any part of the data, on any machine.

    Options:
        seed: of the numbers.
    """

    name = "random"
    seed: int

    def scores(self, data):
        """{config: scores[i][j] of option j of row i}, of {config: rows}."""
        return {config: [list(map(self._score, option_ids(row))) for row in rows] for config, rows in data.items()}

    def _score(self, option):
        return log(1 - random.Random(f"{self.seed}:{option}").random())


@dataclass
class Ensemble:
    """The released ensemble: in every pair of options, each model's winner adds its weighted score to its own sum.

    Reproduces StereoSet's predictions_EnsembleModel_.json to the last digit, from the files of its three models. The
    weights are made for probabilities, and what comes out are weighted sums, no logarithms.

    Options:
        files: prediction files of gpt2-large, bert-large-cased and gpt2-medium, in this order.
        sha256: the first digits of theirs, for the record.
    """

    name = "ensemble"
    tasks = tuple(ENSEMBLE_WEIGHTS)
    files: InitVar[tuple[str, str, str]]
    sha256: str = field(init=False)

    def __post_init__(self, files):
        self._files = files
        self.sha256 = ",".join(hashlib.sha256(Path(file).read_bytes()).hexdigest()[:8] for file in files)

    def scores(self, data):
        """{config: scores[i][j] of option j of row i}, of {config: rows}.

        Raises:
            OSError: if a file is missing.
            ValueError: if a file lacks a score, or holds logarithms.
        """
        models = [read_predictions(file)[0] for file in self._files]
        return {
            config: [
                self._of_row([self._probabilities(i, models[i], config, row) for i in range(3)], config) for row in rows
            ]
            for config, rows in data.items()
        }

    def _probabilities(self, i, model, config, row):
        """The scores of a row's options in a file, checked."""
        by_id = model.get(config, {})
        found = [by_id.get(option) for option in option_ids(row)]
        if None in found:
            raise Refusal(
                f"{self._files[i]} has no score for option {option_ids(row)[found.index(None)]!r} of {config}: "
                "give files that score the same examples."
            )
        if min(found) < 0:
            raise Refusal(f"{self._files[i]} holds log-scores: write it again with --scale probability.")
        return found

    @staticmethod
    def _of_row(by_model, config):
        weights = ENSEMBLE_WEIGHTS[asked_as(config)]
        options = range(len(by_model[0]))
        sums = [0.0 for _ in options]
        # Each option with the next, the last with the first: the order of the released sums, to the last digit.
        for pair in zip(options, [*options[1:], options[0]], strict=True):
            for weight, scores in zip(weights, by_model, strict=True):
                winner = max(pair, key=scores.__getitem__)
                if scores[pair[0]] != scores[pair[1]]:  # a tie adds nothing
                    sums[winner] += weight * scores[winner]
        return sums


class Baseline:
    """A scorer that asks no model, and stands wherever a Scorer can.

    Args:
        rule: an Ideal, Stereotyped, Random or Ensemble.
        name: what the record calls it.
    """

    family = "baseline"
    revision = commit = max_tokens = preset = next_sentence_head = tokenizer = None

    def __init__(self, rule, name):
        self.rule, self.name = rule, name

    @property
    def source(self):
        """What the record names as the model: the baseline itself."""
        return self

    def method(self, task):
        """The rule, in every task."""
        return self.rule

    def fallback(self, task):
        """There is no other default to fall back from."""
        return None

    def unanswerable(self, data):
        """The data sets whose task the rule does not know, of {name: rows}: {name: the reason}.

        Raises:
            ValueError: if those are all data sets.
        """
        tasks = {name: read_example(rows[0]).task for name, rows in data.items()}
        known = getattr(self.rule, "tasks", tasks.values())
        refused = {
            name: f"{self.name.partition('=')[0]} has no rule for {task}: score {' or '.join(known)}."
            for name, task in tasks.items()
            if task not in known
        }
        if refused and len(refused) == len(data):
            raise Refusal(next(iter(refused.values())))
        return refused

    def plan_all(self, data):
        """{config: its Job}, of {config: rows}; nothing is left to be read in them.

        Raises:
            OSError, ValueError: as the rule.
        """
        return {
            config: Job([[Recipe((), partial(_known, score)) for score in of_row] for of_row in scores], [], [])
            for config, scores in self.rule.scores(data).items()
        }

    def unscorable(self, dataset):
        """The rows that it refuses: none."""
        return {}

    def evaluating(self, heads):
        """There is no model to put in evaluation mode."""
        return nullcontext()


def load_baseline(text, seed=0):
    """The Baseline that a text names.

    Args:
        text: "baseline:ideal", "baseline:stereotyped", "baseline:random" or "baseline:ensemble=FILE,FILE,FILE".
        seed: of the random one.

    Raises:
        ValueError: if it names no baseline.
    """
    name, _, value = text.removeprefix(PREFIX).partition("=")
    files = tuple(value.split(","))
    rules = {"ideal": Ideal, "stereotyped": Stereotyped, "random": partial(Random, seed)}
    if name in rules and not value:
        return Baseline(rules[name](), text)
    if name == "ensemble" and len(files) == 3:
        return Baseline(Ensemble(files), text)
    raise Refusal(
        f"{text!r} is no baseline: choose {PREFIX}ideal, {PREFIX}stereotyped, {PREFIX}random, "
        f"{PREFIX}sentiment=MODEL or {PREFIX}ensemble=GPT2-LARGE,BERT-LARGE-CASED,GPT2-MEDIUM (three prediction files)."
    )


def is_baseline(text):
    """Whether a text, such as "baseline:ideal", is meant to name a baseline."""
    return str(text).startswith(PREFIX)


def sentiment_model(text):
    """The model that "baseline:sentiment=MODEL" names; None for any other text."""
    prefix = f"{PREFIX}sentiment="
    return str(text).removeprefix(prefix) or None if str(text).startswith(prefix) else None


def _known(score, values):
    """A Recipe's combine: a score that is known already."""
    return score


def _ranked(row, preferred):
    """Scores of a row's options: the preferred label, the other related one, the unrelated one."""
    return [
        PREFERRED if label == preferred else UNRELATED if label == "unrelated" else OTHER for label in gold_labels(row)
    ]


def _every_other(data):
    """The (config, i) of every other row of each target term of a language, its tasks one after the other."""
    walks = defaultdict(list)
    for config, rows in data.items():
        for i, row in enumerate(rows):
            walks[row["target"]].append((config, i))
    chosen, balance = set(), Counter()
    # The terms with few examples first: half an example of theirs weighs most, and the others can make up for it.
    for walk in sorted(walks.values(), key=len):
        leaning = _leaning(walk, data)
        first = sum(balance[table] * lean for table, lean in leaning.items()) > 0
        chosen.update(walk[first::2])
        for table, lean in leaning.items():
            balance[table] += -lean if first else lean
    return chosen


def _leaning(walk, data):
    """How far a term's ss is from 50 in every table it enters, if the first example of its walk is chosen."""
    signs, counts = Counter(), Counter()
    for place, (config, i) in enumerate(walk):
        for table in ((config, None), (config, data[config][i]["bias_type"]), (None, None)):
            signs[table] += -1 if place % 2 else 1
            counts[table] += 1
    return {table: sign / counts[table] for table, sign in signs.items()}


def _languages(data):
    """The configs of each language together, pairs apart."""
    groups = defaultdict(list)
    for config in data:
        _, language = split_config(config)
        groups[language, asked_as(config) == PAIRS].append(config)
    return groups.values()
