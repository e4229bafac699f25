"""Models of real size with random weights, and tokenizers trained on the very data: nothing is downloaded."""

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    Lfm2Config,
    Lfm2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    PreTrainedTokenizerFast,
    T5Config,
    T5ForConditionalGeneration,
    XLNetConfig,
    XLNetLMHeadModel,
)

# Real vocabularies, so that projecting to them costs what it costs; the trained tokenizers may be smaller.
GPT2_SMALL = {"n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
BERT_BASE = {
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 28996,
}
T5_BASE = {"d_model": 768, "d_ff": 3072, "num_layers": 12, "num_heads": 12, "vocab_size": 32128}
XLNET_BASE = {"d_model": 768, "n_layer": 12, "n_head": 12, "d_inner": 3072, "vocab_size": 32000}
MAMBA_130M = {"hidden_size": 768, "num_hidden_layers": 24, "vocab_size": 50280}
LFM2_350M = {
    "hidden_size": 1024,
    "intermediate_size": 6656,  # of which the model keeps two thirds, rounded up
    "num_hidden_layers": 16,
    "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "vocab_size": 65536,
}
TINY_GPT2 = {"n_embd": 32, "n_layer": 2, "n_head": 2, "vocab_size": 3000}
TINY_BERT = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 3000,
}
TINY_T5 = {"d_model": 32, "d_kv": 16, "d_ff": 128, "num_layers": 2, "num_heads": 2, "vocab_size": 3000}
TINY_XLNET = {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 128, "vocab_size": 3000}
TINY_MAMBA = {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 3000}
TINY_LFM2 = {
    "hidden_size": 32,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "full_attn_idxs": [1],
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "vocab_size": 3000,
}
END = "<|endoftext|>"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def make_causal(texts, quick=False):
    """(GPT-2 in float32, its tokenizer: a byte-level BPE of texts)."""
    return _with_byte_level_bpe(GPT2LMHeadModel, GPT2Config, TINY_GPT2 if quick else GPT2_SMALL, texts)


def make_recurrent(texts, quick=False):
    """(Mamba in float32, its tokenizer: a byte-level BPE of texts)."""
    return _with_byte_level_bpe(MambaForCausalLM, MambaConfig, TINY_MAMBA if quick else MAMBA_130M, texts)


def make_hybrid(texts, quick=False):
    """(LFM2, whose layers convolve or attend, in float32, its tokenizer: a byte-level BPE of texts)."""
    return _with_byte_level_bpe(Lfm2ForCausalLM, Lfm2Config, TINY_LFM2 if quick else LFM2_350M, texts)


def _with_byte_level_bpe(model_class, config_class, shape, texts):
    tokenizer = byte_level_bpe(texts, shape["vocab_size"])
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return _random(model_class, config_class(**shape, **ends)), tokenizer


def make_masked(texts, quick=False):
    """(BERT in float32, its tokenizer: a cased WordPiece of texts)."""
    shape = TINY_BERT if quick else BERT_BASE
    tokenizer = word_piece(texts, shape["vocab_size"])
    return _random(BertForMaskedLM, BertConfig(**shape, pad_token_id=tokenizer.pad_token_id)), tokenizer


def make_encoder_decoder(texts, quick=False):
    """(T5 in float32, its tokenizer: a unigram of texts with one sentinel)."""
    shape = TINY_T5 if quick else T5_BASE
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<extra_id_0>"}
    tokenizer = unigram(texts, shape["vocab_size"], special, "$A </s>")
    return _random(T5ForConditionalGeneration, T5Config(**shape, decoder_start_token_id=0)), tokenizer


def make_permutation(texts, quick=False):
    """(XLNet in float32, its tokenizer: a unigram of texts)."""
    shape = TINY_XLNET if quick else XLNET_BASE
    names = ("unk", "bos", "eos", "cls", "sep", "pad", "mask")
    special = dict(
        zip(map("{}_token".format, names), ("<unk>", "<s>", "</s>", *map("<{}>".format, names[3:])), strict=True)
    )
    tokenizer = unigram(texts, shape["vocab_size"], special, "$A:0 <sep>:0 <cls>:2")
    return _random(XLNetLMHeadModel, XLNetConfig(**shape)), tokenizer


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


def unigram(texts, vocab_size, special, closed):
    """A tokenizer of SentencePiece's make.

    Args:
        texts: what it is trained on.
        vocab_size: how many pieces it may have.
        special: {name as of PreTrainedTokenizerFast: token}, whose ids are their places.
        closed: how it ends a text, as TemplateProcessing writes it.
    """
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=vocab_size, special_tokens=list(special.values()), unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    ids = [(token, place) for place, token in enumerate(special.values())]
    tokenizer.post_processor = processors.TemplateProcessing(single=closed, special_tokens=ids)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)


def _random(model_class, config):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(0)
        return model_class(config).eval()


MAKERS = {
    "causal": make_causal,
    "masked": make_masked,
    "encoder_decoder": make_encoder_decoder,
    "recurrent": make_recurrent,
    "hybrid": make_hybrid,
    "permutation": make_permutation,
}
