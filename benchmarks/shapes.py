"""Models of real size with random weights, and tokenizers trained on the very data: nothing is downloaded."""

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

# Real vocabularies, so that projecting to them costs what it costs; the trained tokenizers may be smaller.
GPT2_SMALL = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
BERT_BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 28996,
}
TINY_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 3000}
TINY_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 3000,
}
END = "<|endoftext|>"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_causal(texts, quick=False):
    """(GPT-2 in float32, its tokenizer: a byte-level BPE of texts)."""
    shape = TINY_GPT2 if quick else GPT2_SMALL
    tokenizer = byte_level_bpe(texts, shape["vocab_size"])
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return _random(GPT2LMHeadModel, GPT2Config(**shape, **ends)), tokenizer


def make_masked(texts, quick=False):
    """(BERT in float32, its tokenizer: a cased WordPiece of texts)."""
    shape = TINY_BERT if quick else BERT_BASE
    tokenizer = word_piece(texts, shape["vocab_size"])
    return _random(BertForMaskedLM, BertConfig(**shape, pad_token_id=tokenizer.pad_token_id)), tokenizer


def byte_level_bpe(texts, vocab_size):
    """A tokenizer of GPT-2's make."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        min_frequency=2,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END, pad_token=END)


def word_piece(texts, vocab_size):
    """A tokenizer of the make of bert-base-cased."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, min_frequency=2, special_tokens=SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = {token: tokenizer.token_to_id(token) for token in SPECIAL}
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{f"{token.strip('[]').lower()}_token": token for token in SPECIAL},
    )


def _random(model_class, config):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return model_class(config).eval()
