"""A text as the assistant's turn of a conversation, as a tokenizer's own template writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class Turn:
    """What the assistant says, with all that stands before it.

    Attributes:
        ids: the tokens of the conversation, up to the end of what it says.
        own: the positions of the tokens that hold any of its characters.
    """

    ids: tuple[int, ...]
    own: range


def said(user: str, answer: str, tokenizer: Tokenizer) -> Turn:
    """The Turn of an answer to what a user says; thinking is switched off where the template knows of it.

    The template writes the whole, and the answer stands where it writes it. A template that writes past turns otherwise
    than one that begins is asked for the beginning alone, and the answer follows that.

    Raises:
        Refusal: if the tokenizer has no template, or the template cannot write this.
    """
    asked = [{"role": "user", "content": user}]
    begun = _written(asked, True, tokenizer)
    whole = _written([*asked, {"role": "assistant", "content": answer}], False, tokenizer)
    text, answer = (whole if whole.startswith(begun) else begun + answer), answer.strip()
    start = text.find(answer, len(begun))
    tokens = tokenizer.tokenize(text[: start + len(answer)], special=False)
    own = tokens.within(start, len(tokens.text)) if start >= 0 else range(0)
    if not own or own.start == 0 or tokens.offsets[own.start][0] < len(begun.rstrip()):
        raise Refusal(f"Where {answer!r} begins in the chat template's text cannot be told: leave the template out.")
    return Turn(tokens.ids, own)


def _written(messages: Sequence[Mapping[str, str]], begins: bool, tokenizer: Tokenizer) -> str:
    """A conversation as text; where it begins the assistant's turn, up to where the assistant speaks."""
    if not tokenizer.has_chat_template:
        raise Refusal(
            f"The tokenizer {tokenizer.hub.name_or_path!r} has no chat template: choose likelihood, without chat."
        )
    try:
        return str(
            tokenizer.hub.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=begins, enable_thinking=False
            )
        )
    except Exception as error:  # of any make: a template is a program
        first = next(iter(str(error).splitlines()), "")
        raise Refusal(
            f"The chat template of {tokenizer.hub.name_or_path!r} cannot write a user's turn and an answer ({first}): "
            "choose likelihood, without chat."
        ) from error
