"""Models whose output at a position is a distribution over the vocabulary."""

from abc import ABC
from collections.abc import Iterable, Sequence

import torch

from stereoset_scoring.engines.base import Engine, Inputs, Places, widened
from stereoset_scoring.engines.projection import (
    LOGITS,
    Where,
    is_plain,
    logits_at,
    logits_in_chunks,
    logits_of,
    observed,
    on,
    seen_by,
    told,
)
from stereoset_scoring.engines.trials import alike
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.planning.units import Unit


class LanguageModelEngine(Engine, ABC):
    """Models whose output at a position is a distribution over the vocabulary."""

    _logits: torch.Tensor | None = None  # see _room

    def log_probs(self, units: Sequence[Unit]) -> list[list[float]]:
        """As Engine; where the logits of a batch would be many, they are computed in parts."""
        tokens = len(units) * max(unit.tokens for unit in units)
        if tokens > self._places_at_once and not self.ends_in_its_projection:
            self.budget.lower(self._places_at_once)
        return super().log_probs(units)

    @property
    def _places_at_once(self) -> int:
        return max(1, LOGITS // self.model.config.get_text_config().vocab_size)

    def logits(self, rows: Sequence[Row], places: Places) -> Iterable[torch.Tensor]:
        """As Engine; the vocabulary is projected at the places and nowhere else."""
        return self._projected(self.inputs(rows), self.where(rows, places))

    def _projected(self, inputs: Inputs, where: Where) -> Iterable[torch.Tensor]:
        if not self.trial.selects:
            logits = logits_of(self.model(**inputs))
            return [logits[on(logits, where)]]
        count = len(where[0])
        if count <= self._places_at_once or not self.ends_in_its_projection:
            return [logits_at(self.model, inputs, where)]
        return logits_in_chunks(self.model, inputs, where, self._places_at_once, self._room())

    def _room(self) -> torch.Tensor | None:
        """Memory for the logits of one chunk, the same for all; None where the projection takes none."""
        projection = self.model.get_output_embeddings()
        if not is_plain(projection):
            return None
        shape, dtype = (self._places_at_once, projection.out_features), projection.weight.dtype
        if self._logits is None or (self._logits.shape, self._logits.dtype) != (shape, dtype):
            self._logits = torch.empty(shape, dtype=dtype)
        return self._logits

    @property
    def ends_in_its_projection(self) -> bool:
        """Whether the projection may be asked without the model."""
        return self.trial.projects

    def states(self, inputs: Inputs) -> torch.Tensor:
        """As Engine; the logits where there is no one projection to look into."""
        seen: list[torch.Tensor] = []

        def first_only(hidden: torch.Tensor) -> torch.Tensor:
            seen.append(hidden)
            return hidden[0, :1]  # what is projected is not looked at

        with seen_by(self.model.get_output_embeddings(), first_only) as done:
            logits = logits_of(self.model(**inputs))
        return widened(seen[0] if done else logits)

    def observed(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
        """As Engine; the logits are the states where those do not answer them."""
        hidden, logits = observed(self.model, inputs)
        if hidden is None or hidden.shape[:2] != logits.shape[:2]:
            hidden = logits
        return widened(hidden), widened(logits)

    def told(self, inputs: Inputs, logits: torch.Tensor | None) -> tuple[torch.Tensor | None, bool, bool]:
        """As Engine."""
        assert logits is not None, "a language model has logits"
        hidden, found, ends = told(self.model, inputs, len(logits))
        if hidden is None or found is None or found.shape != logits.shape:
            return None, False, False
        same = alike(widened(found), logits)
        return widened(hidden), same, same and ends

    def where(self, rows: Sequence[Row], places: Places) -> Where:
        """The places as index tensors (N,), (N,) into the model's output."""
        numbers, positions = torch.as_tensor(places).unbind(1)
        return numbers, positions + self.trial.virtual
