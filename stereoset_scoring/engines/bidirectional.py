"""Models in which a position may see those after it."""

from abc import ABC

from stereoset_scoring.engines.base import Engine, Groups
from stereoset_scoring.engines.trials import Trial, length_of, stretched, try_bidirectional
from stereoset_scoring.planning.rows import Row

FURTHER = 6  # tokens, by which the rows of the first trial differ if they can


class BidirectionalEngine(Engine, ABC):
    """Models in which a position may see those after it, padding included where the architecture mixes positions
    by other means than attention (convolutions in ConvBERT, Fourier transforms in FNet)."""

    def first_trial(self, groups: Groups) -> Trial:
        """As Engine; on the shortest row beside one that is longer."""
        rows = sorted((row for group in groups for row in group), key=length_of)
        enough = len(rows[0].ids) + FURTHER
        return self._try(rows[0], next((row for row in rows if len(row.ids) >= enough), rows[-1]))

    def trial_at_length(self, groups: Groups) -> Trial:
        """As Engine; on the shortest row beside the longest."""
        rows = sorted((row for group in groups for row in group), key=length_of)
        return self._try(rows[0], rows[-1])

    def _try(self, short: Row, long: Row) -> Trial:
        return try_bidirectional(self, long if len(long.ids) > len(short.ids) else stretched(short, FURTHER), short)
