"""Tiny checkpoints of every kind, built in the test process and opened on demand, and rows that exercise them."""

import json
from functools import cache

import pytest
import torch
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForNextSentencePrediction,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForPreTraining,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MT5Config,
    MT5ForConditionalGeneration,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    T5Config,
    T5ForConditionalGeneration,
    XLNetConfig,
    XLNetLMHeadModel,
)

from stereoset_scoring import load_scorer
from stereoset_scoring.scorer import Scorer

# Tiny matrices: more threads cost more than they bring, above all where other work shares the machine.
torch.set_num_threads(1)

TEXTS = [
    "The gardener was kind and quiet.",
    "The teacher was kind, and the river was calm.",
    "A quiet teacher met a kind gardener near the river.",
    "Gardeners are often quiet. Teachers are often kind!",
    "We planted a tree in the garden; it was watered and painted.",
    "She said it was a calm day, was it not?",
    "They are very thoughtful people. He reads in the garden.",
    "Das Café war schön und grün. Der Gärtner war sehr müde.",
    "The weather is calm. Rivers are long and trees are tall.",
    "He is kind. She is tall. It is long. They are calm.",
]
HIDDEN = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
AUTO = {
    "masked": AutoModelForMaskedLM,
    "causal": AutoModelForCausalLM,
    "next_sentence": AutoModelForNextSentencePrediction,
    "permutation": AutoModelForCausalLM,
    "seq2seq": AutoModelForSeq2SeqLM,
}


