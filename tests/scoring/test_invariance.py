"""What must not change a score: batches, order, padding, layout, precision's neighbours, the model's own mode."""

import random
from contextlib import nullcontext
from functools import cache

import pytest
import torch
from datasets import Dataset
from torch.nn.functional import one_hot
from transformers import ConvBertConfig, ConvBertForMaskedLM, FNetConfig, FNetForMaskedLM, XLNetLMHeadModel
from transformers.activations import NewGELUActivation

from stereoset_scoring import load_scorer
from stereoset_scoring.engines.fused import fused
from stereoset_scoring.engines.projection import _projected_into
from stereoset_scoring.planning.packing import pack
from stereoset_scoring.planning.units import unit_of
from tests.crossing import crossed

KINDS = [
    # checkpoint, task
    ("bert", "intrasentence"),
    ("roberta", "intrasentence"),
    ("albert", "intrasentence"),
    ("bert", "intersentence"),
    ("gpt2", "intrasentence"),
    ("gpt2", "intersentence"),
    ("llama", "intrasentence"),
    ("llama", "intersentence"),
    ("bare", "intersentence"),
]
CLOSE = {"float32": 1e-4, "float64": 1e-12}
BUDGETS = [60, 200, 100_000]
BATCHES = [(max_tokens, dtype) for dtype in CLOSE for max_tokens in BUDGETS]

every_kind = pytest.mark.parametrize(("name", "task"), KINDS)


@pytest.fixture(scope="module")
def rows_of(intrasentence, intersentence):
    return {"intrasentence": intrasentence, "intersentence": intersentence}.__getitem__


def near(scores, dtype="float64"):
    return [pytest.approx(one, abs=CLOSE[dtype]) for one in scores]


def alone(scorer, rows):
    """Scores with one row of the model at a time."""
    job = scorer.plan(rows)
    return job.scores({i: scorer.log_probs([unit_of([row])])[0] for i, row in enumerate(job.rows)})


@pytest.fixture(scope="module")
def scores_alone(scorer_of_one, rows_of):
    """scores_alone(name, task, dtype): a checkpoint's, with one row at a time."""
    return cache(lambda name, task, dtype: alone(scorer_of_one(name, dtype=dtype), rows_of(task)))


@pytest.mark.parametrize(("name", "task", "max_tokens", "dtype"), crossed(KINDS, BATCHES))
def test_score_does_not_depend_on_the_batch(scorer_of_one, scores_alone, rows_of, name, task, max_tokens, dtype):
    scorer = scorer_of_one(name, dtype=dtype, max_tokens=max_tokens)
    assert scorer.score(rows_of(task)) == near(scores_alone(name, task, dtype), dtype)


SMALL = {
    "vocab_size": 140,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "intermediate_size": 32,
    "initializer_range": 0.3,
}
MIXING = [
    (ConvBertForMaskedLM, ConvBertConfig(num_attention_heads=4, embedding_size=32, **SMALL)),
    (FNetForMaskedLM, FNetConfig(max_position_embeddings=64, **SMALL)),
]


@pytest.mark.parametrize(("architecture", "config"), MIXING)
def test_model_that_mixes_positions_outside_attention_does_not_see_padding(
    tokenizer_of, intrasentence, architecture, config
):
    model = architecture(config).double().eval()
    scorer = load_scorer(model=model, tokenizer=tokenizer_of("bert"), max_tokens=100_000)
    assert scorer.score(intrasentence) == near(alone(scorer, intrasentence))


@every_kind
def test_score_does_not_depend_on_the_order_of_examples(scorer_of_one, rows_of, name, task):
    scorer, rows = scorer_of_one(name, max_tokens=200), rows_of(task)
    order = random.Random(3).sample(range(len(rows)), len(rows))
    expected = scorer.score(rows)
    assert scorer.score([rows[i] for i in order]) == near([expected[i] for i in order])


