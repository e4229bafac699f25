"""scripts/score.py as a process of its own: started, timed from outside, its memory watched."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from examples import REPOSITORY, mirror

INTERVAL = 0.02  # seconds between two looks at the memory
SCORE = REPOSITORY / "scripts" / "score.py"


@dataclass(frozen=True)
class Measured:
    """One run.

    Attributes:
        seconds: from the start of the process to its end.
        peaks: the largest resident memory of each process that loaded a model, in bytes.
    """

    seconds: float
    peaks: tuple[int, ...]


def command_of_score(model, folder, *options):
    """The words after `python` that score intrasentence examples with a model of a folder."""
    data = ["--sample"] if mirror() is None else ["--data-dir", mirror()]
    words = [SCORE, "--model", model, "--tasks", "intrasentence", *data, "--output-dir", folder, *options]
    return list(map(str, words))


def run(words, threads=None):
    """Run Python with these words after it.

    Raises:
        RuntimeError: if it fails.
    """
    env = environment(threads)
    start, peaks = time.perf_counter(), {}
    process = subprocess.Popen(
        [sys.executable, *words], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    while process.poll() is None:
        watched(process.pid, peaks)
        time.sleep(INTERVAL)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise RuntimeError(f"{' '.join(words)} failed:\n{process.stderr.read()[-2000:]}")
    return Measured(seconds, tuple(sorted(peaks.values())))


def environment(threads=None):
    """What score.py is started in: this checkout, no GPU, no hub; so many threads, where that is given."""
    given = {} if threads is None else {"OMP_NUM_THREADS": str(threads)}
    return os.environ | {"PYTHONPATH": search_path(), "ACCELERATE_USE_CPU": "true", "HF_HUB_OFFLINE": "1"} | given


def search_path():
    """PYTHONPATH with this checkout first, so that it is what runs."""
    return os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))


def watched(pid, peaks):
    """Note the resident memory of the processes below a process, itself included, that run score.py themselves."""
    try:
        for process in (root := psutil.Process(pid), *root.children(recursive=True)):
            words = process.cmdline()
            if not any("torch.distributed" in word for word in words):
                peaks[process.pid] = max(peaks.get(process.pid, 0), process.memory_info().rss)
    except psutil.NoSuchProcess:
        return


def prepared(folder, model, tokenizer):
    """A folder with a model and its tokenizer, as score.py reads it."""
    folder = Path(folder)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
