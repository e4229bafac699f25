"""Masked language models, and the attention that a position receives."""

from collections.abc import Sequence

import torch

from stereoset_scoring.engines.bidirectional import BidirectionalEngine
from stereoset_scoring.engines.language_model import LanguageModelEngine
from stereoset_scoring.engines.projection import seen_by
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.refusal import Refusal


class MaskedEngine(BidirectionalEngine, LanguageModelEngine):
    """Masked models; rows that say so are weighted by attention."""

    sees_all = True

    def _log_probs(self, rows: Sequence[Row]) -> list[list[float]]:
        """As Engine; the values of weighted rows are multiplied by the attention that their positions receive."""
        values = super()._log_probs(rows)
        if not rows[0].weighted:
            return values
        received = self._attention_received(rows)
        return [_weighted(*of_row) for of_row in zip(rows, values, received, strict=True)]

    @torch.no_grad()
    def _attention_received(self, rows: Sequence[Row]) -> list[list[float]]:
        """Of each row, by position: the attention received, a mean over layers, heads and the row's own positions."""
        implementation = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # the only one that gives its weights
        try:
            with seen_by(self.model.get_output_embeddings(), lambda hidden: hidden[:1, 0]):  # its logits are not read
                attentions = self.model(**self.inputs(rows), output_attentions=True).attentions
        finally:
            self.model.set_attn_implementation(implementation)
        if not attentions:
            raise Refusal(f"A {type(self.model).__name__} has no attention to weigh by: choose aul instead of aula.")
        mean = torch.stack([layer.double().mean(1) for layer in attentions]).mean(0)  # (B, T, T)
        return [mean[b, : len(row.ids)].mean(0).tolist() for b, row in enumerate(rows)]


def _weighted(row: Row, values: Sequence[float], received: Sequence[float]) -> list[float]:
    """The values of a row, each times the attention that its position receives."""
    return [value * received[position] for value, (position, _) in zip(values, row.reads, strict=True)]
