"""Where pieces stand in the text that they spell: offsets for tokenizers that give none.

The pieces are walked along the text, each spelling what follows the one before it, until all of the text is spelled.
What tokenizers change of a text before they cut it is allowed for step by step: first nothing; then white space and
control characters may be left out; then letter case and compatibility forms may differ; then accents and the shapes of
quotes and dashes. There must be one way through the text and no more: else nothing is said.
"""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise

Piece = str | bytes  # of a vocabulary, with the marks that its tokenizer puts on it
Span = tuple[int, int]  # (start, end) in a text, in characters
Fold = Callable[[str], str]  # what of a character is left out or changed

# What marks a piece as the continuation, the end or the beginning of a word.
MARKS = ("##", "@@", "</w>", "▁", "Ġ")
# What stands for white space; CPM writes ▂ and ▃, GPT-NeoX-Japanese the rest.
_SPACES = {"▁": " ", "▂": " ", "▃": "\n", "<SP>": " ", "<BR>": "\n", "<TAB>": "\t"}
# What Moses and its kin write in place of other punctuation: of quotes, dashes, and marks of Chinese texts.
_PUNCTUATION = str.maketrans(
    {
        **dict.fromkeys('"\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300a\u300b', "''"),
        **dict.fromkeys("`\u00b4\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2501", "-"),
        **dict(zip("\u3001\u3002\u2236\u3008\u3009\u3010\u3011", ",.:<>[]", strict=True)),
    }
)
_BYTE = re.compile(r"<0x([0-9A-F]{2})>|([0-9a-f]{2})|<\|byte(\d{1,3})\|>")  # the second is MyT5's
# Letters of scripts that put no spaces between words are words by themselves.
_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"[^\W{_UNSPACED}]+|\S")
_SPACED = re.compile(rf"[^{_UNSPACED}]")


def spans(text: str, pieces: Sequence[Piece], unknown: str | None = None) -> list[Span] | None:
    """Where each of a text's pieces stands in it.

    Args:
        text: what was cut into pieces.
        pieces: what the tokenizer cut it into, in order, as text or bytes, with the marks that it puts on them.
        unknown: the piece that stands for whatever has no piece; it lies within one run of characters between spaces.

    Returns:
        [(start, end)] of the characters that each piece spells; pieces that spell none stand for the white space there,
        or for nothing. None if the pieces do not spell the text, or do so in more than one way.
    """
    # An unknown piece spells anything: a way may be found too soon, so all must be the same, and no white space is.
    folds = _FOLDS[1:] if unknown in pieces else _FOLDS
    found = [_way(text, pieces, unknown, fold) for fold in folds]
    ways = [way for way in found if way is not None]
    if not ways or ways[0] == _SEVERAL:
        return None
    return ways[0] if unknown not in pieces or all(way == ways[0] for way in ways) else None


def words(text: str, pieces: Sequence[Piece], places: Sequence[Span], mark: str | None) -> Sequence[int | None]:
    """The number of the word that each piece belongs to; None for pieces of white space alone.

    Args:
        text: what was cut into pieces.
        pieces: its pieces, with their marks.
        places: (start, end) of each, see `spans`.
        mark: the one of MARKS by which the tokenizer shows its words; None if it shows none: then runs of letters and
            digits are words, as is each other character.
    """
    if mark is None:
        return _words_of_text(text, places)
    numbers, number = [], -1
    for i, piece in enumerate(pieces):
        number += i == 0 or _begins_word(piece, pieces[i - 1], mark)
        numbers.append(number)
    return numbers


def joins(first: str, second: str) -> bool:
    """Whether two characters that stand side by side cannot be parted: within a word, or a letter and its mark."""
    if _is_mark(second):
        return True
    return all((_is_mark(one) or one.isalnum()) and _SPACED.match(one) for one in (first, second))


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] == "M"


def mark_of(vocabulary: Collection[Piece]) -> str | None:
    """The one of MARKS that most pieces of a vocabulary carry; None if none does."""
    counts = {mark: _carriers(vocabulary, mark) for mark in MARKS}
    mark = max(counts, key=counts.__getitem__)
    return mark if counts[mark] else None


def _carriers(vocabulary, mark):
    """How many pieces carry a mark beside something else."""
    return sum(len(piece) > len(mark) and _carries(piece, mark) for piece in vocabulary)


def _carries(piece, mark):
    at = str.endswith if mark in ("@@", "</w>") else str.startswith
    return isinstance(piece, str) and at(piece, mark)


def _begins_word(piece, before, mark):
    if mark == "##":
        return not _carries(piece, mark)
    if mark == "@@":
        return not _carries(before, mark)
    return _carries(before if mark == "</w>" else piece, mark)


def _words_of_text(text, places):
    found = list(_WORD.finditer(text))
    starts = [word.start() for word in found]
    numbers = []
    for start, end in places:
        letters = text[start:end].lstrip()
        numbers.append(bisect_right(starts, end - len(letters)) - 1 if letters else None)
    return numbers


