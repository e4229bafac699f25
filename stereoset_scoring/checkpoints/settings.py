"""What a model's outputs depend on beside its weights, as plain data: two that agree in both are one model."""

import hashlib
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

# What of a configuration says where it comes from, what is told elsewhere, or what is done with outputs.
OF_PLACES = {
    "_name_or_path",
    "name_or_path",
    "_commit_hash",
    "transformers_version",
    "auto_map",
    "dtype",
    "torch_dtype",
}


def settings(model: Any) -> dict[str, Any]:
    """The configuration as loaded, how a trained head is asked, and the code that came with the checkpoint.

    Args:
        model: a transformers model, maybe with an adapter, or a NextSentenceModel.
    """
    spec = getattr(model, "spec", None)
    return {
        "configuration": _plain(model.config.to_dict()),
        "trained_head": spec and asdict(spec),
        "code_sha256": _code_sha256(model),
        "attention": getattr(model.config, "_attn_implementation", None),
        "compiled": any(part._compiled_call_impl is not None for part in model.modules()),
    }


def _plain(thing):
    """A configuration as JSON says it, the same after writing and reading."""
    if isinstance(thing, Mapping):
        return {str(name): _plain(value) for name, value in thing.items() if name not in OF_PLACES}
    if isinstance(thing, (list, tuple)):
        return [_plain(one) for one in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted(map(str, thing))
    if thing is None or isinstance(thing, (str, int)) or (isinstance(thing, float) and math.isfinite(thing)):
        return thing
    return str(thing)


def _code_sha256(model: Any) -> str | None:
    """sha256, as hex, over the code that came with a checkpoint; None where the library's own is run."""
    names = {type(part).__module__ for part in model.modules()}
    foreign = [str(sys.modules[name].__file__) for name in names if name.startswith("transformers_modules.")]
    if not foreign:
        return None
    digest = hashlib.sha256()
    for folder in sorted({Path(file).parent for file in foreign}, key=lambda folder: folder.name):
        for path in sorted(folder.glob("*.py")):
            digest.update(f"{path.name} {path.stat().st_size} ".encode() + path.read_bytes())
    return digest.hexdigest()
