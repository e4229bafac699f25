"""Next-sentence heads: does the option follow its context?"""

from dataclasses import dataclass

from stereoset_scoring.methods.reductions import only
from stereoset_scoring.rows import Recipe, Row

FOLLOWS = 0  # BERT's own head: class 0 is "the second sentence follows"


@dataclass(frozen=True)
class NextSentence:
    """ln P(the option follows the context), by the checkpoint's own next-sentence head; at most 0."""

    name = "next_sentence"
    source = "Nadeem et al. 2021, §6.1"
    head = "next_sentence"

    def recipes(self, example, tokenizer):
        """One Recipe per option of an intersentence example."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def _recipe(self, example, option, tokenizer):
        ids, segments = tokenizer.encode(example.context, option.sentence)
        return Recipe((Row(self.head, ids, ((0, FOLLOWS),), segments),), only)
