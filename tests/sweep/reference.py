"""What a score is, by the model's own plain forward pass: one row at a time, without padding or shared work.

Written from the definitions and with no code of the engines, so that the two can only agree by being right.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

Reduce = Callable[[list[float]], float]
BATCH = 8
# The token type of text that a model goes on with, causally; all other text it sees in both directions (PaliGemma's
# prefix), so that nothing of it could be predicted.
GOES_ON_WITH = {"paligemma": 1}


@dataclass(frozen=True)
class Question:
    """One input of a model and what is read of its output: (position, token) pairs.

    Attributes:
        ids: what the model reads, or its encoder.
        reads: positions count in the decoder where there is one.
        decoder: what the decoder reads, its start token included.
        types: token types.
    """

    ids: list[int]
    reads: list[tuple[int, int]]
    decoder: list[int] | None = None
    types: list[int] | None = None


@dataclass(frozen=True)
class Reference:
    """Options' questions, each with how its readings become a score."""

    questions: list[list[Question]]
    reduces: list[Reduce]

    def scores(self, model) -> list[float]:
        """The options' log-scores, each row read alone."""
        return self._scores(lambda question: read(model, [question]))

    def batched(self, model, padded: bool) -> list[float]:
        """The same, rows in the model's own batches of BATCH: of many lengths, or each beside others of its own."""
        distinct = list({repr(question): question for some in self.questions for question in some}.values())
        known = {}
        if padded:
            for start in range(0, len(distinct), BATCH):
                some = distinct[start : start + BATCH]
                known.update(zip(map(repr, some), read(model, some), strict=True))
        return self._scores(lambda question: read(model, [question] + [turned(question)] * (BATCH - 1)), known)

    def _scores(self, ask, known=()):
        known, scores = dict(known), []
        for questions, reduce in zip(self.questions, self.reduces, strict=True):
            for question in questions:
                if repr(question) not in known:
                    known[repr(question)] = ask(question)[0]
            scores.append(reduce([value for question in questions for value in known[repr(question)]]))
        return scores


def turned(question):
    """A row of the same length that differs."""
    decoder = None if question.decoder is None else question.decoder[::-1]
    return Question(question.ids[::-1], [], decoder, question.types)


@torch.no_grad()
def read(model, questions: list[Question]) -> list[list[float]]:
    """ln P of the reads of some rows in one plain forward pass, padded on the right where they differ in length."""
    width = max(len(one.ids) for one in questions)
    inputs = {"input_ids": padded([one.ids for one in questions])}
    if len(questions) > 1:
        inputs["attention_mask"] = torch.tensor([[int(i < len(one.ids)) for i in range(width)] for one in questions])
    if questions[0].types is not None:
        inputs["token_type_ids"] = padded([one.types for one in questions])
    if model.config.model_type in GOES_ON_WITH:
        inputs["token_type_ids"] = torch.full_like(inputs["input_ids"], GOES_ON_WITH[model.config.model_type])
    if questions[0].decoder is not None:
        inputs["decoder_input_ids"] = padded([one.decoder for one in questions])
    if "use_cache" in inspect.signature(model.forward).parameters:
        inputs["use_cache"] = False
    logits = model(**inputs).logits.float().log_softmax(-1)
    return [[logits[i, position, token].item() for position, token in one.reads] for i, one in enumerate(questions)]


def ignores_padding(model) -> bool:
    """Whether a row gives the same beside a longer one in the model's own batch; asked in float32."""
    short, long = (list(range(20, 20 + length)) for length in (6, 60))
    decodes = "decoder_input_ids" in inspect.signature(model.forward).parameters
    one = Question(short, [(i, 30) for i in range(4)], short[:4] if decodes else None)
    other = Question(long, [], long if decodes else None)
    alone, beside = read(model, [one])[0], read(model, [one, other])[0]
    return max(abs(a - b) for a, b in zip(alone, beside, strict=True)) <= 1e-4


def padded(lists):
    width = max(map(len, lists))
    return torch.tensor([one + [1] * (width - len(one)) for one in lists])


def mean(values):
    return math.fsum(values) / len(values)


def log_mean(values):
    return math.log(mean([math.exp(value) for value in values]))