class _Written:
    """A text in bytes, after a fold of its characters.

    Attributes:
        text: the text.
        content: its bytes.
        owners: the index of the character that each byte comes from.
    """

    def __init__(self, text: str, fold: Fold):
        folded = [_bytes(fold(character)) for character in text]
        self.text, self.content = text, b"".join(folded)
        self.owners = [i for i, some in enumerate(folded) for _ in some]
        self._written = set(self.owners)

    def with_marks(self, end: int) -> int:
        """A place in the text, or that after the accents there, where the fold leaves them out."""
        while end < len(self.text) and _is_mark(self.text[end]) and end not in self._written:
            end += 1
        return end

    def ends_of_unknown(self, start: int) -> set[int]:
        """Where a piece could end that spells one or more whole characters from a place on, no white space."""
        ends: set[int] = set()
        first = start
        if 0 < start < len(self.owners) and self.owners[start] == self.owners[start - 1]:
            return ends
        while start < len(self.owners) and not re.search(r"\s", self.text[self.owners[first] : self.owners[start] + 1]):
            start = bisect_right(self.owners, self.owners[start])
            ends.add(start)
        return ends


def _way(text, pieces, unknown, fold):
    """The spans of the one way through a folded text; _SEVERAL if there are more, None if there is none."""
    written = _Written(text, fold)
    borders = _borders(written, pieces, unknown, fold)
    if borders is None:
        return None
    return _spans(written, borders) if all(len(places) == 1 for places in borders) else _SEVERAL


def _borders(written, pieces, unknown, fold):
    """The places where each piece can begin, and the end, over all ways through the text; None if there is no way."""
    steps = []
    reached = {0}
    for piece in pieces:
        ends = {start: _ends(written, piece, start, unknown, fold) for start in reached}
        steps.append(ends)
        reached = set().union(*ends.values())
    borders = [{len(written.content)} & reached]
    for ends in reversed(steps):
        borders.append({start for start, some in ends.items() if some & borders[-1]})
    return borders[::-1] if borders[-1] else None


def _ends(written, piece, start, unknown, fold):
    """Where a piece can end that begins at a place."""
    ends = {start + len(one) for one in _readings(piece, fold) if written.content.startswith(one, start)}
    return ends | written.ends_of_unknown(start) if piece == unknown else ends


def _spans(written, borders):
    """(start, end) in characters between neighbouring borders, each a set of one place in bytes."""
    places, owners = [place for (place,) in borders], written.owners
    found = []
    for start, end in pairwise(places):
        if start < end:
            found.append((owners[start], written.with_marks(owners[end - 1] + 1)))
            continue
        last = owners[start] if start < len(owners) else len(written.text)
        found.append((min(owners[start - 1] + 1 if start else 0, last), last))
    return found


@cache
def _readings(piece, fold):
    """All that a piece may spell, in bytes, for a text whose characters are folded."""
    if isinstance(piece, bytes):
        return {_refolded(piece, fold)}
    texts = {piece, piece.removeprefix("##"), piece.removesuffix("@@"), _SPACES.get(piece, piece)}
    # Moses writes &apos; for an apostrophe, and @-@ for a dash within a word.
    texts.add(html.unescape(piece.removesuffix("</w>")).replace("@-@", "-"))
    spaced = piece.translate(_TRANSLATED_SPACES)
    texts |= {spaced, spaced.removeprefix(" ")}  # the first space may be the tokenizer's own
    readings = {_bytes("".join(map(fold, text))) for text in texts}
    return readings | {_refolded(some, fold) for some in _as_bytes(piece)}


_TRANSLATED_SPACES = str.maketrans({mark: space for mark, space in _SPACES.items() if len(mark) == 1})


def _as_bytes(piece):
    """What a piece spells if it names bytes: by number, by the character of that code point, or in GPT-2's alphabet."""
    named = _BYTE.fullmatch(piece)
    if named:
        value = int(named[3]) if named[3] else int(named[1] or named[2], 16)
        return [bytes([value])] if value < 256 else []
    alphabet = _byte_alphabet()
    spelled = [bytes(map(alphabet.get, piece))] if all(character in alphabet for character in piece) else []
    return [*spelled, piece.encode("latin-1")] if len(piece) == 1 and ord(piece) < 256 else spelled


def _refolded(content, fold):
    """Some bytes of a text after a fold of its characters, where they are whole characters; else as they are."""
    try:
        return _bytes("".join(map(fold, content.decode())))
    except UnicodeDecodeError:
        return content


@cache
def _byte_alphabet():
    """{character: byte} of GPT-2's alphabet: printable bytes are themselves, the others follow from 256 on."""
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def _bytes(text):
    return text.encode("utf-8", "surrogatepass")


def _without_spaces(character):
    """A character; nothing for white space, and for control characters and the replacement character."""
    left_out = character.isspace() or character == "\ufffd" or unicodedata.category(character)[0] == "C"
    return "" if left_out else character


@cache
def _without_case(character):
    """The characters that make one up, in lower case."""
    return "".join(map(_without_spaces, unicodedata.normalize("NFKD", character).casefold()))


@cache
def _without_accents(character):
    """The same without accents, and with plain punctuation."""
    plain = unicodedata.normalize("NFKD", _without_case(character.translate(_PUNCTUATION)))
    return "".join(one for one in plain if unicodedata.category(one)[0] != "M").translate(_PUNCTUATION)


_FOLDS = (str, _without_spaces, _without_case, _without_accents)
_SEVERAL = "several"
