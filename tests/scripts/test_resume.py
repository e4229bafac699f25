"""Nothing is lost: runs that are killed, asked to end, denied room or beside each other, on one process or several."""

import errno
import json
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from safetensors.torch import load_file, save_file

from stereoset_scoring.files.ledger import Ledger
from stereoset_scoring.processes.workers import can_fork
from stereoset_scoring.runs import record
from stereoset_scoring.scorer import Scorer
from tests.scripts.faulty_score import batches_on_disk

FAULTY = Path(__file__).with_name("faulty_score.py")
FORKS = pytest.mark.skipif(not can_fork(2), reason="this system has no room for forks, or its libraries bear none")
PATIENCE = 300  # seconds that a busy machine may take


@pytest.fixture(scope="module")
def options(sample_model):
    """A job of some 30 batches."""
    return ["--model", sample_model, "--sample", "--tasks", "intrasentence", "--max-tokens", "48"]


@pytest.fixture
def start(warm_python, one_thread_each):
    """start(options, output, launcher=[python], **faults): score.py in a process of its own, or several."""
    running = []

    def begin(options, output, launcher=(sys.executable,), **faults):
        environment = one_thread_each | {name: str(value) for name, value in faults.items()}
        running.append(warm_python.start([*launcher, FAULTY, *options, "--output-dir", output], env=environment))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            for one in [*psutil.Process(process.pid).children(recursive=True), process]:
                one.kill()


def finish(process, status=0):
    """Wait for its end; what it printed: (stdout, stderr)."""
    out, err = process.communicate(PATIENCE)
    assert process.returncode == status, err[-3000:]
    return out, err


def wait_for_progress(process, output, batches=5):
    """Until some batches are on disk."""
    deadline = time.monotonic() + PATIENCE
    while batches_on_disk(output) < batches:
        assert process.poll() is None, process.communicate()[1][-3000:]
        assert time.monotonic() < deadline, "nothing was recorded"
        time.sleep(0.02)


def scores_of(folder):
    return (Path(folder) / "scores.json").read_bytes()


