"""Models whose output at a position is a distribution over the vocabulary."""

import torch

from stereoset_scoring.engines.base import Engine, widened
from stereoset_scoring.engines.projection import (
    LOGITS,
    is_plain,
    logits_at,
    logits_in_chunks,
    logits_of,
    seen_by,
    states_and_end,
)


class LanguageModelEngine(Engine):
    """Models whose output at a position is a distribution over the vocabulary."""

    _logits = None  # see _room

    def log_probs(self, units):
        """As Engine; where the logits of a batch would be many, they are computed in parts."""
        tokens = len(units) * max(unit.tokens for unit in units)
        if tokens > self._places_at_once and not self.ends_in_its_projection:
            self.budget.lower(self._places_at_once)
        return super().log_probs(units)

    @property
    def _places_at_once(self):
        return max(1, LOGITS // self.model.config.get_text_config().vocab_size)

    def logits(self, rows, places):
        """As Engine; the vocabulary is projected at the places and nowhere else."""
        return self._projected(self.inputs(rows), self.where(rows, places))

    def _projected(self, inputs, where):
        count = len(where[0])
        if count <= self._places_at_once or not self.ends_in_its_projection:
            return [logits_at(self.model, inputs, where)]
        return logits_in_chunks(self.model, inputs, where, self._places_at_once, self._room())

    def _room(self):
        """Memory for the logits of one chunk, the same for all; None where the projection takes none."""
        projection = self.model.get_output_embeddings()
        if not is_plain(projection):
            return None
        shape, dtype = (self._places_at_once, projection.out_features), projection.weight.dtype
        if self._logits is None or (self._logits.shape, self._logits.dtype) != (shape, dtype):
            self._logits = torch.empty(shape, dtype=dtype)
        return self._logits

    @property
    def ends_in_its_projection(self):
        """Whether the projection may be asked without the model."""
        return self.trial.projects

    def states(self, inputs):
        """As Engine; the logits where there is no one projection to look into."""
        seen = []

        def first_only(hidden):
            seen.append(hidden)
            return hidden[0, :1]  # what is projected is not looked at

        with seen_by(self.model.get_output_embeddings(), first_only) as done:
            logits = logits_of(self.model(**inputs))
        return widened(seen[0] if done else logits)

    def lone_states(self, inputs):
        """As Engine."""
        states, projects = states_and_end(self.model, inputs)
        return widened(states), projects

    def where(self, rows, places):
        """The places as index tensors (N,), (N,) into the model's output."""
        rows, positions = torch.tensor(places).unbind(1)
        return rows, positions + self.trial.virtual
