"""One model, asked for the log-probabilities of a batch of rows."""

import re
from functools import cached_property

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers.modeling_outputs import BaseModelOutput

from stereoset_scoring.batching import in_passes
from stereoset_scoring.engines.budget import Budget, tokens_that_fit
from stereoset_scoring.engines.devices import input_device
from stereoset_scoring.engines.first_calls import make_first_calls
from stereoset_scoring.engines.padding import pad, visibility
from stereoset_scoring.engines.projection import LOGITS, ends_in_its_projection, is_plain, logits_at, seen_by
from stereoset_scoring.packing import pack
from stereoset_scoring.rows import GREEDY, Row

CACHED = 2**20  # logits, which a core's own cache holds in float32


class Engine:
    """Rows in, log-probabilities out, for one loaded model.

    Args:
        model: a transformers model on its device.
        pad_token_id: what to pad with; any id will do, since padding is masked.
        accepts: names of the inputs that the model takes.
    """

    def __init__(self, model, pad_token_id, accepts):
        make_first_calls()
        self.model = model
        self.pad_token_id = pad_token_id
        self._accepts = accepts

    @cached_property
    def padding_is_inert(self):
        """Whether a row's output is the same beside longer rows."""
        return True

    @property
    def device(self):
        """Where the model's inputs go."""
        return input_device(self.model)

    shares_prefixes = False  # whether the shared beginnings of the rows of a unit are computed once

    @cached_property
    def budget(self):
        """How much this process puts into one forward pass."""
        return Budget(tokens_that_fit(self.model))

    def log_probs(self, units):
        """ln P, in nats, of each row's reads: a list of lists of float, aligned with the rows of the units in order.

        Computed in one forward pass, or in several: one for each length where the model does not ignore padding, and
        as many as memory demands. In float32 whatever the model's dtype, float64 models in float64.

        Raises:
            MemoryError: if a row alone does not fit into memory.
        """
        return self.budget.spend(units, self.length, self._log_probs_of_units)

    def length(self, unit):
        """How many tokens a unit takes of a batch."""
        return sum(len(row.ids) for row in unit)

    def _log_probs_of_units(self, units):
        rows = [row for unit in units for row in unit]
        if len({len(row.ids) for row in rows}) == 1 or self.padding_is_inert:
            return self._log_probs(rows)
        found = {}
        for length in {len(row.ids) for row in rows}:
            same = [i for i, row in enumerate(rows) if len(row.ids) == length]
            found.update(zip(same, self._log_probs([rows[i] for i in same]), strict=True))
        return [found[i] for i in range(len(rows))]

    @torch.no_grad()  # not inference_mode: what a model in training caches must stay fit for a backward pass
    def _log_probs(self, rows):
        places, reads = places_and_reads(rows)
        return self._read(self.logits(rows, places), places, reads, rows[0].among)

    @staticmethod
    def _read(chunks, places, reads, among=None):
        """Of logits at N places, in chunks (n, V), ln P of what reads[i] names: [(place, token), …] of row i."""
        index = {place: n for n, place in enumerate(places)}
        flat = torch.tensor([(index[place], token) for of_row in reads for place, token in of_row])  # (R, 2)
        values, start = torch.empty(len(flat), dtype=torch.float64), 0
        for logits in chunks:
            here = (flat[:, 0] >= start) & (flat[:, 0] < start + len(logits))
            at, tokens = (flat[here] - torch.tensor([start, 0])).to(logits.device).unbind(1)
            values[here] = _log_probs_of(logits, at, tokens, among).to(values)
            start += len(logits)
        read = iter(values.tolist())
        return [[next(read) for _ in of_row] for of_row in reads]

    def logits(self, rows, places):
        """The outputs at the N (row, position) places, in chunks (n, V)."""
        raise NotImplementedError

    def inputs(self, rows):
        """The model's inputs for a batch of rows, padded on the right."""
        device = self.device
        ids = pad([row.ids for row in rows], self.pad_token_id, device)  # (B, T)
        mask = pad([[1] * len(row.ids) for row in rows], 0, device)  # (B, T)
        inputs = {"input_ids": ids, "attention_mask": mask, "return_dict": True}
        if rows[0].segments is not None and "token_type_ids" in self._accepts:
            inputs["token_type_ids"] = pad([row.segments for row in rows], 0, device)
        if "use_cache" in self._accepts:
            inputs["use_cache"] = False
        return inputs


class LanguageModelEngine(Engine):
    """Models whose output at a position is a distribution over the vocabulary."""

    _logits = None  # see _room

    def log_probs(self, units):
        """As Engine; where the logits of a batch would be many, they are computed in parts."""
        tokens = len(units) * max(map(self.length, units))
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
            return logits_at(self.model, inputs, where, count)
        return logits_at(self.model, inputs, where, self._places_at_once, self._room())

    def _room(self):
        """Memory for the logits of one chunk, the same for all; None where the projection takes none."""
        projection = self.model.get_output_embeddings()
        if not is_plain(projection):
            return None
        shape, dtype = (self._places_at_once, projection.out_features), projection.weight.dtype
        if self._logits is None or (self._logits.shape, self._logits.dtype) != (shape, dtype):
            self._logits = torch.empty(shape, dtype=dtype)
        return self._logits

    @cached_property
    @torch.no_grad()
    def ends_in_its_projection(self):
        """Whether the projection may be asked without the model: tried once, on a made-up row."""
        row = Row("", (1, 2, 3), (), (0, 0, 0), decoder=(1, 2))
        return ends_in_its_projection(self.model, self.inputs([row]))

    def where(self, rows, places):
        """The places as index tensors (N,), (N,) into the model's output."""
        return tuple(torch.tensor(places).unbind(1))


