"""scripts/score.py on much data and a tiny model, phase by phase: what is left when the forward passes cost nothing."""

import json
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from examples import load_examples, mirror
from processes import SCORE, environment, watched

from stereoset_scoring.questions.examples import gold_labels, options_of

LANGUAGES = ("en", "de", "fr", "es", "tr")
PROCESSES = (1, 2)
GROWTH = (5, 25, 95)  # times the English examples


@dataclass(frozen=True)
class Phases:
    """One run; all times in seconds from the start of the launcher.

    Attributes:
        examples, processes: how many.
        first_line: until it said anything.
        first_batch: until what a batch gave was on disk.
        last_line: until the last word of the table.
        end: until the prompt is back.
        largest: peak resident memory of the largest process, in bytes.
    """

    examples: int
    processes: int
    first_line: float
    first_batch: float
    last_line: float
    end: float
    largest: int


def measure_all_languages(folder, checkpoint, processes=PROCESSES):
    """The Phases of all languages and both tasks by each number of processes; of the sample where no mirror is."""
    data = ["--sample"] if mirror() is None else ["--data-dir", mirror(), "--languages", *LANGUAGES]
    run_in_phases(folder / "before", checkpoint, data, 1)  # prepares the data
    return [run_in_phases(folder / f"of-{count}", checkpoint, data, count) for count in processes]


def measure_much(folder, checkpoint, factors=GROWTH):
    """The Phases of English examples, each so many times under other ids."""
    found = []
    for factor in factors:
        data = ["--data-file", repeated(folder / f"{factor}.json", factor)]
        found.append(run_in_phases(folder / f"times-{factor}", checkpoint, data, 1))
    return found


def repeated(path, factor):
    """A file of the English examples in StereoSet's own layout, each `factor` times."""
    data = {task: [again(row, i) for i in range(factor) for row in rows] for task, rows in load_examples().items()}
    path.write_text(json.dumps({"version": "1.0", "data": data}))
    return path


def again(row, number):
    """A row in StereoSet's own layout, its ids with a number behind them."""
    return {
        **{name: row[name] for name in ("target", "bias_type", "context")},
        "id": f"{row['id']}-{number}",
        "sentences": [
            {"id": f"{option['id']}-{number}", "sentence": option["sentence"], "gold_label": label, "labels": []}
            for option, label in zip(options_of(row), gold_labels(row), strict=True)
        ],
    }


def run_in_phases(folder, checkpoint, data, processes):
    """The Phases of one run."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(processes)]
    words = [*(launcher if processes > 1 else ()), SCORE, "--model", checkpoint, *data, "--output-dir", folder]
    env = environment(threads=1 if processes > 1 else None)
    start, times, peaks = time.perf_counter(), [], {}
    process = subprocess.Popen(
        [sys.executable, *map(str, words)], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    reader = threading.Thread(target=lambda: times.extend(time.perf_counter() - start for _ in process.stdout))
    reader.start()
    first_batch = None
    while process.poll() is None:
        watched(process.pid, peaks)
        if first_batch is None and has_batch(folder):
            first_batch = time.perf_counter() - start
        time.sleep(0.05)
    end = time.perf_counter() - start
    reader.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))} failed.")
    examples = sum(task["examples"] for task in json.loads((folder / "run.json").read_text())["tasks"].values())
    return Phases(examples, processes, times[0], first_batch or end, times[-1], end, max(peaks.values()))


def has_batch(folder):
    """Whether what a batch gave is on disk."""
    try:
        return any(b'"rows"' in path.read_bytes() for path in Path(folder, "progress").glob("*.jsonl"))
    except FileNotFoundError:
        return False
