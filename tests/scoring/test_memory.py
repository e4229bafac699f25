"""What is computed at a time: logits of a large vocabulary in chunks, and batches in parts where memory runs out."""

import math
import weakref
from itertools import count, pairwise
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import (
    BertConfig,
    BertForMaskedLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    GPT2Config,
    GPT2LMHeadModel,
    MT5Config,
    MT5ForConditionalGeneration,
)

from stereoset_scoring.engines.budget import Budget, bytes_per_token, tokens_that_fit
from stereoset_scoring.engines.causal import CausalEngine
from stereoset_scoring.engines.masked import MaskedEngine
from stereoset_scoring.engines.projection import LOGITS
from stereoset_scoring.engines.seq2seq import Seq2SeqEngine
from stereoset_scoring.planning.rows import GREEDY, Row
from stereoset_scoring.planning.units import unit_of
from tests.crossing import crossed, thorough

VOCABULARY = 250_000
TINY = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


def gpt2(size=VOCABULARY):
    return GPT2LMHeadModel(GPT2Config(vocab_size=size, n_positions=64, n_embd=8, n_layer=1, n_head=2))


def bert(size=VOCABULARY):
    return BertForMaskedLM(BertConfig(vocab_size=size, max_position_embeddings=64, **TINY))


def gemma2(size=VOCABULARY):  # its logits are capped after the projection
    return Gemma2ForCausalLM(Gemma2Config(vocab_size=size, num_key_value_heads=2, head_dim=4, **TINY))


def mt5(size=VOCABULARY):
    sizes = {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 1, "num_heads": 2}
    return MT5ForConditionalGeneration(MT5Config(vocab_size=size, decoder_start_token_id=0, **sizes))


def engine_of(engine, model):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        return engine(model().eval(), 0, {"position_ids", "use_cache"} if engine is CausalEngine else {"use_cache"})


def rows_of(engine, count=20, length=40):
    """Rows of which everything is read; half of their length is the decoder's where there is one."""
    rows = []
    for i in range(count):
        ids = tuple(5 + (i * 7 + k * k) % 90 for k in range(length))
        if engine is Seq2SeqEngine:
            decoder = (GREEDY, *ids[:length])
            rows.append(Row("seq2seq", ids, tuple((k, ids[k]) for k in range(length)), decoder=decoder))
        else:
            rows.append(Row("any", ids, tuple((k, ids[k]) for k in range(length))))
    return rows


class LargestTensor(torch.utils._python_dispatch.TorchDispatchMode):
    """Remembers how many elements the largest floating-point result has that is no weight."""

    def __init__(self, model):
        super().__init__()
        self.largest = 0
        self._weights = {parameter.data_ptr() for parameter in model.parameters()}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for one in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(one, torch.Tensor) and one.is_floating_point() and one.data_ptr() not in self._weights:
                self.largest = max(self.largest, one.numel())
        return result


@pytest.mark.parametrize(
    ("engine", "model"),
    [
        (CausalEngine, gpt2),
        (CausalEngine, gemma2),
        thorough(MaskedEngine, bert),  # projects as the first does
        (Seq2SeqEngine, mt5),
    ],
)
def test_no_more_logits_are_held_at_a_time_than_allowed(engine, model):
    asked, rows = engine_of(engine, model), rows_of(engine)
    asked.try_out([rows])
    with LargestTensor(asked.model) as seen:
        found = asked.log_probs([unit_of([row]) for row in rows])
    assert LOGITS // 2 < seen.largest <= LOGITS < len(rows) * 40 * VOCABULARY
    for row, values in zip(rows[::9], found[::9], strict=True):
        assert values == pytest.approx(asked.log_probs([unit_of([row])])[0], abs=1e-4)


@pytest.mark.parametrize("factor", ["softcapping", "none"])
def test_head_that_does_more_is_told_from_one_that_does_not(factor):
    more = {"final_logit_softcapping": None if factor == "none" else 30.0}
    model = Gemma2ForCausalLM(Gemma2Config(vocab_size=50, num_key_value_heads=2, head_dim=4, **TINY, **more))
    for dtype in (torch.float32, torch.bfloat16):
        engine = CausalEngine(model.to(dtype).eval(), 0, {"position_ids"})
        engine.try_out([[Row("causal", (5, 6, 7, 8), ())]])
        assert engine.ends_in_its_projection is (factor == "none")


def test_bias_added_after_the_projection_is_seen():
    class Biased(GPT2LMHeadModel):
        def forward(self, **inputs):
            output = super().forward(**inputs)
            output.logits = output.logits + 1e-3
            return output

    model = Biased(GPT2Config(vocab_size=50, n_positions=64, n_embd=8, n_layer=1, n_head=2)).eval()
    engine = CausalEngine(model, 0, {"position_ids"})
    engine.try_out([[Row("causal", (5, 6, 7, 8), ())]])
    assert engine.trial.packs
    assert not engine.ends_in_its_projection


class OutOfTokens:
    """Lets a model fail on more than so many tokens, as memory does; remembers the tokens of every pass."""

    def __init__(self, model, most, error=None):
        self.most, self.passes = most, []
        self.error = error or torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        model.register_forward_pre_hook(self, with_kwargs=True)

    def __call__(self, module, args, inputs):
        self.passes.append(inputs["input_ids"].numel())
        if self.passes[-1] > self.most:
            raise self.error


