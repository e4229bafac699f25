"""Causal language models: what rows share is computed once."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from stereoset_scoring.engines.base import Groups, Inputs
from stereoset_scoring.engines.language_model import LanguageModelEngine
from stereoset_scoring.engines.padding import pad, visibility
from stereoset_scoring.engines.reads import reads_in_trees
from stereoset_scoring.engines.trials import (
    Trial,
    hardest,
    length_of,
    same_up_to,
    sketch,
    try_causal,
    try_causal_at_once,
)
from stereoset_scoring.planning.packing import Pack, pack
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.planning.units import Unit


class CausalEngine(LanguageModelEngine):
    """Causal models; the rows of a unit are packed, so that what they share is computed once."""

    def longest_pass(self, groups: Groups) -> int:
        """As Engine; the largest tree."""
        largest = max(groups, key=lambda group: sum(map(length_of, group)))
        return max(len(pack([row.ids for row in largest]).ids), super().longest_pass(groups))

    def first_trial(self, groups: Groups) -> Trial:
        """As Engine; on short rows made up of the job's tokens."""
        rows = sketch([row for group in groups for row in group])
        return try_causal_at_once(self, rows) or try_causal(self, rows)

    def trial_at_length(self, groups: Groups) -> Trial:
        """As Engine; rows longer than a sliding window are not packed, and not tried so."""
        if self.longest_pass(groups) > same_up_to(self.model.config):
            return replace(try_causal(self, hardest(groups), packing=False), pads=False)
        kept = list(map(self._inside_window, groups))
        inside = [some for some in kept if len(some) > 1]
        packing = self.trial.packs and bool(inside)
        if sum(map(len, kept)) == sum(map(len, groups)):
            return try_causal(self, hardest(groups), packing)
        found = try_causal(self, hardest(groups), packing=False)
        return replace(found, packs=packing and try_causal(self, hardest(inside)).packs)

    def _inside_window(self, rows: Sequence[Row]) -> list[Row]:
        """Those rows that are no longer than a sliding window."""
        window = getattr(self.model.config.get_text_config(), "sliding_window", None)
        return list(rows) if window is None else [row for row in rows if len(row.ids) <= window]

    def log_probs(self, units: Sequence[Unit]) -> list[list[float]]:
        """As Engine; where a later trial took back that trees may be computed, those that were planned are not."""
        return super().log_probs(units if self.shares_prefixes else [unit.unpacked() for unit in units])

    def _log_probs_of_units(self, units: Sequence[Unit]) -> list[list[float]]:
        rows = [row for unit in units for row in unit.rows]
        shared = len(rows) > len(units) and all(unit.packed for unit in units)
        if shared and len(self._inside_window(rows)) == len(rows):
            return self._log_probs_of_packs(units)
        return super()._log_probs_of_units(units)

    @torch.no_grad()
    def _log_probs_of_packs(self, units: Sequence[Unit]) -> list[list[float]]:
        trees = [unit.pack for unit in units if unit.pack is not None]
        reads = reads_in_trees([row for unit in units for row in unit.rows], trees)
        numbers, nodes = reads.places.unbind(1)  # (N,), (N,)
        return self._read(self._projected(self.packed_inputs(trees), (numbers, nodes)), reads)

    def packed_inputs(self, packs: Sequence[Pack]) -> Inputs:
        """The model's inputs for a batch of trees: ids, positions, and who sees whom."""
        device, dtype = self.device, self.model.dtype
        visible = visibility(packs).to(device)  # (B, T, T)
        hidden = torch.tensor(torch.finfo(dtype).min, dtype=dtype, device=device)
        mask = torch.where(visible, torch.zeros_like(hidden), hidden)
        return {
            "input_ids": pad([tree.ids for tree in packs], self.pad_token_id, device),  # (B, T)
            "position_ids": pad([tree.positions for tree in packs], 0, device),  # (B, T)
            "attention_mask": mask[:, None],  # (B, 1, T, T)
            "use_cache": False,
            "return_dict": True,
        }
