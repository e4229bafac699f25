"""How close to ideal 8, 64 and 512 GPUs come, planning included: simulated, with recorded times.

python benchmarks/cluster.py [--seeds 20] [--write]

Recorded here, on the English examples with a tiny model: what planning takes, and the batches that come of it, for
portions of many sizes; how long a run takes to its first portion, and to put together what came of all. Given: how many
tokens a second a GPU reads, and LAUNCH.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from math import log
from pathlib import Path
from random import Random
from statistics import mean
from unittest.mock import patch

import torch
from dealing import Load, dealt, end_of, left_of, shared
from examples import load_examples, mirror, texts_of
from machine import machine
from page import table, write_between
from processes import SCORE, environment, prepared
from rounds import middle, spread
from shapes import make_causal
from transformers.utils import logging

from stereoset_scoring import load_scorer
from stereoset_scoring.planning import portions
from stereoset_scoring.planning.portions import Portion, in_portions
from stereoset_scoring.processes.garbage import kept
from stereoset_scoring.processes.team import SILENCE
from stereoset_scoring.scorer import MAX_TOKENS

GPUS, OF_NODE = (8, 64, 512), 4
EXAMPLES = (4229, 21142, 400_000)
RATES = (20_000, 200_000)  # tokens/s of a GPU: as of some 70B and 7B weights
LAUNCH = 0.01  # seconds that a batch takes at least, however small
SIZES = (16, 32, 64, 128, 256, 512, 1024)  # of recorded portions
ROUNDS = 2  # of planning, whose best counts: others may use the machine
SPREAD = 0.25  # of the logarithms of the stragglers' speeds
MARK = "<!-- python benchmarks/cluster.py --write -->"
# How data can be cut: what is other than in portions.py.
CUTS = {
    "as it is": {"MOST": portions.MOST},
    "all of the largest": {"LEAST": 1},
    "all of 128": {"MOST": 128, "LEAST": 1},
    "`TAPER` 32": {"TAPER": 32},
    "`TAPER` 64": {"TAPER": 64},
    "`TAPER` 512": {"TAPER": 512},
    "`TAPER` 64, `LEAST` 1/32": {"TAPER": 64, "LEAST": 1 / 32},
    "`TAPER` 512, `LEAST` 1/32": {"TAPER": 512, "LEAST": 1 / 32},
}
PHASES = """
import runpy, sys, time
begun = time.perf_counter()
from stereoset_scoring.runs.part import Part
read, put, first = Part._read, Part._put_together, []
def reading(*args):
    first.append(time.perf_counter() - begun)
    return read(*args)
def putting(*args):
    start = time.perf_counter()
    try:
        return put(*args)
    finally:
        print("phases", first[0], time.perf_counter() - start)
Part._read, Part._put_together = reading, putting
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@dataclass(frozen=True)
class Recorded:
    """What was measured.

    Attributes:
        portions: {(task, examples): [(seconds of planning, [tokens of each batch, padding included]), …]}.
        tasks: {task: how many examples there were}.
        budget: the most tokens of a batch.
        start_up: seconds to the first portion.
        ending: seconds for each example, in which one process puts everything together.
    """

    portions: dict
    tasks: dict
    budget: int
    start_up: float
    ending: float

    def sizes(self, count):
        """{task: examples} of data of so many examples, made like those that were recorded."""
        return {task: round(count * size / sum(self.tasks.values())) for task, size in self.tasks.items()}

    def draw(self, portion, rate, random):
        """The Load of a portion: that of a recorded one of about its size."""
        _, size = min((abs(log(portion.size / size)), size) for task, size in self.portions if task == portion.config)
        factor = portion.size / size
        plan, tokens = random.choice(self.portions[portion.config, size])
        count = max(1, round(factor * len(tokens)))
        return Load(factor * plan, (max(LAUNCH, factor * sum(tokens) / count / rate),) * count)

    def least(self, count, rate):
        """Seconds that so many examples take one GPU, in portions of the size that suits it best."""
        return sum(examples * self._least(task, rate) for task, examples in self.sizes(count).items())

    def _least(self, task, rate):
        """Seconds of an example."""
        return min(
            mean(plan + sum(max(LAUNCH, one / rate) for one in tokens) for plan, tokens in found) / size
            for (name, size), found in self.portions.items()
            if name == task
        )


def record(folder):
    """The Recorded of this machine."""
    examples = load_examples()
    model, tokenizer = make_causal(texts_of(examples), quick=True)
    scorer, found = load_scorer(model=model, tokenizer=tokenizer, max_tokens=MAX_TOKENS["cuda"]), {}
    with scorer.evaluating(["causal"]):
        scorer.try_out(examples)
        for task, rows in examples.items():
            for size in (size for size in SIZES if size <= len(rows)):
                starts = range(0, len(rows) - size + 1, size)
                found[task, size] = [_planned(scorer, rows, Portion(task, i, i + size)) for i in starts]
    tasks = {task: len(rows) for task, rows in examples.items()}
    start_up, ending = _phases(folder, prepared(folder / "model", model, tokenizer))
    return Recorded(found, tasks, scorer.max_tokens, start_up, ending / sum(tasks.values()))


def _planned(scorer, rows, portion):
    """(seconds of planning, tokens of each batch) of a portion."""
    seconds, rows = [], rows[portion.start : portion.stop]
    for _ in range(ROUNDS):
        with kept():
            start = time.perf_counter()
            job = scorer.plan_part(portion, rows, True).job
            seconds.append(time.perf_counter() - start)
    return min(seconds), [len(batch) * max(unit.tokens for unit in batch) for batch in job.batches]


