"""The same quantities by other means: lm-eval, minicons, and the plain way.

Each function prepares for batches of a size, which is not timed, and gives back a function without arguments that
scores: lists of sums of ln P in nats, aligned with rows and options.
"""

import copy

import torch

from stereoset_scoring.methods.causal import with_full_stop
from stereoset_scoring.methods.masked import MaskedLikelihood
from stereoset_scoring.methods.pseudo_likelihood import whole_text
from stereoset_scoring.questions.examples import read_example
from stereoset_scoring.questions.tokens import Tokenizer


def lm_eval_sentences(model, tokenizer, rows, batch_size):
    """lm-eval: each sentence after an empty context, which is BOS to it."""
    pairs = [[("", one.sentence) for one in read_example(row).options] for row in rows]
    return _lm_eval(model, tokenizer, pairs, batch_size)


def lm_eval_after_context(model, tokenizer, rows, batch_size):
    """lm-eval: each option after its context, a space between them."""
    examples = map(read_example, rows)
    pairs = [[(with_full_stop(one.context), f" {option.sentence}") for option in one.options] for one in examples]
    return _lm_eval(model, tokenizer, pairs, batch_size)


def _lm_eval(model, tokenizer, pairs, batch_size):
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    peer = HFLM(pretrained=model, tokenizer=copy.deepcopy(tokenizer), batch_size=batch_size)
    requests = [
        Instance(request_type="loglikelihood", doc={}, arguments=pair, idx=i)
        for i, pair in enumerate(pair for of_row in pairs for pair in of_row)
    ]

    def score():
        found = iter(peer.loglikelihood(requests, disable_tqdm=True))
        return [[next(found)[0] for _ in of_row] for of_row in pairs]

    return score


def minicons_sentences(model, tokenizer, rows, batch_size):
    """minicons' IncrementalLMScorer: BOS and each sentence."""
    from minicons.scorer import IncrementalLMScorer

    peer = IncrementalLMScorer(model, device=str(model.device), tokenizer=copy.deepcopy(tokenizer))
    sentences = [[option.sentence for option in read_example(row).options] for row in rows]
    return _minicons(peer, sentences, batch_size, bos_token=True)


def minicons_pseudo_likelihood(model, tokenizer, rows, batch_size):
    """minicons' MaskedLMScorer with its default metric, "original": each token of each sentence masked alone."""
    from minicons.scorer import MaskedLMScorer

    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.batch_encode_plus = tokenizer.__call__  # minicons 0.3.39 asks for it, transformers 5 has dropped it
    peer = MaskedLMScorer(model, device=str(model.device), tokenizer=tokenizer)
    sentences = [[whole_text(one, option) for option in one.options] for one in map(read_example, rows)]
    return _minicons(peer, sentences, batch_size, PLL_metric="original")


def _minicons(peer, sentences, batch_size, **options):
    flat = [sentence for of_row in sentences for sentence in of_row]

    def score():
        found = iter(
            [
                value
                for start in range(0, len(flat), batch_size)
                for value in peer.sequence_score(
                    flat[start : start + batch_size], reduction=lambda scores: scores.sum(0).item(), **options
                )
            ]
        )
        return [[next(found) for _ in of_row] for of_row in sentences]

    return score


def plain_likelihood(model, tokenizer, rows, batch_size):
    """A row for each piece of each attribute, in the data's order, the vocabulary everywhere: as one writes it first.

    What is asked is taken from our own recipes; how it is computed is all that differs.
    """

    method, tokenizer = MaskedLikelihood(), Tokenizer(tokenizer)

    @torch.no_grad()
    def read(batch):
        width = max(len(row.ids) for row in batch)
        padded = [[*row.ids, *[tokenizer.hub.pad_token_id] * (width - len(row.ids))] for row in batch]
        mask = [[1] * len(row.ids) + [0] * (width - len(row.ids)) for row in batch]
        ids, mask = (torch.tensor(one, device=model.device) for one in (padded, mask))  # (B, T)
        logits = model(input_ids=ids, attention_mask=mask).logits  # (B, T, V)
        positions, tokens = zip(*(row.reads[0] for row in batch), strict=True)
        each = range(len(batch))
        return logits[each, positions].log_softmax(-1)[each, tokens].tolist()

    def score():
        recipes = [method.recipes(read_example(row), tokenizer) for row in rows]
        flat = [row for of_example in recipes for recipe in of_example for row in recipe.rows]
        found = iter(
            [value for start in range(0, len(flat), batch_size) for value in read(flat[start : start + batch_size])]
        )
        return [
            [recipe.combine([[next(found)] for _ in recipe.rows]) for recipe in of_example] for of_example in recipes
        ]

    return score
