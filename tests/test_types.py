"""Types are part of what is published: every package says that it has them, and the foundations have them all."""

from configparser import ConfigParser

import pytest

from tests.house import PACKAGES, functions_of, modules

STRICT = ("planning", "files", "methods")  # as pyproject.toml has it for mypy


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
        for function in functions_of(path):
            assert unannotated(function) == [], f"{path.name}: {function.name}"


def test_every_public_function_is_annotated():
    missing = {module for package in PACKAGES for module, path in modules(package).items() if lacks_types(path)}
    assert missing == set()


def lacks_types(path):
    """Whether a public function of a file, or the making of an object, is not annotated in full."""
    public = [one for one in functions_of(path) if one.name == "__init__" or not one.name.startswith("_")]
    return any(map(unannotated, public))
