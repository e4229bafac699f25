"""Alarms: what in scores, data or tokens says that a table must not be read as it stands.

Pure functions over plain data, without torch. Each is told what it judges, such as "intersentence (de)", and returns an
alarm, {"alarm": its kind, "of": what it judges, "seen": the numbers, "words": these and what they mean}, or None.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from math import exp, fsum, lgamma, log
from typing import Any

from stereoset_scoring.questions.examples import gold_labels, options_of

Alarm = dict[str, str]
Rows = Sequence[Mapping[str, Any]]  # of the data set
Scores = Sequence[Sequence[float]]  # scores[i][j] of option j of row i

NEAR_CHANCE = 60  # percent of lms; a random model has 50
FAR_BELOW_CHANCE = 40
TIES_OF_HALF_PRECISION = 0.05  # of the examples: GPT-2 in bfloat16 ties in 4.3 % of StereoSet's
FORCED = 0.01  # of the examples: as many points of ss hang on them
UNKNOWN = 0.03  # of the tokens
HALF = 0.5  # of the probability
NEARLY_ALWAYS = 0.9  # of the prompts; a third of them, or half, where nothing but the options counts
BY_CHANCE = 0.01  # how likely a count is still taken for chance
SURELY = 0.001
KINDS = {
    # kind: (what is seen, what it means)
    "low lms": (
        "WARNING: lms near chance (50)",
        "a broken set-up rather than a bad model; check model, method and data before reading ss.",
    ),
    "turned round": (
        "WARNING: lms far below chance (50)",
        "the scores seem to be turned round; higher must mean preferred.",
    ),
    "ties": (
        "WARNING: options of different texts score equal",
        f"half precision explains {TIES_OF_HALF_PRECISION:.0%}; these scores do not tell options apart, and ss says "
        "nothing: check model and tokenizer, or score in float32.",
    ),
    "equal options": (
        "WARNING: options are equal as texts or as tokens",
        "they tie under any model; the data repeats them, or the tokenizer cannot tell them apart.",
    ),
    "unknown tokens": (
        "WARNING: tokens unknown to the tokenizer",
        "the model does not see what it scores; give one that was made for this language and script.",
    ),
    "letters": (
        "WARNING: the answers are hardly letters",
        "the model does not answer as it was asked, and its choice says little; read likelihood instead.",
    ),
    "place": (
        "WARNING: one place among the options wins nearly always",
        "the model answers with a letter, whatever stands under it; its choice says little.",
    ),
    "chat template": (
        "NOTE: a chat template was not used",
        "texts were scored as they are, as for a base model.",
    ),
}


def low_lms(of: str, lms: float | None) -> Alarm | None:
    """An lms that a model without any knowledge might have: under 60.

    Args:
        of: what is judged.
        lms: in percent; None where there are no unrelated options.
    """
    return None if lms is None or lms >= NEAR_CHANCE else _alarm("low lms", of, f"{lms:.1f} on {of}")


def turned_round(of: str, lms: float | None, rows: Rows, scores: Scores) -> Alarm | None:
    """An lms under 40 that is no chance: of examples whose unrelated option is first or last, it is first too often.

    By a sign test, one-sided, at 0.1 %; ties count for neither side.

    Args:
        of: what is judged.
        lms: in percent; None where there are no unrelated options.
        rows, scores: of the data set.
    """
    if lms is None or lms >= FAR_BELOW_CHANCE:
        return None
    places = [_place_of_unrelated(row, of_row) for row, of_row in zip(rows, scores, strict=True)]
    first, last = places.count("first"), places.count("last")
    if at_least(first, first + last, 0.5) >= SURELY:
        return None
    return _alarm(
        "turned round", of, f"{lms:.1f} on {of} with the unrelated option first {first} times and last {last} times"
    )


def many_ties(of: str, rows: Rows, scores: Scores) -> Alarm | None:
    """More examples in which options of different texts score equal than half precision explains.

    Those are 5 % of the examples, or a number that is not above it by more than chance (one-sided, 1 %).

    Args:
        of: what is judged.
        rows, scores: of the data set.
    """
    tied = sum(False in _ties(row, of_row) for row, of_row in zip(rows, scores, strict=True))
    if at_least(tied, len(rows), TIES_OF_HALF_PRECISION) >= BY_CHANCE:
        return None
    return _alarm("ties", of, f"in {tied} of {len(rows)} examples of {of}")


def equal_options(of: str, equal: int, examples: int) -> Alarm | None:
    """Options that are the same to the model, and so tie whatever it knows, in more than one example of a hundred.

    Args:
        of: what is judged.
        equal: how many examples have two options that are equal, as texts or as tokens.
        examples: of how many.
    """
    return (
        _alarm("equal options", of, f"in {equal} of {examples} examples of {of}") if equal > FORCED * examples else None
    )


def unknown_tokens(of: str, unknown: int, tokens: int) -> Alarm | None:
    """A tokenizer that does not know the text: more than 3 % of its tokens stand for anything unknown.

    Args:
        of: what is judged.
        unknown: how many tokens of the options' texts are the unknown one.
        tokens: of how many.
    """
    if unknown <= UNKNOWN * tokens:
        return None
    return _alarm("unknown tokens", of, f"{unknown} of {tokens} ({unknown / tokens:.1%}) of {of}")


def few_letters(of: str, observed: Mapping[str, float]) -> Alarm | None:
    """Answers to a choice that begin with no letter: all letters together hold less than half of the probability.

    Args:
        of: what is judged.
        observed: what a run's record says was observed of it; empty for nothing.
    """
    mass = observed.get("letters", 1.0)
    return None if mass >= HALF else _alarm("letters", of, f"which hold {mass:.1%} of the probability on {of}")


def one_place(of: str, observed: Mapping[str, float]) -> Alarm | None:
    """A choice that is one place's in nine of ten prompts; see `few_letters` for what is given."""
    places = {name.removeprefix("place "): share for name, share in observed.items() if name.startswith("place ")}
    name, share = max(places.items(), key=lambda one: one[1], default=("", 0.0))
    return None if share < NEARLY_ALWAYS else _alarm("place", of, f"{name} in {share:.1%} of the prompts of {of}")


