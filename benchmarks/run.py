"""Measure the speed of scoring, against others and against the machine, and print the tables.

python benchmarks/run.py [--only causal_intrasentence_lm_eval …] [--examples 200] [--rounds 3] [--write]
python benchmarks/run.py --quick    # tiny models and few examples: to see that it runs
"""

import argparse
import platform
import sys
import tempfile
from pathlib import Path

import torch
from alone import ALONE, measure_alone
from comparisons import COMPARISONS, compare, installed
from examples import load_examples, mirror, texts_of
from machine import has_fast_bfloat16, machine
from page import write_between
from precision import compare_precisions
from report_tables import (
    comparison_tables,
    growth_table,
    llama_table,
    phases_table,
    precision_table,
    shares_table,
    speed_up_in_words,
    start_up_table,
    trial_table,
)
from shapes import MAKERS, make_causal
from transformers.utils import logging

BFLOAT16, TRIALS, SCALING, START_UP, LLAMAS = "bfloat16", "trials", "scaling", "start_up", "llamas"
WHOLE, MUCH = "whole_runs", "much_data"
PARTS = (*(one.name for one in (*COMPARISONS, *ALONE)), BFLOAT16, TRIALS, SCALING, START_UP, WHOLE, MUCH, LLAMAS)
IN_BFLOAT16 = ("causal_intrasentence_lm_eval", "masked_likelihood_plain")
MARK = "<!-- python benchmarks/run.py --write -->"
PACKAGES = ("torch", "transformers", "tokenizers", "lm_eval", "minicons")


def main():
    """Every part that is asked for, one section each."""
    args = parse_args()
    torch.set_num_threads(args.threads)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    sections = [stamp(args)]
    print(sections[0], flush=True)
    for section in measure(args):
        print(f"\n{section}", flush=True)
        sections.append(section)
    if args.write:
        write_between(Path(__file__).with_name("README.md"), MARK, "\n\n".join(sections))


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--examples", type=int, help="of each task; default: 200, or 8 when --quick")
    parser.add_argument("--rounds", type=int, help="turns that count; default: 3, or 1 when --quick")
    parser.add_argument("--threads", type=int, default=2, help="of torch")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--quick", action="store_true", help="tiny models and few examples: to see that it runs")
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    args = parser.parse_args()
    args.examples = args.examples or (8 if args.quick else 200)
    args.rounds = args.rounds or (1 if args.quick else 3)
    return args


def stamp(args):
    """What the figures were taken on, and of what."""
    versions = ", ".join(f"{name} {installed(name) or 'not installed'}" for name in PACKAGES)
    data = "the built-in sample" if mirror() is None else "StereoSet, English, validation"
    return (
        f"{machine(args.device)}, {args.threads} threads. "
        f"Python {platform.python_version()}, {versions}. The first {args.examples} examples of a task of {data}; "
        f"medians of {args.rounds} rounds, smallest and largest in brackets."
        + (" QUICK: tiny models, whose figures say nothing." if args.quick else "")
    )


def measure(args):
    """The sections, one after the other."""
    examples = load_examples()
    texts, models = texts_of(examples), {}

    def ready(family):
        if family not in models:
            model, tokenizer = MAKERS[family](texts, args.quick)
            models[family] = model.to(args.device), tokenizer
        return models[family]

    def rows(comparison):
        return examples[comparison.task][: args.examples]

    outcomes = []
    for comparison in (one for one in COMPARISONS if one.name in args.only):
        print(f"… {comparison.name}", file=sys.stderr, flush=True)
        found = compare(comparison, *ready(comparison.family), rows(comparison), args.rounds)
        outcomes += found
        # At once, for the whole takes long: what is interrupted has told what it knew.
        for one in found:
            print(f"  {one.against}: {speed_up_in_words(one)}", file=sys.stderr, flush=True)
    if outcomes:
        yield comparison_tables(outcomes)
    shares = []
    for alone in (one for one in ALONE if one.name in args.only):
        print(f"… {alone.name}", file=sys.stderr, flush=True)
        shares.append(measure_alone(alone, *ready(alone.family), rows(alone), args.rounds))
    if shares:
        yield shares_table(shares)
    if BFLOAT16 in args.only:
        yield bfloat16(args, ready, rows)
    if TRIALS in args.only:
        yield trials(args, ready, examples)
    with tempfile.TemporaryDirectory() as folder:
        if SCALING in args.only:
            from scaling import measure_growth

            step, few = (2, {"factors": (1, 2), "processes": (1, 2)}) if args.quick else (50, {})
            yield growth_table(measure_growth(folder, *ready("causal"), step, **few))
        if START_UP in args.only:
            from start_up import LIMIT, measure_start_up

            tiny = make_causal(texts, quick=True)
            yield start_up_table(measure_start_up(folder, *tiny, args.rounds), LIMIT)
        if WHOLE in args.only or MUCH in args.only:
            yield phases_table(whole_runs(args, Path(folder), texts))
    if LLAMAS in args.only:
        yield llamas(args, texts, [row for task in examples.values() for row in task])


def whole_runs(args, folder, texts):
    """The Phases of runs with a tiny model."""
    from processes import prepared
    from whole_runs import measure_all_languages, measure_much

    oracle = mirror() and mirror().parent / "oracles" / "models" / "gpt2"  # two layers of 32, for 1,800 tokens
    checkpoint = oracle or prepared(folder / "tiny", *make_causal(texts, quick=True))
    found = measure_all_languages(folder, checkpoint) if WHOLE in args.only else []
    factors = {"factors": (1,)} if args.quick else {}
    return found + (measure_much(folder, checkpoint, **factors) if MUCH in args.only else [])


def bfloat16(args, ready, rows):
    """The section on bfloat16."""
    if not has_fast_bfloat16(args.device):
        return "bfloat16: not measured, for this device does not multiply it in hardware."
    return precision_table(
        [
            compare_precisions(one, *ready(one.family), rows(one), args.rounds)
            for one in COMPARISONS
            if one.name in IN_BFLOAT16
        ]
    )


def trials(args, ready, examples):
    """The section on what trials cost."""
    from trial_cost import LIMIT, measure_trials

    rows = {task: of_task[: args.examples] for task, of_task in examples.items()}
    costs = [measure_trials(family, *ready(family), rows, args.rounds) for family in ("causal", "masked")]
    return trial_table(costs, LIMIT)


def llamas(args, texts, rows):
    """The section on large models."""
    if not args.device.startswith("cuda"):
        return "Llamas of 1B and 7B: not measured, for they take a GPU (`--device cuda`)."
    from llamas import SHAPES, score_llama

    tokenizer = make_causal(texts, quick=True)[1]
    return llama_table([score_llama(name, shape, tokenizer, rows, args.device) for name, shape in SHAPES.items()])


if __name__ == "__main__":
    main()
