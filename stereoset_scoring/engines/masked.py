"""Masked language models, and the attention that a position receives."""

import torch

from stereoset_scoring.engines.bidirectional import BidirectionalEngine
from stereoset_scoring.engines.language_model import LanguageModelEngine
from stereoset_scoring.engines.projection import seen_by
from stereoset_scoring.refusal import Refusal


class MaskedEngine(BidirectionalEngine, LanguageModelEngine):
    """Masked models; rows that say so are weighted by attention."""

    sees_all = True

    def _log_probs(self, rows):
        """As Engine; the values of weighted rows are multiplied by the attention that their positions receive."""
        values = super()._log_probs(rows)
        if not rows[0].weighted:
            return values
        return [
            [value * weights[position] for value, (position, _) in zip(of_row, row.reads, strict=True)]
            for of_row, row, weights in zip(values, rows, self._attention_received(rows), strict=True)
        ]

    @torch.no_grad()
    def _attention_received(self, rows):
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