@pytest.fixture(scope="module")
def undisturbed(options, warm_python, tmp_path_factory):
    """The folder of a run to which nothing happened."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert warm_python.run([sys.executable, FAULTY, *options, "--output-dir", folder]).returncode == 0
    return folder


def test_what_is_planned_while_another_device_computes_is_read_alike(
    options, undisturbed, score_here, tmp_path, monkeypatch
):
    monkeypatch.setattr(Scorer, "computes_elsewhere", True)
    score_here(*options, "--output-dir", tmp_path)
    assert scores_of(tmp_path) == scores_of(undisturbed)


@FORKS
def test_the_workers_of_a_run_give_the_bytes_that_it_gives_alone_and_say_how_far_it_is(
    start, options, undisturbed, tmp_path
):
    _, err = finish(start(options, tmp_path, THREADS=2))
    assert scores_of(tmp_path) == scores_of(undisturbed)
    assert json.loads((tmp_path / "run.json").read_text())["workers"] == 2
    assert re.findall(r"scoring: (\d+)%", err)[-1] == "100"
    assert not (tmp_path / "progress").exists()


WORKERS = pytest.mark.parametrize(
    "threads", [pytest.param(1, id="alone"), pytest.param(2, id="with workers", marks=FORKS)]
)


@pytest.mark.thorough
@WORKERS
def test_a_run_that_is_killed_at_twenty_random_moments_ends_as_if_undisturbed(start, options, tmp_path, threads):
    _, err = finish(start(options, tmp_path, KILLS=20, SEED=time.time_ns(), SLOW=0.01, THREADS=threads))
    hits = re.findall(r"killed with (\d+) batches on disk", err)
    assert len(hits) == 20
    assert any(int(batches) > 0 for batches in hits), "some kills were meant to hit in the middle"
    for killed in tmp_path.glob("killed*"):
        assert json.loads((killed / "run.json").read_text())["workers"] == threads
        assert scores_of(killed) == scores_of(tmp_path / "undisturbed")
        assert not (killed / "progress").exists()


@pytest.mark.thorough
@WORKERS
def test_asked_to_end_it_says_that_it_can_go_on_and_goes_on_with_other_processes_and_budget(
    start, torchrun, options, undisturbed, tmp_path, threads
):
    first = start(options, tmp_path, SLOW=0.2, THREADS=threads)
    wait_for_progress(first, tmp_path)
    first.send_signal(signal.SIGTERM)
    _, err = finish(first, os.EX_TEMPFAIL)
    assert "asked to end; the same command goes on from here" in err
    done = batches_on_disk(tmp_path)
    assert done >= 5
    _, err = finish(start([*options, "--max-tokens", "300"], tmp_path, torchrun(2)))
    assert re.search(r"Going on: \d+ rows were computed before", err)
    tables = [json.loads((folder / "results.json").read_text())["results"] for folder in (tmp_path, undisturbed)]
    assert tables[0] == tables[1]
    pairs = [json.loads(scores_of(folder))["intrasentence"] for folder in (tmp_path, undisturbed)]
    for one, other in zip(*pairs, strict=True):
        assert one["id"] == other["id"]
        assert one["score"] == pytest.approx(other["score"], abs=1e-5)


@pytest.mark.thorough
def test_the_others_end_when_one_of_them_is_killed_and_one_alone_goes_on_to_the_same_bytes(
    start, torchrun, options, undisturbed, tmp_path
):
    launcher = start(options, tmp_path, torchrun(2), SLOW=0.2)
    wait_for_progress(launcher, tmp_path)
    workers = psutil.Process(launcher.pid).children()
    assert len(workers) == 2
    workers[1].kill()
    killed = time.monotonic()
    _, err = finish(launcher, 1)
    assert time.monotonic() - killed < 60
    assert "SIGKILL" in err
    assert not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in workers)
    finish(start(options, tmp_path))
    assert scores_of(tmp_path) == scores_of(undisturbed)


@pytest.mark.thorough
def test_without_a_launcher_a_dead_process_is_noticed_and_named(start, free_port, options, tmp_path):
    _, err = finish(start(options, tmp_path, WIDOWED=f"{free_port()} {free_port()}", SLOW=0.2, SILENCE=2))
    ends = re.findall(r"without (\d): (\d+) after ([\d.]+) s", err)
    assert [(dead, code) for dead, code, _ in ends] == [("0", "1"), ("1", "1")]
    assert all(float(seconds) < 20 for _, _, seconds in ends)
    assert "score.py: The process that all others talk through is gone" in err
    assert "score.py: Process 1 of 2 has given no sign of life for 2.0 seconds: it or its machine died." in err


REASON = r"score\.py: Example '[0-9a-f]{32}' cannot be scored: IndexError: index out of range in self"


@pytest.mark.thorough
def test_a_process_that_fails_on_an_example_ends_all_of_them_with_its_reason(start, torchrun, options, tmp_path):
    _, err = finish(start(options, tmp_path, torchrun(2), FAILING=3, SLOW=0.1), 1)
    assert re.search(REASON, err)


@pytest.mark.thorough
@FORKS
def test_a_worker_that_fails_on_an_example_ends_the_run_with_its_reason_alone(start, options, tmp_path):
    _, err = finish(start(options, tmp_path, FAILING=3, SLOW=0.1, THREADS=2), 1)
    assert re.search(REASON + "\n$", err)
    assert "Traceback" not in err
    assert batches_on_disk(tmp_path) > 0


@pytest.mark.thorough
@FORKS
def test_a_run_whose_worker_is_killed_says_so_and_goes_on_from_there(start, options, undisturbed, tmp_path):
    run = start(options, tmp_path, SLOW=0.2, THREADS=2)
    wait_for_progress(run, tmp_path)
    psutil.Process(run.pid).children()[0].kill()
    _, err = finish(run, 1)
    assert "score.py: A process that computed for this one was killed (status -9)" in err
    finish(start(options, tmp_path, THREADS=2))
    assert scores_of(tmp_path) == scores_of(undisturbed)


@pytest.mark.thorough
def test_two_runs_on_one_folder_the_second_refuses_at_once(start, options, tmp_path, score_here):
    first = start(options, tmp_path, SLOW=0.3)
    wait_for_progress(first, tmp_path, 1)
    with pytest.raises(SystemExit, match=f"Another run is writing to {tmp_path}: wait until it has ended"):
        score_here(*options, "--output-dir", tmp_path)
    assert first.poll() is None


@pytest.mark.thorough
@pytest.mark.parametrize("shared_folder", [True, False], ids=["shared folder", "own folders"])
def test_two_nodes_give_the_bytes_of_one_process(
    start, torchrun, free_port, options, undisturbed, tmp_path, shared_folder
):
    port = free_port()
    folders = [tmp_path / ("all" if shared_folder else f"node{i}") for i in range(2)]
    nodes = [
        start(
            options,
            folder,
            torchrun(1, "--nnodes", "2", "--node_rank", str(i), "--master_addr", "127.0.0.1", "--master_port", port),
        )
        for i, folder in enumerate(folders)
    ]
    for node in nodes:
        finish(node)
    assert scores_of(folders[0]) == scores_of(undisturbed)
    assert not any((folder / "progress").exists() for folder in folders)


@pytest.fixture
def broken():
    """broken(patches, example, values=None): the model raises on an example, or gives these values for it."""

    def breaking(patches, example, values=None):
        plan_part, log_probs = Scorer.plan_part, Scorer.log_probs
        cursed = set()

        def cursing(self, portion, rows, *more):
            planned = plan_part(self, portion, rows, *more)
            if portion.start <= example < portion.stop:
                options = planned.job.recipes[example - portion.start]
                cursed.update(row.input for one in options for row in one.rows)
            return planned

        def faulty(self, units):
            rows = [row for unit in units for row in unit.rows]
            if values is None and any(row.input in cursed for row in rows):
                raise IndexError("index out of range in self")
            found = log_probs(self, units)
            return [values * len(v) if row.input in cursed else v for row, v in zip(rows, found, strict=True)]

        patches.setattr(Scorer, "plan_part", cursing)
        patches.setattr(Scorer, "log_probs", faulty)

    return breaking


@pytest.mark.parametrize(
    ("values", "words"),
    [(None, "IndexError: index out of range in self"), ([float("nan")], "ArithmeticError: the model gives NaN")],
)
def test_an_example_that_the_model_fails_on_stops_the_run_and_is_named(
    score_here, broken, options, tmp_path, monkeypatch, values, words
):
    broken(monkeypatch, 3, values)
    with pytest.raises(SystemExit, match=r"score\.py: Example '[0-9a-f]{32}' cannot be scored: " + words):
        score_here(*options, "--output-dir", tmp_path)
    assert not (tmp_path / "scores.json").exists()
    assert batches_on_disk(tmp_path) > 0


def test_told_to_keep_going_the_example_is_listed_and_the_result_is_partial(
    score_here, broken, options, undisturbed, tmp_path, monkeypatch
):
    broken(monkeypatch, 3, [float("nan")])
    out = score_here(*options, "--output-dir", tmp_path, "--keep-going")
    assert "PARTIAL: 1 of intrasentence left out" in out
    record = json.loads((tmp_path / "run.json").read_text())
    ((_, why),) = record["left_out"]["intrasentence"].items()
    assert why.startswith("ArithmeticError: the model gives NaN: choose another dtype")
    found, whole = (json.loads(scores_of(folder)) for folder in (tmp_path, undisturbed))
    assert found["partial"] == record["partial"] == "1 of intrasentence left out"
    assert len(found["intrasentence"]) == len(whole["intrasentence"]) - 3
    assert record["tasks"]["intrasentence"]["examples"] == len(found["intrasentence"]) // 3


@pytest.fixture(scope="module")
def stopped(options, warm_python, tmp_path_factory):
    """The output folder of a run that stopped half-way; not to be changed."""
    folder = tmp_path_factory.mktemp("stopped")
    environment = warm_python.environment | {"FAILING": "3"}
    run = warm_python.run([sys.executable, FAULTY, *options, "--output-dir", folder], env=environment)
    assert run.returncode == 1, run.stderr
    assert batches_on_disk(folder) > 0
    return folder


@pytest.fixture
def half_done(stopped, tmp_path):
    """A copy of it."""
    return shutil.copytree(stopped, tmp_path / "runs")


@pytest.fixture
def copied_model(sample_model, tmp_path):
    """The sample's model in another folder, to be changed there."""
    return shutil.copytree(sample_model, tmp_path / "other")


