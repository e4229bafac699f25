"""The README's promises: every snippet and every command in it is executed, as a newcomer would, in one folder."""

import os
import re
import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from stereoset_cli.main import COMMANDS
from stereoset_cli.methods import page
from stereoset_scoring.sample import build_model
from tests.completions import Completions, serving

# What a newcomer's machine has and this one lacks: a hub to name models on, and a cluster.
STAND_INS = {"bert-base-cased": "bert", "gpt2": "gpt2"}
LARGE = "meta-llama/Llama-3.1-405B"
SERVED = "http://localhost:8000/v1"
COMMAND = "bin/stereoset"
INSTALLED = "#!{}\nimport sys\nfrom stereoset_cli.main import main\nsys.exit(main())\n"  # as pip writes it
# What Python runs for them.
PROGRAMS = {"stereoset": [COMMAND], "python": [], "accelerate": ["-m", "accelerate.commands.accelerate_cli"]}
CHAT = (
    "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}"
)
PUBLISHED = '{"BERT-base": {"overall": {"intrasentence": {"lms": 83.02, "ss": 58.68, "icat": 68.61}}}}'


def blocks(repository, language):
    """The README's fenced blocks of a language, each with the heading it stands under."""
    text = (repository / "README.md").read_text(encoding="utf-8")
    found, heading = [], ""
    for part in re.finditer(r"^## (?P<heading>[^\n]+)$|^```(?P<language>\w+)\n(?P<code>.*?)^```$", text, re.M | re.S):
        heading = part["heading"] or heading
        if part["language"] == language:
            found.append((heading, part["code"]))
    return found


def make_chat_model(folder):
    """A tiny model with a chat template, and room for a conversation."""
    build_model(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = CHAT
    tokenizer.save_pretrained(folder)
    GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=1)).save_pretrained(folder)


def make_large_model(folder):
    """A tiny model of an architecture whose tensors can be parallel."""
    build_model(folder)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vocab_size = len(AutoTokenizer.from_pretrained(folder))
    LlamaForCausalLM(LlamaConfig(vocab_size=vocab_size, **sizes)).save_pretrained(folder)


@pytest.fixture(scope="module")
def newcomer(repository, shared, warm_python, tmp_path_factory):
    """Runs commands in a folder with the checkout's scripts, a mirror, and models under their names.

    `run_warm` spares Python the imports, which take longer than all else; tests/test_packaging.py runs the programs
    with them.
    """
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "scripts").symlink_to(repository / "scripts")
    (folder / "mirror").symlink_to(shared / "upstream")
    for name, model in STAND_INS.items():
        (folder / name).symlink_to(shared / "oracles" / "models" / model)
    make_chat_model(folder / "chat-model")
    make_large_model(folder / LARGE)
    (folder / "published.json").write_text(PUBLISHED)
    (folder / "bin").mkdir()
    (folder / COMMAND).write_text(INSTALLED.format(sys.executable))
    (folder / COMMAND).chmod(0o755)
    sentences = "This is document {0}. It is about the number {0}. That is all of it."
    (folder / "corpus.txt").write_text("\n\n".join(map(sentences.format, range(50))), encoding="utf-8")
    env = warm_python.environment | {
        "CUDA_VISIBLE_DEVICES": "",
        "PATH": f"{folder / 'bin'}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
    }

    def run(*words):
        done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run_warm(*words):
        done = warm_python.run([sys.executable, *words], cwd=folder, env=env)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    run_warm("scripts/install.py", "--data-dir", "mirror")
    model, tokenizer = (one.from_pretrained(folder / "gpt2") for one in (GPT2LMHeadModel, AutoTokenizer))
    with serving(Completions(model, tokenizer, name="gpt2")) as address:
        yield SimpleNamespace(folder=folder, run=run, run_warm=run_warm, address=address)


@pytest.mark.thorough
def test_every_command_works(repository, newcomer):
    for _, code in blocks(repository, "bash"):
        for line in code.splitlines():
            command = limited(line.partition("  #")[0].strip(), newcomer.address)
            program, *words = shlex.split(command)
            if program == "export":  # every command runs offline here
                continue
            if program == "make":  # in earnest it would make environments, and run this test
                newcomer.run("make", "--dry-run", "--always-make", "--directory", str(repository), *words)
            elif program == "sbatch":  # tests/test_project.py runs the script with a cluster's commands faked
                newcomer.run("bash", "-n", next(word for word in words if word.endswith(".slurm")))
            else:
                newcomer.run_warm(*PROGRAMS[program], *words)


def limited(command, address=""):
    """The command, on the first examples only and on the processes there are; with the data that are here already."""
    command = command.replace(SERVED, address)
    if command.startswith("stereoset fetch"):  # tests/dataset/test_mirror.py has servers to fetch from
        return f"{command} --configs intrasentence_de intersentence_de"
    if command.startswith("stereoset export dataset"):
        return f"{command} --configs intrasentence_de crows_pairs_fr"
    if not re.search(r"score\.py|stereoset_cli\.score|stereoset score", command):
        return command
    return re.sub(r"--num_processes \d+", "--num_processes 1", command) + " --limit 5"


@pytest.mark.thorough
def test_every_snippet_runs(repository, newcomer, torchrun):
    for _, code in blocks(repository, "bash"):
        for command in filter(lambda line: "train_next_sentence.py" in line, code.splitlines()):
            _, *words = shlex.split(command)
            newcomer.run_warm(*PROGRAMS["accelerate"], *words, "--resume")  # read by a snippet
    snippets = [code for _, code in blocks(repository, "python")]
    assert len(snippets) >= 5
    (newcomer.folder / "snippet.py").write_text(snippets[0], encoding="utf-8")
    printed = ""
    for snippet in snippets:
        (newcomer.folder / "snippet.py").write_text(snippet, encoding="utf-8")
        launcher = torchrun(2)[1:] if snippet.startswith("# torchrun") else []
        printed += newcomer.run_warm(*launcher, "snippet.py")
    assert re.search(r"^2 \{'ss': [\d.]+, 'lms': [\d.]+, 'icat': [\d.]+\}$", printed, re.M)


def test_the_options_named_are_those_of_the_commands(repository):
    text = (repository / "README.md").read_text(encoding="utf-8")
    source = "".join(path.read_text(encoding="utf-8") for path in (repository / "stereoset_cli").glob("*.py"))
    assert set(re.findall(r"`(--[a-z0-9-]+)", text)) <= set(re.findall(r'"(--[a-z0-9-]+)"', source))


def test_the_commands_named_are_those_there_are(repository):
    text = (repository / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `stereoset ([\w-]+)` \| (.*?) \| (.*) \|$", text, re.M)
    assert {name: what for name, _, what in rows} == {name: what for name, (_, what) in COMMANDS.items()}
    scripts = {script for _, door, _ in rows for script in re.findall(r"scripts/\w+\.py", door)}
    assert scripts == {f"scripts/{path.name}" for path in (repository / "scripts").glob("*.py")}


def test_the_page_of_methods_is_what_the_command_prints(repository):
    assert (repository / "stereoset_scoring" / "METHODS.md").read_text(encoding="utf-8") == page() + "\n"
