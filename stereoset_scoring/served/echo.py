"""What a server says of a prompt, and how its tokens are told to be ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any

from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal

Ids = tuple[int, ...]
NOTHING = -9999.0  # what servers write for ln 0, which JSON does not hold (vLLM)
ROUNDING = 1e-3  # nats by which ln P may exceed 0
SPACES = " \t\r\n▁ĠĊ"


@dataclass(frozen=True)
class Echo:
    """The echo of a prompt, and maybe a token after it.

    Attributes:
        values: ln P of each token given those before it, in nats; None where the server says nothing.
        tokens: the tokens as texts; empty where it does not say.
        starts: where each of them starts in the text, in characters; empty where it does not say.
        top: the likeliest token at each place and its ln P, as {text: ln P}.
        prompt_tokens: how many the server has read; None where it does not say.
    """

    values: tuple[float | None, ...]
    tokens: tuple[str, ...]
    starts: tuple[int, ...]
    top: tuple[Mapping[str, float] | None, ...]
    prompt_tokens: int | None


def read_echo(answer: Mapping[str, Any], of: str) -> Echo:
    """The Echo in a server's answer.

    Args:
        answer: the answer.
        of: whose it is, for a message.

    Raises:
        Refusal: if it holds no log-probabilities, or numbers that are none.
    """
    choices = answer.get("choices") or [{}]
    said = choices[0].get("logprobs") or {}
    values = said.get("token_logprobs") or ()
    if not values:
        raise no_log_probs(of)
    for value in values:
        if value is not None and (not isinstance(value, int | float) or isnan(value) or value > ROUNDING):
            raise Refusal(f"{of} gives {value!r} for the logarithm of a probability: ask another server.")
    usage = answer.get("usage") or {}
    return Echo(
        tuple(None if one is None else _log_prob(one) for one in values),
        tuple(map(str, said.get("tokens") or ())),
        tuple(said.get("text_offset") or ()),
        tuple(one if isinstance(one, Mapping) else None for one in said.get("top_logprobs") or ()),
        usage.get("prompt_tokens"),
    )


def no_log_probs(of: str) -> Refusal:
    """What is said of a server that says nothing of the prompt."""
    return Refusal(
        f"{of} gives no log-probabilities of the prompt (completions with echo and logprobs): "
        "serve the model with one that does, such as vLLM."
    )


def _log_prob(value: float) -> float:
    return float("-inf") if value <= NOTHING else min(0.0, float(value))


class ByIds:
    """Prompts as token ids: nothing is added to them, and nothing has to be found again."""

    name, hidden = "token ids", 0

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer

    def prompt(self, ids: Ids) -> list[int]:
        """What is sent."""
        return list(ids)

    def learn(self, echo: Echo, ids: Ids) -> None:
        """Nothing is to be learned of a first answer."""

    def check(self, echo: Echo, ids: Ids, of: str) -> None:
        """See that an echo is that of the ids.

        Raises:
            Refusal: if it is not.
        """
        if not len(ids) <= len(echo.values) <= len(ids) + 1 or echo.prompt_tokens not in (None, len(ids)):
            raise no_log_probs(of)
        if echo.tokens and not _same(echo.tokens, self._tokenizer, ids):
            raise Refusal(f"{of} has other tokens than the tokenizer: give that of the model it serves.")


class ByText:
    """Prompts as text, whose tokens are found again by their texts and places.

    Attributes:
        added: the ids that the server puts before every text.
        hidden: how many of them it does not list.
    """

    name = "text"

    def __init__(self, tokenizer: Tokenizer):
        self._tokenizer = tokenizer
        self.added: Ids = ()
        self.hidden = 0

    def prompt(self, ids: Ids) -> str:
        """What is sent: a text that our tokenizer cuts into these ids, and no others.

        Raises:
            Refusal: if there is none.
        """
        if ids[: len(self.added)] != self.added:
            raise Refusal(
                "The server puts a beginning-of-sequence token before every text, and the method asks for none: "
                "set the option bos=context, or ask a server that takes token ids."
            )
        own = ids[len(self.added) :]
        text = self._text(own)
        if not own or self._tokenizer.encode_bare(text) != own:
            raise Refusal(f"No text is cut into the tokens of {text[:60]!r}: ask a server that takes token ids.")
        return text

    def learn(self, echo: Echo, ids: Ids) -> None:
        """Learn from the echo of a text with these ids what the server puts before every text."""
        beginning = self._tokenizer.beginning.ids
        listed = _shift(echo.tokens, self._tokenizer, ids)
        if listed is None or not beginning:
            return
        more = listed if echo.prompt_tokens is None else echo.prompt_tokens - len(ids)
        if more == len(beginning):
            self.added, self.hidden = beginning, more - listed

    def check(self, echo: Echo, ids: Ids, of: str) -> None:
        """See that an echo is that of the ids.

        Raises:
            Refusal: if it is not.
        """
        own, first = ids[len(self.added) :], len(self.added) - self.hidden
        if len(echo.values) < min(2, len(own)):  # of what was written after the prompt alone
            raise no_log_probs(of)
        tokens, starts = echo.tokens[first:], echo.starts[first : first + len(own)]
        fits = len(echo.values) >= first + len(own) and _same(tokens, self._tokenizer, own)
        if not fits or echo.prompt_tokens not in (None, len(ids)) or not self._start_alike(starts, own):
            raise Refusal(f"{of} cuts a text into other tokens than the tokenizer: give that of the model it serves.")

    def _text(self, ids: Sequence[int]) -> str:
        return self._tokenizer.hub.decode(list(ids), clean_up_tokenization_spaces=False)

    def _start_alike(self, starts: Sequence[int], own: Ids) -> bool:
        """Whether tokens start where ours do; one that is a part of a character starts anywhere."""
        ours = [self._text(own[:i]) for i in range(len(own))]
        return not starts or all(
            start - starts[0] == len(text) or text.endswith("�") for start, text in zip(starts, ours, strict=True)
        )


def _shift(tokens: Sequence[str], tokenizer: Tokenizer, ids: Ids) -> int | None:
    """After how many others our tokens stand; None if they do not."""
    shifts = range(len(tokens) - len(ids) + 1)
    return next((n for n in shifts if _same(tokens[n : n + len(ids)], tokenizer, ids)), None)


def _same(tokens: Sequence[str], tokenizer: Tokenizer, ids: Ids) -> bool:
    """Whether texts begin with those of some tokens of ours."""
    return len(tokens) >= len(ids) and all(map(partial(_alike, tokenizer.hub), tokens, ids))


def _alike(hub: Any, token: str, number: int) -> bool:
    """Whether a server's word for a token is ours, the space before it aside; it may be the piece as it is spelled."""
    if token.startswith("token_id:"):
        return token == f"token_id:{number}"
    ours, piece = hub.decode([number]), str(hub.convert_ids_to_tokens(number))
    if "�" in token + ours or (not token and number in hub.all_special_ids):  # a part of a character; left out
        return True
    return token.strip(SPACES) in (ours.strip(SPACES), piece.strip(SPACES))
