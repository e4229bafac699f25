"""CONTRIBUTING's examples, followed literally: a copy of the checkout is edited so, and what they run passes."""

import re
import shlex
import shutil
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
        for words, printed_to in [(["-c", code], "")] if language == "python" else map(read, code.splitlines()):
            printed = run(words)
            if printed_to:
                (copy / printed_to).write_text(printed, encoding="utf-8")


def read(line):
    """(what Python is asked for, the file that it prints to) of a line of a shell."""
    command, _, printed_to = line.partition(" > ")
    program, *words = shlex.split(command)
    assert program == "python"
    return words, printed_to


@pytest.fixture
def copy(repository, tmp_path):
    """A copy of the checkout's code and tests."""
    for folder in (*PACKAGES, "scripts", "tests"):
        shutil.copytree(repository / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "setup.cfg", tmp_path)
    return tmp_path


@pytest.fixture
def run(copy, warm_python):
    """run(words): Python in the copy, which has to succeed; what it prints."""
    env = warm_python.environment | {"PYTHONPATH": str(copy)}

    def here(words):
        done = warm_python.run([sys.executable, *words], cwd=copy, env=env)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return here


@pytest.mark.thorough
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
