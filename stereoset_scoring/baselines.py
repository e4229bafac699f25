"""The baselines of Nadeem et al. 2021, §5.3, that ask no model: from rows, and from other models' scores, to scores.

Their scores are numbers to compare within an example and nothing more; see Baseline for how they are run. The fifth
one, sentiment, does ask a model: it is the method of the kind of model "sentiment".
"""

import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import InitVar, dataclass, field
from functools import partial
from math import log
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn, Protocol

from stereoset_scoring.files.predictions import option_ids, read_predictions
from stereoset_scoring.planning.job import Job, Planned, Questions
from stereoset_scoring.planning.plan import make_job
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.planning.rows import Recipe, Values
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.questions.configs import PAIRS, asked_as, split_config
from stereoset_scoring.questions.examples import gold_labels, read_example
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import MissingHead, Refusal
from stereoset_scoring.roles import Rows

PREFIX = "baseline:"
PREFERRED, OTHER, UNRELATED = -1.0, -2.0, -3.0  # any three numbers in this order
# What the winner of a pair adds to its score, times its own score: gpt2-large, bert-large-cased, gpt2-medium.
ENSEMBLE_WEIGHTS = {"intrasentence": (10000, 1, 10000), "intersentence": (15, 35, 15)}

Data = Mapping[str, Rows]  # {config: rows}
Scores = dict[str, list[list[float]]]  # {config: scores[i][j] of option j of row i}
Walk = list[tuple[str, int]]  # (config, index) of some rows, in the order in which they are chosen or not
Table = tuple[str | None, str | None]  # a config and a bias type, None for all of them, of which ss is computed


class Rule(Protocol):
    """How a baseline scores; a dataclass, whose fields are its options."""

    @property
    def name(self) -> str: ...

    def scores(self, data: Data) -> Scores:
        """The scores of all options of all rows."""


@dataclass(frozen=True)
class Ideal:
    """Always related before unrelated; the stereotype in every other example of a target term.

    So lms is 100, and ss is 50 for every term with an even number of examples, within a task and over both; for the
    others it is off by half an example, and they are set against each other so that the means come near 50 too.
    """

    name = "ideal"

    def scores(self, data: Data) -> Scores:
        """{config: scores[i][j] of option j of row i}, of {config: rows}."""
        stereotyped = set()
        for of_language in _by_language(data):
            stereotyped |= _every_other(of_language)
        scores = {}
        for config, rows in data.items():
            preferred = ["stereotype" if (config, i) in stereotyped else "anti-stereotype" for i in range(len(rows))]
            scores[config] = list(map(_ranked, rows, preferred))
        return scores


@dataclass(frozen=True)
class Stereotyped:
    """Always the stereotype, then the anti-stereotype, then the unrelated option: ss and lms are 100."""

    name = "stereotyped"

    def scores(self, data: Data) -> Scores:
        """{config: scores[i][j] of option j of row i}, of {config: rows}."""
        scores = {}
        for config, rows in data.items():
            scores[config] = [_ranked(row, "stereotype") for row in rows]
        return scores


@dataclass(frozen=True)
class Random:
    """ln of a uniform number per option id: the same in any order, in any part of the data, on any machine.

    Options:
        seed: of the numbers.
    """

    name = "random"
    seed: int

    def scores(self, data: Data) -> Scores:
        """{config: scores[i][j] of option j of row i}, of {config: rows}."""
        scores = {}
        for config, rows in data.items():
            scores[config] = [list(map(self._score, option_ids(row))) for row in rows]
        return scores

    def _score(self, option: str) -> float:
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

    def __post_init__(self, files: tuple[str, str, str]) -> None:
        self._files = files
        self.sha256 = ",".join(hashlib.sha256(Path(file).read_bytes()).hexdigest()[:8] for file in files)

    def scores(self, data: Data) -> Scores:
        """{config: scores[i][j] of option j of row i}, of {config: rows}.

        Raises:
            OSError: if a file is missing.
            Refusal: if a file lacks a score, or holds logarithms.
        """
        by_file = {file: read_predictions(file)[0] for file in self._files}
        scores = {}
        for config, rows in data.items():
            known = {file: by_config.get(config, {}) for file, by_config in by_file.items()}
            scores[config] = [self._of_row(row, config, known) for row in rows]
        return scores

    def _of_row(self, row: Mapping[str, Any], config: str, known: Mapping[str, Mapping[str, float]]) -> list[float]:
        """The weighted sums of a row's options, of {file: {option's id: its score}}."""
        by_model = [_probabilities(row, config, file, known[file]) for file in self._files]
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


