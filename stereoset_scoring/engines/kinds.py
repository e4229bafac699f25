"""The table of engines by head."""

from stereoset_scoring.engines.base import Engine
from stereoset_scoring.engines.causal import CausalEngine
from stereoset_scoring.engines.classifiers import NextSentenceEngine, SentimentEngine
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
