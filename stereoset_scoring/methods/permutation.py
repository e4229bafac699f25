"""Permutation language models (XLNet): the likelihood of an attribute, after a passage that warms the model up."""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.methods.masked import AttributeLikelihood
from stereoset_scoring.passage import xlnet_passage
from stereoset_scoring.rows import Row


@dataclass(frozen=True)
class PermutationLikelihood(AttributeLikelihood):
    """ln of the mean probability of the attribute's tokens, each at one mask after those before it.

    The input is "<passage> <sep> <sentence> <sep> <cls>", token types 0, 1 and 2.

    Options, besides text and average:
        passage: the first segment; None for the text that transformers puts before short ones, as released.
        reading: "content": at the mask, as released; "query": by a query of its own, all other positions blind to it,
            as the model was trained.
    """

    source = "Nadeem et al. 2021, §7.3"

    passage: str | None = None
    reading: Literal["content", "query"] = "content"

    def row(self, ids, position, token, segments, tokenizer):
        """The row that reads a token at the mask, with the passage before the sentence."""
        passage = tokenizer.encode_bare(xlnet_passage() if self.passage is None else self.passage)
        sep, cls = tokenizer.separators
        sentence = ids[: ids.index(sep)]  # this tokenizer closes a text with <sep> <cls>
        whole = (*passage, sep, *sentence, sep, cls)
        types = (*[0] * (len(passage) + 1), *[1] * (len(sentence) + 1), 2)
        reads = ((len(passage) + 1 + position, token),)
        return Row("permutation", whole, reads, types, query=self.reading == "query")
