"""Causal models that read a given beginning in both directions and go on from it token by token (PaliGemma)."""

from collections.abc import Sequence

import torch

from stereoset_scoring.engines.base import Inputs
from stereoset_scoring.engines.causal import CausalEngine
from stereoset_scoring.planning.rows import Row


class ContinuationEngine(CausalEngine):
    """As CausalEngine; all of a text is what the model goes on with, whose token type is 1."""

    def inputs(self, rows: Sequence[Row]) -> Inputs:
        """The model's inputs for a batch of rows, none of it a given beginning."""
        inputs = super().inputs(rows)
        return {**inputs, "token_type_ids": torch.ones_like(inputs["input_ids"])}
