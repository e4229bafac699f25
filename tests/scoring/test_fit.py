"""A tokenizer that does not fit the model is refused, by the ids that the texts really have."""

import pytest
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, RobertaConfig, RobertaForMaskedLM, T5Config
from transformers import T5ForConditionalGeneration as T5

from stereoset_scoring import load_scorer
from stereoset_scoring.engines.fit import Tables, check_fit, tables_for, tables_of
from stereoset_scoring.planning.rows import GREEDY, Row
from stereoset_scoring.refusal import Refusal

SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
ROWS = [
    # row, what it needs
    (Row("masked", (3, 9, 4), ((1, 7),), (0, 0, 1)), Tables(ids=10, outputs=8, types=2)),
    (Row("causal", (3,), ((0, 12),)), Tables(ids=4, outputs=13)),  # what is read need not be read in
    (Row("seq2seq", (5, 1), ((1, 2),), decoder=(6, GREEDY)), Tables(ids=6, decoder=7, outputs=3)),
    (Row("seq2seq", (5,), ((0, 2),), decoder=()), Tables(ids=6, outputs=3)),
]


def bert(size, types=2):
    return BertForMaskedLM(BertConfig(vocab_size=size, type_vocab_size=types, **SIZES))


def t5(size):
    return T5(T5Config(vocab_size=size, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0))


@pytest.mark.parametrize(("row", "expected"), ROWS)
def test_what_rows_need_is_one_more_than_their_largest_numbers(row, expected):
    assert tables_for([row, row]) == expected


def test_the_tables_of_a_model_are_those_of_its_weights():
    assert tables_of(bert(20)) == Tables(ids=20, outputs=20, types=2)
    assert tables_of(t5(30)) == Tables(ids=30, decoder=30, outputs=30)
    assert tables_of(RobertaForMaskedLM(RobertaConfig(vocab_size=9, type_vocab_size=1, **SIZES))).types == 1


MISFITS = [
    # row, model, parts of the message
    (Row("masked", (3, 10), ((0, 1),)), lambda: bert(10), "tokens up to id 10, and tiny has a table of 10 tokens"),
    (Row("masked", (3,), ((0, 10),)), lambda: bert(10), "tokens up to id 10, and tiny has a table of 10 tokens"),
    (
        Row("masked", (3,), ((0, 1),), (1,)),
        lambda: bert(10, 1),
        "token types up to id 1, and tiny has a table of 1 tok",
    ),
    (Row("seq2seq", (3,), ((0, 1),), decoder=(11,)), lambda: t5(10), "tokens up to id 11, and tiny has a table of 10"),
]


@pytest.mark.parametrize(("row", "model", "message"), MISFITS)
def test_numbers_beyond_a_table_are_refused_with_both_sizes(row, model, message):
    with pytest.raises(Refusal, match=message):
        check_fit([row], lambda head: model(), "tiny")


@pytest.mark.parametrize(("row", "model", "message"), MISFITS)
def test_larger_tables_are_fine(row, model, message):
    check_fit([row], lambda head: t5(50) if row.decoder else bert(50), "tiny")


@pytest.mark.parametrize(("size", "fits"), [(140, True), (150, True), (60, False)])
def test_a_tokenizer_fits_a_model_whose_table_holds_the_ids_of_the_texts(tokenizer_of, intrasentence, size, fits):
    tokenizer = tokenizer_of("bert")
    scorer = load_scorer(model=bert(size), tokenizer=tokenizer)
    if fits:
        assert len(scorer.score(intrasentence)) == len(intrasentence)
        return
    with pytest.raises(Refusal, match=r"does not fit the model: .* has a table of 60 tokens: give the tokenizer"):
        scorer.score(intrasentence)


def test_added_tokens_that_no_text_has_may_lie_beyond_the_table(folder, intrasentence):
    tokenizer = AutoTokenizer.from_pretrained(folder("bert"))
    tokenizer.add_tokens([f"<never{i}>" for i in range(20)])
    assert len(tokenizer) == 160
    assert load_scorer(model=bert(140), tokenizer=tokenizer).score(intrasentence)


def test_a_type_that_the_model_does_not_have_is_refused(tokenizer_of, intersentence):
    scorer = load_scorer(model=bert(140, types=1), tokenizer=tokenizer_of("bert"), method="pll")
    assert scorer.score(intersentence)  # one text has one type
    rows = [Row("masked", (1, 2), ((0, 1),), (0, 1))]
    with pytest.raises(Refusal, match="token types up to id 1"):
        check_fit(rows, lambda head: scorer.source.head(head).engine.model, "tiny")
