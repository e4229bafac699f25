"""Encoder-decoders (T5, mT5): the likelihood of what a sentinel stands for."""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.methods.causal import with_full_stop
from stereoset_scoring.methods.masked import AttributeLikelihood
from stereoset_scoring.methods.reductions import mean_log, only, share_of_first
from stereoset_scoring.rows import GREEDY, Recipe, Row


@dataclass(frozen=True)
class SpanLikelihood(AttributeLikelihood):
    """ln of the mean probability of the attribute's tokens, each where a sentinel stands after those before it.

    The encoder reads the sentence with the sentinel, the decoder its start, the sentinel, and then P(t_k) is read.

    Options, besides text and average:
        first: what the decoder has read before: "sentinel", or "greedy", its own likeliest first token, as released.
    """

    first: Literal["sentinel", "greedy"] = "sentinel"

    source = "Öztürk et al. 2023, §4.1"

    def placeholder(self, tokenizer):
        """(id, text) of the sentinel."""
        return tokenizer.sentinel

    def row(self, ids, position, token, segments, tokenizer):
        """The row that reads a token after the sentinel."""
        decoder = GREEDY if self.first == "greedy" else tokenizer.sentinel[0]
        return Row("seq2seq", ids, ((1, token),), decoder=(decoder,))

    def pasted_row(self, text, token, tokenizer):
        """The row that reads a token for a text; where the sentinel ended up among its tokens does not matter."""
        return self.row(tokenizer.encode(text)[0], None, token, None, tokenizer)


@dataclass(frozen=True)
class SpanConditional:
    """Mean ln P over the option's tokens, for the sentinel after the context; at most 0.

    Options:
        end: whether the end of the text counts as one of the option's tokens, as released.
    """

    end: bool = False

    name = "conditional"
    source = "Öztürk et al. 2023, Appendix E"

    def recipes(self, example, tokenizer):
        """One Recipe per option of an intersentence example."""
        sentinel, text = tokenizer.sentinel
        encoder, _ = tokenizer.encode(f"{with_full_stop(example.context)} {text}")
        return [self._recipe(encoder, sentinel, option.sentence, tokenizer) for option in example.options]

    def _recipe(self, encoder, sentinel, sentence, tokenizer):
        option = tokenizer.encode(sentence)[0] if self.end else tokenizer.encode_bare(sentence)
        # From the sentinel's position on, each position predicts the next token.
        reads = tuple((1 + i, token) for i, token in enumerate(option))
        return Recipe((Row("seq2seq", encoder, reads, decoder=(sentinel, *option[:-1])),), mean_log)


@dataclass(frozen=True)
class TextToTextNextSentence:
    """ln P("1") against "0" as the answer of a text-to-text model to whether the option follows; at most 0.

    Options:
        prefix: the text before the pair, which says what is asked.
        before: "label": the probabilities of the two labels, each with all its tokens (T5 has a piece for " 1" and none
            for " 0"); or "greedy": of the digits alone, after the decoder's own likeliest first token, as released.
    """

    prefix: str = "binary classification: "
    before: Literal["label", "greedy"] = "label"

    name = "next_sentence"
    source = "Öztürk et al. 2023, §4.2"

    def recipes(self, example, tokenizer):
        """One Recipe per option of an intersentence example."""
        no, yes = (tokenizer.encode_bare(label) for label in ("0", "1"))
        if no[-1] == yes[-1]:
            raise ValueError(
                f"The tokenizer {tokenizer.hub.name_or_path!r} cannot tell the labels 0 and 1 apart: "
                "choose another method."
            )
        recipe = self._of_digits if self.before == "greedy" else self._of_labels
        pairs = (tokenizer.encode(self.prefix + example.context, option.sentence)[0] for option in example.options)
        return [recipe(ids, no, yes) for ids in pairs]

    def _of_labels(self, ids, no, yes):
        # The position of each token of a label is where the one before it, or the start token, stands.
        rows = [Row("seq2seq", ids, tuple(enumerate(label)), decoder=label[:-1]) for label in (yes, no)]
        return Recipe(tuple(rows), share_of_first)

    def _of_digits(self, ids, no, yes):
        row = Row("seq2seq", ids, ((1, yes[-1]),), decoder=(GREEDY,), among=(no[-1], yes[-1]))
        return Recipe((row,), only)
