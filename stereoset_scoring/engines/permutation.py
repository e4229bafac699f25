"""Permutation language models (XLNet)."""

from collections.abc import Sequence

import torch

from stereoset_scoring.engines.base import Groups, Inputs, Places
from stereoset_scoring.engines.bidirectional import BidirectionalEngine
from stereoset_scoring.engines.language_model import LanguageModelEngine, Where
from stereoset_scoring.planning.rows import Row


class PermutationEngine(BidirectionalEngine, LanguageModelEngine):
    """XLNet, read at a mask or by a query of its own."""

    sees_all = True

    def try_out(self, groups: Groups) -> None:
        """As Engine; as it reads at a mask."""
        super().try_out([_read_at_masks(group) for group in groups])

    def inputs(self, rows: Sequence[Row]) -> Inputs:
        """The model's inputs; for rows that are queried, which position each of them asks for."""
        inputs = super().inputs(rows)
        if rows[0].query:
            batch, length = inputs["input_ids"].shape
            asked = torch.tensor([row.reads[0][0] for row in rows], device=self.device)  # (B,)
            mapping = torch.nn.functional.one_hot(asked, length).to(self.model.dtype)  # (B, T)
            inputs["target_mapping"] = mapping[:, None]  # (B, 1, T)
            inputs["perm_mask"] = mapping[:, None].expand(batch, length, length)  # nobody sees what is asked for
        return inputs

    def where(self, rows: Sequence[Row], places: Places) -> Where:
        """The places; a queried row has one output."""
        numbers, positions = super().where(rows, places)
        return numbers, torch.zeros_like(positions) if rows[0].query else positions


def _read_at_masks(rows: Sequence[Row]) -> list[Row]:
    return [row._replace(query=False) for row in rows]