def unused_chat_template(of: str) -> Alarm:
    """A tokenizer with a chat template, whose model was given plain text.

    Args:
        of: the model's name.
    """
    return _alarm("chat template", of, f"that of {of}")


def lines_of(alarms: Iterable[Mapping[str, str]]) -> list[str]:
    """Alarms as text, a line for each kind."""
    seen = defaultdict(list)
    for alarm in alarms:
        seen[alarm["alarm"]].append(alarm["seen"])
    return [_words(kind, ", ".join(some)) for kind, some in seen.items()]


def equal_texts(rows: Rows, scores: Scores) -> int:
    """How many examples have options of one text that score equal."""
    return sum(True in _ties(row, of_row) for row, of_row in zip(rows, scores, strict=True))


def at_least(count: int, trials: int, probability: float) -> float:
    """The probability of at least so many successes, of so many trials that succeed with a probability each."""
    if count <= 0:
        return 1.0
    return fsum(
        exp(
            lgamma(trials + 1)
            - lgamma(k + 1)
            - lgamma(trials - k + 1)
            + k * log(probability)
            + (trials - k) * log(1 - probability)
        )
        for k in range(count, trials + 1)
    )


def _alarm(kind: str, of: str, seen: str) -> Alarm:
    return {"alarm": kind, "of": of, "seen": seen, "words": _words(kind, seen)}


def _words(kind: str, seen: str) -> str:
    what, meaning = KINDS[kind]
    return f"{what}, {seen}: {meaning}"


def _ties(row: Mapping[str, Any], scores: Sequence[float]) -> list[bool]:
    """Of each two options of an example that score equal: whether their texts are the same."""
    if len(set(scores)) == len(scores):  # as of nearly all
        return []
    options = options_of(row)
    return [_alike(options[i], options[j]) for i, j in combinations(range(len(scores)), 2) if scores[i] == scores[j]]


def _alike(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two options read the same, letter case and white space aside; a method may read the word alone."""
    return any(_plain(first.get(part)) == _plain(second.get(part)) != "" for part in ("sentence", "word"))


def _plain(text: str | None) -> str:
    return " ".join((text or "").lower().split())


def _place_of_unrelated(row: Mapping[str, Any], scores: Sequence[float]) -> str | None:
    """Whether the unrelated option of an example comes "first" or "last" of all; None in between, or where it ties."""
    by_label = dict(zip(gold_labels(row), scores, strict=True))
    unrelated = by_label.pop("unrelated", None)
    if unrelated is None or not by_label:
        return None
    if unrelated > max(by_label.values()):
        return "first"
    return "last" if unrelated < min(by_label.values()) else None
