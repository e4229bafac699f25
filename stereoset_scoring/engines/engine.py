"""One model, asked for the log-probabilities of a batch of rows."""

import inspect
import re
from contextlib import contextmanager

import torch

from stereoset_scoring.engines.padding import pad


class Engine:
    """Rows in, log-probabilities out, for one loaded model.

    Args:
        model: a transformers model on its device.
        pad_token_id: what to pad with; any id will do, since padding is masked.
    """

    def __init__(self, model, pad_token_id):
        self.model = model
        self.pad_token_id = pad_token_id
        self._accepts = inspect.signature(model.forward).parameters

    @torch.no_grad()  # not inference_mode: what a model in training caches must stay fit for a backward pass
    def log_probs(self, rows):
        """ln P, in nats, of each row's reads: a list of lists of float, aligned with rows and their reads.

        Computed in one forward pass; in float32 whatever the model's dtype, float64 models in float64.
        """
        places = sorted({(b, position) for b, row in enumerate(rows) for position, _ in row.reads})
        logits = self.logits(rows, places)  # (N, V)
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        log_totals = logits.logsumexp(-1)  # (N,)
        index = {place: n for n, place in enumerate(places)}
        reads = [(index[b, position], token) for b, row in enumerate(rows) for position, token in row.reads]
        at, tokens = torch.tensor(reads, device=logits.device).unbind(1)  # (R,), (R,)
        values = iter((logits[at, tokens] - log_totals[at]).tolist())
        return [[next(values) for _ in row.reads] for row in rows]

    def logits(self, rows, places):
        """(N, V) outputs at the N (row, position) places."""
        raise NotImplementedError

    def forward(self, rows):
        """The model's output for a batch of rows, padded on the right."""
        device = self.model.device
        ids = pad([row.ids for row in rows], self.pad_token_id, device)  # (B, T)
        inputs = {"input_ids": ids, "attention_mask": pad([[1] * len(row.ids) for row in rows], 0, device)}
        if rows[0].segments is not None and "token_type_ids" in self._accepts:
            inputs["token_type_ids"] = pad([row.segments for row in rows], 0, device)
        if "use_cache" in self._accepts:
            inputs["use_cache"] = False
        return self.model(**inputs)


class LanguageModelEngine(Engine):
    """Masked and causal models: the output at a position is a distribution over the vocabulary."""

    def logits(self, rows, places):
        """(N, V) outputs at the places; the vocabulary is projected there and nowhere else."""
        where = tuple(torch.tensor(places, device=self.model.device).unbind(1))  # (N,), (N,)
        with self._projection_only_at(where) as projected:
            output = self.forward(rows)
        logits = output.prediction_logits if "prediction_logits" in output else output.logits
        return logits if projected else logits[where]

    @contextmanager
    def _projection_only_at(self, where):
        """Let the projection to the vocabulary see only some positions, on any architecture.

        Yields a list that is empty unless that was done: a head of an unusual make computes everything.
        """
        done = []
        projection = self.model.get_output_embeddings()
        if projection is None:
            yield done
            return

        def only_there(module, inputs):
            hidden, *others = inputs
            if hidden.dim() != 3 or done:
                return None
            done.append(True)
            return hidden[where], *others  # (B, T, H) -> (N, H)

        handle = projection.register_forward_pre_hook(only_there)
        try:
            yield done
        finally:
            handle.remove()


class NextSentenceEngine(Engine):
    """Next-sentence heads: the output is one distribution over two classes per row."""

    def logits(self, rows, places):
        """(B, 2) outputs of the head."""
        output = self.forward(rows)
        return output.seq_relationship_logits if "seq_relationship_logits" in output else output.logits


class SentimentEngine(Engine):
    """Text classifiers that know negative from other sentiment: one distribution per row, the negative class first.

    Raises:
        ValueError: if the names of the model's classes do not tell which one is negative.
    """

    def __init__(self, model, pad_token_id):
        super().__init__(model, pad_token_id)
        self._negative = negative_class(model.config.id2label)

    def logits(self, rows, places):
        """(B, C) outputs of the classifier, turned such that the negative class is class 0."""
        return self.forward(rows).logits.roll(-self._negative, -1)


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
    "masked": LanguageModelEngine,
    "causal": LanguageModelEngine,
    "next_sentence": NextSentenceEngine,
    "sentiment": SentimentEngine,
}
