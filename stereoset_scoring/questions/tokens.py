"""From text to token ids: a hub tokenizer, and the few questions that methods put to it."""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from stereoset_scoring.questions.spelling import mark_of, spans, words
from stereoset_scoring.questions.vocabulary import check_vocabulary
from stereoset_scoring.questions.words import Words, at_once, cuts_at_spaces
from stereoset_scoring.refusal import Refusal

# The methods by which a hub tokenizer passes a text on to the library below it.
PASSING_ON = ("__call__", "encode", "_encode_plus", "_convert_encoding")
_NO_ID = -1  # the id of no token
# What a tokenizer may say of a text. Positions are left to the models, which number them so themselves.
KEYS = {
    "input_ids",
    "token_type_ids",
    "attention_mask",
    "position_ids",
    "special_tokens_mask",
    "offset_mapping",
    "num_truncated_tokens",
    "overflowing_tokens",
    "overflow_to_sample_mapping",
}


@dataclass(frozen=True)
class Tokens:
    """A tokenized text.

    Attributes:
        text: what was tokenized.
        ids: token ids.
        offsets: (start, end) of each token in the text, in characters; empty spans for special tokens.
        segments: token types, or None where the tokenizer gives none.
        special: which tokens are special ones that the tokenizer added.
        words: the number of the word that each token belongs to; None for special tokens.
    """

    text: str
    ids: tuple[int, ...]
    offsets: tuple[tuple[int, int], ...]
    segments: tuple[int, ...] | None
    special: tuple[bool, ...]
    words: tuple[int | None, ...]

    @property
    def ordinary(self) -> list[int]:
        """Positions of the tokens that are the text's own."""
        return [i for i, special in enumerate(self.special) if not special]

    def within(self, start: int, end: int) -> range:
        """Positions of the tokens that hold any of the characters start to end: a range, maybe empty."""
        inside = [i for i, (a, b) in enumerate(self.offsets) if max(a, start) < min(b, end)]
        return range(inside[0], inside[-1] + 1) if inside else range(0)

    def reaching_beyond(self, border: int) -> int:
        """The position of the first token that reaches beyond a place in the text; how many tokens, where none does."""
        for i, (_, end) in enumerate(self.offsets):
            if end > border:
                return i
        return len(self.ids)

    def straddling(self, border: int) -> int:
        """How many tokens hold characters, other than white space, from both sides of a place in the text."""
        over = [(a, b) for a, b in self.offsets if a < border < b]
        return sum(bool(self.text[a:border].strip() and self.text[border:b].strip()) for a, b in over)


@dataclass(frozen=True)
class Beginning:
    """What stands before the first token of a text, for a model that needs something to condition it on.

    Attributes:
        ids: the token ids; empty where the tokenizer offers none.
        habit: whether the tokenizer puts them before a text by itself.
        origin: "bos", "post-processor", "eos" or "none".
    """

    ids: tuple[int, ...]
    habit: bool
    origin: str


@dataclass(frozen=True)
class Target:
    """A text as what a decoder writes.

    Attributes:
        start: the decoder's start token, which it reads and does not write.
        before: the ids that it writes before the text's own: a beginning of sequence, a language code, or nothing.
        ids: the text's own ids.
    """

    start: int
    before: tuple[int, ...]
    ids: tuple[int, ...]


class Texts(NamedTuple):
    """What is asked of a tokenizer about an example.

    Attributes:
        whole: what is tokenized with special tokens.
        bare: what only the ids are asked of, without special tokens.
        joined: a context and the options that are joined to it.
    """

    whole: Sequence[str] = ()
    bare: Sequence[str] = ()
    joined: tuple[str, Sequence[str]] = ("", ())

    @property
    def spelled(self) -> list[str]:
        """What is joined, as texts."""
        context, options = self.joined
        return [f"{context} {option}" for option in options]


class Joined(NamedTuple):
    """A context and an option as one text, "<context> <option>", tokenized.

    Attributes:
        context: the context.
        option: the option's sentence.
        ids: the tokens of both, without special tokens.
        first: the position of the first token that reaches beyond the context.
        straddling: how many tokens hold characters, other than white space, of both.
    """

    context: str
    option: str
    ids: tuple[int, ...]
    first: int
    straddling: int = 0


