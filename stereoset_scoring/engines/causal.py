"""Causal language models: what rows share is computed once."""

from functools import cached_property

import torch

from stereoset_scoring.engines.language_model import LanguageModelEngine
from stereoset_scoring.engines.padding import pad, visibility
from stereoset_scoring.packing import pack
from stereoset_scoring.rows import Row


class CausalEngine(LanguageModelEngine):
    """Causal models; the rows of a unit are packed, so that what they share is computed once."""

    @cached_property
    def padding_is_inert(self):
        """As Engine; in float64 a place of the padding whose window holds padding alone is NaN, and spreads.

        What masks it is too large for the float32 of an eager attention's softmax.
        """
        window = getattr(self.model.config.get_text_config(), "sliding_window", None)
        return window is None or self.model.dtype != torch.float64

    @cached_property
    @torch.no_grad()
    def shares_prefixes(self):
        """Whether packed rows give what each gives alone: tried once, on a made-up unit."""
        if "position_ids" not in self._accepts:
            return False
        rows = [
            Row("", ids, tuple((i, 1) for i in range(len(ids)))) for ids in ((1, 2, 3, 4), (1, 2, 5, 6, 7), (1, 2, 5))
        ]
        try:
            packed = self._log_probs_of_packs([rows, rows[1:]])
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError, AssertionError):
            return False  # this architecture, or its attention, takes no mask of ours
        alone = [self._log_probs([row])[0] for row in (*rows, *rows[1:])]
        tolerance = 1e-3 if self.model.dtype in (torch.float32, torch.float64) else 0.25
        return all(
            abs(a - b) <= tolerance * max(1, abs(b))
            for one, other in zip(packed, alone, strict=True)
            for a, b in zip(one, other, strict=True)
        )

    def length(self, unit):
        """As Engine; a packed unit takes the tokens of its tree."""
        packed = len(unit) > 1 and self.shares_prefixes
        return len(pack([row.ids for row in unit]).ids) if packed else super().length(unit)

    def _log_probs_of_units(self, units):
        window = getattr(self.model.config.get_text_config(), "sliding_window", None)
        short = window is None or all(len(row.ids) <= window for unit in units for row in unit)
        if self.shares_prefixes and short and any(len(unit) > 1 for unit in units):
            return self._log_probs_of_packs(units)
        return super()._log_probs_of_units(units)

    @torch.no_grad()
    def _log_probs_of_packs(self, units):
        packs = [pack([row.ids for row in unit]) for unit in units]
        reads = [
            [((b, path[position]), token) for position, token in row.reads]
            for b, (unit, tree) in enumerate(zip(units, packs, strict=True))
            for row, path in zip(unit, tree.paths, strict=True)
        ]
        places = sorted({place for of_row in reads for place, _ in of_row})
        where = tuple(torch.tensor(places).unbind(1))  # (N,), (N,)
        return self._read(self._projected(self._packed_inputs(packs), where), places, reads)

    def _packed_inputs(self, packs):
        """The model's inputs for a batch of trees: ids, positions, and who sees whom."""
        device, dtype = self.device, self.model.dtype
        visible = visibility(packs).to(device)  # (B, T, T)
        mask = torch.zeros(visible.shape, dtype=dtype, device=device)
        mask.masked_fill_(~visible, torch.finfo(dtype).min)
        return {
            "input_ids": pad([tree.ids for tree in packs], self.pad_token_id, device),  # (B, T)
            "position_ids": pad([tree.positions for tree in packs], 0, device),  # (B, T)
            "attention_mask": mask[:, None],  # (B, 1, T, T)
            "use_cache": False,
            "return_dict": True,
        }