@every_kind
def test_score_does_not_depend_on_the_order_of_options(scorer_of_one, rows_of, name, task):
    scorer, rows = scorer_of_one(name), rows_of(task)
    turned = [{**one, "sentences": one["sentences"][1:] + one["sentences"][:1]} for one in rows]
    assert scorer.score(turned) == near([[*one[1:], one[0]] for one in scorer.score(rows)])


@every_kind
def test_score_does_not_depend_on_other_examples_or_repetitions(scorer_of_one, rows_of, name, task):
    scorer, rows = scorer_of_one(name), rows_of(task)
    expected = scorer.score(rows)
    assert [scorer.score([one])[0] for one in rows] == near(expected)
    assert scorer.score(rows * 2) == near(expected * 2)


@pytest.mark.parametrize(("name", "task", "side"), crossed(KINDS, ["left", "right"]))
def test_score_does_not_depend_on_the_tokenizers_padding_side(scorer_of, rows_of, name, task, side):
    scorer, rows = scorer_of(name), rows_of(task)
    expected = scorer.score(rows)
    scorer.source.tokenizer.hub.padding_side = side
    assert scorer.score(rows) == expected


def as_dataset_rows(rows):
    """The layout of the data set: a mapping of lists."""
    return [
        {**one, "sentences": {key: [option[key] for option in one["sentences"]] for key in ("id", "sentence")}}
        for one in rows
    ]


@every_kind
def test_score_does_not_depend_on_the_layout(scorer_of_one, rows_of, name, task):
    scorer, rows = scorer_of_one(name), rows_of(task)
    expected, mapped = scorer.score(rows), as_dataset_rows(rows)
    assert scorer.score(mapped) == expected
    assert scorer.score(Dataset.from_list(mapped)) == expected
    assert scorer.score(Dataset.from_list(rows)) == expected


def test_stored_words_are_read_in_both_layouts(scorer_of_one, row):
    json_row = row("Das war BLANK.", ["Das war schöne.", "Das war grün!"], ["schön", "grün"])
    listed = {key: [one[key] for one in json_row["sentences"]] for key in ("id", "sentence", "word")}
    scorer = scorer_of_one("bert")
    assert scorer.score([{**json_row, "sentences": listed}]) == scorer.score([json_row])


@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_both_tasks_may_be_mixed(scorer_of_one, intrasentence, intersentence, name):
    scorer = scorer_of_one(name)
    mixed = [one for pair in zip(intrasentence, intersentence, strict=False) for one in pair]
    expected = [
        one for pair in zip(scorer.score(intrasentence), scorer.score(intersentence), strict=False) for one in pair
    ]
    assert scorer.score(mixed) == near(expected)


def test_no_examples_give_no_scores(scorer_of_one):
    assert scorer_of_one("bert").score([]) == []


def test_generator_of_rows_is_read_once(scorer_of_one, intrasentence):
    scorer = scorer_of_one("gpt2")
    assert scorer.score(one for one in intrasentence) == scorer.score(intrasentence)


ONE_ROW = [
    # checkpoint, context, options, distinct rows
    ("bert", "It was BLANK.", ["It was kind.", "It was calm.", "It was long."], 1),
    ("roberta", "It was BLANK.", ["It was kind.", "It was calm.", "It was long."], 1),
    ("gpt2", "It was BLANK.", ["It was kind.", "It was kind."], 2),  # one for the first token, one for the rest
    ("llama", "It was BLANK.", ["It was kind.", "It was kind."], 1),
    ("gpt2", "It was calm.", ["It was kind.", "It was kind."], 1),
    ("bert", "It was calm.", ["It was kind.", "It was kind.", "He was kind."], 2),
]


@pytest.mark.parametrize(("name", "context", "sentences", "count"), ONE_ROW)
def test_equal_inputs_are_computed_once(scorer_of_one, row, name, context, sentences, count):
    scorer = scorer_of_one(name)
    assert len(scorer.plan([row(context, sentences)]).rows) == count
    assert len(scorer.plan([row(context, sentences)] * 3).rows) == count


