"""Text classifiers: is the option negative?"""

from dataclasses import dataclass

from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.reductions import only
from stereoset_scoring.planning.rows import Recipe, Row
from stereoset_scoring.questions.attribute import sentence_of
from stereoset_scoring.questions.examples import Example, Option
from stereoset_scoring.questions.tokens import Tokenizer

NEGATIVE = 0  # where the engine puts the class that the checkpoint names negative


@dataclass(frozen=True)
class Sentiment(Method):
    """ln P(negative) of the option, by a sentiment classifier; at most 0. A context with a BLANK is filled."""

    name = "sentiment"
    source = "Nadeem et al. 2021, §5.3"
    head = "sentiment"

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def _recipe(self, example: Example, option: Option, tokenizer: Tokenizer) -> Recipe:
        text = option.sentence
        if example.task == "intrasentence":
            text = sentence_of(example, option)
        ids, segments = tokenizer.encode(text)
        return Recipe((Row(self.head, ids, ((0, NEGATIVE),), segments),), only)
