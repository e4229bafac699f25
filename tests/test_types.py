"""Types are part of what is published: every package says that it has them, and the foundations have them all."""

import ast
from configparser import ConfigParser

import pytest

STRICT = ("planning", "files")  # as pyproject.toml has it for mypy


def test_every_package_says_that_it_is_typed(repository):
    packages = {path.parent for path in repository.glob("stereoset_*/__init__.py")}
    assert len(packages) >= 5
    assert [package.name for package in packages if not (package / "py.typed").is_file()] == []
    setup = ConfigParser()
    setup.read(repository / "setup.cfg")
    assert "py.typed" in setup["options.package_data"]["*"].split(", ")


def unannotated(function):
    """The names of a function's parameters, and "return", that have no annotation."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    missing = [one.arg for one in parameters if one.annotation is None and one.arg not in ("self", "cls")]
    return missing + (["return"] if function.returns is None and function.name != "__init__" else [])


@pytest.mark.parametrize("room", STRICT)
def test_every_signature_of_the_foundations_is_annotated(repository, room):
    for path in (repository / "stereoset_scoring" / room).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                assert unannotated(node) == [], f"{path.name}: {node.name}"
