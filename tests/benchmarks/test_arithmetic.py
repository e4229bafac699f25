"""Multiply-adds, against sums done by hand."""

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    Lfm2Config,
    Lfm2ForCausalLM,
    MambaConfig,
    MambaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    XLNetConfig,
    XLNetLMHeadModel,
)

from stereoset_scoring.methods.reductions import total
from stereoset_scoring.planning.plan import make_job
from stereoset_scoring.planning.rows import Recipe, Row


def job_of(*rows):
    """The Job of one example whose options have a row each."""
    return make_job([[Recipe((row,), total) for row in rows]], 100, lambda head: head == "causal")


def test_multiply_adds_of_a_load(benchmarks):
    arithmetic = benchmarks("arithmetic")
    matrices = arithmetic.Matrices(body=((2, 6), (2, 2)), head=((2, 10),), attention=4)
    # 5 tokens x (12 + 4), 3 places x 20, 7 pairs x a score and a value of 4 each
    assert arithmetic.multiply_adds(matrices, arithmetic.Load(tokens=5, pairs=7, places=3)) == 80 + 60 + 56


def test_shared_beginnings_of_causal_rows_count_once(benchmarks):
    arithmetic = benchmarks("arithmetic")
    rows = (Row("causal", (1, 2, 3), ((1, 3), (2, 9))), Row("causal", (1, 2, 4), ((1, 4), (2, 9))))
    # the tree 1 - 2 - {3, 4}: its tokens see 1, 2, 3 and 3; read at 2, 3 and 4
    assert arithmetic.useful_load(job_of(*rows)) == arithmetic.Load(tokens=4, pairs=9, places=3)


def test_masked_rows_count_whole_and_equal_ones_once(benchmarks):
    arithmetic = benchmarks("arithmetic")
    rows = (Row("masked", (1, 2, 3), ((1, 5),)), Row("masked", (1, 2, 3), ((1, 6),)), Row("masked", (1, 2), ((0, 5),)))
    assert arithmetic.useful_load(job_of(*rows)) == arithmetic.Load(tokens=5, pairs=9 + 4, places=2)


def test_an_encoder_counts_once_and_each_of_its_decoders(benchmarks):
    arithmetic = benchmarks("arithmetic")
    rows = [
        Row("seq2seq", (1, 2, 3), ((1, 5),), decoder=(7,)),
        Row("seq2seq", (1, 2, 3), ((0, 8), (1, 9)), decoder=(8,)),
    ]
    # three tokens see three; of each decoder two tokens see one and two, and the encoder's three each
    assert arithmetic.useful_load(job_of(*rows)) == arithmetic.Load(tokens=3, pairs=9 + 2 * 9, places=3, decoded=4)
    matrices = arithmetic.Matrices(body=((2, 6),), head=((2, 10),), attention=4, decoder=((2, 3),))
    assert arithmetic.multiply_adds(matrices, arithmetic.Load(5, 7, 3, 2)) == 60 + 56 + 60 + 12


def test_the_matrices_of_other_kinds_of_model(benchmarks):
    matrices_of = benchmarks("meter").matrices_of
    t5 = matrices_of(
        T5ForConditionalGeneration(T5Config(d_model=8, d_kv=4, num_heads=2, d_ff=16, num_layers=1, vocab_size=50))
    )
    feed_forward, attention = [(8, 16), (16, 8)], [(8, 8)] * 4
    assert sorted(t5.body) == sorted([*attention, *feed_forward, (8, 8), (8, 8)])  # a decoder's keys and values of it
    assert sorted(t5.decoder) == sorted([*attention, *feed_forward, (8, 8), (8, 8)])
    assert t5.head == ((8, 50),)
    xlnet = matrices_of(XLNetLMHeadModel(XLNetConfig(d_model=8, n_head=2, d_inner=16, n_layer=1, vocab_size=50)))
    assert (sorted(xlnet.body), xlnet.head) == (sorted([*attention, *feed_forward]), ((8, 50),))
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "vocab_size": 50}
    assert matrices_of(MambaForCausalLM(MambaConfig(**sizes))).attention == 0
    hybrid = Lfm2Config(**sizes, num_attention_heads=2, num_key_value_heads=1, full_attn_idxs=[1])
    assert matrices_of(Lfm2ForCausalLM(hybrid)).attention == 8


def test_the_matrices_of_both_kinds_of_model(benchmarks):
    meter, arithmetic = benchmarks("meter"), benchmarks("arithmetic")
    gpt2 = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=50))
    assert meter.matrices_of(gpt2) == arithmetic.Matrices(((8, 24), (8, 8), (8, 32), (32, 8)), ((8, 50),), 8)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    bert = BertForMaskedLM(BertConfig(**shape, vocab_size=50))
    assert sorted(meter.matrices_of(bert).body) == sorted([(8, 8)] * 4 + [(8, 16), (16, 8)])
    assert meter.matrices_of(bert).head == ((8, 8), (8, 50))


def test_what_others_give_to_the_model_is_counted_with_its_padding(benchmarks):
    meter, arithmetic = benchmarks("meter"), benchmarks("arithmetic")
    model = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=50))
    ids = torch.ones(3, 4, dtype=torch.long)
    with meter.metered(model) as loads:
        model(ids)
        model(input_ids=ids[:1])
    assert sum(loads, arithmetic.Load()) == arithmetic.Load(tokens=16, pairs=4 * 10, places=16)
    model(ids)
    assert len(loads) == 4  # nothing is noted afterwards
