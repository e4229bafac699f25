"""Where the time goes: the operators that take most of it, for three works.

python benchmarks/profile_scoring.py [--examples 200] [--write]
"""

import argparse
from collections import Counter
from pathlib import Path

import torch
from comparisons import COMPARISONS
from examples import load_examples, texts_of
from page import table, write_between
from shapes import make_causal, make_masked
from torch.profiler import ProfilerActivity, profile

from stereoset_scoring import load_scorer

WORKS = ("causal_intrasentence_lm_eval", "causal_intersentence_lm_eval", "masked_likelihood_plain")
MARK = "<!-- python benchmarks/profile_scoring.py --write -->"


def main():
    """A table: operators by share of the time, a column a work."""
    args = parse_args()
    torch.set_num_threads(args.threads)
    examples = load_examples()
    texts = texts_of(examples)
    models = {"causal": make_causal(texts, args.quick), "masked": make_masked(texts, args.quick)}
    shares = {}
    for comparison in (one for one in COMPARISONS if one.name in WORKS):
        model, tokenizer = models[comparison.family]
        scorer = load_scorer(model=model, tokenizer=tokenizer, method=comparison.method, **comparison.options)
        shares[comparison.work] = shares_of_time(scorer, examples[comparison.task][: args.examples])
    text = render(shares, args.top)
    print(text)
    if args.write:
        write_between(Path(__file__).with_name("README.md"), MARK, text)


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--examples", type=int, default=200, help="how many of each task")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--top", type=int, default=8, help="how many operators")
    parser.add_argument("--quick", action="store_true", help="tiny models: to see that it runs")
    parser.add_argument("--write", action="store_true", help="put the table into benchmarks/README.md")
    return parser.parse_args()


def shares_of_time(scorer, rows):
    """{operator: its share of the time}, planning and what Python does between operators included."""
    scorer.score(rows)
    job = scorer.plan(rows)
    with profile(activities=[ProfilerActivity.CPU]) as planned, torch.profiler.record_function("plan"):
        scorer.plan(rows)
    with (
        scorer.evaluating(job.heads),
        profile(activities=[ProfilerActivity.CPU]) as computed,
        torch.profiler.record_function("python"),
    ):
        for batch in job.batches:
            scorer.log_probs(batch)
    times = Counter()
    for done in (planned, computed):
        for event in done.key_averages():
            times[event.key.removeprefix("aten::")] += event.self_cpu_time_total
    total = times.total()
    return {name: time / total for name, time in times.items()}


def render(shares, top):
    """The Markdown table of {work: {operator: share}}, of the `top` operators that take most of any work."""
    most = Counter()
    for of_work in shares.values():
        for name, share in of_work.items():
            most[name] = max(most[name], share)
    names = [name for name, _ in most.most_common(top)]
    names += [name for name in ("plan", "python") if name not in names]
    lines = [[f"`{name}`", *(f"{100 * of_work.get(name, 0):.1f} %" for of_work in shares.values())] for name in names]
    rest = [1 - sum(of_work.get(name, 0) for name in names) for of_work in shares.values()]
    return table(["operator", *shares], [*lines, ["all others", *(f"{100 * share:.1f} %" for share in rest)]])


if __name__ == "__main__":
    main()
