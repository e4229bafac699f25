"""What is asked of a run; no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEFAULTS = "defaults"  # among presets that are compared: none
SAMPLE, OWN_FILE = "sample", "file"  # splits, beside those of the data set


@dataclass(frozen=True)
class Model:
    """Who is asked.

    Attributes:
        name: hub id, folder or baseline; None for a tiny model, which is built in the output folder.
        revision, trust_remote_code, next_sentence_head: as `load_scorer` takes them.
        seed: of the random baseline.
    """

    name: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    next_sentence_head: Path | None = None
    seed: int = 0


@dataclass(frozen=True)
class Questions:
    """What is scored; the rows themselves come with the call.

    Attributes:
        split: "validation", "test", "sample" or "file".
        limit: how many examples of each task, the first ones; None for all.
        data_file: {"path": …, "sha256": …} of one's own file of examples; None for the published ones.
        selection: which examples count, in words; None for all.
    """

    split: str = "validation"
    limit: int | None = None
    data_file: Mapping[str, str] | None = None
    selection: str | None = None


@dataclass(frozen=True)
class Manner:
    """How it is asked.

    Attributes:
        method, preset: as `load_scorer` takes them.
        options: of the methods, by name.
        compared: two presets, or DEFAULTS, instead of one; empty for no comparison.
    """

    method: str | Mapping[str, str] | None = None
    preset: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    compared: tuple[str, ...] = ()


@dataclass(frozen=True)
class Placement:
    """How it is computed: arguments of `load_scorer`, under their names."""

    dtype: str | None = "auto"
    attention: str | None = None
    compile: bool = False
    tf32: bool = False
    device_map: str | None = None
    gpus_per_model: int | None = None
    quantization_config: Mapping[str, Any] | None = None
    max_tokens: int | None = None


@dataclass(frozen=True)
class Output:
    """What becomes of the scores.

    Attributes:
        folder: where the files go.
        label: what tables call the run.
        scale: what scores.json holds: "log" or "probability".
        keep_going: whether to leave out what cannot be scored, and to list it, instead of refusing all.
        restart: whether to set aside what the folder holds of earlier runs.
    """

    folder: Path
    label: str
    scale: str = "log"
    keep_going: bool = False
    restart: bool = False


@dataclass(frozen=True)
class Asked:
    """All of it."""

    model: Model
    questions: Questions
    manner: Manner
    placement: Placement
    output: Output

    @property
    def folders(self) -> dict[str | None, Path]:
        """Where each part of the run writes: {preset that is compared: a folder of its own}, or {None: the folder}."""
        return {name: self.output.folder / (name or "") for name in self.manner.compared or (None,)}
