"""Files of weights, read as data: nothing in them is run."""

import re
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file

from stereoset_scoring.checkpoints.repository import Repository, read_json_object
from stereoset_scoring.refusal import Refusal, in_short

# As the library looks for them.
FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
POINTER = b"version https://git-lfs"
UNREADABLE = (UnpicklingError, SafetensorError, RuntimeError, EOFError, ValueError, KeyError, AttributeError)


def read_weights(path: str | Path) -> dict[str, torch.Tensor]:
    """{name: tensor} of a .safetensors file, or of a file of torch.save that holds weights and nothing else.

    Raises:
        Refusal: if it is another file; code in it is never run.
    """
    try:
        if Path(path).suffix == ".safetensors":
            return load_file(path)
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except UNREADABLE as error:
        raise Refusal(_told(path, error)) from error
    if not isinstance(weights, Mapping) or not all(isinstance(tensor, torch.Tensor) for tensor in weights.values()):
        raise Refusal(f"{path} holds a {type(weights).__name__} that is no state dict: save model.state_dict().")
    return dict(weights)


def check_weights(repository: Repository) -> None:
    """Look through a repository's files of weights for one that cannot be read.

    Raises:
        Refusal: if there is one.
    """
    path = _first_file(repository)
    if path is None:
        return
    if path.suffix != ".json":
        read_weights(path)
        return
    for shard in sorted(set(_weight_map(path).values())):
        lies = repository.file(shard)
        if lies is None:
            raise Refusal(f"{path} names {shard}, which is not there: download all of the model's files.")
        read_weights(lies)


def names_of_weights(repository: Repository) -> set[str] | None:
    """The names of all weights in a repository's files, none of which is read; None where that cannot be told."""
    path = _first_file(repository)
    if path is None:
        return None
    try:
        if path.suffix == ".json":
            return set(_weight_map(path))
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as weights:
                return set(weights.keys())
        return set(torch.load(path, map_location="meta", weights_only=True, mmap=True))
    except (*UNREADABLE, OSError, TypeError):
        return None


def _first_file(repository: Repository) -> Path | None:
    """The file of weights that the library reads, or the index of several; None where there is none."""
    paths = (repository.file(name) for name in FILES)
    return next((Path(path) for path in paths if path is not None), None)


def _weight_map(index: Path) -> dict[str, str]:
    """{name of a weight: name of its file}, as an index says."""
    names = read_json_object(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise Refusal(f"{index} has no weight_map from weights to files: restore the file, or download it again.")
    return names


def _told(path: str | Path, error: Exception) -> str:
    """Why a file of weights cannot be read, and the mend."""
    with open(path, "rb") as file:
        begins = file.read(len(POINTER))
    if not begins:
        return f"{path} is no file of weights but empty: download it again."
    if begins == POINTER:
        return f"{path} is a pointer of Git LFS and not the file itself: fetch it with git lfs pull."
    if named := re.search(r"GLOBAL (\S+)", str(error)):
        return f"{path} is no file of weights: it names {named[1]}, and nothing in it is run; give a state dict."
    if isinstance(error, UnpicklingError):  # torch's own words say how to run what is in it
        return f"{path} is no file of weights, and nothing in it is run: give a state dict, as torch.save writes it."
    return f"{path} is no file of weights, or not the whole of one: download it again, or give one ({in_short(error)})."
