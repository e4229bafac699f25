"""Tokens of texts from those of their words, each of which is tokenized once.

Finding words takes a byte-level tokenizer most of its time, and the texts of a data set have most of theirs in common.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from typing import Any
from unicodedata import normalize

Ids = tuple[int, ...]


def _pattern(words: str, numbers: str, marks: str) -> str:
    return rf"{words}|{numbers}| ?{marks}|\s*[\r\n]+|\s+(?!\S)|\s+"


_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORDS = rf"{_SHORT}|[^\r\n\p{{L}}\p{{N}}]?"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASES = rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+", rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*"
_MARKS = r"[^\s\p{L}\p{N}]+"
# By which words are found from left to right. In none of these does anything but a word's first character match a
# space, or look at what stands before it: a text of words with one space between them is cut at each space.
PATTERNS = {
    "Llama 3": _pattern(_WORDS + r"\p{L}+", r"\p{N}{1,3}", _MARKS + r"[\r\n]*"),
    "Qwen 2": _pattern(_WORDS + r"\p{L}+", r"\p{N}", _MARKS + r"[\r\n]*"),
    "Qwen 3.5": _pattern(_WORDS + r"[\p{L}\p{M}]+", r"\p{N}", r"[^\s\p{L}\p{M}\p{N}]+[\r\n]*"),
    "Mistral's Tekken": _pattern("|".join(_CASES), r"\p{N}", _MARKS + r"[\r\n/]*"),
    "GPT-4o": _pattern("|".join(f"{case}{_SHORT}?" for case in _CASES), r"\p{N}{1,3}", _MARKS + r"[\r\n/]*"),
}


class Words:
    """The words of a tokenizer that `cuts_at_spaces`, with the ids of their tokens, as far as any text had them.

    Args:
        below: a tokenizer of the library below hub tokenizers, which neither cuts texts nor pads them.
    """

    def __init__(self, below: Any):
        self._below = below
        self._composes = below.normalizer is not None
        self._first: dict[str, Ids] = {}  # of words that begin a text
        self._later: dict[str, Ids] = {}  # of words with a space before them

    def read_ahead(self, texts: Iterable[str], continued: Iterable[str] = ()) -> None:
        """Learn the words of many texts, and of those that follow another, at once, which takes less time."""
        first: set[str] = set()
        later: set[str] = set()
        for text in texts:
            if words := _plain_words(text):
                first.add(words[0])
                later.update(words[1:])
        for text in continued:
            later.update(_plain_words(text) or ())
        self._learn(self._first, first, "")
        self._learn(self._later, later, " ")

    def ids(self, text: str) -> Ids | None:
        """The ids of a text, without special tokens; None where its words do not tell them.

        Then there is other space than one between two words in it, a word that cannot be read, or an added token, which
        is found before words are, and may take the spaces beside it.
        """
        words = _plain_words(text)
        if words is None or self._has_added(text):
            return None
        first, later = self._ids_of(self._first, words[:1], ""), self._ids_of(self._later, words[1:], " ")
        return None if first is None or later is None else first + later

    def continuations(self, text: str, others: Sequence[str]) -> list[Ids] | None:
        """The ids that each of some others adds to a text, a space between them; None where `ids` does not tell one."""
        found = []
        for other in others:
            words = _plain_words(other)
            if words is None or self._has_added(f"{text} {other}"):
                return None
            ids = self._ids_of(self._later, words, " ")
            if ids is None:
                return None
            found.append(ids)
        return found

    def _ids_of(self, known: dict[str, Ids], words: Sequence[str], before: str) -> Ids | None:
        """The ids of words, with what stands before each; None where one cannot be read."""
        try:
            return tuple(chain.from_iterable(map(known.__getitem__, words)))
        except KeyError:  # seldom, and looking for it would take longer
            self._learn(known, words, before)
        return tuple(chain.from_iterable(map(known.__getitem__, words))) if known.keys() >= set(words) else None

    def _learn(self, known: dict[str, Ids], words: Iterable[str], before: str) -> None:
        """Have words, with what stands before them, among those that are known, unless one of them cannot be read."""
        new = [word for word in words if word not in known]
        found = at_once(self._below.encode_batch_fast, (before + word for word in new), special=False)
        known.update((text.removeprefix(before), tuple(encoding.ids)) for text, encoding in found.items())

    def _has_added(self, text: str) -> bool:
        if self._added is None:
            return False
        return bool(self._added.search(text) or (self._composes and self._added.search(normalize("NFC", text))))

    @cached_property
    def _added(self) -> re.Pattern[str] | None:
        """What finds an added token."""
        tokens = {token.content for token in self._below.get_added_tokens_decoder().values()}
        tokens |= {normalize("NFC", token) for token in tokens}
        return re.compile("|".join(map(re.escape, sorted(tokens)))) if tokens else None


def at_once(how: Callable[..., Any], texts: Iterable[str], special: bool) -> dict[str, Any]:
    """{text: what a tokenizer makes of it} of many; empty where one of them cannot be read."""
    distinct = list(dict.fromkeys(texts))
    with suppress(Exception):  # whatever the many libraries of tokenizers raise
        return dict(zip(distinct, how(distinct, add_special_tokens=special), strict=True))
    return {}


def _plain_words(text: str) -> list[str] | None:
    """The words of a text; None where other space than one between two words is in it."""
    words = text.split()
    return words if words and words == text.split(" ") else None


def cuts_at_spaces(below: Any) -> bool:
    """Whether a tokenizer of the library below hub tokenizers cuts texts at spaces, each word whatever stands around.

    So do GPT-2's byte-level BPE, and those whose words are found by one of the PATTERNS; of others nothing is known.
    """
    from tokenizers.models import BPE

    if not isinstance(below.model, BPE) or below.model.dropout:
        return False
    # What NFC puts together is never put together over a space.
    return _state(below.normalizer) in (None, {"type": "NFC"}) and _finds_words(_state(below.pre_tokenizer))


def _state(part: Any) -> Any:
    """What a part of a tokenizer does, as its file says it; None where there is none."""
    return None if part is None else json.loads(part.__getstate__())


def _finds_words(state: Any) -> bool:
    """Whether what cuts a text cuts it so."""
    *first, last = state["pretokenizers"] if state and state["type"] == "Sequence" else [state]
    if not last or last["type"] != "ByteLevel" or last["add_prefix_space"]:
        return False
    if last["use_regex"]:
        return not first
    split = {"type": "Split", "behavior": "Isolated", "invert": False}
    return first in [[split | {"pattern": {"Regex": pattern}}] for pattern in PATTERNS.values()]
