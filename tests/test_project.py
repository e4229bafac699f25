"""The house rules: who may import whom, which versions are pinned, and what the cluster script starts."""

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import version

import pytest

import stereoset_scoring

MAIN_PACKAGES = ("accelerate", "datasets", "evaluate", "huggingface_hub", "tokenizers", "torch", "transformers")


@pytest.fixture(scope="module")
def metadata(repository):
    parser = configparser.ConfigParser()
    parser.read(repository / "setup.cfg")
    return parser


@pytest.fixture(scope="module")
def pins(repository):
    lines = (repository / "constraints.txt").read_text().splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def imported(path):
    """Top-level names of the modules that a file imports anywhere, relative imports left out."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module.partition(".")[0])
    return found


def importers(folder, *names):
    """The files under a folder that import any of the names, as paths within it."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if imported(path) & set(names)}


def names_in(requirements):
    return [re.match(r"[\w-]+", line)[0] for line in requirements.split()]


@pytest.mark.parametrize(
    "module", ["stereoset_scoring", "stereoset_scoring.files.predictions", "stereoset_scoring.methods.registry"]
)
def test_what_needs_no_model_is_imported_without_torch(repository, module):
    code = f"import sys, {module}; sys.exit(bool({{'torch', 'transformers', 'accelerate'}} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], cwd=repository, check=False).returncode == 0


def test_scorer_data_and_metric_do_not_import_each_other(repository):
    packages = ("stereoset_dataset", "stereoset_metric", "stereoset_scoring")
    for package in packages:
        assert importers(repository / package, *(set(packages) - {package})) == set(), package


def test_methods_know_no_tensors(repository):
    assert importers(repository / "stereoset_scoring" / "methods", "torch", "transformers", "accelerate") == set()


def test_team_and_checkpoints_alone_know_that_there_are_processes(repository):
    assert importers(repository / "stereoset_scoring", "accelerate") == {
        "processes/team.py",
        "checkpoints/fingerprints.py",
        "checkpoints/in_memory.py",
    }


def test_the_arithmetic_of_the_metric_needs_the_standard_library_only(repository):
    assert imported(repository / "stereoset_metric" / "compute_score.py") <= sys.stdlib_module_names


def test_every_requirement_is_pinned(metadata, pins):
    extras = metadata["options.extras_require"]
    wanted = names_in(metadata["options"]["install_requires"] + extras["scoring"] + extras["training"] + extras["test"])
    assert set(wanted) - {"stereoset"} <= set(pins)  # one extra brings another


def test_the_pinned_versions_are_the_ones_tested_here(pins):
    installed = {name: version(name).partition("+")[0] for name in MAIN_PACKAGES}
    assert installed == {name: pins[name] for name in MAIN_PACKAGES}


def test_setup_and_citation_name_the_same_version_and_licence(repository, metadata):
    citation = (repository / "CITATION.cff").read_text(encoding="utf-8")
    assert metadata["metadata"]["version"] == "attr: stereoset_scoring.__version__"
    assert f"\nversion: {stereoset_scoring.__version__}\n" in citation
    assert f"\nlicense: {metadata['metadata']['license']}\n" in citation


FAKES = {
    "scontrol": '[ "$1" = hostnames ] || [ "$2" = hostnames ] && echo node7 && echo node8; echo "scontrol $*" >&2',
    # Runs the step once per node, as srun does with one task on each, and ends with the highest status.
    "srun": 'while [[ "$1" = --* ]]; do shift; done; most=0; for SLURM_NODEID in $(seq 0 $((SLURM_NNODES - 1))); '
    'do export SLURM_NODEID; status=0; "$@" || status=$?; most=$((status > most ? status : most)); done; exit $most',
    "accelerate": 'printf "%s\\n" "offline=$HF_HUB_OFFLINE threads=$OMP_NUM_THREADS $*"',
}


@pytest.fixture
def submit(repository, tmp_path):
    """submit(nodes, gpus=None, **fakes): score.slurm as SLURM runs it, a copy in a folder of its own."""

    def run(nodes=1, gpus=None, **fakes):
        for name, body in (FAKES | fakes).items():
            (tmp_path / name).write_text(f"#!/bin/bash\nset -e\n{body}\n")
            (tmp_path / name).chmod(0o755)
        copy = shutil.copy(repository / "scripts" / "score.slurm", tmp_path / "slurm_script")
        env = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "1234567",
            "SLURM_JOB_NODELIST": "node[7-8]",
            "SLURM_NNODES": str(nodes),
            "SLURM_CPUS_PER_TASK": "8",
        } | ({} if gpus is None else {"SLURM_GPUS_ON_NODE": str(gpus)})
        command = ["bash", copy, "my model", "runs/x", "--languages", "en", "de"]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    return run


def test_slurm_starts_one_launcher_per_node_with_its_own_rank(submit):
    assert submit(nodes=2, gpus=4).stdout.splitlines() == [
        "offline=1 threads=2 launch --multi_gpu --num_machines 2 --num_processes 8 "
        f"--machine_rank {rank} --main_process_ip node7 --main_process_port 24567 "
        "--mixed_precision no --dynamo_backend no "
        "--module stereoset_cli.score --model my model --output-dir runs/x --languages en de"
        for rank in (0, 1)
    ]


@pytest.mark.parametrize(("gpus", "threads"), [(1, 8), (None, 8), (0, 8)])
def test_slurm_with_a_single_gpu_or_none_is_no_multi_gpu_launch(submit, gpus, threads):
    (line,) = submit(gpus=gpus).stdout.splitlines()
    assert "--multi_gpu" not in line
    assert "--num_processes 1 " in line
    assert f"threads={threads} " in line


def test_slurm_finds_the_checkout_that_the_job_was_submitted_from(submit, repository):
    scontrol = f'if [ "$2" = job ]; then echo "   Command={repository}/scripts/score.slurm a b"; else echo node7; fi'
    run = submit(scontrol=scontrol, srun='echo "$PYTHONPATH"; echo "$PATH"')
    modules, programs = run.stdout.splitlines()
    assert modules.split(":")[0] == str(repository)
    assert programs.split(":")[0] == f"{repository}/.venv/bin"


@pytest.mark.parametrize(
    ("launcher", "status", "again"),
    [
        ("exit 0", 0, False),
        ("exit 1", 1, False),
        ("exit 75", 75, True),
        ("kill -TERM $PPID; exit 1", 75, True),  # torchrun's status, when SLURM has signalled all
        ("kill -TERM $PPID; sleep 0.3; kill -TERM $$", 75, True),  # accelerate's, which dies of it
        ("kill -TERM $PPID; sleep 0.3; exit 0", 0, False),  # it was done
        ("exit 137", 137, False),
    ],
)
@pytest.mark.parametrize("nodes", [1, 2])
def test_slurm_queues_a_job_again_that_was_asked_to_end_and_no_other(submit, nodes, launcher, status, again):
    run = submit(nodes, accelerate=launcher)
    assert run.returncode == status
    assert ("scontrol requeue 1234567" in run.stderr) is again


def test_slurm_without_output_folder_says_how_to_call_it(repository):
    command = ["bash", repository / "scripts" / "score.slurm", "model"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "Usage: sbatch" in run.stderr
