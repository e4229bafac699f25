"""A repository of the hub into the hub's cache: of all its files, those that scoring reads. Without torch."""

import hashlib
import json
import re
from glob import escape
from pathlib import Path

from huggingface_hub import HfApi, constants, snapshot_download
from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError, RevisionNotFoundError

from stereoset_scoring.refusal import Refusal

ADAPTER = "adapter_config.json"
# Files of weights, as transformers and PEFT look for them: of each, the first that there is.
MODELS = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
ADAPTERS = ("adapter_model.safetensors", "adapter_model.bin")
# Tokenizers keep their words in files of any name, so what is not needed is listed here: other folders, weights, media.
LARGE = "safetensors bin h5 msgpack ot onnx onnx_data gguf ggml pt pth ckpt tflite mlmodel npz parquet arrow"
PACKED = "zip tar gz 7z pdf png jpg jpeg gif webp svg mp4 wav mp3 csv ipynb"
IGNORED = ["*/*", *(f"*.{ending}" for ending in f"{LARGE} {PACKED}".split())]


def fetch_model(name: str, revision: str | None = None) -> Path:
    """Have in the hub's cache what scoring reads of a model or of an adapter; what is there already stays.

    Args:
        name: hub id.
        revision: branch, tag or commit.

    Returns:
        The cache's folder of the commit.

    Raises:
        Refusal: if it has no weights that scoring reads, or they were damaged on their way.
        OSError: if it is not within reach, or the cache cannot be written to.
    """
    if constants.HF_HUB_OFFLINE:
        raise OSError(f"{name} is not fetched, for HF_HUB_OFFLINE is set: unset it where there is internet.")
    try:
        folder = Path(snapshot_download(name, revision=revision, ignore_patterns=IGNORED))
        weights = weight_files(HfApi().list_repo_files(name, revision=folder.name), folder)
        if weights:
            snapshot_download(name, revision=folder.name, allow_patterns=[escape(file) for file in weights])
    except Refusal:
        raise
    except Exception as error:  # each transport has its own
        raise OSError(_told(name, revision, error)) from error
    if not weights:
        raise Refusal(f"{name} has none of {', '.join(MODELS + ADAPTERS)}: give a repository with such weights.")
    for file in weights:
        _check_sum(name, folder / file)
    return folder


def weight_files(names: list[str], folder: Path) -> list[str]:
    """Which of a repository's files scoring reads weights from.

    Args:
        names: all that the repository holds.
        folder: where the small ones lie, the indices of weights among them.

    Raises:
        Refusal: if an index names no files.
    """
    weights: list[str] = []
    for files in (MODELS, ADAPTERS):
        file = next(filter(names.__contains__, files), None)
        if file is not None:
            weights += _shards(folder / file) if file.endswith(".json") else [file]
    return weights


def base_of(folder: Path) -> tuple[str, str | None] | None:
    """(name, revision) of the model that an adapter is for; None of what is no adapter.

    Raises:
        Refusal: if the adapter names none.
    """
    if not (folder / ADAPTER).is_file():
        return None
    described = _read_object(folder / ADAPTER)
    name = described.get("base_model_name_or_path")
    if not name or not isinstance(name, str):
        raise Refusal(f"{folder / ADAPTER} names no base model: fetch it by its own name.")
    return name, described.get("revision")


def _shards(index):
    names = _read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(name, str) for name in names.values()):
        raise Refusal(f"{index} has no weight_map from weights to files: the repository cannot be used.")
    return sorted(set(names.values()))


def _read_object(path):
    try:
        described = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        described = None
    if not isinstance(described, dict):
        raise Refusal(f"{path} holds no JSON object: the repository cannot be used.")
    return described


def _check_sum(name, path):
    """The cache calls a large file by its sha256: hold it to that."""
    blob = path.resolve()
    if not re.fullmatch(r"[0-9a-f]{64}", blob.name):
        return
    with open(blob, "rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != blob.name:
        path.unlink()
        blob.unlink()
        raise Refusal(f"{path.name} of {name} was damaged on its way and is removed: fetch it again.")


def _told(name, revision, error):
    """Why a repository cannot be had, and the mend."""
    if isinstance(error, GatedRepoError):
        return f"{name} is for those who accepted its terms: do so on its page of the hub, then log in (hf auth login)."
    if isinstance(error, RepositoryNotFoundError):
        return f"{name} is not on the hub, or is private: check the name, or log in (hf auth login)."
    if isinstance(error, RevisionNotFoundError):
        return f"{name} has no revision {revision!r}: give a branch, a tag or a commit of it."
    if isinstance(error, HFValidationError):
        return f"{name!r} is no name on the hub: give one such as bert-base-cased or owner/model."
    why = " ".join(str(error).split()) or type(error).__name__
    return f"{name} cannot be fetched ({why[:300]}): check network and disk; the same command goes on from there."
