"""What stands at BLANK: the attribute of an intrasentence option."""

import re
import string
from collections.abc import Sequence
from itertools import takewhile

from stereoset_scoring.questions.examples import BLANK, Example, Option
from stereoset_scoring.questions.spelling import joins
from stereoset_scoring.refusal import MissingAttribute, Refusal

_PUNCTUATION = str.maketrans("", "", string.punctuation)


def aligned_fillers(example: Example, option: Option) -> list[str]:
    """What fills each BLANK of the context, in order.

    The stored word where there is one (translations); else the option's sentence is laid over the context,
    ignoring case: data and sentence often differ in it.

    Raises:
        MissingAttribute: if the sentence does not fit the context.
    """
    fillers = _fillers(example, option)
    if fillers is None:
        raise _missing(example, option)
    return fillers


def attribute_in_text(example: Example, option: Option) -> tuple[str, tuple[int, int]]:
    """A text, and the place of the option's attribute in it: (text, (start, end)).

    Where all options fit the context, it is the context filled, and the first filler's place: see `fill`. Where one
    does not, as sentences that were translated whole, it is the option's own sentence, and what is left of that between
    the beginning and the end that all options have in common, in whole words.

    Raises:
        MissingAttribute: if the options have neither in common, or nothing is left of one; or if there are two BLANKs.
    """
    if fits_context(example):
        return fill(example.context, aligned_fillers(example, option))
    place = _differing(option.sentence, example.sentences)
    if place is None or example.context.count(BLANK) > 1:
        raise _missing(example, option)
    return option.sentence, place


def sentence_of(example: Example, option: Option) -> str:
    """The text of an intrasentence option as a whole: the context filled, if all options fit it; else the sentence."""
    return fill(example.context, aligned_fillers(example, option))[0] if fits_context(example) else option.sentence


def fits_context(example: Example) -> bool:
    """Whether all options are the context with BLANK filled, ignoring case."""
    return all(_fillers(example, option) is not None for option in example.options)


def has_attribute(example: Example) -> bool:
    """Whether it can be told what stands at BLANK: see `attribute_in_text`."""
    try:
        return all(attribute_in_text(example, option) for option in example.options)
    except MissingAttribute:
        return False


def _missing(example: Example, option: Option) -> MissingAttribute:
    return MissingAttribute(
        f"Option {option.id!r} of example {example.id!r} does not fit its context, and what it has in place of {BLANK} "
        "cannot be told from the other options: mend its sentence, give the option's `word`, or choose a method that "
        "reads whole sentences."
    )


def _fillers(example: Example, option: Option) -> list[str] | None:
    """What fills each BLANK of the context; None if the sentence does not fit it."""
    parts = example.context.split(BLANK)
    if option.word is not None:
        return [option.word] * (len(parts) - 1)
    if len(parts) == 2 and (filler := _between(option.sentence, *parts)):
        return [filler]  # most sentences: no pattern is needed
    pattern = "(.+?)".join(map(re.escape, parts))
    fits = re.fullmatch(pattern, option.sentence, re.IGNORECASE | re.DOTALL)
    return list(fits.groups()) if fits else None


def _differing(sentence: str, sentences: Sequence[str]) -> tuple[int, int] | None:
    """The place of what is left of a sentence between the beginning and the end that all have in common.

    None if nothing is left of one of them, or they have no word in common there.
    """
    before = _common(sentences)
    after = _common([one[before:] for one in sentences], backwards=True)
    shared = sentence[:before] + sentence[len(sentence) - after :]
    if not all(one[before : len(one) - after].strip() for one in sentences) or not any(map(str.isalnum, shared)):
        return None
    filler = sentence[before : len(sentence) - after]
    start = before + len(filler) - len(filler.lstrip())
    return start, start + len(filler.strip())


def _common(texts: Sequence[str], backwards: bool = False) -> int:
    """How many characters all texts begin with, ignoring case, such that no text is cut within a word; or end with."""
    read = [text[::-1] for text in texts] if backwards else texts
    columns = zip(*(map(str.lower, text) for text in read), strict=False)
    equal = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
    return next(count for count in range(equal, -1, -1) if _is_border_of_all(texts, count, backwards))


def _is_border_of_all(texts: Sequence[str], count: int, backwards: bool) -> bool:
    return all(_is_border(text, count, backwards) for text in texts)


def _is_border(text: str, count: int, backwards: bool) -> bool:
    """Whether a text may be cut after so many of its first characters, or before so many of its last."""
    place = len(text) - count if backwards else count
    return not 0 < place < len(text) or not joins(text[place - 1], text[place])


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
