"""What a model reads and writes, for models that are refused for it."""

from collections.abc import Sequence
from typing import Any

import transformers
from transformers.models.auto import modeling_auto

from stereoset_scoring.refusal import Refusal

# What a model's main input is called -> what it holds.
READ = {
    "input_features": "audio",
    "input_values": "audio",
    "audio_values": "audio",
    "pixel_values": "images",
    "flattened_patches": "images",
}


def check_reads_text(config: Any, architectures: Sequence[str], known: bool) -> None:
    """Refuse an encoder-decoder that does not read and write text.

    Args:
        config: its configuration.
        architectures: names of the classes that it may be an instance of; where none is known, any of its type's.
        known: whether its type is among those that read and write text.

    Raises:
        Refusal: if its encoder reads something else, or it is no type that reads and writes text.
    """
    read = next(filter(None, map(_what_is_read, [*architectures, *_classes(config.model_type)])), None)
    # Of a type that does both, the checkpoint's own class decides.
    if read and (not known or any(map(_what_is_read, architectures))):
        raise Refusal(
            f"A {config.model_type} checkpoint reads {read}, not text: give a model whose encoder reads text."
        )
    if not known:
        raise Refusal(
            f"A {config.model_type} checkpoint is no encoder-decoder that reads and writes plain text: give another."
        )


def _classes(model_type: str) -> list[str]:
    """The names of all classes that transformers has for a type of model, in any of its tables."""
    tables = (table for name, table in vars(modeling_auto).items() if name.endswith("_MAPPING_NAMES"))
    names = (table.get(model_type) for table in tables)
    return [one for name in names if name for one in ((name,) if isinstance(name, str) else name)]


def _what_is_read(name: str) -> str | None:
    return READ.get(getattr(getattr(transformers, name, None), "main_input_name", ""))