def _probabilities(row: Mapping[str, Any], config: str, file: str, by_id: Mapping[str, float]) -> list[float]:
    """The scores of a row's options in a file, checked."""
    for option in option_ids(row):
        if by_id.get(option) is None:
            raise Refusal(
                f"{file} has no score for option {option!r} of {config}: give files that score the same examples."
            )
    found = [by_id[option] for option in option_ids(row)]
    if min(found) < 0:
        raise Refusal(f"{file} holds log-scores: write it again with --scale probability.")
    return found


@dataclass(frozen=True)
class NoModel:
    """Where the scores of a baseline come from, as a record says it: an Origin of which its name alone is known."""

    name: str
    family: str = "baseline"
    revision: str | None = None
    commit: str | None = None
    base: str | None = None
    next_sentence_head: str | None = None
    tokenizer: Tokenizer | None = None

    def head(self, name: str) -> NoReturn:
        """There is none."""
        raise MissingHead(f"{self.name} asks no model, and has no head {name!r}: score it as it is.")


class Baseline:
    """What a run asks for scores where there is no model: see `stereoset_scoring.roles.Scores`.

    Args:
        rule: an Ideal, Stereotyped, Random or Ensemble.
        name: what the record calls it.
    """

    preset: str | None = None
    max_tokens: int | None = None
    costs: Mapping[str, int] = MappingProxyType({})
    computes_elsewhere = False
    width: int | None = None

    def __init__(self, rule: Rule, name: str):
        self.rule, self.source = rule, NoModel(name)
        self._recipes: dict[str, list[list[Recipe]]] = {}

    def method(self, task: str) -> Rule:
        """The rule, in every task."""
        return self.rule

    def fallback(self, task: str) -> None:
        """There is no other default to fall back from."""
        return None

    def unanswerable(self, data: Data) -> dict[str, str]:
        """The data sets whose task the rule does not know, of {name: rows}: {name: the reason}.

        Raises:
            Refusal: if those are all data sets.
        """
        tasks = {name: read_example(rows[0]).task for name, rows in data.items()}
        known = getattr(self.rule, "tasks", tasks.values())
        refused = {
            name: f"{self.source.name.partition('=')[0]} has no rule for {task}: score {' or '.join(known)}."
            for name, task in tasks.items()
            if task not in known
        }
        if refused and len(refused) == len(data):
            raise Refusal(next(iter(refused.values())))
        return refused

    def asks(self, data: Data) -> None:
        """Nothing that the next one could use."""

    def is_sharded(self, heads: Iterable[str]) -> bool:
        """Whether a model lies in parts: there is none."""
        return False

    def try_out(self, data: Data) -> dict[str, Job]:
        """{config: its Job}, of {config: rows}; nothing is left to be read in them.

        Raises:
            OSError, Refusal: as the rule.
        """
        for config, scores in self.rule.scores(data).items():
            self._recipes[config] = list(map(_known_already, scores))
        return {config: _nothing_to_read(self._recipes[config]) for config in data}

    def questions(self, portion: Portion, rows: Sequence[Mapping[str, Any]], leave_out: bool = False) -> Questions:
        """What nobody reads."""
        return Questions(self._recipes[portion.config][portion.start : portion.stop], {})

    def plan_part(
        self,
        portion: Portion,
        rows: Sequence[Mapping[str, Any]],
        leave_out: bool = False,
        questions: Questions | None = None,
    ) -> Planned:
        """The part of its config's Job, now that this is known; none is refused."""
        return Planned(_nothing_to_read((questions or self.questions(portion, rows)).recipes), {})

    def as_tried(self) -> AbstractContextManager[None]:
        """There is nothing to try."""
        return nullcontext()

    def evaluating(self, heads: Iterable[str]) -> AbstractContextManager[None]:
        """There is no model to put in evaluation mode."""
        return nullcontext()

    def log_probs(self, units: Sequence[Unit]) -> Values:
        """There is nothing to be read, and no batch holds a row."""
        raise NotImplementedError(f"{self.source.name} asks no model.")


