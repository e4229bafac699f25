"""The sample's model kept where it was built: training it takes seconds, which a second run need not spend."""

import hashlib
from importlib.metadata import version
from pathlib import Path
from typing import Any

from stereoset_scoring.files.store import read_json, write_json

MADE = "made.json"  # in the model's folder: by what it was built, and what came of it
LIBRARIES = ("torch", "transformers", "tokenizers")


def keep_model(folder: str | Path) -> None:
    """Build the sample's model, if the folder does not hold it as these versions have built it.

    Args:
        folder: where the checkpoint is, or goes.

    Raises:
        OSError: if the folder cannot be written to.
    """
    folder = Path(folder)
    if not _is_there(folder):
        from stereoset_scoring.sample.model import build_model  # here, for it imports a model's code

        build_model(folder)
        files = {path.name: _sha256(path) for path in sorted(folder.iterdir()) if path.name != MADE}
        write_json(folder / MADE, {"by": _made_by(), "files": files})


def _is_there(folder: Path) -> bool:
    """Whether a folder holds what its MADE says, built by the code and the libraries of today."""
    try:
        made = read_json(folder / MADE)
        return made["by"] == _made_by() and all(_sha256(folder / name) == sha for name, sha in made["files"].items())
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # absent, or not of this kind
        return False


def _made_by() -> dict[str, Any]:
    """All that the model depends on, beside the machine."""
    own = sorted(path for path in Path(__file__).parent.iterdir() if path.is_file())
    return {**{path.name: _sha256(path) for path in own}, **{name: version(name) for name in LIBRARIES}}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
