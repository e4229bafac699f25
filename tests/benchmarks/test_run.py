"""The benchmark itself, on tiny models and a few of the sample's examples."""

import runpy
import sys
import time

import pytest
import torch

NAMES = (
    "causal_intrasentence_lm_eval",
    "causal_intrasentence_minicons",
    "causal_intersentence_lm_eval",
    "masked_pseudo_likelihood_minicons",
    "masked_likelihood_plain",
)
ALONE = (
    "t5_intrasentence",
    "t5_intersentence",
    "mamba_intrasentence",
    "hybrid_intrasentence",
    "xlnet_intrasentence",
)


@pytest.fixture
def run_quick(repository, benchmarks, monkeypatch, capsys):
    """Run a script of the benchmark in this process, with as many threads as there are; its output."""
    threads = torch.get_num_threads()

    def run(script, *options):
        monkeypatch.setattr(sys, "argv", [script, "--quick", "--threads", str(threads), *options])
        runpy.run_path(str(repository / "benchmarks" / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_a_quick_run_needs_none_of_the_others(run_quick, benchmarks):
    printed = run_quick(
        "run.py", "--examples", "3", "--only", "causal_intrasentence_lm_eval", "masked_likelihood_plain", "llamas"
    )
    lm_eval = benchmarks("comparisons").installed("lm_eval")
    lines = {line.split(" | ")[1]: line for line in reversed(printed.splitlines()) if " | " in line}
    assert ("not installed" in lines["lm-eval `HFLM.loglikelihood`"]) == (lm_eval is None)
    assert "not installed" not in lines["the plain way, batch 32"]
    assert "take a GPU" in printed


def test_bfloat16_beside_float32(benchmarks):
    comparisons, shapes, examples = map(benchmarks, ("comparisons", "shapes", "examples"))
    rows = examples.load_examples()
    model, tokenizer = shapes.make_causal(examples.texts_of(rows), quick=True)
    precision = benchmarks("precision")
    found = precision.compare_precisions(comparisons.COMPARISONS[0], model, tokenizer, rows["intrasentence"][:3], 1)
    assert 0 < found.difference < 1
    assert model.dtype == torch.float32
    assert precision.gaps_between_options([[1.0, 3.0, 4.0]]) == [-2.0, -3.0, -1.0]


@pytest.mark.parametrize("name", NAMES)
def test_both_sides_compute_the_same(benchmarks, name):
    comparisons, shapes, examples = map(benchmarks, ("comparisons", "shapes", "examples"))
    (comparison,) = (one for one in comparisons.COMPARISONS if one.name == name)
    if comparison.package:
        pytest.importorskip(comparison.package)
    rows = examples.load_examples()
    model, tokenizer = shapes.MAKERS[comparison.family](examples.texts_of(rows), quick=True)
    outcomes = comparisons.compare(comparison, model, tokenizer, rows[comparison.task][:4], 1)
    assert outcomes[0].batch == comparisons.USUAL
    assert [outcome.best for outcome in outcomes].count(True) == int(comparison.package is not None)
    for outcome in outcomes:
        assert outcome.same
        assert outcome.limit > 1
        assert all(share > 0 for share in outcome.shares)


def test_the_best_batch_of_another_is_sought_beside_its_usual_one(benchmarks, monkeypatch):
    comparisons = benchmarks("comparisons")
    monkeypatch.setattr(comparisons, "installed", lambda package: "1.0")
    pauses = {8: 0.02, 32: 0.02, 128: 0.0}
    sizes = comparisons.batch_sizes(
        comparisons.COMPARISONS[0], lambda rows, size: lambda: time.sleep(pauses[size]), list(range(3))
    )
    assert sizes == {32: False, 128: True}


@pytest.mark.parametrize("name", ALONE)
def test_other_kinds_of_models_against_the_machine(benchmarks, name):
    alone, shapes, examples = map(benchmarks, ("alone", "shapes", "examples"))
    (work,) = (one for one in alone.ALONE if one.name == name)
    rows = examples.load_examples()
    model, tokenizer = shapes.MAKERS[work.family](examples.texts_of(rows), quick=True)
    share = alone.measure_alone(work, model, tokenizer, rows[work.task][:2], 1)
    assert share.examples == 2
    assert share.padding >= 0
    assert all(found > 0 for found in (*share.rates, *share.shares))


def test_the_profile_names_operators_and_planning(run_quick):
    # All of them: which take most of a tiny model's time is a matter of chance.
    printed = run_quick("profile_scoring.py", "--examples", "2", "--top", "1000")
    assert "| `addmm` |" in printed
    assert "| `plan` |" in printed
