"""score.py in a world of faults, told by the environment; otherwise run as score.py is.

SLOW: seconds that every batch takes longer. FAILING: the number of an example on which the model raises. SILENCE:
seconds after which a silent process counts as dead. KILLS, SEED: how often it is killed at a random moment and started
again, before it may end; a moment that comes when it has ended does not count. THREADS: on how many it computes, 1
unless told. WIDOWED: two free ports, where two pairs of processes meet with no launcher, of which the first or the
second dies.
"""

import gc
import os
import random
import runpy
import signal
import sys
import time
from pathlib import Path

import torch
from accelerate import PartialState

from stereoset_scoring.processes import team
from stereoset_scoring.scorer import Scorer

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
SETTINGS = {name: float(os.environ[name]) for name in ("SLOW", "FAILING", "SILENCE") if name in os.environ}


def make_faulty():
    """Put the faults in."""
    team.SILENCE = SETTINGS.get("SILENCE", team.SILENCE)
    plan_part, log_probs = Scorer.plan_part, Scorer.log_probs
    cursed = set()

    def cursing(self, portion, rows, *more):
        planned = plan_part(self, portion, rows, *more)
        if portion.start <= SETTINGS.get("FAILING", -1) < portion.stop:
            options = planned.job.recipes[int(SETTINGS["FAILING"]) - portion.start]
            cursed.update(row.input for recipe in options for row in recipe.rows)
        return planned

    def faulty(self, units):
        time.sleep(SETTINGS.get("SLOW", 0))
        if any(row.input in cursed for unit in units for row in unit.rows):
            raise IndexError("index out of range in self")
        return log_probs(self, units)

    Scorer.plan_part, Scorer.log_probs = cursing, faulty


def run():
    """score.py, as Python runs it."""
    runpy.run_path(str(SCRIPTS / "score.py"), run_name="__main__")


def run_in_a_fork(**environment):
    """The same in a process of its own, which need not import anything again; its id."""
    from warm_python import run_and_leave

    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.environ.update(environment)
        PartialState._reset_state()
        team.our_team.cache_clear()
        run_and_leave(str(SCRIPTS / "score.py"), *sys.argv[1:])
    return child


def batches_on_disk(output):
    """How many batches the processes have recorded."""
    return sum(path.read_bytes().count(b'"rows"') for path in (output / "progress").glob("*.jsonl"))


def run_and_be_killed(times, seed):
    """Into folders beside each other: an undisturbed run, one that takes the time, and one that is killed again and
    again at moments that are drawn anew, before it may end; should it end earlier, in another folder from the start."""
    output = Path(sys.argv[-1])
    sys.argv[-1] = str(output / "undisturbed")
    os.waitpid(run_in_a_fork(), 0)
    sys.argv[-1] = str(output / "timed")
    started = time.monotonic()
    os.waitpid(run_in_a_fork(), 0)
    lasts, chance = time.monotonic() - started, random.Random(seed)
    sys.argv[-1] = str(output / "killed")
    hits = late = 0
    while hits < times:
        child = run_in_a_fork()
        time.sleep(chance.uniform(0, lasts))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):  # there is nothing left to kill; one killed while it tidied up has not ended
            late += 1
            (output / "killed").rename(output / f"killed-{late}")
        else:
            hits += 1
            print(f"killed with {batches_on_disk(output / 'killed')} batches on disk", file=sys.stderr)
    os.waitpid(run_in_a_fork(), 0)


def run_in_pairs_and_be_widowed(ports):
    """Two processes that nobody watches over; when some batches are on disk, one is killed, and the other must end."""
    output = Path(sys.argv[-1])
    import stereoset_scoring.checkpoints.checkpoint  # noqa: F401 once, before the forks

    for dead, port in enumerate(ports):
        sys.argv[-1] = str(output / str(dead))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        pair = [run_in_a_fork(RANK=str(rank), LOCAL_RANK=str(rank), **place) for rank in range(2)]
        while batches_on_disk(output / str(dead)) < 5:
            time.sleep(0.02)
        os.kill(pair[dead], signal.SIGKILL)
        started = time.monotonic()
        _, status = os.waitpid(pair[1 - dead], 0)
        lasted = time.monotonic() - started
        print(f"without {dead}: {os.waitstatus_to_exitcode(status)} after {lasted:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("THREADS", "1")))
    gc.freeze()  # else each fork would copy all of it to count its references
    sys.path[:0] = [str(SCRIPTS), str(Path(__file__).resolve().parents[1])]  # and the tests', for warm_python
    make_faulty()
    if "KILLS" in os.environ:
        run_and_be_killed(int(os.environ["KILLS"]), int(os.environ["SEED"]))
    elif "WIDOWED" in os.environ:
        run_in_pairs_and_be_widowed(os.environ["WIDOWED"].split())
    else:
        run()
