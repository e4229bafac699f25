"""What the folders of the house are, and what their files import; read from the source, nothing is run."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("stereoset_dataset", "stereoset_metric", "stereoset_scoring", "stereoset_report", "stereoset_cli")


def modules(package: str) -> dict[str, Path]:
    """{dotted name: file} of all modules of a package; the package itself is one of them."""
    return {_dotted(path): path for path in sorted((REPOSITORY / package).rglob("*.py"))}


def _dotted(path: Path) -> str:
    parts = path.relative_to(REPOSITORY).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache  # many rules ask it of the same files
def imports_of(path: Path, annotations: bool = True) -> frozenset[str]:
    """All that a file imports anywhere, inside functions too: "torch", "transformers.AutoModel", a module of ours.

    Args:
        path: the file.
        annotations: whether to count what is imported under TYPE_CHECKING, for annotations alone.
    """
    tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
    for node in ast.walk(tree if annotations else _Running().visit(tree)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {_one(f"{_origin(node, path)}.{alias.name}") for alias in node.names}
    return frozenset(found)


class _Running(ast.NodeTransformer):
    """A tree without what type checkers alone read."""

    def visit_If(self, node):
        return None if ast.unparse(node.test).endswith("TYPE_CHECKING") else self.generic_visit(node)


def _origin(node: ast.ImportFrom, path: Path) -> str:
    """Where names come from, relative imports made whole."""
    if not node.level:
        return node.module
    here = path.relative_to(REPOSITORY).parts[: -node.level]
    return ".".join([*here, node.module] if node.module else here)


def _one(name: str) -> str:
    """The module of ours that a dotted name lies in, which may be the name itself; other names as they are."""
    if not is_within(name, *PACKAGES):
        return name
    place = REPOSITORY.joinpath(*name.split("."))
    return name if place.with_suffix(".py").is_file() or place.is_dir() else name.rpartition(".")[0]


def is_within(name: str, *parents: str) -> bool:
    """Whether a dotted name is one of some modules or lies below it."""
    return any(name == parent or name.startswith(f"{parent}.") for parent in parents)


def importers(package: str, *names: str) -> set[str]:
    """The modules of a package that import any of some names, or something below it."""
    return {
        module for module, path in modules(package).items() if any(is_within(one, *names) for one in imports_of(path))
    }


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Match)


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions and methods of a file, those inside of others too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def nested_comprehensions(path: Path) -> list[str]:
    """Where a comprehension of a file holds another one: "parsing.py:20"."""
    comprehensions = filter(_is_comprehension, ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    return [f"{path.name}:{node.lineno}" for node in comprehensions if sum(map(_is_comprehension, ast.walk(node))) > 1]


def _is_comprehension(node: ast.AST) -> bool:
    return isinstance(node, COMPREHENSIONS)


def depth(node: ast.AST) -> int:
    """How deep blocks lie within each other below a node; an elif lies in the else of its if, and so deeper."""
    return max((isinstance(child, BLOCKS) + depth(child) for child in ast.iter_child_nodes(node)), default=0)


def docstring(path: Path) -> str:
    """The first paragraph of a module's docstring, in one line."""
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(words.partition("\n\n")[0].split())


def source_folders() -> set[str]:
    """The folders of the checkout that hold source; neither hidden ones nor what is made and ignored."""
    ignored = [line.strip("/") for line in (REPOSITORY / ".gitignore").read_text().splitlines()]
    return {
        folder.name
        for folder in REPOSITORY.iterdir()
        if not folder.name.startswith(".")
        and not any(fnmatch(folder.name, pattern) for pattern in ignored)
        and any(folder.glob("**/*.py"))
    }
