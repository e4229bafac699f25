"""Encoder-decoders: what several rows say to the encoder is computed once, and no score is another for it."""

import pytest
import torch

from stereoset_scoring.planning.rows import Row
from stereoset_scoring.planning.units import unit_of
from tests.crossing import crossed

CLOSE_T5 = 1e-4  # its layer norm and softmax are computed in float32 whatever the model's dtype
ASKED = [
    # checkpoint, task, options, whether the options of an example share their encoder's input
    ("t5", "intersentence", {}, True),
    ("mt5", "intersentence", {"end": True}, True),
    ("t5", "intersentence", {"method": "next_sentence"}, False),  # its labels begin alike
    ("mt5", "intrasentence", {"first": "greedy"}, False),
    ("t5", "intrasentence", {}, False),
]
asked = pytest.mark.parametrize(("name", "task", "options", "shared"), ASKED)


@pytest.fixture
def rows_of(intrasentence, intersentence):
    return {"intrasentence": intrasentence, "intersentence": intersentence}.__getitem__


@pytest.fixture
def counted(scorer_of):
    """counted(name, **options): a scorer, and the inputs of every row that its encoder is given."""

    def make(name, **options):
        scorer, seen = scorer_of(name, **options), []
        encoder = scorer.source.head("seq2seq").engine.model.get_encoder()

        def note(module, args, inputs):
            lengths = inputs["attention_mask"].sum(1).tolist()
            seen.extend(tuple(ids[:n]) for ids, n in zip(inputs["input_ids"].tolist(), lengths, strict=True))

        encoder.register_forward_pre_hook(note, with_kwargs=True)
        return scorer, seen

    return make


@asked
def test_encoder_reads_every_distinct_input_once(counted, rows_of, name, task, options, shared):
    scorer, seen = counted(name, **options)
    job = scorer.plan(rows_of(task))
    seen.clear()  # what was tried before
    scorer.score(rows_of(task))
    assert sorted(seen) == sorted({row.ids for row in job.rows})
    assert (len(seen) < len(job.rows)) >= shared


@pytest.mark.parametrize(("name", "task", "options", "shared", "max_tokens"), crossed(ASKED, [70, 200, 100_000]))
def test_scores_are_those_of_one_row_at_a_time(scorer_of_one, rows_of, name, task, options, shared, max_tokens):
    scorer = scorer_of_one(name, max_tokens=max_tokens, **options)
    job = scorer.plan(rows_of(task))
    alone = job.scores({i: scorer.log_probs([unit_of([row])])[0] for i, row in enumerate(job.rows)})
    assert scorer.score(rows_of(task)) == [pytest.approx(one, abs=CLOSE_T5) for one in alone]


@asked
def test_tokens_counted_are_those_computed(scorer_of, rows_of, name, task, options, shared):
    scorer, padded = scorer_of(name, max_tokens=200, **options), []
    model = scorer.source.head("seq2seq").engine.model
    model.get_encoder().register_forward_pre_hook(
        lambda module, args, inputs: padded.append(inputs["input_ids"].numel()), with_kwargs=True
    )
    model.register_forward_pre_hook(
        lambda module, args, inputs: padded.append(inputs["decoder_input_ids"].numel()), with_kwargs=True
    )
    job = scorer.plan(rows_of(task))
    padded.clear()  # what was tried before
    scorer.score(rows_of(task))
    encoder, decoder = sum(map(len, {row.ids for row in job.rows})), sum(row.decoder_tokens for row in job.rows)
    assert job.forward_tokens == encoder + decoder <= job.padded_tokens
    if "first" not in options:  # whose first token is asked for by a pass of its own
        assert sum(padded) == job.padded_tokens
    assert max(padded) <= 200


@asked
def test_scores_are_the_same_where_memory_runs_out(scorer_of, scorer_of_one, rows_of, name, task, options, shared):
    expected = scorer_of_one(name, **options).score(rows_of(task))
    scorer, tried = scorer_of(name, **options), []
    scorer.plan(rows_of(task))  # tries what may be shared

    def fail(module, args, inputs):
        states = inputs["encoder_outputs"].last_hidden_state
        tried.append(len(states))
        if len(states) > 1 or len(tried) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")

    scorer.source.head("seq2seq").engine.model.register_forward_pre_hook(fail, with_kwargs=True)
    assert scorer.score(rows_of(task)) == [pytest.approx(one, abs=CLOSE_T5) for one in expected]
    assert scorer.source.head("seq2seq").engine.budget.tokens < 100


def test_row_whose_decoder_alone_exceeds_the_budget_is_refused_by_name(scorer_of, row):
    example = row("It was.", ["We planted a tree in the garden; it was watered and painted." * 3])
    scorer = scorer_of("t5", max_tokens=30)
    with pytest.raises(ValueError, match=r"Option 'e-0' of example 'e' has \d+ tokens, more than max_tokens=30"):
        scorer.score([example])


def test_tokens_of_a_row_are_those_of_both_sides():
    assert Row("seq2seq", (5, 6, 7), ((0, 1),), decoder=(8,)).tokens == 5
    assert Row("causal", (5, 6, 7), ((0, 1),)).tokens == 3
