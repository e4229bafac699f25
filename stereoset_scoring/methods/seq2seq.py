"""Encoder-decoders: the likelihood of what a sentinel or a mask stands for, or of what follows a prefix."""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.methods.causal import with_full_stop
from stereoset_scoring.methods.masked import AttributeLikelihood, attribute_tokens
from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.reductions import log_mean_probability, mean_log, only, share_of_first
from stereoset_scoring.planning.rows import GREEDY, Recipe, Row
from stereoset_scoring.questions.attribute import attribute_in_text
from stereoset_scoring.questions.examples import Example, Option
from stereoset_scoring.questions.tokens import Texts, Tokenizer, Tokens
from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class SpanLikelihood(AttributeLikelihood):
    """ln of the mean probability of the attribute's tokens, each where a sentinel stands after those before it.

    The encoder reads the sentence with the sentinel, the decoder its start, the sentinel, and then P(t_k) is read.

    Options, besides text and average:
        first: what the decoder has read before: "sentinel", or "greedy", its own likeliest first token, as released.
    """

    first: Literal["sentinel", "greedy"] = "sentinel"

    source = "Öztürk et al. 2023, §4.1"

    @staticmethod
    def fits(tokenizer: Tokenizer) -> bool:
        """Whether the model was trained so: where there are sentinels."""
        return tokenizer.has_sentinel

    def placeholder(self, tokenizer: Tokenizer) -> tuple[int, str]:
        """(id, text) of the sentinel."""
        return tokenizer.sentinel

    def row(
        self,
        ids: tuple[int, ...],
        position: int | None,
        token: int,
        segments: tuple[int, ...] | None,
        tokenizer: Tokenizer,
    ) -> Row:
        """The row that reads a token after the sentinel."""
        decoder = GREEDY if self.first == "greedy" else tokenizer.sentinel[0]
        return Row("seq2seq", ids, ((1, token),), decoder=(decoder,))

    def pasted_row(self, text: str, token: int, tokenizer: Tokenizer) -> Row:
        """The row that reads a token for a text; where the sentinel ended up among its tokens does not matter."""
        return self.row(tokenizer.encode(text)[0], None, token, None, tokenizer)


@dataclass(frozen=True)
class SpanConditional(Method):
    """Mean ln P over the option's tokens, for the sentinel after the context; at most 0.

    Options:
        end: whether the end of the text counts as one of the option's tokens, as released.
    """

    end: bool = False

    name = "conditional"
    source = "Öztürk et al. 2023, Appendix E"

    @staticmethod
    def fits(tokenizer: Tokenizer) -> bool:
        """Whether the model was trained so: where there are sentinels."""
        return tokenizer.has_sentinel

    def texts(self, example: Example) -> Texts:
        """As Method."""
        return Texts(bare=example.sentences)

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        sentinel, text = tokenizer.sentinel
        encoder, _ = tokenizer.encode(f"{with_full_stop(example.context)} {text}")
        return [self._recipe(encoder, sentinel, option.sentence, tokenizer) for option in example.options]

    def _recipe(self, encoder: tuple[int, ...], sentinel: int, sentence: str, tokenizer: Tokenizer) -> Recipe:
        option = tokenizer.encode(sentence)[0] if self.end else tokenizer.encode_bare(sentence)
        # From the sentinel's position on, each position predicts the next token.
        reads = tuple((1 + i, token) for i, token in enumerate(option))
        return Recipe((Row("seq2seq", encoder, reads, decoder=(sentinel, *option[:-1])),), mean_log)


@dataclass(frozen=True)
class TextToTextNextSentence(Method):
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

    @staticmethod
    def fits(tokenizer: Tokenizer) -> bool:
        """Whether the model was trained so: where there are sentinels."""
        return tokenizer.has_sentinel

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        no, yes = (tokenizer.encode_bare(label) for label in ("0", "1"))
        if no[-1] == yes[-1]:
            raise Refusal(
                f"The tokenizer {tokenizer.hub.name_or_path!r} cannot tell the labels 0 and 1 apart: "
                "choose another method."
            )
        recipe = self._of_digits if self.before == "greedy" else self._of_labels
        pairs = (tokenizer.encode(self.prefix + example.context, option.sentence)[0] for option in example.options)
        return [recipe(ids, no, yes) for ids in pairs]

    def _of_labels(self, ids: tuple[int, ...], no: tuple[int, ...], yes: tuple[int, ...]) -> Recipe:
        # The position of each token of a label is where the one before it, or the start token, stands.
        rows = [Row("seq2seq", ids, tuple(enumerate(label)), decoder=label[:-1]) for label in (yes, no)]
        return Recipe(tuple(rows), share_of_first)

    def _of_digits(self, ids: tuple[int, ...], no: tuple[int, ...], yes: tuple[int, ...]) -> Recipe:
        row = Row("seq2seq", ids, ((1, yes[-1]),), decoder=(GREEDY,), among=(no[-1], yes[-1]))
        return Recipe((row,), only)