@pytest.fixture
def other_model(copied_model):
    """The sample's model, its weights moved a little."""
    folder = copied_model
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor + 0.01 for name, tensor in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    return folder


OTHERS = [
    (["--option", "reduction=sum"], r"options: {} there, {'reduction': 'sum'} here"),
    (["--limit", "20"], r"data: [0-9a-f]{16} there, [0-9a-f]{16} here"),
    (["--dtype", "float64"], r"dtype: float32 there, float64 here"),
    (["--tasks", "intersentence"], r"it scores intrasentence, which this one does not"),
]


@pytest.mark.parametrize(("changes", "words"), OTHERS)
def test_another_runs_progress_is_refused_and_the_difference_named(half_done, options, score_here, changes, words):
    with pytest.raises(SystemExit, match=rf"progress is the progress of another run \({words}"):
        score_here(*options, *changes, "--output-dir", half_done)
    assert not (half_done / "scores.json").exists()


def test_progress_with_other_weights_is_refused_until_it_is_set_aside(
    half_done, other_model, options, score_here, tmp_path
):
    options = ["--model", other_model, *options[2:]]
    with pytest.raises(SystemExit, match=r"weights: [0-9a-f]{16} there, [0-9a-f]{16} here"):
        score_here(*options, "--output-dir", half_done)
    before = sorted(path.read_bytes() for path in (half_done / "progress").iterdir())
    score_here(*options, "--output-dir", half_done, "--restart")
    assert sorted(path.read_bytes() for path in (half_done / "progress-1").iterdir()) == before
    score_here(*options, "--output-dir", tmp_path / "fresh")
    assert scores_of(half_done) == scores_of(tmp_path / "fresh")