@pytest.mark.parametrize(("name", "task", "max_tokens"), crossed(KINDS, BUDGETS))
def test_batches_keep_the_budget_and_hold_every_row_once(scorer_of_one, rows_of, name, task, max_tokens):
    job = scorer_of_one(name, max_tokens=max_tokens).plan(rows_of(task))
    assert sorted(i for batch in job.batches for unit in batch for i in unit.indices) == list(range(len(job.rows)))
    lengths = [[len(pack([row.ids for row in unit.rows]).ids) for unit in batch] for batch in job.batches]
    sizes = [len(batch) * max(batch) for batch in lengths]
    assert max(sizes) <= max_tokens
    assert job.padded_tokens == sum(sizes) >= job.forward_tokens == sum(map(sum, lengths))


PROJECTED = ["bert", "roberta", "albert", "gpt2", "llama"]


@pytest.fixture
def spied(scorer_of):
    """spied(name): a scorer, and the shapes of what its projection to the vocabulary is given."""

    def make(name):
        scorer, shapes = scorer_of(name), []
        model = scorer.source.head(scorer.source.family).engine.model
        projection, compute = model.get_output_embeddings(), type(model.get_output_embeddings()).forward
        projection.forward = lambda hidden: shapes.append(tuple(hidden.shape)) or compute(projection, hidden)
        return scorer, shapes

    return make


@pytest.mark.parametrize("name", PROJECTED)
def test_vocabulary_is_projected_only_where_something_is_read(places_read, spied, intrasentence, intersentence, name):
    scorer, shapes = spied(name)
    rows = intrasentence if scorer.source.family == "masked" else intersentence
    job = scorer.plan(rows)
    assert scorer.source.head(job.rows[0].head).engine.padding_is_inert  # tried by a pass of its own
    shapes.clear()
    scorer.score(rows)
    places = places_read(job)
    assert [shape[:-1] for shape in shapes] == [(count,) for count in places]
    assert sum(places) < job.forward_tokens


@pytest.mark.parametrize(("projection", "name"), crossed(["none", "never called", "flat input"], PROJECTED))
def test_head_of_an_unusual_make_gives_the_same_scores(scorer_of, intrasentence, name, projection):
    expected = scorer_of(name).score(intrasentence)
    scorer = scorer_of(name)
    model = scorer.source.head(scorer.source.family).engine.model
    if projection == "none":
        model.get_output_embeddings = lambda: None
    elif projection == "never called":
        model.get_output_embeddings = lambda: torch.nn.Linear(1, 1)
    else:  # positions of all rows in one dimension, as models without padding do
        inner = model.get_output_embeddings()
        model.get_output_embeddings = lambda: inner.inner
        inner.inner = torch.nn.Linear(1, 1)
        compute = type(inner).forward

        def flat(hidden):
            inner.inner(torch.zeros(hidden[..., 0].numel(), 1, dtype=hidden.dtype))
            return compute(inner, hidden)

        inner.inner.to(torch.float64)
        inner.forward = flat
    assert scorer.score(intrasentence) == near(expected)


@pytest.mark.parametrize("name", PROJECTED)
def test_projection_is_left_as_it_was(scorer_of, intrasentence, name):
    scorer = scorer_of(name)
    model = scorer.source.head(scorer.source.family).engine.model
    inputs = {"input_ids": torch.tensor([[5, 6, 7]])}
    before = model(**inputs).logits
    scorer.score(intrasentence)
    assert torch.equal(model(**inputs).logits, before)
    assert before.dim() == 3


