"""Whether a hub tokenizer has a vocabulary of its own, or one that the library made up."""

from collections.abc import Sequence
from typing import Any

from stereoset_scoring.refusal import Refusal

# What classes may read beside their vocabulary.
OPTIONAL = {"tokenizer_file", "tokenizer_config_file", "normalizer_file", "entity_vocab_file", "target_vocab_file"}


def check_vocabulary(hub: Any) -> None:
    """Refuse a tokenizer that has no pieces: the library makes one up where a checkpoint's files are missing.

    What it makes up is what the class makes out of nothing; added tokens change nothing about that. Classes that are
    complete without files, such as those of bytes, name none.

    Raises:
        Refusal: if all its tokens are special, added, or made up.
    """
    if not getattr(type(hub), "vocab_files_names", None):
        return
    added, made_up = set(hub.get_added_vocab()), _made_up(type(hub))
    if len(hub) <= len(added) + len(made_up) and set(hub.get_vocab()) - added <= made_up:
        raise Refusal(
            f"The tokenizer {hub.name_or_path!r} has no vocabulary, for its files are missing or empty: "
            f"{mend(type(hub), vocabulary_files(type(hub)))}."
        )


def vocabulary_files(kind: Any) -> list[str]:
    """The files that a class of tokenizers reads its vocabulary from, where there is no tokenizer.json."""
    return [file for key, file in kind.vocab_files_names.items() if key not in OPTIONAL]


def reads_tokenizer_json(kind: type) -> bool:
    """Whether a tokenizer.json holds all that a class of tokenizers needs."""
    from transformers import PreTrainedTokenizerFast  # here, for it takes seconds, and methods name this room's classes

    return issubclass(kind, PreTrainedTokenizerFast)


def mend(kind: type, files: Sequence[str]) -> str:
    """What to do where a checkpoint lacks files that its class of tokenizers reads."""
    either = [" and ".join(files)] if files else []
    if reads_tokenizer_json(kind):
        either.append("tokenizer.json")
    return f"put {' or '.join(either)} beside its config.json"


def _made_up(kind: type) -> set[str]:
    """The vocabulary that a class makes out of nothing; empty where it makes none, or one with letters in it."""
    try:
        vocabulary = set(kind().get_vocab())
    except Exception:  # each class fails in its own way, and all that matters is that it does
        return set()
    return set() if any(len(piece) == 1 and piece.isalpha() for piece in vocabulary) else vocabulary
