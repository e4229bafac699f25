"""Encoder-decoders: the encoder runs once per distinct input."""

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_outputs import BaseModelOutput

from stereoset_scoring.batching import in_passes
from stereoset_scoring.engines.base import places_and_reads
from stereoset_scoring.engines.language_model import LanguageModelEngine
from stereoset_scoring.engines.padding import pad
from stereoset_scoring.engines.trials import Trial
from stereoset_scoring.rows import GREEDY, Row


class Seq2SeqEngine(LanguageModelEngine):
    """Encoder-decoders, read at positions of the decoder; rows with the same input share the encoder's pass."""

    def first_trial(self, groups):
        """As Engine; of the shortest row."""
        short = min((row for group in groups for row in group), key=lambda row: row.tokens)
        _, projects = self.lone_states(self.inputs([short]))
        return Trial(short.tokens, False, True, projects)

    def trial_at_length(self, groups):
        """As Engine."""
        return self.trial

    def length(self, unit):
        """As Engine; each decoder holds all that its encoder says."""
        return len(unit) * max(row.tokens for row in unit)

    @torch.no_grad()
    def _log_probs(self, rows):
        encoded, found = self._encoded(rows), {}
        for indices in in_passes([row.decoder_tokens for row in rows]):
            some = [rows[i] for i in indices]
            places, reads = places_and_reads(some)
            chunks = self._projected(self._decoding(some, encoded), self.where(some, places))
            found.update(zip(indices, self._read(chunks, places, reads, some[0].among), strict=True))
        return [found[i] for i in range(len(rows))]

    def inputs(self, rows):
        """The model's inputs, the decoder's with its start token and the likeliest tokens put in where asked."""
        return self._decoding(rows, self._encoded(rows))

    def _encoded(self, rows):
        """The encoder's states (T, H) for each distinct input: {ids: states}."""
        distinct, encoded = list(dict.fromkeys(row.ids for row in rows)), {}
        for indices in in_passes([len(ids) for ids in distinct]):
            inputs = super().inputs([Row("", distinct[i], ()) for i in indices])
            asked = {name: inputs[name] for name in ("input_ids", "attention_mask", "return_dict")}
            states = self.model.get_encoder()(**asked).last_hidden_state  # (U, T, H)
            encoded.update((distinct[i], of_one[: len(distinct[i])]) for i, of_one in zip(indices, states, strict=True))
        return encoded

    def _decoding(self, rows, encoded):
        """The model's inputs for some of the rows that were encoded."""
        states = pad_sequence([encoded[row.ids] for row in rows], batch_first=True)  # (B, T, H)
        inputs = {
            "encoder_outputs": BaseModelOutput(states),
            "attention_mask": pad([[1] * len(row.ids) for row in rows], 0, self.device),  # (B, T)
            "use_cache": False,
            "return_dict": True,
        }
        start = self.model.config.decoder_start_token_id
        decoder = pad([(start, *row.decoder) for row in rows], self.pad_token_id, self.device)  # (B, D)
        if GREEDY in rows[0].decoder:
            where = torch.arange(len(rows)), torch.zeros(len(rows), dtype=torch.long)
            chunks = self._projected({**inputs, "decoder_input_ids": decoder[:, :1]}, where)
            first = torch.cat([logits.argmax(-1) for logits in chunks]).to(decoder.device)  # (B,)
            decoder = torch.where(decoder == GREEDY, first[:, None], decoder)
        return {**inputs, "decoder_input_ids": decoder}
