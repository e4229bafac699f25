"""The rules of the project: who may import whom, which versions are pinned, and what the cluster script starts."""

import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib.metadata import version

import pytest

import stereoset_scoring
from tests.house import (
    PACKAGES,
    REPOSITORY,
    depth,
    docstring,
    functions_of,
    importers,
    imports_of,
    is_within,
    modules,
    nested_comprehensions,
    source_folders,
)

MAIN_PACKAGES = ("accelerate", "datasets", "evaluate", "huggingface_hub", "tokenizers", "torch", "transformers")
SCORING = "stereoset_scoring"
# The rooms of stereoset_scoring from the ground up, those on one floor in the order of README: nothing imports upwards.
FLOORS = (
    ("refusal", "place"),
    ("questions",),
    ("planning",),
    ("methods",),
    ("engines",),
    ("checkpoints", "served"),
    ("files",),
    ("processes",),
    ("reading", "roles", "scorer", "baselines", "callback", "training", "sample"),
    ("runs",),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
FLOOR[""] = FLOOR["scorer"]  # the package itself hands out load_scorer
FRAMEWORKS = ("torch", "transformers", "accelerate", "peft", "tokenizers")
NOT_KNOWN = {
    # room: what it does not know, besides all that lies above it
    "questions": ("torch", "accelerate", "peft"),
    "planning": FRAMEWORKS,
    "methods": FRAMEWORKS,
    "engines": ("stereoset_scoring.methods", "accelerate", "peft"),
    "checkpoints": ("stereoset_scoring.questions.examples", "stereoset_scoring.planning", "stereoset_scoring.methods"),
    "served": (
        "stereoset_scoring.questions.examples",
        "stereoset_scoring.methods",
        "stereoset_scoring.engines",
        *FRAMEWORKS,
    ),
    "files": FRAMEWORKS,
    "processes": ("stereoset_scoring.files",),
    "reading": ("torch",),
}
# All that questions/ may have of transformers: what belongs to tokenizers and to their files.
OF_TOKENIZERS = (
    "transformers.AutoTokenizer",
    "transformers.PreTrainedTokenizerFast",
    "transformers.models.auto.tokenization_auto",
    "transformers.utils.hub",
    "transformers.TextGenerationPipeline",  # the text that XLNet reads first is one of its constants
)
ALLOWED = {
    # package: what of the other packages it may import
    "stereoset_dataset": (),
    "stereoset_metric": (),
    "stereoset_scoring": ("stereoset_metric.compute_score",),  # for callback.py: see the test below
    "stereoset_report": (
        "stereoset_dataset",
        "stereoset_metric",
        "stereoset_scoring.questions",
        "stereoset_scoring.files",
        "stereoset_scoring.sample",
        "stereoset_scoring.refusal",
    ),
    "stereoset_cli": ("stereoset_dataset", "stereoset_metric", "stereoset_scoring", "stereoset_report"),
}
# Read without a model: no torch, neither of its own nor through what they import.
LIGHT = (
    "stereoset_scoring",
    "stereoset_scoring.files.predictions",
    "stereoset_scoring.methods.registry",
    "stereoset_scoring.planning.job",
    "stereoset_report.saved",
    "stereoset_report.paper_tables",
    "stereoset_report.comparison_tables",
    "stereoset_cli.main",
    "stereoset_report.items_text",
    "stereoset_cli.compare",
    "stereoset_cli.items",
    "stereoset_report.exports",
    "stereoset_cli.export",
    "stereoset_cli.table",
    "stereoset_cli.reproduce",
    "stereoset_cli.methods",
)


def room_of(module):
    """The folder or file of stereoset_scoring that a module lies in; "" for the package itself."""
    return module.partition(".")[2].partition(".")[0]


def arrows(package, annotations=True):
    """{module: the modules of the package that it imports}; see `imports_of`."""
    known = modules(package)
    return {module: imports_of(path, annotations) & known.keys() for module, path in known.items()}


def rooms_of_checkout():
    folder = REPOSITORY / SCORING
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    return files | {path.name for path in folder.iterdir() if any(path.glob("*.py"))}


def test_every_room_has_its_floor():
    assert rooms_of_checkout() == FLOOR.keys() - {""}


def test_nothing_imports_upwards():
    upwards = {
        f"{module} -> {other}"
        for module, others in arrows(SCORING).items()
        for other in others
        if FLOOR[room_of(other)] > FLOOR[room_of(module)]
    }
    assert upwards == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_imports_itself_in_a_circle(package):
    # Two modules of a room may name each other's classes in annotations; CycleError names the circle.
    tuple(TopologicalSorter(arrows(package, annotations=False)).static_order())


def test_no_room_imports_itself_in_a_circle():
    rooms = {}
    for module, others in arrows(SCORING).items():
        rooms.setdefault(room_of(module), set()).update(map(room_of, others))
    tuple(TopologicalSorter({room: others - {room} for room, others in rooms.items()}).static_order())


@pytest.mark.parametrize(("room", "names"), NOT_KNOWN.items())
def test_room_does_not_know(room, names):
    assert {module for module in importers(SCORING, *names) if room_of(module) == room} == set()


def test_questions_know_tokenizers_and_no_models():
    used = set().union(*(imports_of(path) for name, path in modules(SCORING).items() if room_of(name) == "questions"))
    assert {name for name in used if is_within(name, "transformers") and not is_within(name, *OF_TOKENIZERS)} == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_a_comprehension_holds_no_other(package):
    assert [place for path in modules(package).values() for place in nested_comprehensions(path)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_nests_deeper_than_four_levels(package):
    for module, path in modules(package).items():
        assert [one.name for one in functions_of(path) if depth(one) > 4] == [], module


def test_few_know_that_there_are_processes():
    assert importers(SCORING, "accelerate") == {
        "stereoset_scoring.place",
        "stereoset_scoring.processes.team",
        "stereoset_scoring.processes.workers",
        "stereoset_scoring.checkpoints.fingerprints",
        "stereoset_scoring.checkpoints.in_memory",
    }


def test_runs_print_nothing():
    calls = [
        f"{module}:{node.lineno}"
        for module, path in modules(SCORING).items()
        if room_of(module) == "runs"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Name) and node.id == "print"
    ]
    assert calls == []


@pytest.mark.parametrize("package", PACKAGES)
def test_package_imports_of_others_what_it_may(package):
    others = [other for other in (*PACKAGES, "scripts", "benchmarks", "tests") if other != package]
    used = set().union(*map(imports_of, modules(package).values()))
    walls = {name for name in used if is_within(name, *others) and not is_within(name, *ALLOWED[package])}
    assert walls == set()


def test_scoring_counts_nothing_but_in_a_training():
    assert importers(SCORING, "stereoset_metric") == {"stereoset_scoring.callback"}


def test_the_writing_room_knows_no_models():
    assert importers("stereoset_report", *FRAMEWORKS) == set()


def test_what_needs_no_model_is_imported_without_torch():
    code = "import sys; from importlib import import_module\n"
    code += f"for name in {LIGHT}: import_module(name); assert not {{*{FRAMEWORKS[:3]}}} & set(sys.modules), name"
    run = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_scripts_are_doors_to_the_command():
    for path in (REPOSITORY / "scripts").glob("*.py"):
        ours = {name for name in imports_of(path) if is_within(name, *PACKAGES)}
        assert {name.partition(".")[0] for name in ours} == {"stereoset_cli"}, path.name
        assert not any(isinstance(node, ast.FunctionDef) for node in ast.parse(path.read_text()).body), path.name


def test_the_arithmetic_of_the_metric_needs_the_standard_library_only():
    used = imports_of(REPOSITORY / "stereoset_metric" / "compute_score.py")
    assert {name.partition(".")[0] for name in used} <= sys.stdlib_module_names


def table(readme, heading):
    """{name: text} of the first two columns of the first table under a heading, its names being code."""
    text = (REPOSITORY / readme).read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    lines = re.search(r"(?:^\|.*\n)+", text, re.M)[0].splitlines()
    rows = [re.match(r"\| \[?`([\w.]+)/?`(?:\]\(\S+\))? \| (.*?) \|", line) for line in lines[2:]]
    return {row[1]: row[2] for row in rows}


def test_the_table_of_folders_is_the_folder_list():
    assert table("README.md", "## The folders").keys() == source_folders()


def test_the_table_of_rooms_is_the_folder_list_from_the_ground_up():
    names = [name.removesuffix(".py") for name in table("stereoset_scoring/README.md", "## The house")]
    assert names == [room for floor in FLOORS for room in floor]


@pytest.mark.parametrize(
    ("readme", "heading"), [("README.md", "## The folders"), ("stereoset_scoring/README.md", "## The house")]
)
def test_the_tables_say_what_the_folders_say_of_themselves(readme, heading):
    for name, text in table(readme, heading).items():
        place = (REPOSITORY / readme).parent / name
        source = place / "__init__.py" if place.is_dir() else place
        if source.is_file():  # scripts, tests and benchmarks are no packages
            assert docstring(source) == text, name


@pytest.fixture(scope="module")
def metadata(repository):
    parser = configparser.ConfigParser()
    parser.read(repository / "setup.cfg")
    return parser


def read_pins(path):
    return dict(line.split("==") for line in path.read_text().splitlines() if line and not line.startswith("#"))


@pytest.fixture(scope="module")
def pins(repository):
    return read_pins(repository / "constraints.txt")


def names_in(requirements):
    return [re.match(r"[\w-]+", line)[0] for line in requirements.split()]


def test_every_requirement_is_pinned(metadata, pins):
    extras = metadata["options.extras_require"]
    wanted = names_in(metadata["options"]["install_requires"] + extras["scoring"] + extras["training"] + extras["test"])
    assert set(wanted) - {"stereoset"} <= set(pins)  # one extra brings another


def test_the_space_is_tested_with_the_versions_of_everything_else_but_gradios_pillow(repository, metadata, pins):
    of_space = read_pins(repository / "constraints-space.txt")
    wanted = names_in(metadata["options"]["install_requires"] + metadata["options.extras_require"]["space"])
    assert {*wanted, "pytest", "selenium"} <= set(of_space)
    assert {name for name in of_space.keys() & pins if of_space[name] != pins[name]} == {"pillow"}


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
