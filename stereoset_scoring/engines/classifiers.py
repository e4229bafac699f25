"""Heads that give one distribution per text: next-sentence heads and text classifiers."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from stereoset_scoring.engines.base import Inputs, Places, widened
from stereoset_scoring.engines.bidirectional import BidirectionalEngine
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.refusal import Refusal


class NextSentenceEngine(BidirectionalEngine):
    """Next-sentence heads: the output is one distribution over two classes per row."""

    def states(self, inputs: Inputs) -> torch.Tensor:
        """The outputs of the head (B, 2), in float32 or more."""
        return widened(self._outputs(inputs))

    def logits(self, rows: Sequence[Row], places: Places) -> Iterable[torch.Tensor]:
        """The outputs of the head in one chunk (B, 2)."""
        return [self._outputs(self.inputs(rows))]

    def _outputs(self, inputs: Inputs) -> torch.Tensor:
        output = self.model(**inputs)
        return output.seq_relationship_logits if "seq_relationship_logits" in output else output.logits


class SentimentEngine(NextSentenceEngine):
    """Text classifiers that know negative from other sentiment: one distribution per row, the negative class first.

    Raises:
        Refusal: if the names of the model's classes do not tell which one is negative.
    """

    def __init__(self, model: Any, *options: Any):
        super().__init__(model, *options)
        self._negative = negative_class(model.config.id2label)

    def logits(self, rows: Sequence[Row], places: Places) -> Iterable[torch.Tensor]:
        """The outputs of the classifier in one chunk (B, C), turned such that the negative class is class 0."""
        (logits,) = super().logits(rows, places)
        return [logits.roll(-self._negative, -1)]


def negative_class(id2label: Mapping[int, str]) -> int:
    """The class whose name, such as "NEGATIVE" or "neg", says that it is the negative one.

    Raises:
        Refusal: if there is no such name, or more than one.
    """
    found = [index for index, label in id2label.items() if re.fullmatch("neg(ative)?", str(label).strip(), re.I)]
    if len(found) != 1 or len(id2label) < 2:
        raise Refusal(
            f"Which of the classes {', '.join(map(str, id2label.values()))} is negative cannot be told: give a "
            "sentiment classifier whose id2label names one class NEGATIVE, beside others."
        )
    return int(found[0])
