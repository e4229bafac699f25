"""What cannot be scored is refused, in a sentence that names the culprit and the mend."""

import re

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AutoConfig,
    BartConfig,
    BartForConditionalGeneration,
    BertForMaskedLM,
    BertModel,
    ElectraConfig,
    ElectraForPreTraining,
    LlamaModel,
    MT5Config,
    RobertaForMaskedLM,
    T5Config,
    ViTConfig,
    XLNetConfig,
)

from stereoset_scoring import load_scorer
from stereoset_scoring.checkpoints.families import family_of
from stereoset_scoring.checkpoints.heads import longest_input

INTRA = ("The gardener was BLANK.", ["The gardener was kind.", "The gardener was quiet."])
INTER = ("A gardener met us.", ["He was kind.", "She was quiet."])
SMALL = {
    "vocab_size": 140,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}


def refused(*parts):
    """A ValueError whose one sentence holds all the parts, in this order."""
    return pytest.raises(ValueError, match=".*".join(map(re.escape, parts)))


ARGUMENTS = [
    # checkpoint, arguments, row, parts of the message
    ("gpt2", {"method": "pseudo_likelihood"}, INTRA, ["'pseudo_likelihood'", "causal", "choose", "likelihood"]),
    ("bert", {"method": "joint"}, INTER, ["'joint'", "masked", "choose", "aul"]),
    ("gpt2", {"method": "likelihood"}, INTER, ["'likelihood'", "intersentence", "choose", "conditional"]),
    ("gpt2", {"method": {"intersentence": "nothing"}}, INTER, ["'nothing'", "choose", "conditional"]),
    ("bert", {"preset": "stereo"}, INTRA, ["'stereo'", "choose", "stereoset", "multilingual", "bias-bench"]),
    ("gpt2", {"preset": "bias-bench"}, INTER, ["'bias-bench'", "causal", "intersentence", "leave the preset out"]),
    ("gpt2", {"method": "quotient"}, INTER, ["'quotient'", "preset"]),
    ("bert", {"preset": "bias-bench"}, INTER, ["'bias-bench'", "intersentence", "leave the preset out"]),
    ("bert", {"averages": "log"}, INTRA, ["'averages'", "choose", "average"]),
    ("bert", {"bos": "none"}, INTRA, ["masked", "'bos'", "choose"]),
    ("gpt2", {"average": "log"}, INTRA, ["causal", "'average'", "choose"]),
    ("bert", {"average": "median"}, INTRA, ["average", "'median'", "choose", "probability", "log"]),
    ("bert", {"sentence_space": "yes"}, INTRA, ["sentence_space", "'yes'", "choose", "True", "False"]),
    ("gpt2", {"bos": "always"}, INTRA, ["bos", "'always'", "choose", "context", "released", "none"]),
    ("gpt2", {"border": None}, INTER, ["border", "None", "choose", "offsets", "length"]),
    ("bare", {"bos": "context"}, INTRA, ["bos='context'", "has none", "bos='none'"]),
    ("bare", {"bos": "released"}, INTRA, ["bos='released'", "has none", "bos='none'"]),
    ("bert", {"dtype": "float31"}, INTRA, ["'float31'", "choose", "float32"]),
    ("roberta", {"method": "next_sentence"}, INTER, ["roberta", "next-sentence", "choose another method"]),
    ("bert", {"max_tokens": 5}, INTRA, ["tokens", "max_tokens=5", "larger"]),
]


@pytest.mark.parametrize(("name", "arguments", "example", "parts"), ARGUMENTS)
def test_argument_that_does_not_fit_is_refused(folder, row, name, arguments, example, parts):
    with refused(*parts):
        load_scorer(folder(name), **{"device": "cpu", **arguments}).score([row(*example)])