class Tokenizer:
    """A hub tokenizer, as the methods see it.

    Args:
        hub_tokenizer: the hub tokenizer.
        config: the configuration of its model, which says what a decoder starts with; None where there is no model.

    Raises:
        Refusal: if it has no vocabulary of its own.
    """

    def __init__(self, hub_tokenizer: Any, config: Any = None):
        check_vocabulary(hub_tokenizer)
        self.hub = hub_tokenizer
        self.config = config
        self._ahead: dict[bool, dict[str, Any]] = {}
        self._bare_ahead: dict[str, Any] = {}
        self._size: int | None = None  # of the vocabulary, to which tokens may be added

    def read_ahead(self, asked: Iterable[Texts]) -> None:
        """Tokenize the texts of many examples at once, which takes less time: until the next call, they are known.

        What cannot be read so is read when it is asked for, one by one, with a word of what is wrong with it.
        """
        self._ahead, self._bare_ahead = {}, {}
        below = self._plain
        if below is None:
            return
        if below.get_vocab_size() != self._size:
            self._size = below.get_vocab_size()
            for known in ("_words_below", "largest_id"):
                vars(self).pop(known, None)
        asked = list(asked)
        whole = chain.from_iterable(texts.whole for texts in asked)
        bare = chain.from_iterable(texts.bare for texts in asked)
        self._ahead[True] = at_once(below.encode_batch, whole, special=True)
        if self._words is not None:
            contexts = (texts.joined[0] for texts in asked)
            options = chain.from_iterable(texts.joined[1] for texts in asked)
            self._words.read_ahead(chain(bare, contexts), options)
            return
        joined = chain.from_iterable(texts.spelled for texts in asked)
        self._ahead[False] = at_once(below.encode_batch, joined, special=False)
        self._bare_ahead = at_once(below.encode_batch_fast, bare, special=False)

    @cached_property
    def sha256(self) -> str:
        """sha256, as hex, over what it does with texts; of one in Python, over its class, settings and vocabulary."""
        hub = self.hub
        if getattr(hub, "is_fast", False):
            does: Any = hub.backend_tokenizer.to_str()
        else:
            does = sorted(hub.get_vocab().items()), getattr(hub, "bpe_ranks", None)
        return hashlib.sha256(repr((type(hub).__name__, does, hub.special_tokens_map)).encode()).hexdigest()

    def tokenize(self, text: str, special: bool = True) -> Tokens:
        """Tokenize a text, once, with offsets; with the tokenizer's own special tokens or without.

        Raises:
            Refusal: if it cannot be told where the tokens stand in the text.
        """
        if not getattr(self.hub, "is_fast", False):
            return self._tokenize_by_spelling(text, special)
        found = self._directly(text, special)
        if found is not None:
            segments = tuple(found.type_ids) if self._gives_segments else None
            mask = tuple(map(bool, found.special_tokens_mask))
            return Tokens(text, tuple(found.ids), tuple(found.offsets), segments, mask, tuple(found.word_ids))
        encoding = self._encoding(
            text, add_special_tokens=special, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        return Tokens(
            text,
            self._known(encoding["input_ids"], text),
            tuple(encoding["offset_mapping"]),
            _segments(encoding),
            tuple(map(bool, encoding["special_tokens_mask"])),
            tuple(encoding.word_ids()),
        )

    def _directly(self, text: str, special: bool) -> Any:
        """What the library below the hub tokenizer makes of a text, in half the time; None where that is not the same.

        It is where the hub tokenizer only passes texts on, and nobody has left it cutting or padding them.
        """
        known = self._ahead.get(special, {}).get(text)
        if known is not None:
            return known
        below = self._plain
        return None if below is None else self._read(below.encode, text, add_special_tokens=special)

    @property
    def _plain(self) -> Any:
        """The tokenizer of the library below, while nobody has left it cutting or padding; None where there is none."""
        below = self._below
        if below is None or below.truncation is not None or below.padding is not None:
            return None
        return below if below.encode_special_tokens == self.hub.split_special_tokens else None

    @cached_property
    def _below(self) -> Any:
        """The tokenizer of the library below the hub tokenizer; None where that does more than pass on."""
        from transformers import PreTrainedTokenizerFast  # here, for it takes seconds

        if not isinstance(self.hub, PreTrainedTokenizerFast) or hasattr(self.hub, "_switch_to_input_mode"):
            return None
        usual, own = PreTrainedTokenizerFast, type(self.hub)
        passes_on = all(getattr(own, name, None) is getattr(usual, name, None) for name in PASSING_ON)
        return self.hub.backend_tokenizer if passes_on else None

    @cached_property
    def _gives_segments(self) -> bool:
        """Whether the hub tokenizer gives token types unasked."""
        return "token_type_ids" in self.hub.model_input_names

    def _tokenize_by_spelling(self, text: str, special: bool) -> Tokens:
        """`tokenize` for a tokenizer in Python, which gives no offsets: they are found by walking along the text."""
        pieces = self._read(self.hub.tokenize, text)
        places = spans(text, pieces, self.hub.unk_token)
        encoding = self._encoding(text, add_special_tokens=special)
        ids, own = self._known(encoding["input_ids"], text), self.hub.convert_tokens_to_ids(pieces)
        before = self._prefix_of_python if special else 0
        after = len(ids) - before - len(own)
        if places is None or list(ids[before : before + len(own)]) != list(own):
            raise Refusal(
                f"{type(self.hub).__name__} gives no character offsets, and its pieces do not spell {_short(text)} in "
                "one way and no other: use a checkpoint with a tokenizer.json, or drop the example."
            )
        return Tokens(
            text,
            ids,
            ((0, 0),) * before + tuple(places) + ((0, 0),) * after,
            _segments(encoding),
            (True,) * before + (False,) * len(own) + (True,) * after,
            (None,) * before + tuple(words(text, pieces, places, self._mark)) + (None,) * after,
        )

    @cached_property
    def _prefix_of_python(self) -> int:
        """How many special tokens a tokenizer in Python puts before a text."""
        return self._read(self.hub.build_inputs_with_special_tokens, [_NO_ID]).index(_NO_ID)

    @cached_property
    def _mark(self) -> str | None:
        """How the pieces show the words that they belong to; tokenizers without a vocabulary's file have none."""
        return mark_of(self.hub.get_vocab()) if type(self.hub).vocab_files_names else None

    def _encoding(self, text: str, pair: str | None = None, **options: Any) -> Any:
        """What the hub tokenizer makes of a text, or of two.

        Raises:
            Refusal: if it fails, or gives its model more than rows hold, such as the shapes of characters (RoCBert).
        """
        encoding = self._read(self.hub, text, pair, **options)
        more = sorted(encoding.keys() - KEYS)
        if more:
            raise Refusal(
                f"{type(self.hub).__name__} gives its model {' and '.join(more)} beside token ids, and no method here "
                "does: give another checkpoint."
            )
        return encoding

    def _read(self, how: Callable[..., Any], text: Any, *more: Any, **options: Any) -> Any:
        """What the hub tokenizer says of a text.

        Raises:
            Refusal: if it fails, such as one whose vocabulary lacks its own unknown token.
        """
        try:
            return how(text, *more, **options)
        except Exception as error:  # whatever the many libraries of tokenizers raise
            raise Refusal(
                f"The tokenizer {self.hub.name_or_path!r} cannot read {_short(text)}: use one that can represent it "
                f"({(str(error).splitlines() or [type(error).__name__])[0].rstrip('.')})."
            ) from error

    def _known(self, ids: Sequence[int], text: str) -> tuple[int, ...]:
        """The ids of a text's tokens.

        Raises:
            Refusal: if a token has none.
        """
        if None in ids:
            raise Refusal(
                f"The tokenizer {self.hub.name_or_path!r} has no id for a part of {_short(text)} and no unknown token: "
                "use one that can represent it, or drop the example."
            )
        return tuple(ids)

    def encode(
        self, text: str, pair: str | None = None, longest: int | None = None
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """(ids, segments) of a text, or of two texts as the tokenizer joins them, with special tokens.

        Where a longest length is given, the ends of the texts are cut to fit it, the longer text first.
        """
        found = self._directly(text, True) if pair is None and longest is None else None
        if found is not None:
            return tuple(found.ids), tuple(found.type_ids) if self._gives_segments else None
        # Of two texts the types are asked for: not every tokenizer of a model that reads them gives them unasked.
        asked = None if pair is None else True
        how = {"truncation": longest is not None, "max_length": longest, "return_token_type_ids": asked}
        encoding = self._encoding(text, pair, **how)
        return self._known(encoding["input_ids"], text), _segments(encoding)

    def encode_bare(self, text: str) -> tuple[int, ...]:
        """The ids of a text without special tokens."""
        ids = self._ids_of_words(text)
        if ids is not None:
            return ids
        known = self._bare_ahead.get(text)
        found = self._directly(text, False) if known is None else known
        if found is not None:
            return tuple(found.ids)
        return self._known(self._read(self.hub.encode, text, add_special_tokens=False), text)

    def join(self, context: str, options: Sequence[str]) -> list[Joined]:
        """A context and each of its options as one text, a space between them, without special tokens.

        The space is the option's, and so is a token that straddles the border.

        Raises:
            Refusal: if it cannot be told where the tokens stand in a text.
        """
        before = self._ids_of_words(context)
        after = None if before is None or self._words is None else self._words.continuations(context, options)
        if before is None or after is None:
            return [self._join_one(context, option) for option in options]
        texts = zip(options, after, strict=True)
        return [Joined(context, option, before + ids, len(before)) for option, ids in texts]

    def _join_one(self, context: str, option: str) -> Joined:
        tokens, border = self.tokenize(f"{context} {option}", special=False), len(context)
        return Joined(context, option, tokens.ids, tokens.reaching_beyond(border), tokens.straddling(border))

    def _ids_of_words(self, text: str) -> tuple[int, ...] | None:
        """The ids of a text without special tokens, from its words; None where they do not tell."""
        return None if self._words is None else self._words.ids(text)

    @property
    def _words(self) -> Words | None:
        """The words of the tokenizer, where and while they tell the tokens of texts; else None."""
        return None if self._plain is None else self._words_below

    @cached_property
    def _words_below(self) -> Words | None:
        return Words(self._below) if cuts_at_spaces(self._below) else None

    @cached_property
    def largest_id(self) -> int | None:
        """The largest id that it gives any token; None where that is not known, as of tokenizers in Python."""
        return max(self.hub.get_vocab().values()) if getattr(self.hub, "is_fast", False) else None

    @cached_property
    def knows_every_text(self) -> bool:
        """Whether no text becomes the unknown token, unless it spells it: a BPE that has a token for every byte."""
        from tokenizers.models import BPE

        model = getattr(self._below, "model", None)
        if not isinstance(model, BPE):
            return False
        if model.unk_token is None:
            return True
        return model.byte_fallback and all(model.token_to_id(f"<0x{byte:02X}>") is not None for byte in range(256))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids."""
        return self.hub.decode(ids)

    @cached_property
    def mask(self) -> tuple[int, str]:
        """(id, text) of the mask token.

        Raises:
            ValueError: if the tokenizer has none.
        """
        if self.hub.mask_token_id is None:
            raise Refusal(
                f"The tokenizer {self.hub.name_or_path!r} has no mask token: "
                "a masked method needs a model and a tokenizer with one."
            )
        return self.hub.mask_token_id, self.hub.mask_token

    @cached_property
    def sentinel(self) -> tuple[int, str]:
        """(id, text) of the first sentinel of a T5, which stands for a span that is left out.

        Raises:
            ValueError: if the tokenizer has none.
        """
        for name in ("<extra_id_0>", "▁<extra_id_0>"):  # mT5's holds the space before it
            number = self.hub.convert_tokens_to_ids(name)
            if number is not None and number != self.hub.unk_token_id:
                return number, "<extra_id_0>"
        raise Refusal(
            f"The tokenizer {self.hub.name_or_path!r} has no sentinel <extra_id_0>: "
            "give a T5 or its kin, or choose the method denoising or prefix."
        )

    @cached_property
    def has_sentinel(self) -> bool:
        """Whether there is a sentinel; see `sentinel`."""
        try:
            return self.sentinel is not None
        except ValueError:
            return False

    @cached_property
    def has_denoising_mask(self) -> bool:
        """Whether a decoder can be taken to restore what the mask token stands for.

        There is a mask token, the model has an embedding for it, and the decoder does not begin as a language model
        does, with the token that begins a sequence: then it was trained to go on, and not to restore.
        """
        mask = self.hub.mask_token_id
        size = None if self.config is None else getattr(self.config.get_text_config(), "vocab_size", None)
        if mask is None or (size is not None and mask >= size):
            return False
        try:
            return self.target("a").start not in (self.hub.bos_token_id, self.hub.cls_token_id)
        except ValueError:
            return False

    def target(self, text: str) -> Target:
        """A text as what the model's decoder writes: a Target, in the tokenizer's format for targets.

        Raises:
            ValueError: if the tokenizer has one vocabulary to read and another to write, and encodes only the first,
                or the configuration does not say what a decoder starts with.
        """
        if hasattr(self.hub, "tgt_vocab_size") and self.hub.encoder != _inverted(self.hub.decoder):  # as FSMT's has
            raise Refusal(
                f"{type(self.hub).__name__} encodes texts by the vocabulary of its encoder, and the decoder has "
                "another: give a model whose two sides share one."
            )
        whole, bare = (
            tuple(self.hub(text_target=text, add_special_tokens=special)["input_ids"]) for special in (True, False)
        )
        first = next((i for i in range(len(whole)) if whole[i : i + len(bare)] == bare), None)
        if first is None:
            raise Refusal(
                f"{type(self.hub).__name__} cuts {text!r} otherwise where it adds special tokens: drop the example."
            )
        return self.as_target(whole[:first], bare, whole[first + len(bare) :])

    def as_target(self, before: tuple[int, ...], ids: tuple[int, ...], after: tuple[int, ...]) -> Target:
        """A text's own ids, with what the tokenizer's format puts before and after them, as a Target.

        The start token is the configuration's; where it names none, the language code that follows the end of a text
        (mBART turns it round to the front), else the token that begins a sequence. It is never put there twice.

        Raises:
            ValueError: if there is none.
        """
        start = start_of(self.config, "decoder_start_token_id")
        if start is None and len(after) > 1 and after[-2] == self.hub.eos_token_id:
            start = after[-1]
        if start is None:
            start = start_of(self.config)
        if start is None:
            raise Refusal(
                f"The configuration of {self.hub.name_or_path!r} does not say what its decoder starts with: "
                "set decoder_start_token_id."
            )
        return Target(start, before[1:] if before[:1] == (start,) else before, ids)

    @cached_property
    def separators(self) -> tuple[int, int]:
        """Ids of the tokens that separate and close segments: (sep, cls)."""
        return self.hub.sep_token_id, self.hub.cls_token_id

    @cached_property
    def is_byte_level(self) -> bool:
        """Whether this is a byte-level BPE, in which a word after a space is another token than without."""
        return str(next(iter(self.hub.tokenize(" a")), "")).startswith("Ġ")

    @property
    def unknown_id(self) -> int | None:
        """The id of the unknown token; None where there is none."""
        return self.hub.unk_token_id

    @property
    def has_chat_template(self) -> bool:
        """Whether the tokenizer comes with a template for conversations."""
        return bool(getattr(self.hub, "chat_template", None))

    @cached_property
    def beginning(self) -> Beginning:
        """The tokenizer's Beginning: what it puts there itself, else its bos, else its eos, else nothing."""
        prefix = self._prefix
        bos, eos = self.hub.bos_token_id, self.hub.eos_token_id
        if prefix:
            return Beginning(prefix, True, "bos" if prefix[-1] == bos else "post-processor")
        if bos is not None:
            return Beginning((bos,), False, "bos")
        if eos is not None:
            return Beginning((eos,), False, "eos")
        return Beginning((), False, "none")

    @property
    def _prefix(self) -> tuple[int, ...]:
        """The special tokens that the tokenizer puts before a text, be it "a" or the first piece that it can read."""
        if not getattr(self.hub, "is_fast", False):
            return self.encode("")[0][: self._prefix_of_python]
        for text in chain(["a"], map(self.hub.decode, range(len(self.hub)))):
            with suppress(Refusal):
                tokens = self.tokenize(text)
                if tokens.ordinary:
                    return tokens.ids[: tokens.ordinary[0]]
        return ()


def start_of(config: Any, *names: str) -> int | None:
    """The token that a decoder starts with, by a model's configuration; None where that names none.

    Args:
        config: the configuration, or None.
        names: what to look for, in this order; the decoder's start token, else the beginning of a sequence, by default.
    """
    parts = [part for part in (config, getattr(config, "decoder", None)) if part is not None]
    for name in names or ("decoder_start_token_id", "bos_token_id"):
        for part in parts:
            if getattr(part, name, None) is not None:
                return getattr(part, name)
    return None


def _inverted(names: Mapping[str, int]) -> dict[int, str]:
    return {name: number for number, name in names.items()}


def _segments(encoding: Any) -> tuple[int, ...] | None:
    segments = encoding.get("token_type_ids")
    return None if segments is None else tuple(segments)


def _short(text: object) -> str:
    text = str(text)
    return repr(text if len(text) <= 60 else text[:57] + "...")