class CausalEngine(LanguageModelEngine):
    """Causal models; the rows of a unit are packed, so that what they share is computed once."""

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
        except (TypeError, ValueError, RuntimeError, IndexError, AttributeError):
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


class MaskedEngine(BidirectionalEngine, LanguageModelEngine):
    """Masked models; rows that say so are weighted by attention."""

    def _log_probs(self, rows):
        """As Engine; the values of weighted rows are multiplied by the attention that their positions receive."""
        values = super()._log_probs(rows)
        if not rows[0].weighted:
            return values
        return [
            [value * weights[position] for value, (position, _) in zip(of_row, row.reads, strict=True)]
            for of_row, row, weights in zip(values, rows, self._attention_received(rows), strict=True)
        ]

    @torch.no_grad()
    def _attention_received(self, rows):
        """Of each row, by position: the attention received, a mean over layers, heads and the row's own positions."""
        implementation = self.model.config._attn_implementation
        self.model.set_attn_implementation("eager")  # the only one that gives its weights
        try:
            with seen_by(self.model.get_output_embeddings(), lambda hidden: hidden[:1, 0]):  # its logits are not read
                attentions = self.model(**self.inputs(rows), output_attentions=True).attentions
        finally:
            self.model.set_attn_implementation(implementation)
        if not attentions:
            raise ValueError(f"A {type(self.model).__name__} has no attention to weigh by: choose aul instead of aula.")
        mean = torch.stack([layer.double().mean(1) for layer in attentions]).mean(0)  # (B, T, T)
        return [mean[b, : len(row.ids)].mean(0).tolist() for b, row in enumerate(rows)]


class PermutationEngine(BidirectionalEngine, LanguageModelEngine):
    """XLNet, read at a mask or by a query of its own."""

    def inputs(self, rows):
        """The model's inputs; for rows that are queried, which position each of them asks for."""
        inputs = super().inputs(rows)
        if rows[0].query:
            batch, length = inputs["input_ids"].shape
            asked = torch.tensor([row.reads[0][0] for row in rows], device=self.device)  # (B,)
            mapping = torch.nn.functional.one_hot(asked, length).to(self.model.dtype)  # (B, T)
            inputs["target_mapping"] = mapping[:, None]  # (B, 1, T)
            inputs["perm_mask"] = mapping[:, None].expand(batch, length, length)  # nobody sees what is asked for
        return inputs

    def where(self, rows, places):
        """The places; a queried row has one output."""
        return super().where(rows, [(row, 0) for row, _ in places] if rows[0].query else places)


class Seq2SeqEngine(LanguageModelEngine):
    """Encoder-decoders, read at positions of the decoder; rows with the same input share the encoder's pass."""

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


class NextSentenceEngine(BidirectionalEngine):
    """Next-sentence heads: the output is one distribution over two classes per row."""

    def first_output(self, rows, length):
        """What the model makes of the first row: (2,)."""
        (logits,) = self.logits(rows, None)
        return logits[0]

    def logits(self, rows, places):
        """The outputs of the head in one chunk (B, 2)."""
        output = self.model(**self.inputs(rows))
        return [output.seq_relationship_logits if "seq_relationship_logits" in output else output.logits]


class SentimentEngine(NextSentenceEngine):
    """Text classifiers that know negative from other sentiment: one distribution per row, the negative class first.

    Raises:
        ValueError: if the names of the model's classes do not tell which one is negative.
    """

    def __init__(self, model, *options):
        super().__init__(model, *options)
        self._negative = negative_class(model.config.id2label)

    def logits(self, rows, places):
        """The outputs of the classifier in one chunk (B, C), turned such that the negative class is class 0."""
        (logits,) = super().logits(rows, places)
        return [logits.roll(-self._negative, -1)]


def places_and_reads(rows):
    """(the places (row, position) at which anything is read, of each row what is read: [(place, token), …])."""
    reads = [[((b, position), token) for position, token in row.reads] for b, row in enumerate(rows)]
    return sorted({place for of_row in reads for place, _ in of_row}), reads


def _log_probs_of(logits, at, tokens, among):
    """(R,) ln P of tokens (R,) at the rows (R,) of logits (n, V)."""
    logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    shared = logits if among is None else logits[:, list(among)]
    # What a CPU's cache holds is passed over three times at the price of one.
    rows = max(1, CACHED // shared.shape[1]) if logits.device.type == "cpu" else len(shared)
    log_totals = torch.cat([some.logsumexp(-1) for some in shared.split(rows)])  # (n,)
    return logits[at, tokens] - log_totals[at]


def negative_class(id2label):
    """The class whose name, such as "NEGATIVE" or "neg", says that it is the negative one.

    Raises:
        ValueError: if there is no such name, or more than one.
    """
    found = [index for index, label in id2label.items() if re.fullmatch("neg(ative)?", str(label).strip(), re.I)]
    if len(found) != 1 or len(id2label) < 2:
        raise ValueError(
            f"Which of the classes {', '.join(map(str, id2label.values()))} is negative cannot be told: give a "
            "sentiment classifier whose id2label names one class NEGATIVE, beside others."
        )
    return int(found[0])


ENGINES = {
    "masked": MaskedEngine,
    "permutation": PermutationEngine,
    "causal": CausalEngine,
    "seq2seq": Seq2SeqEngine,
    "next_sentence": NextSentenceEngine,
    "sentiment": SentimentEngine,
}
