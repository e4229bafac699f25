"""However a run is asked to end, it can go on: while it imports or writes, again and again, or left by its launcher."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch

from stereoset_scoring.processes import threads
from stereoset_scoring.processes.interruption import RESUME, undisturbed

DOORS = [["scripts/score.py"], ["-m", "stereoset_cli.score"], ["-m", "stereoset_cli", "score"]]


@pytest.fixture
def plain(repository):
    """The environment of a process that no launcher started."""
    launched = ("ACCELERATE_", "TORCHELASTIC_")
    return {name: value for name, value in os.environ.items() if not name.startswith(launched)} | {
        "PYTHONPATH": str(repository)
    }


@pytest.mark.parametrize("door", DOORS, ids=" ".join)
def test_asked_to_end_while_it_imports_it_says_that_it_can_go_on(repository, plain, tmp_path, door):
    (tmp_path / "torch.py").write_text("import time; print('importing', flush=True); time.sleep(60)")
    path = {"PYTHONPATH": f"{tmp_path}:{repository}"}
    command = [sys.executable, *door, "--sample", "--output-dir", tmp_path / "run"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=repository, env=plain | path, stdout=pipe, stderr=pipe, text=True)
    assert "importing\n" in iter(process.stdout.readline, "")  # after what it loads
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == RESUME
    assert "asked to end; the same command goes on from here." in err


ENDING = """
import atexit, os, signal
from stereoset_scoring.processes.interruption import begin, listening

def ask():
    os.kill(os.getpid(), signal.SIGTERM)

atexit.register(print, "left in order")
begin()
atexit.register(ask)
with listening():
    try:
        {while_working}
    finally:
        ask()
        print("cleared up")
"""


@pytest.mark.parametrize(
    ("while_working", "status"), [("ask()", RESUME), ("atexit.unregister(ask); ask = lambda: None", 0)]
)
def test_asked_again_while_it_ends_it_ends_as_before(plain, while_working, status):
    code = ENDING.format(while_working=while_working)
    run = subprocess.run([sys.executable, "-c", code], env=plain, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (status, "cleared up\nleft in order\n")


def test_asked_to_end_while_it_writes_it_writes_all_of_it_first(score_here, sample_model, tmp_path, monkeypatch):
    replace = os.replace

    def ask_and_replace(source, target):
        if Path(target).name == "scores.json":
            os.kill(os.getpid(), signal.SIGTERM)
        replace(source, target)

    monkeypatch.setattr(os, "replace", ask_and_replace)
    options = ["--sample", "--model", sample_model, "--tasks", "intrasentence", "--limit", "2"]
    with pytest.raises(SystemExit) as end:
        score_here(*options, "--output-dir", tmp_path)
    assert end.value.code == RESUME
    assert {"scores.json", "run.json", "results.json"} <= set(os.listdir(tmp_path))
    with undisturbed():
        pass  # whoever goes on in this process, a notebook say, is not asked to end once more


WORKER = """
import os, signal, sys, time
from stereoset_scoring.processes import interruption
interruption.GRACE = 0.1
interruption.begin()
if sys.argv[1] == "deaf":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(60)
"""
LAUNCHER = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1], sys.argv[2]])"


def is_running(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize(
    ("variable", "manner", "survives"),
    [
        ("TORCHELASTIC_RUN_ID", "waiting", False),
        ("TORCHELASTIC_RUN_ID", "deaf", False),
        ("ACCELERATE_DYNAMO_MODE", "waiting", False),
        ("SOMETHING_ELSE", "waiting", True),  # a shell that was left, and not the process with it
    ],
)
def test_a_process_ends_with_the_launcher_that_started_it(plain, variable, manner, survives):
    command = [sys.executable, "-c", LAUNCHER, WORKER, manner]
    launcher = subprocess.Popen(command, env=plain | {variable: "default"}, stdout=subprocess.PIPE, text=True)
    worker = int(launcher.stdout.readline())
    launcher.kill()
    launcher.wait()
    deadline = time.monotonic() + (2 if survives else 60)
    while is_running(worker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert is_running(worker) is survives
    if survives:
        os.kill(worker, signal.SIGKILL)


def test_processes_of_one_run_meet_and_those_of_others_neither_disturb_them_nor_wait_for_long(warm_python):
    run = warm_python.run([sys.executable, Path(__file__).with_name("meeting.py")])
    assert run.returncode == 0, run.stderr
    ends = json.loads(run.stdout)
    assert {name: status for name, (status, _) in ends.items()} == {
        "left over": 1,
        "next 0": 0,
        "next 1": 0,
        "asked 0": RESUME,
        "asked 1": RESUME,
    }
    assert ends["next 1"][1] < ends["left over"][1] < 60
    assert "Lost: The processes of this run did not find each other within 5 seconds" in run.stderr


ALONE = {"ACCELERATE_DYNAMO_MODE": "default", "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize(
    ("environment", "of_launcher", "takes"),
    [
        (ALONE, {}, True),
        (ALONE, {"environ": ["OMP_NUM_THREADS=1"]}, False),
        (ALONE, {"cmdline": ["accelerate", "launch", "--num-cpu-threads-per-process=1"]}, False),
        (ALONE | {"TORCHELASTIC_RUN_ID": "none"}, {}, False),
        ({"OMP_NUM_THREADS": "1"}, {}, False),
    ],
    ids=["by accelerate", "the user's threads", "the user's option", "by torchrun", "by nobody"],
)
def test_left_alone_by_accelerate_it_takes_the_threads_that_there_are(
    monkeypatch, capsys, environment, of_launcher, takes
):
    for name in ("ACCELERATE_DYNAMO_MODE", "TORCHELASTIC_RUN_ID"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    taken = []
    monkeypatch.setattr(torch, "set_num_threads", taken.append)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(threads, "_of_parent", lambda name: of_launcher.get(name, []))
    monkeypatch.setattr(threads, "_cores", lambda: 7)
    threads.take_threads()
    assert taken == ([7] if takes else [])
    assert ("it computes on 7 cores" in (err := capsys.readouterr().err)) is takes
    assert ("torchrun" in err) is takes


@pytest.mark.parametrize(
    ("given", "turns"),
    [
        ({}, "2000"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, None),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
    ],
)
def test_threads_that_wait_for_others_soon_sleep_unless_the_user_says_how_they_wait(monkeypatch, given, turns):
    monkeypatch.setattr(os, "environ", given)
    threads.sleep_at_barriers()
    assert given.get("GOMP_SPINCOUNT") == turns


SETTLED = """
import sys
from stereoset_scoring.processes import threads
threads.sleep_at_barriers = lambda: sys.exit("early" if "torch" not in sys.modules else "late")
import stereoset_cli.{0}
sys.argv[0] = "{0}"
stereoset_cli.{0}.door()
"""


@pytest.mark.parametrize("command", [["score", "--sample"], ["train_head", "--model", "any", "--corpus", "any"]])
def test_how_threads_wait_is_settled_before_torch_is_imported(one_thread_each, command):
    words = [sys.executable, "-c", SETTLED.format(command[0]), *command[1:], "--output-dir", "nowhere"]
    assert subprocess.run(words, env=one_thread_each, stderr=subprocess.PIPE, text=True).stderr == "early\n"