def load_baseline(text: str, seed: int = 0) -> Baseline:
    """The Baseline that a text names.

    Args:
        text: "baseline:ideal", "baseline:stereotyped", "baseline:random" or "baseline:ensemble=FILE,FILE,FILE".
        seed: of the random one.

    Raises:
        Refusal: if it names no baseline.
    """
    name, _, value = text.removeprefix(PREFIX).partition("=")
    rules: dict[str, Rule] = {"ideal": Ideal(), "stereotyped": Stereotyped(), "random": Random(seed)}
    if name in rules and not value:
        return Baseline(rules[name], text)
    if name == "ensemble" and value.count(",") == 2:
        first, second, third = value.split(",")
        return Baseline(Ensemble((first, second, third)), text)
    raise Refusal(
        f"{text!r} is no baseline: choose {PREFIX}ideal, {PREFIX}stereotyped, {PREFIX}random, "
        f"{PREFIX}sentiment=MODEL or {PREFIX}ensemble=GPT2-LARGE,BERT-LARGE-CASED,GPT2-MEDIUM (three prediction files)."
    )


def is_baseline(text: object) -> bool:
    """Whether a text, such as "baseline:ideal", is meant to name a baseline."""
    return str(text).startswith(PREFIX)


def sentiment_model(text: object) -> str | None:
    """The model that "baseline:sentiment=MODEL" names; None for any other text."""
    prefix = f"{PREFIX}sentiment="
    return str(text).removeprefix(prefix) or None if str(text).startswith(prefix) else None


def _known_already(scores: Sequence[float]) -> list[Recipe]:
    """Recipes of scores that are known without reading anything."""
    return [Recipe((), partial(_known, score)) for score in scores]


def _known(score: float, values: Values) -> float:
    return score


def _nothing_to_read(recipes: list[list[Recipe]]) -> Job:
    """The Job of recipes without rows."""
    return make_job(recipes, max_tokens=1)


def _ranked(row: Mapping[str, Any], preferred: str) -> list[float]:
    """Scores of a row's options: the preferred label, the other related one, the unrelated one."""
    return [
        PREFERRED if label == preferred else UNRELATED if label == "unrelated" else OTHER for label in gold_labels(row)
    ]


def _every_other(data: Data) -> set[tuple[str, int]]:
    """The (config, index) of the rows of a language in which the stereotype is preferred.

    Those are every other row of each target term, its tasks one after the other. A term with an odd number of rows is
    half an example off, to one side or the other; which, is chosen such that the terms make up for one another.
    """
    chosen: set[tuple[str, int]] = set()
    balance: dict[Table, float] = defaultdict(float)  # how far every table is from 50 so far
    # The terms with few rows first: half an example of theirs weighs most, and the others can make up for it.
    for walk in sorted(_walks(data).values(), key=len):
        shift = _shift(walk, data)
        too_high = sum(balance[table] * shift[table] for table in shift) > 0
        chosen.update(walk[1::2] if too_high else walk[0::2])
        for table in shift:
            balance[table] += -shift[table] if too_high else shift[table]
    return chosen


def _walks(data: Data) -> dict[str, Walk]:
    """The rows of each target term, in the order of the data."""
    walks: dict[str, Walk] = defaultdict(list)
    for config, rows in data.items():
        for i, row in enumerate(rows):
            walks[row["target"]].append((config, i))
    return walks


def _shift(walk: Walk, data: Data) -> dict[Table, float]:
    """How far a term's ss is from 50 in every table that it enters, if the first row of its walk is chosen."""
    signs: Counter[Table] = Counter()
    counts: Counter[Table] = Counter()
    for place, (config, i) in enumerate(walk):
        for table in _tables_of(config, data[config][i]):
            signs[table] += -1 if place % 2 else 1
            counts[table] += 1
    return {table: sign / counts[table] for table, sign in signs.items()}


def _tables_of(config: str, row: Mapping[str, Any]) -> tuple[Table, Table, Table]:
    """The tables that a row counts in: of its config, of its bias type in that, and of everything."""
    return (config, None), (config, row["bias_type"]), (None, None)


def _by_language(data: Data) -> list[dict[str, Rows]]:
    """The data of each language, its configs together, pairs apart."""
    groups: dict[tuple[str, bool], dict[str, Rows]] = defaultdict(dict)
    for config, rows in data.items():
        _, language = split_config(config)
        groups[language, asked_as(config) == PAIRS][config] = rows
    return list(groups.values())
