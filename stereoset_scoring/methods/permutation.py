"""Permutation language models (XLNet): an attribute's likelihood, or an option's, after a passage to warm up."""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.methods.masked import AttributeLikelihood
from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.pseudo_likelihood import option_tokens
from stereoset_scoring.methods.reductions import mean_log
from stereoset_scoring.planning.rows import Recipe, Row
from stereoset_scoring.questions.examples import Example, Option
from stereoset_scoring.questions.passage import xlnet_passage
from stereoset_scoring.questions.tokens import Tokenizer


@dataclass(frozen=True)
class AfterPassage:
    """What XLNet's methods share: the input is "<passage> <sep> <text> <sep> <cls>", token types 0, 1 and 2.

    Options:
        passage: the first segment; None for the text that transformers puts before short ones, as released.
        reading: "content": at the mask, as released; "query": by a query of its own, all other positions blind to it,
            as the model was trained.
    """

    passage: str | None = None
    reading: Literal["content", "query"] = "content"

    def row(
        self,
        ids: tuple[int, ...],
        position: int,
        token: int,
        segments: tuple[int, ...] | None,
        tokenizer: Tokenizer,
    ) -> Row:
        """The row that reads a token at the mask, with the passage before the text."""
        passage = tokenizer.encode_bare(xlnet_passage() if self.passage is None else self.passage)
        sep, cls = tokenizer.separators
        text = ids[: ids.index(sep)]  # this tokenizer closes a text with <sep> <cls>
        whole = (*passage, sep, *text, sep, cls)
        types = (*[0] * (len(passage) + 1), *[1] * (len(text) + 1), 2)
        reads = ((len(passage) + 1 + position, token),)
        return Row("permutation", whole, reads, types, query=self.reading == "query")


@dataclass(frozen=True)
class PermutationLikelihood(AfterPassage, AttributeLikelihood):
    """ln of the mean probability of the attribute's tokens, each at one mask after those before it.

    Options, besides text and average: as AfterPassage.
    """

    source = "Nadeem et al. 2021, §7.3"


@dataclass(frozen=True)
class PermutationConditional(AfterPassage, Method):
    """Mean ln P over the option's tokens, each at one mask after its context and those before it; at most 0.

    Options: as AfterPassage.
    """

    name = "conditional"
    source = "Nadeem et al. 2021, §7.3, read as Öztürk et al. 2023, Eq. 4"

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def _recipe(self, example: Example, option: Option, tokenizer: Tokenizer) -> Recipe:
        tokens, positions, straddling = option_tokens(example, option, tokenizer)
        mask, _ = tokenizer.mask
        # One mask stands for all that is left of the option; what closes the text comes after it.
        closing = tokens.ids[positions[-1] + 1 :] if positions else ()
        rows = [self.row((*tokens.ids[:k], mask, *closing), k, tokens.ids[k], None, tokenizer) for k in positions]
        return Recipe(tuple(rows), mean_log, straddling)