class Denoising(Method):
    """What the methods for denoising-trained models share: one mask in the encoder, the text in the decoder.

    The encoder reads the text with one mask in the place of all tokens of a span, the decoder the text up to the
    span's last token but one; ln P of each of the span's tokens is read, given those before it.
    """

    name = "denoising"
    source = "Lewis et al. 2020 (BART)"

    @staticmethod
    def fits(tokenizer: Tokenizer) -> bool:
        """Whether the model was trained so, as far as its tokenizer and its configuration tell."""
        return tokenizer.has_denoising_mask

    def row_of(self, tokens: Tokens, span: range, tokenizer: Tokenizer) -> Row:
        """The row that reads a span of positions of a tokenized text."""
        mask, _ = tokenizer.mask
        first, last = tokens.ordinary[0], tokens.ordinary[-1]
        target = tokenizer.as_target(tokens.ids[:first], tokens.ids[first : span.stop], tokens.ids[last + 1 :])
        decoder = (*target.before, *target.ids)
        # The position of each token is where the one before it, or the start token, stands.
        reads = tuple(enumerate(decoder))[len(decoder) - len(span) :]
        encoder = (*tokens.ids[: span.start], mask, *tokens.ids[span.stop :])
        return Row("seq2seq", encoder, reads, decoder=decoder[:-1], start=target.start)


@dataclass(frozen=True)
class DenoisingLikelihood(Denoising):
    """ln of the mean probability of the attribute's tokens, which the decoder restores where the encoder reads a mask.

    Options:
        average: of probabilities, "probability", or of their logarithms, "log".
    """

    average: Literal["probability", "log"] = "probability"

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intrasentence example."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def _recipe(self, example: Example, option: Option, tokenizer: Tokenizer) -> Recipe:
        tokens, attribute, straddling = attribute_tokens(example, option, tokenizer)
        combine = log_mean_probability if self.average == "probability" else mean_log
        return Recipe((self.row_of(tokens, attribute, tokenizer),), combine, straddling)


@dataclass(frozen=True)
class DenoisingConditional(Denoising):
    """Mean ln P over the option's tokens, which the decoder restores after the context; at most 0."""

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        context = with_full_stop(example.context)
        return [self._recipe(context, option.sentence, tokenizer) for option in example.options]

    def _recipe(self, context: str, sentence: str, tokenizer: Tokenizer) -> Recipe:
        tokens = tokenizer.tokenize(f"{context} {sentence}")
        option = tokens.within(len(context), len(tokens.text))
        rows = (self.row_of(tokens, option, tokenizer),) if option else ()
        return Recipe(rows, mean_log, tokens.straddling(len(context)))


class Prefix(Method):
    """What the methods for all other models share: one text in the encoder, the one that follows in the decoder."""

    name = "prefix"
    source = "Raffel et al. 2020, §3.2.1"

    def recipe_of(self, prefix: str, text: str, tokenizer: Tokenizer) -> Recipe:
        """The Recipe of the mean ln P of a text's tokens after a prefix.

        Raises:
            Refusal: if the encoder would read nothing at all.
        """
        encoder = tokenizer.encode(prefix)[0] or tokenizer.beginning.ids
        if not encoder:
            raise Refusal(
                f"Nothing precedes {text!r}, and the tokenizer {tokenizer.hub.name_or_path!r} has no token that begins "
                "a sequence: drop the example."
            )
        target = tokenizer.target(text)
        decoder, first = (*target.before, *target.ids), len(target.before)
        reads = tuple(enumerate(decoder))[first:]
        return Recipe((Row("seq2seq", encoder, reads, decoder=decoder[:-1], start=target.start),), mean_log)


@dataclass(frozen=True)
class PrefixLikelihood(Prefix):
    """Mean ln P over the attribute's tokens and those after it, with what precedes in the encoder; at most 0."""

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intrasentence example."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def _recipe(self, example: Example, option: Option, tokenizer: Tokenizer) -> Recipe:
        text, (start, _) = attribute_in_text(example, option)
        return self.recipe_of(text[:start].rstrip(), text[start:], tokenizer)


@dataclass(frozen=True)
class PrefixConditional(Prefix):
    """Mean ln P over the option's tokens, with its context in the encoder; at most 0."""

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        context = with_full_stop(example.context)
        return [self.recipe_of(context, option.sentence, tokenizer) for option in example.options]