@pytest.mark.parametrize(("name", "dtype"), crossed(PROJECTED, ["bfloat16", "float16"]))
def test_half_precision_logits_get_a_float32_softmax(scorer_of, intrasentence, name, dtype):
    scorer = scorer_of(name, dtype=dtype)
    engine = scorer.source.head(scorer.source.family).engine
    for one in scorer.plan(intrasentence).rows:
        (logits,) = engine.logits([one], [(0, position) for position, _ in one.reads])
        assert logits.dtype == getattr(torch, dtype)
        tokens = torch.tensor([[token] for _, token in one.reads])
        expected = logits.detach().float().log_softmax(-1).gather(1, tokens)[:, 0]
        assert expected.isfinite().all()
        assert engine.log_probs([unit_of([one])]) == [pytest.approx(expected.tolist(), abs=1e-5)]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_checkpoint_is_held_in_the_dtype_asked_for(scorer_of, dtype):
    model = scorer_of("bert", dtype=dtype).source.head("masked").engine.model
    assert {parameter.dtype for parameter in model.parameters()} == {getattr(torch, dtype)}


def test_dtype_is_the_checkpoints_own_where_none_is_asked_for(folder):
    assert load_scorer(folder("bert"), device="cpu").source.head("masked").engine.model.dtype == torch.float32


def test_a_spelled_out_activation_is_fused_while_scoring_and_put_back_afterwards(scorer_of, intrasentence, monkeypatch):
    scorer = scorer_of("gpt2", dtype="float32")
    model = scorer.source.head("causal").engine.model
    before = [type(module) for module in model.modules()]
    assert NewGELUActivation in before
    scores = scorer.score(intrasentence)
    assert [type(module) for module in model.modules()] == before
    monkeypatch.setattr("stereoset_scoring.engines.fused.fused", lambda model: nullcontext())
    for found, plain in zip(scores, scorer.score(intrasentence), strict=True):
        assert found == pytest.approx(plain, rel=1e-5)


@pytest.mark.parametrize("reading", ["content", "query"])
@pytest.mark.parametrize("segments", [True, False])
def test_the_attention_of_xlnet_is_one_kernel_while_scoring_and_says_the_same(folder, reading, segments):
    model = XLNetLMHeadModel.from_pretrained(folder("xlnet")).eval()
    ids, mask = torch.randint(5, 40, (3, 9)), torch.ones(3, 9)
    mask[1, 6:] = 0
    inputs = {"input_ids": ids, "attention_mask": mask}
    if segments:
        inputs["token_type_ids"] = torch.tensor([[0] * 4 + [1] * 4 + [2]] * 3)
    if reading == "query":
        asked = one_hot(torch.tensor([2, 3, 8]), 9).float()[:, None]
        inputs |= {"target_mapping": asked, "perm_mask": asked.expand(3, 9, 9)}
    with torch.no_grad():
        plain = model(**inputs).logits
        with fused(model), fused(model):  # as where a trial is made while scoring
            found = model(**inputs).logits
        assert torch.equal(model(**inputs).logits, plain)
    seen = slice(None) if reading == "query" else mask.bool()
    assert not torch.equal(found, plain)
    torch.testing.assert_close(found[seen], plain[seen], rtol=1e-5, atol=1e-5)
    assert not any({"rel_shift_bnij", "rel_attn_core"} & vars(module).keys() for module in model.modules())


def test_the_attention_of_xlnet_still_gives_its_weights(folder):
    model = XLNetLMHeadModel.from_pretrained(folder("xlnet")).eval()
    with torch.no_grad(), fused(model):
        found = model(input_ids=torch.arange(5, 12)[None], output_attentions=True).attentions
    torch.testing.assert_close(found[0].sum(-1), torch.ones(found[0].shape[:-1]))


@pytest.mark.parametrize("bias", [False, True])
def test_logits_in_the_same_memory_are_those_of_the_projection(bias):
    projection, states = torch.nn.Linear(5, 11, bias=bias), torch.randn(7, 5)
    with torch.no_grad():
        room = torch.empty(3, 11)
        chunks = [_projected_into(room, projection, some).clone() for some in states.tensor_split(3)]
        torch.testing.assert_close(torch.cat(chunks), projection(states))