def _phases(folder, checkpoint):
    """(seconds to the first portion, seconds of putting together) of a run of all examples."""
    data = ["--sample"] if mirror() is None else ["--data-dir", mirror()]
    words = ["-c", PHASES, SCORE, "--model", checkpoint, *data, "--output-dir", folder / "scores"]
    told = subprocess.run(
        [sys.executable, *map(str, words)], env=environment(), capture_output=True, text=True, check=True
    )
    line = next(line for line in told.stdout.splitlines() if line.startswith("phases "))
    start_up, ending = map(float, line.split()[1:])
    return start_up, ending


def speeds_of(case, gpus, random):
    """The speed of each GPU."""
    if case == "stragglers":
        return [random.lognormvariate(0, SPREAD) for _ in range(gpus)]
    slow = OF_NODE if case == "slow node" else 0
    return [0.5] * slow + [1.0] * (gpus - slow)


def loads_of(recorded, count, rate, random, cut="as it is"):
    """The Loads of data, in the order in which they are dealt."""
    with patch.multiple(portions, **CUTS[cut]):
        found = in_portions(recorded.sizes(count), recorded.budget)
    return [recorded.draw(portion, rate, random) for portion in found]


def efficiencies(recorded, count, rate, gpus, case, seeds, hand_out=dealt, cut="as it is"):
    """The ideal time, all GPUs busy to the end with portions that suit them best, over the simulated; in %, by seed."""
    found = []
    for seed in range(seeds):
        random = Random(seed)
        speeds = speeds_of(case, gpus, random)
        turns = hand_out(loads_of(recorded, count, rate, random, cut), speeds)
        found.append(100 * recorded.least(count, rate) / sum(speeds) / end_of(turns))
    return found


def whole_runs(recorded, count, rate, gpus, seeds, lost=False):
    """Seconds of whole runs on equal GPUs, start-up and ending included; in which a node is lost, or none."""
    fixed, found = recorded.start_up + count * recorded.ending, []
    for seed in range(seeds):
        random = Random(seed)
        speeds = speeds_of("equal", gpus, random)
        turns = dealt(loads_of(recorded, count, rate, random), speeds)
        seconds = end_of(turns)
        if lost:
            moment = random.uniform(0, seconds)
            stops = [moment] * OF_NODE + [moment + SILENCE] * (gpus - OF_NODE)
            left = left_of(turns, speeds, stops)
            seconds = moment + SILENCE + recorded.start_up + end_of(dealt(left, speeds[OF_NODE:]))
        found.append(fixed + seconds)
    return found


def cluster_table(recorded, seeds):
    """How close to ideal the GPUs come."""
    cases = ("equal", "stragglers", "slow node")
    head = ["examples", "tokens/s", "GPUs", "ideal, s"]
    head += [f"{how}: {case}, %" for case in cases for how in ("dealt", "shares")]
    head += ["whole run, s", "a node lost, s"]
    lines = []
    for count, rate, gpus in ((count, rate, gpus) for count in EXAMPLES for rate in RATES for gpus in GPUS):
        asked = recorded, count, rate, gpus
        lines.append(
            [
                *(f"{number:,}" for number in asked[1:]),
                f"{recorded.least(count, rate) / gpus:.3g}",
                *(spread(efficiencies(*asked, case, seeds, how), 0) for case in cases for how in (dealt, shared)),
                f"{middle(whole_runs(*asked, seeds)):.0f}",
                spread(whole_runs(*asked, seeds, lost=True), 0),
            ]
        )
    return table(head, lines)


def cuts_table(recorded, seeds, rate=RATES[1]):
    """Other ways to cut the data: what they cost one GPU, and what stragglers make of them on many."""
    head = ["cut", "examples", "portions", "tokens of a batch", "1 GPU, %", *(f"{gpus} GPUs, %" for gpus in GPUS)]
    lines = []
    for count, cut in ((count, cut) for count in EXAMPLES for cut in CUTS):
        loads = loads_of(recorded, count, 1, Random(0), cut)  # at a token a second
        batches = [tokens for load in loads for tokens in load.batches]
        asked = recorded, count, rate
        lines.append(
            [
                cut,
                f"{count:,}",
                f"{len(loads):,}",
                f"{mean(batches):,.0f}",
                spread(efficiencies(*asked, 1, "equal", seeds, cut=cut), 0),
                *(spread(efficiencies(*asked, gpus, "stragglers", seeds, cut=cut), 0) for gpus in GPUS),
            ]
        )
    return table(head, lines)


def stamp(recorded, seeds):
    """What the figures rest on."""
    size = max(size for _, size in recorded.portions)
    rates = [size / plan for (_, of), found in recorded.portions.items() if of == size for plan, _ in found]
    return (
        f"Recorded on {machine('cpu')}: planning {spread(rates, 0)} examples/s in portions of {size}; first portion "
        f"after {recorded.start_up:.1f} s; putting together {1e6 * recorded.ending:.0f} µs an example. A batch holds "
        f"{recorded.budget:,} tokens and takes {1000 * LAUNCH:g} ms at least. Nodes of {OF_NODE} GPUs; medians of "
        f"{seeds} seeds, smallest and largest in brackets."
    )


def main():
    """Record, simulate, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--write", action="store_true", help="put the tables into benchmarks/README.md")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        recorded = record(Path(folder))
    sections = [stamp(recorded, args.seeds), cluster_table(recorded, args.seeds), cuts_table(recorded, args.seeds)]
    print("\n\n".join(sections))
    if args.write:
        write_between(Path(__file__).with_name("README.md"), MARK, "\n\n".join(sections))


if __name__ == "__main__":
    main()
