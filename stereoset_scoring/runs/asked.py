"""What is asked of a run; no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from stereoset_scoring.served.server import Server

DEFAULTS = "defaults"  # among presets that are compared: none
SAMPLE, OWN_FILE = "sample", "file"  # splits, beside those of the data set


@dataclass(frozen=True)
class Model:
    """Who is asked.

    Attributes:
        name: hub id, folder or baseline; None for a tiny model, which is built in the output folder.
        revision, trust_remote_code, next_sentence_head: as `load_scorer` takes them.
        seed: of the random baseline.
        revisions: branches, tags, commits or folders of checkpoints, each scored after the other, in a folder of its
            own; empty for the one revision.
        server: where it is served; None where it is loaded.
        tokenizer: hub id or folder of a served model's tokenizer; None for its name.
    """

    name: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    next_sentence_head: Path | None = None
    seed: int = 0
    revisions: tuple[str, ...] = ()
    server: Server | None = None
    tokenizer: str | None = None

    def at(self, revision: str) -> "Model":
        """One of the revisions: a folder, also one inside the model's own, or a state of it on the hub."""
        folders = [Path(revision), *([Path(self.name) / revision] if self.name else [])]
        folder = next((one for one in folders if one.is_dir()), None)
        if folder is None:
            return replace(self, revision=revision, revisions=())
        return replace(self, name=str(folder), revisions=())


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
    def each(self) -> "list[Asked]":
        """What is asked of each revision, or all of it where there are none."""
        return [self._at(revision) for revision in self.model.revisions] or [self]

    def _at(self, revision: str) -> "Asked":
        name = name_of(revision)
        output = replace(self.output, folder=self.output.folder / name, label=f"{self.output.label} {name}".strip())
        return replace(self, model=self.model.at(revision), output=output)

    @property
    def folders(self) -> dict[str | None, Path]:
        """Where each part of a revision's run writes: {preset that is compared: its folder}, or {None: the folder}."""
        return {name: self.output.folder / (name or "") for name in self.manner.compared or (None,)}


def name_of(revision: str) -> str:
    """What a revision's folder is called: the last word of a branch's name or of a path."""
    return Path(revision).resolve().name if Path(revision).is_dir() else Path(revision).name
