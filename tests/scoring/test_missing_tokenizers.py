"""A tokenizer whose files are missing or cut off is refused in a sentence, where the library may make one up."""

import io
import json
import re
from copy import deepcopy

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, processors
from transformers import AutoTokenizer, ByT5Tokenizer, EsmcTokenizer, PreTrainedTokenizerFast

from stereoset_scoring import load_scorer
from stereoset_scoring.questions.tokenizer_files import load_tokenizer
from stereoset_scoring.questions.tokens import Beginning, Tokenizer
from stereoset_scoring.refusal import Refusal

LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
VOCABULARY = "\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "kind", "a", ""])
PIECES = json.dumps({"k": 0, "i": 1, "ki": 2, "a": 3})
MERGES = "#version: 0.2\nk i\n"
MISSING = {
    # case: (model type, files, parts of the message)
    "no file": ("bert", {}, ["no vocabulary", "vocab.txt or tokenizer.json"]),
    "its settings alone": (
        "bert",
        {"tokenizer_config.json": '{"tokenizer_class": "BertTokenizer"}'},
        ["no vocabulary", "vocab.txt or tokenizer.json"],
    ),
    "special tokens alone": ("bert", {"special_tokens_map.json": '{"mask_token": "<m>"}'}, ["no vocabulary"]),
    "added tokens alone": ("bert", {"added_tokens.json": '{"<x>": 5}'}, ["no vocabulary"]),
    "no file of a byte-level BPE": ("gpt2", {}, ["no vocabulary", "vocab.json and merges.txt or tokenizer.json"]),
    "no file of a sentencepiece model": ("t5", {}, ["no vocabulary", "spiece.model or tokenizer.json"]),
    "no file of any one kind": ("llama", {}, ["lacks", "tokenizer.model or tokenizer.json"]),
    "no file of a tokenizer of language codes": ("nllb-moe", {}, ["no vocabulary", "sentencepiece.bpe.model"]),
    "no file of a tokenizer in Python": ("ctrl", {}, ["lacks vocab.json and merges.txt", "put vocab.json and merges"]),
    "no merges": ("gpt2", {"vocab.json": PIECES}, ["put merges.txt or tokenizer.json"]),
    "no merges in the file": ("gpt2", {"vocab.json": PIECES, "merges.txt": "#version: 0.2\n"}, ["merges"]),
    "no merges of a tokenizer in Python": ("ctrl", {"vocab.json": PIECES, "merges.txt": "#v\n"}, ["no merges"]),
    "no pieces beside merges": ("gpt2", {"merges.txt": MERGES}, ["lacks vocab.json"]),
    "an empty vocabulary": ("bert", {"vocab.txt": ""}, ["missing or empty", "vocab.txt"]),
    "an empty sentencepiece model": ("t5", {"spiece.model": ""}, ["missing or empty", "spiece.model"]),
    "tokenizer.json cut off": ("bert", {"tokenizer.json": '{"version": "1.0", "tr'}, ["tokenizer.json", "cut off"]),
    "tokenizer.json empty": ("bert", {"tokenizer.json": ""}, ["tokenizer.json", "is empty"]),
    "tokenizer.json not fetched": ("gpt2", {"tokenizer.json": LFS}, ["tokenizer.json", "cut off", "download it again"]),
    "tokenizer.json of another layout": ("bert", {"tokenizer.json": '{"vocab": []}'}, ["tokenizer.json"]),
    "tokenizer.json a list": ("bert", {"tokenizer.json": "[]"}, ["tokenizer.json", "not what its name says"]),
    "settings cut off": ("bert", {"vocab.txt": VOCABULARY, "tokenizer_config.json": "{"}, ["tokenizer_config.json"]),
    "settings a list": ("bert", {"vocab.txt": VOCABULARY, "tokenizer_config.json": "[]"}, ["tokenizer_config.json"]),
    "vocab.json cut off": ("gpt2", {"vocab.json": PIECES[:9], "merges.txt": MERGES}, ["vocab.json", "cut off"]),
    "merges of another vocabulary": (
        "gpt2",
        {"vocab.json": PIECES, "merges.txt": MERGES + "x y\n"},
        ["cannot be loaded", "out of vocabulary", "save it anew"],
    ),
    "a text that is none": ("bert", {"vocab.txt": b"a\n\xff\xfe\n"}, ["vocab.txt", "not what its name says"]),
    "sentencepiece not fetched": ("t5", {"spiece.model": LFS}, ["spiece.model", "cut off"]),
}


@pytest.fixture
def place(tmp_path):
    """place(model_type, files): a folder with a configuration and some files."""

    def make(model_type, files):
        for name, content in {"config.json": json.dumps({"model_type": model_type}), **files}.items():
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path

    return make


@pytest.mark.parametrize(("model_type", "files", "parts"), MISSING.values(), ids=MISSING.keys())
def test_files_that_hold_no_tokenizer_are_refused_by_name(place, model_type, files, parts):
    with pytest.raises(Refusal, match=".*".join(map(re.escape, parts))) as refusal:
        load_tokenizer(str(place(model_type, files)))
    assert "\n" not in str(refusal.value)