ROWS = [
    # row, parts of the message
    ({"id": "e7", "context": "It was BLANK."}, ["'e7'", "sentences", "give rows with"]),
    ({"id": "e7", "sentences": []}, ["'e7'", "context", "give rows with"]),
    ({"context": "It was BLANK.", "sentences": []}, ["no id", "'id'", "give rows with"]),
    ({"id": "e7", "context": "It was.", "sentences": [{"id": "o1"}]}, ["'e7'", "'sentence'", "give rows with"]),
    ({"id": "e7", "context": "It was.", "sentences": {"id": ["o1"]}}, ["'e7'", "'sentence'", "give rows with"]),
    ({"id": "e7", "context": "", "sentences": []}, ["'e7'", "empty context"]),
    (
        {"id": "e7", "context": "It was.", "sentences": [{"id": "o1", "sentence": ""}]},
        ["'o1'", "'e7'", "empty sentence", "give its text"],
    ),
    (
        {"id": "e7", "context": "It was very BLANK.", "sentences": [{"id": "o1", "sentence": "Was it?"}]},
        ["'o1'", "'e7'", "BLANK", "mend its sentence"],
    ),
]


@pytest.mark.parametrize(("bad", "parts"), ROWS)
def test_row_that_lacks_something_is_refused_by_name(scorer_of, bad, parts):
    with refused(*parts):
        scorer_of("bert").score([bad])


def test_option_of_which_no_token_is_scored_is_refused(scorer_of, row):
    with refused("'e-1'", "'e'", "no token to read", "'a'", "mend or drop"):
        scorer_of("bare").score([row("BLANK", ["a day", "a"])])


def test_attribute_without_a_token_is_refused(scorer_of, row):
    with refused("'\\u200b'", "'e-0'", "'e'", "no token"):
        scorer_of("bert").score([row("It was BLANK.", ["It was \u200b."])])


def test_kind_of_model_without_a_language_model_head_is_refused():
    with refused("vit", "no language-model head"):
        family_of(ViTConfig())


FAMILIES = [
    (T5Config(), "seq2seq"),
    (MT5Config(), "seq2seq"),
    (BartConfig(), "seq2seq"),
    (XLNetConfig(), "permutation"),
]


@pytest.mark.parametrize(("config", "family"), FAMILIES)
def test_a_kind_is_known_by_its_configuration(config, family):
    assert family_of(config) == family


def test_an_encoder_decoder_without_a_sentinel_is_refused_where_one_is_asked_for(tokenizer_of, row):
    small = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    config = BartConfig(vocab_size=300, encoder_attention_heads=1, decoder_attention_heads=1, **small)
    model = BartForConditionalGeneration(config)
    with refused("no sentinel <extra_id_0>", "T5", "denoising or prefix"):
        load_scorer(model=model, tokenizer=tokenizer_of("roberta"), method="likelihood").score([row(*INTRA)])


def test_checkpoint_without_a_next_sentence_head_is_refused(folder, tmp_path, tokenizer_of, row):
    BertForMaskedLM.from_pretrained(folder("bert")).save_pretrained(tmp_path)
    tokenizer_of("bert").save_pretrained(tmp_path)
    scorer = load_scorer(tmp_path, device="cpu", method={"intersentence": "next_sentence"})
    scorer.score([row(*INTRA)])
    with refused(str(tmp_path), "next-sentence head", "weights missing", "random", "choose another"):
        scorer.score([row(*INTER)])


@pytest.mark.parametrize(("bare", "name", "head"), [(BertModel, "bert", "masked"), (LlamaModel, "llama", "causal")])
def test_checkpoint_without_a_language_model_head_is_refused(folder, tmp_path, tokenizer_of, row, bare, name, head):
    bare.from_pretrained(folder(name)).save_pretrained(tmp_path)
    tokenizer_of(name).save_pretrained(tmp_path)
    with refused(str(tmp_path), head, "weights missing", "random", "choose another"):
        load_scorer(tmp_path, device="cpu").score([row(*INTRA)])


def test_masked_model_in_memory_has_no_next_sentence_head(folder, tokenizer_of, row):
    model = BertForMaskedLM.from_pretrained(folder("bert"))
    scorer = load_scorer(model=model, tokenizer=tokenizer_of("bert"), method="next_sentence")
    with refused("BertForMaskedLM", "next-sentence head", "BertForNextSentencePrediction"):
        scorer.score([row(*INTER)])


