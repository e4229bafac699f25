"""Encoder-decoders: the encoder runs once per distinct input."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from stereoset_scoring.engines.base import Groups, Inputs
from stereoset_scoring.engines.language_model import LanguageModelEngine
from stereoset_scoring.engines.padding import pad
from stereoset_scoring.engines.reads import reads_of
from stereoset_scoring.engines.sharing import DECODER, ENCODER, Sharing, decoder_of, tried_sharing
from stereoset_scoring.engines.trials import Trial, length_of, lone_states
from stereoset_scoring.planning.batching import PASS_COST, in_passes
from stereoset_scoring.planning.rows import GREEDY, Row
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.questions.tokens import start_of


class Seq2SeqEngine(LanguageModelEngine):
    """Encoder-decoders, read at positions of the decoder; rows with the same input share the encoder's pass.

    Attributes:
        sharing: what the rows of a batch share; nothing before a trial.
        pass_cost: what every pass of a batch takes beside its tokens, see `in_passes`.
    """

    shown = ("trial", "sharing")
    sharing: Sharing = Sharing.NOTHING
    pass_cost: float = PASS_COST

    def longest_pass(self, groups: Groups) -> int:
        """As Engine; the longer one of an encoder's input and a decoder's."""
        return max(max(len(row.ids), row.decoder_tokens) for group in groups for row in group)

    def first_trial(self, groups: Groups) -> Trial:
        """As Engine; on short rows that are made up."""
        return self._try(groups, ENCODER, DECODER)

    def trial_at_length(self, groups: Groups) -> Trial:
        """As Engine; on made-up rows as long as the longest of the job."""
        rows = [row for group in groups for row in group]
        encoder, decoder = (max(map(length, rows)) for length in (length_of, lambda row: row.decoder_tokens))
        return self._try(groups, max(encoder, ENCODER), max(decoder, DECODER))

    def _try(self, groups: Groups, encoder: int, decoder: int) -> Trial:
        self.sharing = tried_sharing(self, encoder, decoder)
        shortest = min((row for group in groups for row in group), key=lambda row: row.tokens)
        _, selects, projects = lone_states(self, self.inputs([shortest]))
        return Trial(max(encoder, decoder), False, self.sharing == Sharing.PASSES, selects, projects)

    def _log_probs_of_units(self, units: Sequence[Unit]) -> list[list[float]]:
        return self._log_probs([row for unit in units for row in unit.rows])

    @torch.no_grad()
    def _log_probs(self, rows: Sequence[Row]) -> list[list[float]]:
        encoded = self._encoded(rows)
        found: dict[int, list[float]] = {}
        for indices in self._passes([(row.decoder_tokens, len(row.ids)) for row in rows]):
            some = [rows[i] for i in indices]
            reads = reads_of(some)
            chunks = self._projected(self._decoding(some, encoded), self.where(some, reads.places))
            found.update(zip(indices, self._read(chunks, reads, some[0].among), strict=True))
        return [found[i] for i in range(len(rows))]

    def inputs(self, rows: Sequence[Row]) -> Inputs:
        """The model's inputs, the decoder's with its start token and the likeliest tokens put in where asked."""
        return self._decoding(rows, self._encoded(rows))

    def _passes(self, shapes: Sequence[tuple[int, ...]]) -> list[list[int]]:
        """Batches of indices into the shapes, (length, ...), of what is computed one batch after the other."""
        if self.sharing == Sharing.PASSES:
            return in_passes([length for length, *_ in shapes], self.pass_cost)
        if self.sharing < Sharing.LENGTHS:
            return [[i] for i in range(len(shapes))]
        alike: dict[tuple[int, ...], list[int]] = {}
        for i, shape in enumerate(shapes):
            alike.setdefault(shape, []).append(i)
        return list(alike.values())

    def _encoded(self, rows: Sequence[Row]) -> dict[tuple[int, ...], Any]:
        """The encoder's output, of one row (T, H), for each distinct input: {ids: output}."""
        if self.sharing == Sharing.NOTHING:
            return {}
        distinct, encoded = list(dict.fromkeys(row.ids for row in rows)), {}
        for indices in self._passes([(len(ids),) for ids in distinct]):
            inputs = super().inputs([Row("", distinct[i], ()) for i in indices])
            asked = {name: inputs[name] for name in ("input_ids", "attention_mask", "return_dict")}
            output = self.model.get_encoder()(**asked)
            for i, states in zip(indices, output.last_hidden_state, strict=True):  # (U, T, H)
                encoded[distinct[i]] = type(output)(last_hidden_state=states[: len(distinct[i])])
        return encoded

    def _decoding(self, rows: Sequence[Row], encoded: Mapping[tuple[int, ...], Any]) -> Inputs:
        """The model's inputs for some of the rows that were encoded."""
        inputs = {**super().inputs([Row("", row.ids, ()) for row in rows]), "use_cache": False}
        if encoded:
            # In the encoder's own class, some of whose other fields a decoder looks for though it needs none of them.
            of_rows = [encoded[row.ids] for row in rows]
            states = pad_sequence([one.last_hidden_state for one in of_rows], batch_first=True)  # (B, T, H)
            inputs["encoder_outputs"] = type(of_rows[0])(last_hidden_state=states)
        starts = [start_of(self.model.config) if row.start is None else row.start for row in rows]
        whole: list[Any] = [(start, *decoder_of(row)) for start, row in zip(starts, rows, strict=True)]
        decoder = pad(whole, self.pad_token_id, self.device)  # (B, D)
        if GREEDY in decoder_of(rows[0]):
            where = torch.arange(len(rows)), torch.zeros(len(rows), dtype=torch.long)
            chunks = self._projected({**inputs, "decoder_input_ids": decoder[:, :1]}, where)
            first = torch.cat([logits.argmax(-1) for logits in chunks]).to(decoder.device)  # (B,)
            decoder = torch.where(decoder == GREEDY, first[:, None], decoder)
        return {**inputs, "decoder_input_ids": decoder}
