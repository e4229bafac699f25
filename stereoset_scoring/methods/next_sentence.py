"""Next-sentence heads: does the option follow its context?"""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.reductions import only
from stereoset_scoring.planning.rows import Recipe, Row
from stereoset_scoring.questions.examples import Example, Option
from stereoset_scoring.questions.tokens import Tokenizer


@dataclass(frozen=True)
class NextSentence(Method):
    """ln P(the option follows the context), by a next-sentence head: BERT's own, or a trained one; at most 0.

    Options:
        follows: the head's class that means "follows": 0 in BERT's own head. A trained head says so itself;
            the released one of roberta-base was read as 0, the others as 1.
        join: "space" puts a space before the option, for tokenizers that join two texts without a separator.
        segments: "own": token types as the tokenizer gives them; "two": at most 1, so that XLNet's `<cls>`
            belongs to the option, as in the released code.
    """

    name = "next_sentence"
    source = "Nadeem et al. 2021, §6.1 and A.4"
    head = "next_sentence"

    follows: Literal[0, 1] = 0
    join: Literal["none", "space"] = "none"
    segments: Literal["own", "two"] = "own"

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def pair(
        self, context: str, option: str, tokenizer: Tokenizer, longest: int | None = None
    ) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        """(ids, segments) of a context and an option; cut to the longest length, the longer text first."""
        ids, segments = tokenizer.encode(context, (" " if self.join == "space" else "") + option, longest)
        if self.segments == "two" and segments is not None:
            segments = tuple(min(segment, 1) for segment in segments)
        return ids, segments

    def _recipe(self, example: Example, option: Option, tokenizer: Tokenizer) -> Recipe:
        ids, segments = self.pair(example.context, option.sentence, tokenizer)
        return Recipe((Row(self.head, ids, ((0, self.follows),), segments),), only)
