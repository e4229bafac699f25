"""CONTRIBUTING's examples, followed literally: a copy of the checkout is edited so, and what they run passes."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.house import PACKAGES

BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<path>\S+))?\n(?P<code>.*?)^```$", re.M | re.S)
SECTIONS = ("A method", "A language", "A family of models", "A data set")


def blocks(repository, heading):
    """The fenced blocks under a heading: (language, path of the file that they are or change, code)."""
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return [(block["language"], block["path"], block["code"]) for block in BLOCK.finditer(section)]


def change(file, diff):
    """Put a diff's new lines in the place of its old ones, which stand in the file once."""
    lines = diff.splitlines(keepends=True)
    old = "".join(line[1:] for line in lines if line[0] != "+")
    new = "".join(line[1:] for line in lines if line[0] != "-")
    text = file.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{file.name} holds {text.count(old)} of\n{old}"
    file.write_text(text.replace(old, new), encoding="utf-8")


def follow(copy, run, language, path, code):
    """Do as one block says."""
    if language == "diff":
        change(copy / path, code)
    elif path:
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(code, encoding="utf-8")
    else:
        run([sys.executable, "-c", code] if language == "python" else ["bash", "-ec", code])


@pytest.fixture
def copy(repository, tmp_path):
    """A copy of the checkout's code and tests."""
    for folder in (*PACKAGES, "scripts", "tests"):
        shutil.copytree(repository / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "setup.cfg", tmp_path)
    return tmp_path


@pytest.fixture
def run(copy, one_thread_each):
    """run(command): a process in the copy, which has to succeed."""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    env = one_thread_each | {"PATH": path, "PYTHONPATH": str(copy), "HF_HOME": str(copy / "home")}

    def here(command):
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

    return here


@pytest.mark.parametrize("heading", SECTIONS)
def test_the_example_works_when_it_is_followed(repository, copy, run, heading):
    steps = blocks(repository, heading)
    assert steps[-1][:2] == ("python", None)  # every example ends in something that is seen to work
    for step in steps:
        follow(copy, run, *step)


def test_the_files_that_are_named_are_there(repository):
    text = (repository / "CONTRIBUTING.md").read_text(encoding="utf-8")
    made = {path for heading in SECTIONS for _, path, _ in blocks(repository, heading)}
    named = set(re.findall(r"`((?:stereoset_|tests/)[\w/]+(?:\.py|\.md|/))`", text)) - made
    assert {path for path in named if not (repository / path).exists()} == set()