def values_of(scorer, job):
    """The values of each row."""
    values = {}
    for batch in job.batches:
        found = scorer.log_probs(batch)
        values.update(zip((i for unit in batch for i in unit.indices), found, strict=True))
    return values


FAMILIES = ["bert", "gpt2", "llama", "bare", "xlnet"]
SAID = [
    torch.OutOfMemoryError("CUDA out of memory."),
    RuntimeError("[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
    RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"),
    MemoryError("Unable to allocate 2 GiB for an array"),
]


@pytest.mark.parametrize(("name", "most"), crossed(FAMILIES, [25, 100]))
def test_scores_are_the_same_where_memory_runs_out(scorer_of, scorer_of_one, intrasentence, name, most):
    options = {"passage": "It was calm."} if name == "xlnet" else {}
    expected = scorer_of_one(name, **options).score(intrasentence)
    scorer = scorer_of(name, **options)
    engine = scorer.source.head(scorer.source.family).engine
    job = scorer.plan(intrasentence)
    assert engine.padding_is_inert  # tried by a pass of its own
    memory = OutOfTokens(engine.model, max(most, *(len(row.ids) for row in job.rows)))
    assert scorer.score(intrasentence) == [pytest.approx(one, abs=1e-12) for one in expected]
    assert max(memory.passes) > memory.most
    before = engine.budget.tokens
    memory.passes.clear()
    scorer.score(intrasentence)
    assert max(memory.passes) <= max(before, memory.most)  # the smaller budget is remembered


@pytest.mark.parametrize("error", SAID, ids=lambda error: str(error)[:20])
def test_budget_is_halved_and_stays(scorer_of, intrasentence, error):
    scorer = scorer_of("bert")
    engine = scorer.source.head("masked").engine
    expected = values_of(scorer, scorer.plan(intrasentence))
    assert engine.budget.tokens == float("inf")
    memory = OutOfTokens(engine.model, 60, error)
    assert values_of(scorer, scorer.plan(intrasentence)) == {
        row: pytest.approx(values, abs=1e-12) for row, values in expected.items()
    }
    assert memory.passes[0] > 60
    assert 30 <= engine.budget.tokens <= 60


def test_row_that_alone_is_too_much_is_named_by_its_tokens(scorer_of, intrasentence):
    scorer = scorer_of("gpt2")
    job = scorer.plan(intrasentence)
    OutOfTokens(scorer.source.head("causal").engine.model, 5)
    with pytest.raises(MemoryError, match=r"A single row of \d+ tokens does not fit into memory: choose a smaller"):
        values_of(scorer, job)


@pytest.mark.parametrize("error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("memory")])
def test_other_errors_are_passed_on_untouched(scorer_of, intrasentence, error):
    scorer = scorer_of("bert")
    job = scorer.plan(intrasentence)
    memory = OutOfTokens(scorer.source.head("masked").engine.model, 60, error)
    with pytest.raises(type(error)) as raised:
        values_of(scorer, job)
    assert raised.value is error
    assert len(memory.passes) == 1


def test_what_failed_is_free_before_it_is_tried_again():
    held, alive = [], []

    class Held:
        pass

    def compute(units):
        alive.extend(one() is not None for one in held)
        mine = Held()
        held.append(weakref.ref(mine))
        if len(units) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return [0.0]

    units = [unit_of([Row("masked", (token,), ())]) for token in (5, 6)]
    assert Budget().spend(units, compute) == [0.0, 0.0]
    assert alive
    assert not any(alive)


@st.composite
def units_and_limits(draw):
    units = draw(st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=4), min_size=1, max_size=15))
    longest = max(length for unit in units for length in unit)
    return units, draw(st.integers(longest, 200)), draw(st.sampled_from([1, longest, 50, math.inf]))


@settings(max_examples=150, deadline=None)
@given(units_and_limits())
def test_every_row_gets_its_value_for_any_limit_that_holds_the_longest_row(drawn):
    lengths, most, tokens = drawn
    number = count()
    units = [unit_of([Row("masked", (next(number),) * length, ()) for length in unit]) for unit in lengths]
    budget, passes = Budget(tokens), []

    def compute(units):
        passes.append(len(units) * max(unit.tokens for unit in units))
        if passes[-1] > most:
            raise MemoryError
        return [-row.ids[0] for unit in units for row in unit.rows]

    with patch("stereoset_scoring.engines.budget.free_memory"):  # which takes its time
        assert budget.spend(units, compute) == [-row.ids[0] for unit in units for row in unit.rows]
    failed = [taken for taken in passes if taken > most]
    assert all(later <= earlier // 2 or later <= most for earlier, later in pairwise(failed))
    found, before = budget.tokens, len(passes)
    with patch("stereoset_scoring.engines.budget.free_memory"):
        budget.spend(units, compute)
    alone = max(max(unit) for unit in lengths)
    assert all(taken <= max(found, alone) for taken in passes[before:])


def test_free_memory_gives_the_budget_to_begin_with(monkeypatch):
    model = bert(100)
    assert tokens_that_fit(model) == math.inf  # on a CPU
    monkeypatch.setattr("stereoset_scoring.engines.budget._free_bytes", lambda device: 2**20)
    monkeypatch.setattr(torch.nn.Parameter, "device", torch.device("cuda", 0), raising=False)
    per_token = bytes_per_token(model.config, torch.float32)
    assert tokens_that_fit(model) == 2**19 // per_token > 0
    monkeypatch.setattr("stereoset_scoring.engines.budget._free_bytes", lambda device: 0)
    assert tokens_that_fit(model) == 1
