"""The words that methods, engines and runner share: a row, and a recipe. No tensors, no device, no batch."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Values = Sequence[Sequence[float]]
Input = tuple[Hashable, ...]  # of a row, to compare
GREEDY = -1


class Row(NamedTuple):
    """One input of a model, and what is read from its output.

    Attributes:
        head: the model's head that is asked, such as "masked"; see `stereoset_scoring.checkpoints`.
        ids: token ids, special tokens included.
        reads: (position, token) pairs; each reads ln P(token), in nats, from the output at that position.
            A next-sentence head has one position, 0, and its tokens are its classes.
        segments: token types, one per id, where the tokenizer gives them.
        decoder: for encoder-decoders, the decoder's ids after its start token; positions count from the start
            token on. GREEDY in the place of an id stands for the likeliest one there.
        start: the decoder's start token; None for the one that the model's configuration names.
        among: the tokens that share the probability; None for the whole vocabulary.
        weighted: whether each value is multiplied by the attention that its position receives.
        query: for permutation models, whether the position that is read is hidden from all others and asked for
            by a query of its own; else it is read where its mask token stands.
        optional: positions of given context that may be left out, from the left, where a model cannot read it
            all; nothing is ever read there.
        following: ids that come next and that nothing read depends on, but for models to which the length of the
            whole matters.
    """

    head: str
    ids: tuple[int, ...]
    reads: tuple[tuple[int, int], ...]
    segments: tuple[int, ...] | None = None
    decoder: tuple[int, ...] | None = None
    among: tuple[int, ...] | None = None
    weighted: bool = False
    query: bool = False
    optional: range = range(0)
    following: tuple[int, ...] = ()
    start: int | None = None

    @property
    def tokens(self) -> int:
        """How many tokens the model reads for this row alone, the decoder's start token among them."""
        return len(self.ids) if self.decoder is None else len(self.ids) + self.decoder_tokens

    @property
    def decoder_tokens(self) -> int:
        """How many tokens the decoder reads; 0 where there is none."""
        return 0 if self.decoder is None else 1 + len(self.decoder)

    @property
    def input(self) -> Input:
        """All that decides the model's output: rows with equal inputs are computed once."""
        return self.head, self.ids, self.segments, self.decoder, self.among, self.weighted, self.query, self.start

    def reading(self, reads: tuple[tuple[int, int], ...]) -> "Row":
        """An equal input of which this is read, and of which nothing may be left out any more."""
        return Row(
            self.head,
            self.ids,
            reads,
            self.segments,
            self.decoder,
            self.among,
            self.weighted,
            self.query,
            start=self.start,
        )

    @property
    def whole(self) -> "Row":
        """The row with what follows."""
        return self._replace(ids=self.ids + self.following, following=())

    def without(self, count: int) -> "Row":
        """The row without the first ids of its optional context, as many as count says and there are."""
        left_out = self.optional[:count]
        if not left_out:
            return self
        start, stop = left_out.start, left_out.stop
        return self._replace(
            ids=self.ids[:start] + self.ids[stop:],
            reads=tuple((position - len(left_out), token) for position, token in self.reads),
            segments=self.segments and self.segments[:start] + self.segments[stop:],
            optional=range(start, start + len(self.optional) - len(left_out)),
        )


@dataclass(frozen=True)
class Recipe:
    """How one option gets its score.

    Attributes:
        rows: what must be read.
        combine: from values[r][k], the reading k of row r in nats, to the option's score.
        straddling: how many tokens spanned the border between what is scored and what is given.
        truncated: whether given context was left out, because the model cannot read it all.
        part: which of the options it is of, where the rows ask about all of them at once; else None.
        observe: from the values, as `combine` takes them, to what is recorded of the example beside its scores.
    """

    rows: tuple[Row, ...]
    combine: Callable[[Values], float]
    straddling: int = 0
    truncated: bool = False
    part: int | None = None
    observe: Callable[[Values], Mapping[str, float]] | None = None