def wordpiece():
    """As BERT's: cased WordPiece, [CLS] A [SEP] B [SEP] with token types."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(
        TEXTS, trainers.WordPieceTrainer(vocab_size=140, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(token, special.index(token)) for token in ("[CLS]", "[SEP]")],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def byte_level(special):
    """A byte-level BPE without a space before the text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=special,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def roberta_tokenizer():
    """As RoBERTa's: byte-level BPE, <s> A </s>, and a mask that takes the space before it."""
    tokenizer = byte_level(["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        cls_token="<s>",
        sep_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        model_input_names=["input_ids", "attention_mask"],
    )


def metaspace_unigram(special):
    """A sentencepiece-like unigram model, with a space put before the text."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False)
    tokenizer.train_from_iterator(TEXTS, trainer)
    return tokenizer


def albert_tokenizer():
    """As ALBERT's: unigram, [CLS] A [SEP] B [SEP] with token types."""
    tokenizer = metaspace_unigram(["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        unk_token="<unk>",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token=AddedToken("[MASK]", lstrip=True, special=True),
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def gpt2_tokenizer():
    """As GPT-2's: byte-level BPE with a token that begins and ends texts, and is never put there by itself."""
    return PreTrainedTokenizerFast(
        tokenizer_object=byte_level(["<|endoftext|>"]), bos_token="<|endoftext|>", eos_token="<|endoftext|>"
    )


def llama_tokenizer():
    """As Llama's: sentencepiece-like, and <s> before every text by itself."""
    tokenizer = metaspace_unigram(["<unk>", "<s>", "</s>"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>")


def bare_tokenizer():
    """Byte-level BPE with neither a beginning nor an end of texts."""
    return PreTrainedTokenizerFast(tokenizer_object=byte_level([]))


def xlnet_tokenizer():
    """As XLNet's: unigram, A <sep> B <sep> <cls>, with a token type for each of the two and for <cls>."""
    special = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    tokenizer = metaspace_unigram(special)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2",
        pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=[("<cls>", 3), ("<sep>", 4)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        sep_token="<sep>",
        pad_token="<pad>",
        cls_token="<cls>",
        mask_token=AddedToken("<mask>", lstrip=True, special=True),
        padding_side="left",
    )


def t5_tokenizer():
    """As T5's: unigram, A </s> B </s>, with sentinels that are special tokens."""
    tokenizer = with_pieces(metaspace_unigram(["<pad>", "</s>", "<unk>"]), "0", "1")
    return text_to_text(tokenizer, extra_special_tokens=["<extra_id_0>"])


def mt5_tokenizer():
    """As mT5's: a sentinel is a piece like any other, and holds the space before it."""
    return text_to_text(with_pieces(metaspace_unigram(["<pad>", "</s>", "<unk>"]), "0", "1", "▁<extra_id_0>"))


def with_pieces(tokenizer, *pieces):
    """A unigram tokenizer with further pieces, likely enough to be used wherever they fit."""
    vocabulary = json.loads(tokenizer.to_str())["model"]["vocab"]
    tokenizer.model = models.Unigram([*map(tuple, vocabulary), *((piece, -1.0) for piece in pieces)], unk_id=2)
    return tokenizer


def text_to_text(tokenizer, **more):
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", **more
    )


def bert_model(size):
    return BertForPreTraining(BertConfig(vocab_size=size, max_position_embeddings=64, initializer_range=0.4, **HIDDEN))


def roberta_model(size):
    # 66 positions for 64 tokens: RoBERTa numbers them from the padding id on.
    config = RobertaConfig(vocab_size=size, max_position_embeddings=66, initializer_range=0.4, **HIDDEN)
    return RobertaForMaskedLM(config)


def albert_model(size):
    return AlbertForMaskedLM(
        AlbertConfig(
            vocab_size=size,
            embedding_size=16,
            max_position_embeddings=64,
            initializer_range=0.4,
            pad_token_id=0,
            **HIDDEN,
        )
    )


def gpt2_model(size):
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=size, n_positions=64, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    )


def llama_model(size):
    config = LlamaConfig(
        vocab_size=size,
        max_position_embeddings=64,
        num_key_value_heads=2,
        initializer_range=0.3,
        pad_token_id=None,
        **HIDDEN,
    )
    return LlamaForCausalLM(config)


def xlnet_model(size):
    return XLNetLMHeadModel(
        XLNetConfig(vocab_size=size, d_model=32, n_layer=2, n_head=4, d_inner=48, initializer_range=0.3)
    )


def t5_like(config, model, size):
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": size + 3}
    # Factors that make its predictions differ from one another; three rows beyond the vocabulary, as T5 has some.
    return model(config(decoder_start_token_id=0, initializer_factor=1.0, **sizes))


def t5_model(size):
    return t5_like(T5Config, T5ForConditionalGeneration, size)


def mt5_model(size):
    return t5_like(MT5Config, MT5ForConditionalGeneration, size)


def bart_model(size):
    sizes = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    config = BartConfig(vocab_size=size, max_position_embeddings=64, init_std=0.4, **sizes, **heads, **ids)
    return BartForConditionalGeneration(config)


CHECKPOINTS = {
    "bert": (wordpiece, bert_model),
    "roberta": (roberta_tokenizer, roberta_model),
    "albert": (albert_tokenizer, albert_model),
    "gpt2": (gpt2_tokenizer, gpt2_model),
    "llama": (llama_tokenizer, llama_model),
    "bare": (bare_tokenizer, gpt2_model),
    "xlnet": (xlnet_tokenizer, xlnet_model),
    "t5": (t5_tokenizer, t5_model),
    "mt5": (mt5_tokenizer, mt5_model),
    "bart": (roberta_tokenizer, bart_model),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """folder(name): a tiny checkpoint of CHECKPOINTS, made at the first call."""

    @cache
    def make(name):
        place = tmp_path_factory.mktemp("checkpoints") / name
        make_tokenizer, make_model = CHECKPOINTS[name]
        tokenizer = make_tokenizer()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(7)
            model = make_model(len(tokenizer)).eval()
            for parameter in model.parameters():  # biases and norms start at 0 and 1, where faults hide
                if parameter.dim() == 1:
                    parameter.data += 0.1 * torch.randn_like(parameter)
        model.save_pretrained(place)
        tokenizer.save_pretrained(place)
        return place

    return make


@pytest.fixture(scope="session")
def tokenizer_of(folder):
    """tokenizer_of(name): the hub tokenizer of a tiny checkpoint."""
    return cache(lambda name: AutoTokenizer.from_pretrained(folder(name)))


@pytest.fixture(scope="session")
def model_of(folder):
    """model_of(name, kind): a tiny checkpoint's model in float64 as the library opens it; not to be changed."""
    # Doubled once more: XLNet keeps some of its parameters in float32, whatever it is asked for.
    return cache(lambda name, kind: AUTO[kind].from_pretrained(folder(name), dtype=torch.float64).double().eval())


@pytest.fixture(scope="session")
def scorer_of(folder):
    """scorer_of(name, **arguments): a Scorer of a tiny checkpoint on the CPU, in float64 unless said otherwise."""
    return lambda name, dtype="float64", **more: load_scorer(folder(name), dtype=dtype, device="cpu", **more)


@pytest.fixture(scope="session")
def scorer_of_one(folder):
    """As scorer_of, but all scorers of a checkpoint share what was loaded and tried out: not to be changed.

    Loading a tiny model and trying it out take ten times as long as its scores.
    """
    source = cache(lambda name, dtype: load_scorer(folder(name), dtype=dtype, device="cpu").source)

    def make(name, dtype="float64", method=None, preset=None, max_tokens=None, **options):
        return Scorer(source(name, dtype), method, preset, options, max_tokens)

    return make


@pytest.fixture(scope="session")
def row():
    """row(context, sentences, words=None, id="e"): an example in the layout of StereoSet's JSON files."""

    def make(context, sentences, words=None, id="e"):
        options = [{"id": f"{id}-{i}", "sentence": sentence} for i, sentence in enumerate(sentences)]
        for option, word in zip(options, words or [], strict=False):
            option["word"] = word
        return {"id": id, "context": context, "sentences": options}

    return make


@pytest.fixture(scope="session")
def intrasentence(row):
    """Intrasentence rows of different lengths."""
    return [
        row("The gardener was BLANK.", [f"The gardener was {w}." for w in ("kind", "quiet", "long")], id="a"),
        row("BLANK are often quiet.", [f"{w} are often quiet." for w in ("Trees", "Teachers", "Days")], id="b"),
        row(
            "A BLANK teacher met a gardener near the river, and the day was calm.",
            [
                f"A {w} teacher met a gardener near the river, and the day was calm."
                for w in ("thoughtful", "kind", "grün")
            ],
            id="c",
        ),
        row("It was BLANK", ["It was watered", "It was not", "It was a day in the garden"], id="d"),
    ]


@pytest.fixture(scope="session")
def intersentence(row):
    """Intersentence rows of different lengths."""
    return [
        row("A gardener met us.", ["He was kind.", "She was quiet and thoughtful.", "Trees are tall."], id="p"),
        row(
            "We met a teacher near the river",
            ["He reads.", "It was a calm day!", "Rivers are long and trees are tall, are they not?"],
            id="q",
        ),
        row("Das Café war schön!", ["Der Gärtner war müde.", "Der Tag war grün.", "He is tall."], id="r"),
    ]


@pytest.fixture
def places_read():
    """places_read(job, packed): for each batch, how many places something is read at; packed rows share beginnings."""

    def of_unit(rows, packed):
        if packed and len(rows) > 1:
            return len({row.ids[: position + 1] for row in rows for position, _ in row.reads})
        return sum(len({position for position, _ in row.reads}) for row in rows)

    def of_job(job, packed=True):
        return [sum(of_unit(unit.rows, packed) for unit in batch) for batch in job.batches]

    return of_job
