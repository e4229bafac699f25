"""Models in which a position may see those after it."""

from functools import cached_property

import torch

from stereoset_scoring.engines.base import Engine
from stereoset_scoring.rows import Row


class BidirectionalEngine(Engine):
    """Models in which a position may see those after it, padding included where the architecture mixes positions
    by other means than attention (convolutions in ConvBERT, Fourier transforms in FNet)."""

    @cached_property
    @torch.no_grad()
    def padding_is_inert(self):
        """Whether a row's output is the same beside longer rows: tried once, on two made-up rows."""
        short, long = (tuple(1 + i % 9 for i in range(length)) for length in (6, 12))
        rows = [Row("", ids, (), (0,) * len(ids)) for ids in (short, long)]
        alone, padded = (self.first_output(some, len(short)).float() for some in (rows[:1], rows))
        tolerance = 1e-3 if self.model.dtype in (torch.float32, torch.float64) else 0.25
        return torch.allclose(alone, padded, rtol=tolerance, atol=tolerance)

    def first_output(self, rows, length):
        """What the model makes of the first row: (length, H) last hidden states."""
        return self.model(**self.inputs(rows), output_hidden_states=True).hidden_states[-1][0, :length]
