"""score.py in a world of faults, told by the environment; otherwise run as score.py is.

SLOW: seconds that every batch takes longer. FAILING: the number of an example on which the model raises, or NAN: on
which it gives no number. SILENCE: seconds after which a silent process counts as dead. KILLS, SEED: how often it
is killed at a random moment and started again, before it may end.
"""

import math
import os
import random
import runpy
import signal
import sys
import time
from pathlib import Path

import torch

from stereoset_scoring import team
from stereoset_scoring.scorer import Scorer

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SETTINGS = {name: float(os.environ[name]) for name in ("SLOW", "FAILING", "NAN", "SILENCE") if name in os.environ}


def make_faulty():
    """Put the faults in."""
    team.SILENCE = SETTINGS.get("SILENCE", team.SILENCE)
    plan_all, log_probs = Scorer.plan_all, Scorer.log_probs
    cursed = set()

    def cursing(self, data):
        jobs = plan_all(self, data)
        example = int(SETTINGS.get("FAILING", SETTINGS.get("NAN", -1)))
        for job in jobs.values():
            if 0 <= example < len(job.recipes):
                cursed.update(row.input for recipe in job.recipes[example] for row in recipe.rows)
        return jobs

    def faulty(self, units):
        time.sleep(SETTINGS.get("SLOW", 0))
        rows = [row for unit in units for row in unit]
        bad = [row.input in cursed for row in rows]
        if "FAILING" in SETTINGS and any(bad):
            raise IndexError("index out of range in self")
        values = log_probs(self, units)
        return [[math.nan] * len(v) if b else v for b, v in zip(bad, values, strict=True)]

    Scorer.plan_all, Scorer.log_probs = cursing, faulty


def run():
    """score.py, as Python runs it."""
    runpy.run_path(str(SCRIPTS / "score.py"), run_name="__main__")


def run_in_a_fork():
    """The same in a process of its own, which need not import anything again; its id."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        run()
        os._exit(0)
    return child


def run_and_be_killed(times, seed):
    """Into folders beside each other: an undisturbed run, one that takes the time, and one that is killed again and
    again at moments that are drawn anew, before it may end."""
    output = Path(sys.argv[-1])
    sys.argv[-1] = str(output / "undisturbed")
    run()
    sys.argv[-1] = str(output / "timed")
    started = time.monotonic()
    os.waitpid(run_in_a_fork(), 0)
    lasts, chance = time.monotonic() - started, random.Random(seed)
    sys.argv[-1] = str(output / "killed")
    for _ in range(times):
        child = run_in_a_fork()
        time.sleep(chance.uniform(0, lasts))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        batches = sum(path.read_bytes().count(b'"rows"') for path in (output / "killed").glob("progress/*"))
        print("too late" if os.WIFEXITED(status) else f"killed with {batches} batches on disk", file=sys.stderr)
    run()


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.path.insert(0, str(SCRIPTS))
    make_faulty()
    if "KILLS" in os.environ:
        run_and_be_killed(int(os.environ["KILLS"]), int(os.environ["SEED"]))
    else:
        run()
