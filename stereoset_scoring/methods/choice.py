"""Chat models: which option do they choose, when all are laid before them?"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import permutations
from math import exp, fsum, inf, log
from typing import Literal

from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.wordings import WORDINGS, Wording
from stereoset_scoring.planning.rows import Recipe, Row, Values
from stereoset_scoring.questions.chat import said
from stereoset_scoring.questions.examples import Example
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal

LETTERS = "ABC"
Order = tuple[int, ...]  # the option at each place


@dataclass(frozen=True)
class Choice(Method):
    """Mean ln of its letter's share of all letters, as the next token, over all orders of the options; at most 0.

    Options:
        wording: "1", "2" or "3", an instruction of `wordings`, or "all", over which scores are averaged.
        language: of the instruction.
    """

    name = "choice"
    source = "Robinson & Wingate 2023 (multiple choice prompting), over all orders as in Zheng et al. 2024"
    head = "causal"

    wording: Literal["1", "2", "3", "all"] = "all"
    language: Literal["en", "de", "es", "fr", "tr"] = "en"

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option, all of the same rows: each wording with each order of the options."""
        wordings = WORDINGS[self.language]
        chosen = wordings if self.wording == "all" else wordings[int(self.wording) - 1 :][:1]
        orders = list(permutations(range(len(example.options))))
        rows = tuple(_row(example, wording, order, tokenizer) for wording in chosen for order in orders)
        observe = partial(observed, orders=orders)
        return [
            Recipe(rows, partial(mean_log_share, option=i, orders=orders), part=i, observe=None if i else observe)
            for i in range(len(example.options))
        ]


def _row(example: Example, wording: Wording, order: Order, tokenizer: Tokenizer) -> Row:
    """The Row that reads each letter where the answer begins."""
    lines = [f"{letter}. {example.options[i].sentence}" for letter, i in zip(LETTERS, order, strict=False)]
    context = None if example.task == "intrasentence" else example.context
    turn = said(wording.asked(context, "\n".join(lines)), LETTERS[0], tokenizer)
    prompt = turn.ids[: turn.own.start]
    return Row("causal", prompt, tuple((len(prompt) - 1, token) for token in letter_tokens(tokenizer)[: len(order)]))


@lru_cache(maxsize=8)
def letter_tokens(tokenizer: Tokenizer) -> tuple[int, ...]:
    """The token of each letter where an answer begins.

    Raises:
        Refusal: if a letter is no token of its own there.
    """
    turns = [said("Which?", letter, tokenizer) for letter in LETTERS]
    tokens = tuple(turn.ids[turn.own.start] for turn in turns)
    alike = len({turn.ids[: turn.own.start] for turn in turns}) == 1
    if not alike or any(len(turn.own) > 1 for turn in turns) or len(set(tokens)) < len(tokens):
        raise Refusal(
            f"The tokenizer {tokenizer.hub.name_or_path!r} does not write {', '.join(LETTERS)} as a token each after "
            "its chat template: choose likelihood."
        )
    return tokens


def mean_log_share(values: Values, option: int, orders: Sequence[Order]) -> float:
    """The mean over all rows of ln of the share that the option's letter has of all letters.

    Args:
        values: values[r][k], ln P of letter k in row r; the rows go through the orders once for each wording.
        option: the option's number.
        orders: the orders of the options.
    """
    shares = [_log_shares(of_row)[order.index(option)] for of_row, order in _with_orders(values, orders)]
    return -inf if -inf in shares else fsum(shares) / len(shares)


def observed(values: Values, orders: Sequence[Order]) -> dict[str, float]:
    """What tells whether an answer means anything, before averaging.

    Args:
        values, orders: as `mean_log_share`.

    Returns:
        "letters": the mean probability of all letters together; "place A" …: how often that place, and letter, is the
        likeliest; of several wordings, "agreement": 1 where all prefer the same option, else 0; and "spread": how far
        apart the wordings' scores of an option lie, the mean over options, in nats.
    """
    found = {"letters": fsum(fsum(map(exp, of_row)) for of_row in values) / len(values)}
    shares = [_log_shares(of_row) for of_row in values]
    for k in range(len(orders[0])):
        wins = fsum(of_row[k] == max(of_row) and of_row.count(max(of_row)) == 1 for of_row in shares)
        found[f"place {LETTERS[k]}"] = wins / len(shares)
    by_wording = [values[first : first + len(orders)] for first in range(0, len(values), len(orders))]
    if len(by_wording) > 1:
        options = range(len(orders[0]))
        scores = [_mean_log_shares(some, orders) for some in by_wording]
        found["agreement"] = float(len({of_one.index(max(of_one)) for of_one in scores}) == 1)
        found["spread"] = fsum(max(of_one) - min(of_one) for of_one in zip(*scores, strict=True)) / len(options)
    return found


def _mean_log_shares(values: Values, orders: Sequence[Order]) -> list[float]:
    return [mean_log_share(values, i, orders) for i in range(len(orders[0]))]


def _with_orders(values: Values, orders: Sequence[Order]) -> list[tuple[Sequence[float], Order]]:
    return [(of_row, orders[r % len(orders)]) for r, of_row in enumerate(values)]


def _log_shares(readings: Sequence[float]) -> list[float]:
    """ln of each letter's share of all; equal ones where no letter has any probability that a float holds."""
    top = max(readings)
    if top == -inf:
        return [-log(len(readings))] * len(readings)
    total = top + log(fsum(exp(one - top) for one in readings))
    return [one - total for one in readings]