def with_full_stop(context):
    return context if context[-1] in ".!?" else context + "."


def bare(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def causal_rows(ids, first):
    """The first token given the beginning alone, the rest given the text alone: this tokenizer puts no beginning."""
    later = [(i - 1, ids[i]) for i in range(max(first, 1), len(ids))]
    beginning = [Question([0], [(0, ids[0])])] if first == 0 else []
    return beginning + ([Question(ids, later)] if later else [])


def causal_likelihood(model, tokenizer, context, option):
    return causal_rows(bare(tokenizer, option), 0), mean


def causal_conditional(model, tokenizer, context, option):
    given = with_full_stop(context)
    encoding = tokenizer(f"{given} {option}", add_special_tokens=False, return_offsets_mapping=True)
    first = next(i for i, (_, end) in enumerate(encoding["offset_mapping"]) if end > len(given))
    return causal_rows(encoding["input_ids"], first), mean


def attribute(tokenizer, context, option):
    """Of a filled context: ids with special tokens, and the positions of the attribute's."""
    left, right = context.split("BLANK")
    encoding = tokenizer(option, return_offsets_mapping=True)
    start, end = len(left), len(option) - len(right)
    places = [i for i, (a, b) in enumerate(encoding["offset_mapping"]) if max(a, start) < min(b, end)]
    return encoding["input_ids"], range(places[0], places[-1] + 1)


def masked_likelihood(model, tokenizer, context, option):
    ids, places = attribute(tokenizer, context, option)
    mask = tokenizer.mask_token_id
    return [Question([*ids[:k], mask, *ids[places.stop :]], [(k, ids[k])]) for k in places], log_mean


def masked_pseudo_likelihood(model, tokenizer, context, option):
    encoding = tokenizer(f"{context} {option}", return_offsets_mapping=True)
    ids, spans = encoding["input_ids"], encoding["offset_mapping"]
    places = [i for i, (start, end) in enumerate(spans) if start < end <= len(context)]
    mask = tokenizer.mask_token_id
    return [Question([*ids[:k], mask, *ids[k + 1 :]], [(k, ids[k])]) for k in places], math.fsum


def span_likelihood(model, tokenizer, context, option):
    ids, places = attribute(tokenizer, context, option)
    sentinel, start = tokenizer.convert_tokens_to_ids("<extra_id_0>"), model.config.decoder_start_token_id
    return [
        Question([*ids[:k], sentinel, *ids[places.stop :]], [(1, ids[k])], [start, sentinel]) for k in places
    ], log_mean


def span_conditional(model, tokenizer, context, option):
    sentinel, start = tokenizer.convert_tokens_to_ids("<extra_id_0>"), model.config.decoder_start_token_id
    encoder = tokenizer(f"{with_full_stop(context)} <extra_id_0>")["input_ids"]
    ids = bare(tokenizer, option)
    reads = [(1 + i, token) for i, token in enumerate(ids)]
    return [Question(encoder, reads, [start, sentinel, *ids[:-1]])], mean


def writing(model, tokenizer, encoder, ids, first):
    """A row whose encoder reads a text, and whose decoder writes ids, of which those from `first` on are read."""
    start = model.config.decoder_start_token_id
    return Question(encoder, [(i, ids[i]) for i in range(first, len(ids))], [start, *ids[:-1]])


def begun(model, tokenizer):
    """What a target begins with: what the tokenizer puts before a text, but never the start token twice."""
    whole, own = tokenizer("a")["input_ids"], bare(tokenizer, "a")
    before = whole[: whole.index(own[0])]
    return before[1:] if before[:1] == [model.config.decoder_start_token_id] else before


def restored(model, tokenizer, ids, places):
    """One mask in the encoder stands for a span; the decoder writes the text up to the span's end."""
    own = tokenizer("a")["input_ids"].index(bare(tokenizer, "a")[0])
    target = [*begun(model, tokenizer), *ids[own : places.stop]]
    encoder = [*ids[: places.start], tokenizer.mask_token_id, *ids[places.stop :]]
    return writing(model, tokenizer, encoder, target, len(target) - len(places))


def denoising_likelihood(model, tokenizer, context, option):
    return [restored(model, tokenizer, *attribute(tokenizer, context, option))], log_mean


def denoising_conditional(model, tokenizer, context, option):
    given = with_full_stop(context)
    encoding = tokenizer(f"{given} {option}", return_offsets_mapping=True)
    places = [i for i, (_, end) in enumerate(encoding["offset_mapping"]) if end > len(given)]
    return [restored(model, tokenizer, encoding["input_ids"], range(places[0], places[-1] + 1))], mean


def prefix_of(model, tokenizer, prefix, text):
    target = begun(model, tokenizer)
    encoder = tokenizer(prefix)["input_ids"]
    return [writing(model, tokenizer, encoder, [*target, *bare(tokenizer, text)], len(target))], mean


def prefix_likelihood(model, tokenizer, context, option):
    start = context.index("BLANK")
    return prefix_of(model, tokenizer, option[:start].rstrip(), option[start:])


def prefix_conditional(model, tokenizer, context, option):
    return prefix_of(model, tokenizer, with_full_stop(context), option)


def after_context(tokenizer, context, option):
    """Of a context and an option as one text: ids with special tokens, and the positions of the option's."""
    encoding = tokenizer(f"{context} {option}", return_offsets_mapping=True)
    ids, spans = encoding["input_ids"], encoding["offset_mapping"]
    return ids, [i for i, (_, end) in enumerate(spans) if end > len(context)]


def masked_conditional(model, tokenizer, context, option):
    ids, places = after_context(tokenizer, context, option)
    return [Question([*ids[:k], tokenizer.mask_token_id, *ids[k + 1 :]], [(k, ids[k])]) for k in places], mean


def after_passage(tokenizer, ids, places):
    """One mask for all that is left of a span, after a passage, with XLNet's token types."""
    from stereoset_scoring.questions.passage import xlnet_passage  # data of the method's definition

    passage, sep, cls = bare(tokenizer, xlnet_passage()), tokenizer.sep_token_id, tokenizer.cls_token_id
    text, rows = ids[: ids.index(sep)], []
    for k in places:
        shown = [*text[:k], tokenizer.mask_token_id, *text[places[-1] + 1 :]]
        types = [0] * (len(passage) + 1) + [1] * (len(shown) + 1) + [2]
        read_at = len(passage) + 1 + k
        rows.append(Question([*passage, sep, *shown, sep, cls], [(read_at, ids[k])], types=types))
    return rows


def permutation_likelihood(model, tokenizer, context, option):
    return after_passage(tokenizer, *attribute(tokenizer, context, option)), log_mean


def permutation_conditional(model, tokenizer, context, option):
    return after_passage(tokenizer, *after_context(tokenizer, context, option)), mean


# (kind of model, task, name of the method): how an option's score is asked for
DEFINITIONS = {
    ("causal", "intrasentence", "likelihood"): causal_likelihood,
    ("causal", "intersentence", "conditional"): causal_conditional,
    ("masked", "intrasentence", "likelihood"): masked_likelihood,
    ("masked", "intersentence", "pseudo_likelihood"): masked_pseudo_likelihood,
    ("masked", "intersentence", "conditional"): masked_conditional,
    ("permutation", "intrasentence", "likelihood"): permutation_likelihood,
    ("permutation", "intersentence", "conditional"): permutation_conditional,
    ("seq2seq", "intrasentence", "likelihood"): span_likelihood,
    ("seq2seq", "intersentence", "conditional"): span_conditional,
    ("seq2seq", "intrasentence", "denoising"): denoising_likelihood,
    ("seq2seq", "intersentence", "denoising"): denoising_conditional,
    ("seq2seq", "intrasentence", "prefix"): prefix_likelihood,
    ("seq2seq", "intersentence", "prefix"): prefix_conditional,
}


def reference(kind, task, method, model, tokenizer, rows) -> Reference | None:
    """The Reference of a task's rows; None where this file has no definition of the method."""
    definition = DEFINITIONS.get((kind, task, method))
    if definition is None:
        return None
    found = [
        definition(model, tokenizer, row["context"], option["sentence"]) for row in rows for option in row["sentences"]
    ]
    return Reference([questions for questions, _ in found], [reduce for _, reduce in found])
