"""python -m tests.sweep: every text architecture of transformers against a reference of its own.

python -m tests.sweep --page stereoset_scoring/ARCHITECTURES.md      all of them; writes the page
python -m tests.sweep --only llama bert --trials trials.json         some of them; writes what was found
"""

import argparse
import json
import os
import signal
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path

os.environ.update(
    HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false"
)
import warnings

import torch

from tests.sweep.architectures import architectures, windows
from tests.sweep.configurations import UNFIT
from tests.sweep.trial import told, trials_of

PATIENCE = 120  # seconds for one variant of an architecture


def main():
    arguments = parse()
    chosen = [one for one in architectures() if not arguments.only or {one.model_type, one.mapping} & {*arguments.only}]
    start = time.monotonic()
    findings = sweep(chosen[arguments.skip :], arguments.processes, arguments.trials, arguments.sources)
    print(f"{len(findings)} variants in {time.monotonic() - start:.0f} s.", file=sys.stderr)


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="MODEL_TYPE")
    parser.add_argument("--sources", nargs="*", default=["memory", "folder"], choices=["memory", "folder"])
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--trials", type=Path)
    return parser.parse_args()


def sweep(chosen, processes, log=None, sources=()):
    """All trials: a list of {architecture, window, seconds, trials or unbuilt}."""
    with ProcessPoolExecutor(processes, initializer=prepare) as pool:
        futures = [pool.submit(variants, one, sources) for one in chosen]
        found = {}
        for future in as_completed(futures):
            found[futures.index(future)] = future.result()
            if log:
                log.write_text(json.dumps([variant for i in sorted(found) for variant in found[i]], indent=1))
            print(f"\r{len(found)} of {len(futures)}", end="", file=sys.stderr, flush=True)
    return [variant for i in sorted(found) for variant in found[i]]


def prepare():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, give_up)


def give_up(*_):
    raise TimeoutError(f"It took more than {PATIENCE} seconds.")


def variants(architecture, sources):
    """The trials of every variant of an architecture."""
    found, reach = [], [None]
    if architecture.model_type in UNFIT:
        reason = UNFIT[architecture.model_type]
        return [asdict(architecture) | {"window": None, "seconds": 0, "unbuilt": reason, "trials": []}]
    try:
        reach = windows(architecture)
    except Exception as error:
        return [asdict(architecture) | {"window": None, "seconds": 0, "unbuilt": told(error), "trials": []}]
    for window in reach:
        begun, trials, unbuilt = time.monotonic(), [], None
        signal.alarm(PATIENCE)
        try:
            trials = trials_of(architecture, window, sources=sources)
        except Exception as error:
            unbuilt = told(error)
        signal.alarm(0)
        seconds = round(time.monotonic() - begun, 1)
        found.append(
            asdict(architecture)
            | {"window": window, "seconds": seconds, "unbuilt": unbuilt, "trials": [asdict(one) for one in trials]}
        )
    return found


if __name__ == "__main__":
    main()