def test_masked_model_of_a_kind_without_next_sentence_heads_is_refused_in_memory(folder, tokenizer_of, row):
    model = RobertaForMaskedLM.from_pretrained(folder("roberta"))
    with refused("RobertaForMaskedLM", "next-sentence head"):
        load_scorer(model=model, tokenizer=tokenizer_of("roberta"), method="next_sentence").score([row(*INTER)])


def test_sentence_order_head_is_no_next_sentence_head(tokenizer_of, row):
    model = AlbertForPreTraining(AlbertConfig(embedding_size=8, **SMALL))
    with refused("AlbertForPreTraining", "next-sentence head"):
        load_scorer(model=model, tokenizer=tokenizer_of("albert"), method="next_sentence").score([row(*INTER)])


def test_discriminator_is_no_masked_language_model(tokenizer_of, row):
    model = ElectraForPreTraining(ElectraConfig(embedding_size=8, **SMALL))
    with refused("ElectraForPreTraining", "masked-language-model head"):
        load_scorer(model=model, tokenizer=tokenizer_of("bert")).score([row(*INTRA)])


def test_bare_model_in_memory_is_refused(folder, tokenizer_of, row):
    with refused("BertModel", "masked-language-model head", "BertForMaskedLM"):
        load_scorer(model=BertModel.from_pretrained(folder("bert")), tokenizer=tokenizer_of("bert")).score(
            [row(*INTRA)]
        )


@pytest.mark.parametrize(
    "given", [(), ("name", "model", "tokenizer"), ("model",), ("tokenizer",), ("name", "tokenizer")]
)
def test_neither_or_both_of_name_and_model_are_refused(folder, model_of, tokenizer_of, given):
    everything = {
        "name": folder("bert"),
        "model": model_of("bert", "masked"),
        "tokenizer": tokenizer_of("bert"),
    }
    with refused("either the name", "or a model and its tokenizer"):
        load_scorer(**{key: everything[key] for key in given})


def test_tokenizer_without_a_mask_is_refused(folder, tmp_path, tokenizer_of, row):
    BertForMaskedLM.from_pretrained(folder("bert")).save_pretrained(tmp_path)
    tokenizer_of("bare").save_pretrained(tmp_path)
    with refused("tokenizer", "no mask token", "needs"):
        load_scorer(tmp_path, device="cpu").score([row(*INTRA)])


def test_folder_that_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(OSError, match="nowhere"):
        load_scorer(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "gpt2", "llama"])
@pytest.mark.parametrize("excess", [0, 1])
def test_longest_text_is_scored_and_one_token_more_is_refused(scorer_of, tokenizer_of, row, name, excess):
    tokenizer, sentence = tokenizer_of(name), "He is kind"
    tail, full = ".", scorer_of(name).source.head(scorer_of(name).source.family).longest_input
    # A causal model that scores its first token apart reads one token less than it scores.
    unread = 1 if name in ("gpt2", "llama") else 0
    while len(tokenizer(sentence)["input_ids"]) - unread < full + excess:
        sentence += tail
    assert len(tokenizer(sentence)["input_ids"]) - unread == full + excess
    rows = [row(sentence.replace("kind", "BLANK"), [sentence])]
    if not excess:
        assert torch.tensor(scorer_of(name).score(rows)).isfinite().all()
        return
    with refused("'e-0'", "'e'", f"{full + 1} tokens", f"reads {full}", "shorten or drop"):
        scorer_of(name).score(rows)


@pytest.mark.parametrize("excess", [0, 1])
def test_pair_of_the_models_length_is_scored_and_one_token_more_is_refused(scorer_of, tokenizer_of, row, excess):
    context, option = "He is kind.", "He is calm."
    while len(tokenizer_of("bert")(context, option)["input_ids"]) < 64 + excess:
        option += " is"
    rows = [row(context, [option])]
    if not excess:
        assert torch.tensor(scorer_of("bert").score(rows)).isfinite().all()
        return
    with refused("'e-0'", "65 tokens", "reads 64", "shorten or drop"):
        scorer_of("bert").score(rows)


def test_real_sizes_of_roberta_leave_512_tokens():
    config = AutoConfig.for_model("roberta", max_position_embeddings=514, **SMALL)
    assert longest_input(RobertaForMaskedLM(config)) == 512
