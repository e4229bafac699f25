"""Every further config is scored by a tiny masked, causal and encoder-decoder model."""

import math

import pytest
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    GPT2Config,
    GPT2LMHeadModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from stereoset_dataset import Stereoset, load_stereoset
from stereoset_scoring import load_scorer
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.questions.examples import read_example
from stereoset_scoring.refusal import MissingAttribute

CONFIGS = [name for name in Stereoset.builder_configs if name.endswith("_pt") or name.startswith("crows_pairs_")]


@pytest.fixture(scope="module")
def scorers(tokenizer_of):
    """{name: a Scorer} of tiny models that read long texts, and all texts by their bytes."""
    roberta, gpt2 = tokenizer_of("roberta"), tokenizer_of("gpt2")
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    small = {
        "max_position_embeddings": 600,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    models = {
        "roberta": RobertaForMaskedLM(RobertaConfig(vocab_size=len(roberta), **small)),
        "gpt2": GPT2LMHeadModel(GPT2Config(vocab_size=len(gpt2), n_positions=600, n_embd=16, n_layer=1, n_head=2)),
        "bart": BartForConditionalGeneration(
            BartConfig(vocab_size=len(roberta), d_model=16, max_position_embeddings=600, **sizes, **heads)
        ),
    }
    tokenizers = {"roberta": roberta, "gpt2": gpt2, "bart": roberta}
    return {name: load_scorer(model=model, tokenizer=tokenizers[name]) for name, model in models.items()}


@pytest.fixture(scope="module")
def first_rows(upstream):
    return {config: next(iter(load_stereoset(config, data_dir=upstream).values())) for config in CONFIGS}


@pytest.mark.parametrize("config", CONFIGS)
def test_a_further_config_is_scored_by_every_kind_of_model_that_has_a_method(scorers, first_rows, config):
    rows = first_rows[config].select([0, 40]).to_list()
    for name, scorer in scorers.items():
        if name == "bart" and config.startswith("crows_pairs"):
            continue  # encoder-decoders have no method for pairs
        scores = scorer.score(rows)
        assert all(math.isfinite(score) for of_row in scores for score in of_row), name
        assert [len(of_row) for of_row in scores] == [len(row["sentences"]["id"]) for row in rows]


def test_portuguese_examples_without_an_attribute_are_counted_and_read_as_whole_sentences(scorers, first_rows):
    rows = first_rows["intrasentence_pt"].to_list()
    whole = Portion("intrasentence_pt", 0, len(rows))
    masked = scorers["roberta"].plan_part(whole, rows).refused
    assert 90 <= len(masked) <= 110
    assert scorers["gpt2"].plan_part(whole, rows).refused == {}
    some = [rows[i] for i in list(masked)[:2]]
    assert len(scorers["gpt2"].score(some)) == 2
    with pytest.raises(MissingAttribute, match=some[0]["id"]):
        scorers["roberta"].score(some)


def test_a_context_with_blank_is_a_context_where_the_data_says_so(scorers, first_rows):
    rows = [row for row in first_rows["intersentence_pt"].to_list() if "BLANK" in row["context"]][:1]
    assert read_example(rows[0]).task == "intersentence"
    assert len(scorers["gpt2"].score(rows)[0]) == 3
