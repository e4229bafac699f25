"""A checkpoint's tokenizer from its files, or one sentence about what is wrong with them."""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as Backend
from transformers import AutoTokenizer
from transformers.models.auto.tokenization_auto import TOKENIZER_MAPPING_NAMES, tokenizer_class_from_name
from transformers.utils.hub import cached_file

from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.questions.vocabulary import mend, reads_tokenizer_json, vocabulary_files
from stereoset_scoring.refusal import Refusal

COMMON = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")


def load_tokenizer(name: str | Path, config: Any = None, **where: Any) -> Tokenizer:
    """The Tokenizer of a checkpoint.

    Args:
        name: hub id or folder.
        config: the configuration of its model.
        where: revision and trust_remote_code, as transformers takes them.

    Raises:
        Refusal: if its files are missing, cut off or of another layout, or a library that it needs is not installed.
    """
    try:
        hub = AutoTokenizer.from_pretrained(name, **where)
    except ImportError as error:
        raise Refusal(
            f"The tokenizer of {name} needs a library that is not there: install it ({_first_line(error)})."
        ) from error
    except Exception as error:  # whatever the many libraries below raise for a file that is not what they think
        raise Refusal(_fault(name, where, error)) from error
    tokenizer = Tokenizer(hub, config)
    unmerged = _unmerged(hub, _folder(name, where))
    if unmerged:  # read without merges, each letter is a piece
        raise Refusal(f"The tokenizer of {name} has no merges: {mend(type(hub), [unmerged])}.")
    return tokenizer


def _unmerged(hub, folder):
    """The file of merges that a tokenizer reads, should it be missing or empty and yet there be pieces to merge."""
    file = type(hub).vocab_files_names.get("merges_file")
    if file is None or _reads_one_file(type(hub), folder) or _has_merges(folder / file):
        return None
    pieces = set(hub.get_vocab()) - set(hub.get_added_vocab())
    return file if any(len(piece.removesuffix("</w>").removesuffix("@@")) > 1 for piece in pieces) else None


def _has_merges(path):
    return path.is_file() and any(len(line.split()) > 1 and line[0] != "#" for line in path.open(encoding="utf-8"))


def _fault(name, where, error):
    """What is wrong with the files of a tokenizer that could not be loaded, and the mend."""
    folder = _folder(name, where)
    kind = _kind(folder)
    for file in (*COMMON, *vocabulary_files(kind)):
        reason = _unreadable(folder / file)
        if reason:
            return f"The file {file} of {name} {reason}: download it again, or save the tokenizer anew."
    lacking = _lacking(kind, folder)
    if lacking:
        return f"The tokenizer of {name} lacks {' and '.join(lacking)}: {mend(kind, lacking)}."
    return (
        f"The tokenizer of {name} cannot be loaded ({_first_line(error)}): "
        "save it anew with this version of transformers."
    )


def _folder(name, where):
    """The folder that a checkpoint's files lie in: its own, or the one of its commit in the hub's cache."""
    if Path(name).is_dir():
        return Path(name)  # an adapter's has no config.json
    return Path(cached_file(name, "config.json", revision=where.get("revision"))).parent


def _kind(folder):
    """The class that a folder's tokenizer is of, as far as its files tell."""
    named = _content(folder / "tokenizer_config.json").get("tokenizer_class")
    named = named or _content(folder / "config.json").get("tokenizer_class")
    named = named or TOKENIZER_MAPPING_NAMES.get(_content(folder / "config.json").get("model_type"))
    return (named and tokenizer_class_from_name(named)) or tokenizer_class_from_name("TokenizersBackend")


def _content(path):
    """The object in a JSON file; an empty one where there is none."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _lacking(kind, folder):
    """The files that a class of tokenizers reads its vocabulary from and a folder lacks; none beside tokenizer.json."""
    if _reads_one_file(kind, folder):
        return []
    return [file for file in vocabulary_files(kind) if not (folder / file).is_file()]


def _reads_one_file(kind, folder):
    """Whether all that a class needs is the folder's tokenizer.json."""
    return reads_tokenizer_json(kind) and (folder / "tokenizer.json").is_file()


def _unreadable(path):
    """What is wrong with one file; None if nothing is, or there is none."""
    if not path.is_file():
        return None
    if not path.stat().st_size:
        return "is empty"
    try:
        _read(path)
    except ImportError:
        return None
    except Exception:  # as above
        return "is cut off or not what its name says"
    return None


def _read(path):
    """Read a file of a tokenizer as the libraries do; whatever they raise if they cannot."""
    if path.suffix == ".json":
        if not isinstance(json.loads(path.read_bytes()), dict):
            raise ValueError("not an object")
        if path.name == "tokenizer.json":
            Backend.from_file(str(path))
    elif path.suffix in (".model", ".spm"):
        from sentencepiece import SentencePieceProcessor  # an extra of transformers

        SentencePieceProcessor(model_file=str(path))
    else:
        path.read_text(encoding="utf-8")


def _first_line(error):
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].strip().rstrip(".:")
