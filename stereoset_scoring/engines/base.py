"""One model, asked for the log-probabilities of a batch of rows: what all engines share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

import torch

from stereoset_scoring.engines.budget import Budget, free_memory, tokens_that_fit
from stereoset_scoring.engines.devices import input_device
from stereoset_scoring.engines.first_calls import make_first_calls
from stereoset_scoring.engines.padding import pad
from stereoset_scoring.engines.reads import Reads, reads_of
from stereoset_scoring.engines.sharded import is_sharded
from stereoset_scoring.engines.trials import Trial, length_of, may_change_between, must_compute
from stereoset_scoring.planning.rows import Row
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.refusal import Refusal

Groups = Sequence[Sequence[Row]]  # the rows of each example
Places = torch.Tensor | Sequence[tuple[int, int]]  # (N, 2): (row, position) of each
Inputs = dict[str, Any]  # of a transformers model

CACHED = 2**20  # logits, which a core's own cache holds in float32


class Engine(ABC):
    """Rows in, log-probabilities out, for one loaded model.

    What kinds of models differ in are the hooks `states`, `logits`, `first_trial` and `trial_at_length`, which each
    answers, and `inputs`, `observed`, `told` and `longest_pass`, whose usual answers stand here.

    Args:
        model: a transformers model on its device.
        pad_token_id: what to pad with; any id will do, since padding is masked.
        accepts: names of the inputs that the model takes.

    Attributes:
        trial: what the model has shown so far; see `try_out`.
        shown: the names of the attributes that hold what the model has shown.
        costs: nothing, for no server is asked.
    """

    shown: tuple[str, ...] = ("trial",)
    costs: Mapping[str, int] = MappingProxyType({})

    def __init__(self, model: Any, pad_token_id: int, accepts: Container[str]):
        make_first_calls()
        self.model = model
        self.pad_token_id = pad_token_id
        self.accepts = accepts
        self.trial = Trial()

    @property
    def name(self) -> str:
        """What the model is, for a message."""
        return type(self.model).__name__

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go."""
        return input_device(self.model)

    @property
    def is_sharded(self) -> bool:
        """Whether the model lies in parts on several processes."""
        return is_sharded(self.model)

    @property
    def shares_prefixes(self) -> bool:
        """Whether the shared beginnings of the rows of a unit are computed once."""
        return self.trial.packs

    @property
    def padding_is_inert(self) -> bool:
        """Whether a row's output is the same beside longer rows."""
        return self.trial.pads

    def try_out(self, groups: Groups) -> None:
        """Try what the model promises and what it may be spared, as far as it was not tried; in evaluation mode.

        Args:
            groups: the rows of each example, as a job will hold them.

        Raises:
            Refusal: if the model is not what its kind promises, or cannot be computed in its dtype.
        """
        needed = self.longest_pass(groups)
        if not self.trial.reach:
            self.trial = self._unless_it_fails(self.first_trial, groups)
        if may_change_between(self.model.config, self.trial.reach, needed):
            self.trial = replace(self._unless_it_fails(self.trial_at_length, groups), reach=needed)

    def _unless_it_fails(self, trial: Callable[[Groups], Trial], groups: Groups) -> Trial:
        """A Trial; where the model fails on its rows, nothing is earned, and scoring will say what is wrong."""
        try:
            return trial(groups)
        except Refusal:
            raise
        except Exception:  # of any make: the model's code may be anybody's
            free_memory()
            must_compute(self, [row for group in groups for row in group])
            return Trial(virtual=self.trial.virtual)

    def longest_pass(self, groups: Groups) -> int:
        """Over how many tokens anything of these groups can reach."""
        return max(max(map(length_of, group)) for group in groups)

    sees_all = False  # whether what stands at a place depends on what follows

    @abstractmethod
    def first_trial(self, groups: Groups) -> Trial:
        """The Trial on short rows."""

    @abstractmethod
    def trial_at_length(self, groups: Groups) -> Trial:
        """The Trial on rows as long as those of the job."""

    @abstractmethod
    def states(self, inputs: Inputs) -> torch.Tensor:
        """What the model hands its output layer, (B, T, H) in float32 or more: all that its answers depend on."""

    def observed(self, inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(the states, the logits (B, T, V) of the same pass; None where there is no projection to the vocabulary)."""
        return self.states(inputs), None

    def told(self, inputs: Inputs, logits: torch.Tensor | None) -> tuple[torch.Tensor | None, bool, bool]:
        """What comes of asking the projection at some places alone.

        Args:
            inputs: of a pass.
            logits: (n, V) that a plain pass gave the first n tokens of its first row; None where there are none.

        Returns:
            (the states, None where that cannot be asked; whether the answers are the same; whether they are the end).
        """
        return None, False, False

    @cached_property
    def budget(self) -> Budget:
        """How much this process puts into one forward pass."""
        return Budget(shrinks=False) if self.is_sharded else Budget(tokens_that_fit(self.model))

    def log_probs(self, units: Sequence[Unit]) -> list[list[float]]:
        """ln P, in nats, of each row's reads: a list of lists of float, aligned with the rows of the units in order.

        Computed in one forward pass, or in several: one for each length where the model does not ignore padding, and
        as many as memory demands. In float32 whatever the model's dtype, float64 models in float64.

        Raises:
            MemoryError: if a row alone does not fit into memory.
        """
        return self.budget.spend(units, self._log_probs_of_units)

    def _log_probs_of_units(self, units: Sequence[Unit]) -> list[list[float]]:
        rows = [row for unit in units for row in unit.rows]
        if len({len(row.ids) for row in rows}) == 1 or self.padding_is_inert:
            return self._log_probs(rows)
        found: dict[int, list[float]] = {}
        for length in {len(row.ids) for row in rows}:
            same = [i for i, row in enumerate(rows) if len(row.ids) == length]
            found.update(zip(same, self._log_probs([rows[i] for i in same]), strict=True))
        return [found[i] for i in range(len(rows))]

    @torch.no_grad()  # not inference_mode: what a model in training caches must stay fit for a backward pass
    def _log_probs(self, rows: Sequence[Row]) -> list[list[float]]:
        reads = reads_of(rows)
        return self._read(self.logits(rows, reads.places), reads, rows[0].among)

    @staticmethod
    def _read(chunks: Iterable[torch.Tensor], reads: Reads, among: Sequence[int] | None = None) -> list[list[float]]:
        """ln P, in nats, of what is read of each row.

        Args:
            chunks: the logits at the N places, in order, as tensors (n, V) of which no two need be there at once.
            reads: what is read there.
            among: the tokens that share the probability; None for the whole vocabulary.
        """
        values = torch.empty(len(reads.at), dtype=torch.float64)
        first = 0  # place of the chunk at hand
        for logits in chunks:
            here = (first <= reads.at) & (reads.at < first + len(logits))  # (R,): what is read in this chunk
            where, what = (reads.at[here] - first).to(logits.device), reads.tokens[here].to(logits.device)
            values[here] = _log_probs_of(logits, where, what, among).to(values)
            first += len(logits)
        return reads.by_row(values)

    @abstractmethod
    def logits(self, rows: Sequence[Row], places: Places) -> Iterable[torch.Tensor]:
        """The outputs at N places, in chunks (n, V)."""

    def inputs(self, rows: Sequence[Row]) -> Inputs:
        """The model's inputs for a batch of rows, padded on the right."""
        device = self.device
        ids = pad([row.ids for row in rows], self.pad_token_id, device)  # (B, T)
        mask = pad([[1] * len(row.ids) for row in rows], 0, device)  # (B, T)
        inputs = {"input_ids": ids, "attention_mask": mask, "return_dict": True}
        if rows[0].segments is not None and "token_type_ids" in self.accepts:
            inputs["token_type_ids"] = pad([row.segments or () for row in rows], 0, device)
        if "use_cache" in self.accepts:
            inputs["use_cache"] = False
        return inputs


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor in float32, or float64 where it is that."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def _log_probs_of(
    logits: torch.Tensor, at: torch.Tensor, tokens: torch.Tensor, among: Sequence[int] | None
) -> torch.Tensor:
    """(R,) ln P of tokens (R,) at the rows (R,) of logits (n, V)."""
    logits = widened(logits)
    shared = logits if among is None else logits[:, list(among)]
    # What a CPU's cache holds is passed over three times at the price of one.
    rows = max(1, CACHED // shared.shape[1]) if logits.device.type == "cpu" else len(shared)
    log_totals = torch.cat([some.logsumexp(-1) for some in shared.split(rows)])  # (n,)
    return logits[at, tokens] - log_totals[at]