def test_a_sentencepiece_model_that_is_cut_off_is_refused_by_name(place):
    trainer = pytest.importorskip("sentencepiece").SentencePieceTrainer
    model = io.BytesIO()
    trainer.train(sentence_iterator=iter(["a kind day"] * 9), model_writer=model, vocab_size=11, minloglevel=2)
    whole = place("t5", {"spiece.model": model.getvalue()})
    assert load_tokenizer(str(whole)).encode_bare("kind")
    cut = place("t5", {"spiece.model": model.getvalue()[: len(model.getvalue()) // 2]})
    with pytest.raises(Refusal, match=r"spiece\.model .* cut off"):
        load_tokenizer(str(cut))


def test_a_checkpoint_without_its_tokenizer_is_not_scored(folder, tmp_path, intrasentence):
    for file in ("config.json", "model.safetensors"):
        (tmp_path / file).write_bytes((folder("bert") / file).read_bytes())
    with pytest.raises(Refusal, match="has no vocabulary"):
        load_scorer(tmp_path).score(intrasentence)


def test_a_made_up_tokenizer_is_refused_in_memory_too(folder, tmp_path, model_of):
    (tmp_path / "config.json").write_bytes((folder("bert") / "config.json").read_bytes())
    with pytest.raises(Refusal, match="has no vocabulary"):
        load_scorer(model=model_of("bert", "masked"), tokenizer=AutoTokenizer.from_pretrained(tmp_path))


LEGAL = {
    # case: (model type, files)
    "a vocabulary": ("bert", {"vocab.txt": VOCABULARY}),
    "pieces and merges": ("gpt2", {"vocab.json": PIECES, "merges.txt": MERGES}),
    "letters alone need no merges": ("gpt2", {"vocab.json": '{"a": 0, "b": 1}', "merges.txt": ""}),
    "bytes need no file": ("t5", {"tokenizer_config.json": '{"tokenizer_class": "ByT5Tokenizer"}'}),
    "bytes need no file, nor settings": ("perceiver", {}),
    "characters need no file": ("canine", {}),
}


@pytest.mark.parametrize(("model_type", "files"), LEGAL.values(), ids=LEGAL.keys())
def test_tokenizers_with_all_that_they_need_are_loaded(place, model_type, files):
    assert load_tokenizer(str(place(model_type, files))).encode_bare("a")


@pytest.mark.parametrize("kind", [ByT5Tokenizer, EsmcTokenizer])
def test_tokenizers_that_are_complete_by_themselves_are_taken(kind):
    assert Tokenizer(kind()).hub.get_vocab()


def test_a_library_that_is_missing_is_named(place, monkeypatch):
    def fails(*arguments, **more):
        raise ImportError("You need to install sacremoses to use XLMTokenizer.\nSee elsewhere.")

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", fails)
    with pytest.raises(
        Refusal, match=r"needs a library that is not there: install it \(You need to install sacremoses"
    ):
        load_tokenizer(str(place("xlm", {})))


def post_processed(folder_tokenizer, single, **more):
    tokenizer = deepcopy(folder_tokenizer.backend_tokenizer)
    names = [name for name in single.split() if not name.startswith("$")]
    ids = [(name, tokenizer.token_to_id(name)) for name in names]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, special_tokens=ids)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **more)


def test_the_beginning_is_all_that_is_put_before_a_text(tokenizer_of):
    for single, ids in (("<s> $A </s>", (1,)), ("</s> <s> $A", (2, 1)), ("$A </s>", ())):
        tokenizer = Tokenizer(post_processed(tokenizer_of("llama"), single))
        assert tokenizer.beginning == Beginning(ids, bool(ids), "post-processor" if ids else "none")
    tokenizer = Tokenizer(post_processed(tokenizer_of("llama"), "$A </s>", eos_token="</s>"))
    assert tokenizer.beginning == Beginning((2,), False, "eos")


def test_the_beginning_is_found_where_the_letter_a_is_unknown_or_nothing():
    tokenizer = Tokenizer(PreTrainedTokenizerFast(tokenizer_object=bpe_without_a(), bos_token="<s>"))
    assert tokenizer.beginning == Beginning((0,), True, "bos")


def bpe_without_a():
    tokenizer = Backend(models.BPE(vocab={"<s>": 0, "k": 1, "i": 2}, merges=[]))
    tokenizer.add_special_tokens(["<s>"])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return tokenizer


def test_unknown_tokens_and_chat_templates_are_told(tokenizer_of):
    bert, bare = Tokenizer(tokenizer_of("bert")), Tokenizer(tokenizer_of("bare"))
    assert (bert.unknown_id, bare.unknown_id) == (tokenizer_of("bert").unk_token_id, None)
    assert not bert.has_chat_template
    assert Tokenizer(PreTrainedTokenizerFast(tokenizer_object=bpe_without_a(), chat_template="x")).has_chat_template