def change_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


SETTINGS = [
    # what of config.json is changed, what the refusal says of it
    ({"activation_function": "relu"}, "causal head, configuration, activation_function: gelu_new there, relu here"),
    ({"n_head": 4}, "causal head, configuration, n_head: 2 there, 4 here"),
    ({"layer_norm_epsilon": 0.1}, "causal head, configuration, layer_norm_epsilon: 1e-05 there, 0.1 here"),
    ({"scale_attn_weights": False}, "causal head, configuration, scale_attn_weights: True there, False here"),
]


@pytest.mark.parametrize(("changes", "words"), SETTINGS, ids=[next(iter(changes)) for changes, _ in SETTINGS])
def test_progress_with_another_configuration_is_refused_and_the_difference_named(
    half_done, options, score_here, copied_model, changes, words
):
    change_json(copied_model / "config.json", **changes)
    with pytest.raises(SystemExit, match=rf"another run \({words}\): "):
        score_here("--model", copied_model, *options[2:], "--output-dir", half_done)


def test_the_same_model_in_another_folder_is_the_same(half_done, options, undisturbed, score_here, copied_model):
    change_json(copied_model / "config.json", transformers_version="4.0.0", _name_or_path="elsewhere")
    score_here("--model", copied_model, *options[2:], "--output-dir", half_done)
    assert scores_of(half_done) == scores_of(undisturbed)


def test_progress_with_another_attention_is_refused(half_done, options, score_here):
    with pytest.raises(SystemExit, match=r"causal head, attention: sdpa there, eager here"):
        score_here(*options, "--attention", "eager", "--output-dir", half_done)


def test_progress_of_another_version_of_the_scoring_is_refused(half_done, options, score_here, monkeypatch):
    monkeypatch.setattr(record, "code_sha256", lambda: "f" * 64)
    with pytest.raises(SystemExit, match=r"scoring code: [0-9a-f]{16} there, f{16} here"):
        score_here(*options, "--output-dir", half_done)


def test_what_was_computed_is_not_computed_again(half_done, options, undisturbed, score_here, monkeypatch):
    known, computed = batches_on_disk(half_done), []
    log_probs = Scorer.log_probs
    monkeypatch.setattr(Scorer, "log_probs", lambda self, units: computed.append(units) or log_probs(self, units))
    score_here(*options, "--output-dir", half_done)
    assert scores_of(half_done) == scores_of(undisturbed)
    assert (
        known + len(computed) == json.loads((undisturbed / "run.json").read_text())["tasks"]["intrasentence"]["batches"]
    )


def test_portions_that_are_done_are_not_even_planned_again(half_done, options, undisturbed, score_here, monkeypatch):
    planned, plan_part = [], Scorer.plan_part
    monkeypatch.setattr(
        Scorer, "plan_part", lambda self, portion, *more: planned.append(portion) or plan_part(self, portion, *more)
    )
    score_here(*options, "--output-dir", half_done)
    assert planned[0].start > 0
    assert scores_of(half_done) == scores_of(undisturbed)
    records = [json.loads((folder / "run.json").read_text())["tasks"] for folder in (half_done, undisturbed)]
    assert records[0] == records[1]


@pytest.mark.parametrize("place", ["file/output", "/proc/output"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_computed(options, score_here, tmp_path, place):
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit, match=r"output cannot be written to \(.*\): give a folder of yours"):
        score_here(*options, "--output-dir", tmp_path / place)


def test_a_full_disk_ends_the_run_in_a_sentence_and_room_lets_it_go_on(
    options, undisturbed, score_here, tmp_path, monkeypatch
):
    add, left = Ledger._write, iter(range(11))

    def write_until_full(self, line):
        if "rows" in line and next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        add(self, line)

    with monkeypatch.context() as context:
        context.setattr(Ledger, "_write", write_until_full)
        with pytest.raises(SystemExit, match=r"No space left on device: what was computed cannot be recorded"):
            score_here(*options, "--output-dir", tmp_path)
    assert batches_on_disk(tmp_path) == 11
    score_here(*options, "--output-dir", tmp_path)
    assert scores_of(tmp_path) == scores_of(undisturbed)
