"""What a server is seen to do before it is believed: on real rows, in two orders, at every boundary."""

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, fsum, isinf
from typing import TYPE_CHECKING

from stereoset_scoring.refusal import Refusal
from stereoset_scoring.served.client import NotTaken
from stereoset_scoring.served.echo import ByText, Echo, Ids

if TYPE_CHECKING:
    from stereoset_scoring.served.engine import ServedEngine, Values

PROMPTS = 12
UNSTEADY = 0.05  # nats, the mean over tokens, that they may in half precision, and are reported
LARGEST = 1.0  # nats that they may move any one token by
SAME = 1e-3  # nats by which equal computations may differ, beside four times what another order makes
DECIMALS = 4  # to which who rounds makes ties that the model does not
LASTS = 4  # tokens that are tried in one place
ENOUGH = 8  # values, to tell what is rounded from chance


@dataclass(frozen=True)
class Found:
    """What a trial found.

    Attributes:
        asked_by: "token ids" or "text".
        spread: by how many nats the ln P of a token moves at most when the same is asked in another order.
    """

    asked_by: str
    spread: float


def try_server(engine: "ServedEngine", prompts: Sequence[Ids]) -> Found:
    """The Found of a server; from now on the engine writes prompts as it takes them.

    Raises:
        Refusal: if it gives no log-probabilities of a prompt, of other tokens than ours, rounded, such as depend on
            what follows or on what else is asked.
        ConnectionError: if it does not answer.
    """
    prompts = sorted(prompts, key=len, reverse=True)[:PROMPTS]
    _find_writing(engine, prompts[0])
    there = engine.ask(prompts)
    back = engine.ask(reversed(prompts), at_once=1)  # a server that remembers prompts has seen these
    spread, mean = _distance(there, back)
    if mean > UNSTEADY or spread > LARGEST:
        raise Refusal(
            f"{engine.name} gives other log-probabilities when it is asked in another order, a token by {spread:.2g} "
            "nats: serve it without a cache of prefixes (vLLM: --no-enable-prefix-caching)."
        )
    rounded = how_rounded(value for values in there.values() for value in values if value is not None)
    if rounded:
        raise Refusal(f"{engine.name} rounds log-probabilities to {rounded}, and makes ties: have it give all digits.")
    _check_boundaries(engine, prompts, there, SAME + 4 * spread)
    return Found(engine.writing.name, spread)


def _find_writing(engine: "ServedEngine", prompt: Ids) -> None:
    """Write prompts as ids, or as text where the server does not take those."""
    try:
        engine.values(engine.echo(prompt, retries=2), prompt)
        return
    except (Refusal, ConnectionError) as error:
        refusal = error
    engine.writing = ByText(engine.tokenizer)
    try:
        plain = _plain(engine, prompt)
        engine.writing.learn(engine.echo(plain), plain)
        engine.values(engine.echo(prompt), prompt)
    except Refusal:
        if isinstance(refusal, NotTaken | ConnectionError):
            raise
        raise refusal from None


def _plain(engine: "ServedEngine", prompt: Ids) -> Ids:
    """A prompt without the beginning that a server may put there by itself."""
    beginning = engine.tokenizer.beginning.ids
    return prompt[len(beginning) :] if beginning and prompt[: len(beginning)] == beginning else prompt


def _distance(some: "Mapping[Ids, Values]", others: "Mapping[Ids, Values]") -> tuple[float, float]:
    """(the largest, the mean) difference of the values of the same prompts."""
    pairs = [
        (one, other)
        for prompt, values in some.items()
        for one, other in zip(values, others[prompt], strict=True)
        if one is not None and other is not None
    ]
    differences = [0.0 if one == other else abs(one - other) for one, other in pairs]
    return max(differences, default=0.0), fsum(differences) / max(1, len(differences))


def how_rounded(values: Iterable[float]) -> str | None:
    """To what some numbers are rounded, in words; None where they are not, or are too few to tell.

    >>> how_rounded([-1.25, -0.5, -7.125, -2.0, -1.375, -3.5, -0.25, -9.0])
    '3 decimals'
    """
    numbers = [value for value in values if value and not isinf(value)]
    if len(numbers) < ENOUGH:
        return None
    for decimals in range(DECIMALS + 1):
        if all(round(number, decimals) == number for number in numbers):
            return f"{decimals} decimals"
    for name, bits in (("bfloat16", 16), ("float16", 13)):
        if not any(_bits(number) % 2**bits for number in numbers):
            return name
    return None


def _bits(number: float) -> int:
    """The bits of a number in float32."""
    return int.from_bytes(struct.pack(">f", number), "big")


def _check_boundaries(
    engine: "ServedEngine", prompts: Sequence[Ids], known: "Mapping[Ids, Values]", same: float
) -> None:
    """See that what is said of a token is P(token | those before it).

    It is the same where nothing follows. What is likeliest in a place, and how likely, is the same whatever stands
    there; what stands there is not likelier; and all that were tried there together hold no more than all of it.
    """
    prompt = prompts[0]
    beginning = prompt[: max(2, len(prompt) // 2)]
    _, moved = _distance(engine.ask([beginning]), {beginning: known[prompt][: len(beginning)]})
    lasts = dict.fromkeys([prompt[-1], *reversed(prompt[1:-1])])
    tried = [_last_of(engine, (*prompt[:-1], last)) for last in list(lasts)[:LASTS]]
    values = [value for value, _ in filter(None, tried)]
    tops = [top for _, top in filter(None, tried) if top is not None]
    misplaced = tops and (max(tops) - min(tops) > same or max(values) > max(tops) + same)
    if moved > UNSTEADY or misplaced or fsum(map(exp, values)) > 1 + UNSTEADY:
        raise Refusal(
            f"What {engine.name} gives for a token is not its probability after those before it, for it depends on "
            "what follows: serve the model with another server, such as vLLM."
        )


def _last_of(engine: "ServedEngine", ids: Ids) -> tuple[float, float | None] | None:
    """(ln P of the last of some ids, that of the likeliest in its place); None where no text spells these ids."""
    try:
        echo = engine.echo(ids)
        value = engine.values(echo, ids)[-1]
    except NotTaken:
        raise
    except Refusal:
        return None
    return None if value is None else (value, _likeliest(echo, len(ids) - 1 - engine.writing.hidden))


def _likeliest(echo: Echo, place: int) -> float | None:
    """ln P of what is likeliest in a place; None where the server does not say."""
    top = echo.top[place] if place < len(echo.top) else None
    return max(top.values()) if top else None
