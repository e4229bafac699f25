"""What stands at BLANK: the attribute of an intrasentence option."""

import re
import string
from collections.abc import Sequence

from stereoset_scoring.questions.examples import BLANK, Example, Option
from stereoset_scoring.refusal import Refusal

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def aligned_fillers(example: Example, option: Option) -> list[str]:
    """What fills each BLANK of the context, in order.

    The stored word where there is one (translations); else the option's sentence is laid over the context,
    ignoring case: data and sentence often differ in it. A sentence that does not fit the context gives the
    released word for every BLANK.
    """
    parts = example.context.split(BLANK)
    if option.word is not None:
        return [option.word] * (len(parts) - 1)
    if len(parts) == 2 and (filler := _between(option.sentence, *parts)):
        return [filler]  # most sentences: no pattern is needed
    pattern = "(.+?)".join(map(re.escape, parts))
    fits = re.fullmatch(pattern, option.sentence, re.IGNORECASE | re.DOTALL)
    return list(fits.groups()) if fits else [released_word(example, option)] * (len(parts) - 1)


def _between(text: str, left: str, right: str) -> str:
    """What stands between the two ends of a text; "" where it does not have them, or nothing stands there."""
    fits = len(text) > len(left) + len(right) and text.startswith(left) and text.endswith(right)
    return text[len(left) : len(text) - len(right)] if fits else ""


def released_word(example: Example, option: Option) -> str:
    """The attribute as StereoSet's released code takes it: a word by its place, less punctuation.

    The index of the last context token that holds BLANK, both texts split at single spaces; all 32 ASCII
    punctuation characters are deleted, also inside the word. The stored word where there is one.

    Raises:
        ValueError: if the sentence has no word at that place.
    """
    if option.word is not None:
        return option.word
    place = max(i for i, token in enumerate(example.context.split(" ")) if BLANK in token)
    words = option.sentence.split(" ")
    word = words[place].translate(_PUNCTUATION) if place < len(words) else ""
    if not word:
        raise Refusal(
            f"Option {option.id!r} of example {example.id!r} has nothing where its context has BLANK: "
            "mend its sentence, or give the option's `word`."
        )
    return word


def filled_context(example: Example, option: Option) -> tuple[str, tuple[int, int]]:
    """The context with an option's fillers in it, and the first one's place: (text, (start, end)); see `fill`."""
    return fill(example.context, aligned_fillers(example, option))


def fill(context: str, fillers: Sequence[str]) -> tuple[str, tuple[int, int]]:
    """The context with every BLANK filled, and the first filler's place in it.

    Returns:
        (text, (start, end)): character offsets of the first filler, outer white space excluded.
    """
    first, *rest = context.split(BLANK)
    text = first + "".join(filler + part for filler, part in zip(fillers, rest, strict=True))
    filler = fillers[0]
    start = len(first) + len(filler) - len(filler.lstrip())
    return text, (start, start + len(filler.strip()))
