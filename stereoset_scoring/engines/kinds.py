"""The table of engines by head."""

from typing import Any

from stereoset_scoring.engines.base import Engine
from stereoset_scoring.engines.causal import CausalEngine
from stereoset_scoring.engines.classifiers import NextSentenceEngine, SentimentEngine
from stereoset_scoring.engines.continuation import ContinuationEngine
from stereoset_scoring.engines.masked import MaskedEngine
from stereoset_scoring.engines.permutation import PermutationEngine
from stereoset_scoring.engines.seq2seq import Seq2SeqEngine

ENGINES: dict[str, type[Engine]] = {
    "masked": MaskedEngine,
    "permutation": PermutationEngine,
    "causal": CausalEngine,
    "seq2seq": Seq2SeqEngine,
    "next_sentence": NextSentenceEngine,
    "sentiment": SentimentEngine,
}
# Causal models by type that see a given beginning in both directions, and go on from it token by token.
CONTINUING = {"paligemma": ContinuationEngine}


def engine_for(head: str, config: Any) -> type[Engine]:
    """The class of engines that asks a head of a model of this configuration."""
    return CONTINUING.get(config.model_type, CausalEngine) if head == "causal" else ENGINES[head]
