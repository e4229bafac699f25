"""Masked language models: the likelihood of an attribute."""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.attribute import aligned_fillers, fill, released_word
from stereoset_scoring.examples import BLANK
from stereoset_scoring.methods.reductions import log_mean_probability, mean_log
from stereoset_scoring.rows import Recipe, Row


@dataclass(frozen=True)
class MaskedLikelihood:
    """ln of the mean probability of the attribute's tokens, each at one mask after those before it.

    For k = 1..n the input holds the context's left part, t1..t(k-1), one mask, the context's right part, and
    p_k = P(t_k at the mask). The score is ln(mean_k p_k), at most 0.

    Options:
        text: "ids" tokenizes the filled context once, finds the attribute's tokens by their offsets and
            builds the inputs from ids; "pasted" puts decode(t1..t(k-1)) and the mask's text in for BLANK and
            tokenizes again, as the released codes do.
        average: "probability" as in the released codes, "log" as in the paper's text.
        attribute_space: pasted text only: whether a byte-level BPE sees the attribute with a space before
            it.
        sentence_space: pasted text only: whether a byte-level BPE sees the sentence with a space before it,
            as in transformers 2.
    """

    name = "likelihood"
    source = "Nadeem et al. 2021, §6.1; Öztürk et al. 2023, §4.1"
    head = "masked"

    text: Literal["ids", "pasted"] = "ids"
    average: Literal["probability", "log"] = "probability"
    attribute_space: bool = False
    sentence_space: bool = False

    def recipes(self, example, tokenizer):
        """One Recipe per option of an intrasentence example."""
        recipe = self._from_ids if self.text == "ids" else self._from_pasted_text
        return [recipe(example, option, tokenizer) for option in example.options]

    @property
    def _combine(self):
        return log_mean_probability if self.average == "probability" else mean_log

    def _from_ids(self, example, option, tokenizer):
        text, (start, end) = fill(example.context, aligned_fillers(example, option))
        tokens = tokenizer.tokenize(text)
        attribute = tokens.within(start, end)
        if not attribute:
            raise ValueError(
                f"The attribute {text[start:end]!r} of option {option.id!r} of example {example.id!r} has no "
                "token: use a tokenizer that can represent it."
            )
        mask, _ = tokenizer.mask
        rest = attribute.stop  # one mask stands for all that is left of the attribute
        rows = tuple(
            Row(
                self.head,
                ids=(*tokens.ids[:k], mask, *tokens.ids[rest:]),
                reads=((k, tokens.ids[k]),),
                segments=tokens.segments and (*tokens.segments[: k + 1], *tokens.segments[rest:]),
            )
            for k in attribute
        )
        return Recipe(rows, self._combine, tokens.straddling(start) + tokens.straddling(end))

    def _from_pasted_text(self, example, option, tokenizer):
        mask, mask_text = tokenizer.mask
        word = released_word(example, option)
        if self.attribute_space and tokenizer.is_byte_level:
            word = " " + word
        pieces = tokenizer.encode_bare(word)
        rows = []
        for k, piece in enumerate(pieces):
            text = example.context.replace(BLANK, tokenizer.decode(pieces[:k]) + mask_text)
            if self.sentence_space and tokenizer.is_byte_level and not text.startswith((" ", mask_text)):
                text = " " + text
            ids, segments = tokenizer.encode(text)
            # The first mask, also where the context has two BLANKs.
            rows.append(Row(self.head, ids, reads=((ids.index(mask), piece),), segments=segments))
        return Recipe(tuple(rows), self._combine)
