"""A folder or a hub repository, all of one state: its files, its configuration, its commit."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any

from huggingface_hub.errors import StrictDataclassError
from transformers import CONFIG_MAPPING, AutoConfig
from transformers.utils.hub import cached_file, extract_commit_hash

from stereoset_scoring.refusal import Refusal, in_short

CONFIG, ADAPTER = "config.json", "adapter_config.json"


class Repository:
    """A folder, or a repository of the hub at one commit.

    Args:
        name: hub id or folder.
        revision: branch, tag or commit.
        trust_remote_code: whether code that comes with it may run.

    Attributes:
        commit: the hub's commit that the files come from; None for a folder.

    Raises:
        OSError: if it is not within reach, or describes neither a model nor an adapter.
    """

    def __init__(self, name: str | Path, revision: str | None = None, trust_remote_code: bool = False):
        self.name, self.revision, self.trust_remote_code = str(name), revision, trust_remote_code
        # The commit first, so that all files are of one state of the repository.
        try:
            described = find_file(self.name, CONFIG, revision) or find_file(self.name, ADAPTER, revision)
        except OSError as error:  # no such repository
            raise self._unreachable(str(error).splitlines()[0]) from error
        self.commit = extract_commit_hash(described or self._required(CONFIG), None)

    @property
    def where(self) -> dict[str, Any]:
        """What the library's from_pretrained is told beside the name."""
        return {"revision": self.commit or self.revision, "trust_remote_code": self.trust_remote_code}

    def file(self, name: str) -> str | None:
        """The path of a file; None where there is none."""
        return find_file(self.name, name, self.commit or self.revision)

    @cached_property
    def config(self) -> Any:
        """The transformers configuration.

        Raises:
            Refusal: if config.json describes no model that this version of transformers knows.
        """
        path = self.file(CONFIG) or self._required(CONFIG)
        described = read_json_object(path)
        foreign = described.get("model_type") not in CONFIG_MAPPING
        if foreign and "AutoConfig" in (described.get("auto_map") or {}) and not self.trust_remote_code:
            raise Refusal(
                f"{self.name} comes with code of its own, which nothing runs unasked: read that code, and give "
                "trust_remote_code=True if you trust it."
            )
        if foreign and not self.trust_remote_code:
            named = described.get("model_type")
            told = (
                f"names a model type {named!r} that this transformers does not know" if named else "has no model_type"
            )
            raise Refusal(f"{path} {told}: give the folder of a transformers model, or update transformers.")
        try:
            return AutoConfig.from_pretrained(self.name, **self.where)
        except (ValueError, TypeError, KeyError, AttributeError, StrictDataclassError) as error:
            raise Refusal(f"{path} describes no possible model: restore the file ({in_short(error)}).") from error

    def _required(self, name: str) -> str:
        """The path of a file.

        Raises:
            OSError: if it is not within reach.
        """
        try:
            path = cached_file(self.name, name, revision=self.revision)
        except OSError as error:
            raise self._unreachable(str(error).splitlines()[0]) from error
        if path is None:  # in a folder the library tolerates that
            raise self._unreachable(f"there is no {name}")
        return path

    def _unreachable(self, why: str) -> OSError:
        return OSError(
            f"{self.name} is neither a folder with a model nor within reach on the hub: check the name, or "
            f"download the model first ({why})"
        )


def find_file(name: str | Path, file: str, revision: str | None = None) -> str | None:
    """The path of a file of a folder or a hub repository; None where it has none within reach."""
    return cached_file(
        str(name),
        file,
        revision=revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
        _raise_exceptions_for_gated_repo=False,
    )


def read_json_object(path: str | Path) -> dict[str, Any]:
    """The object that a file of JSON holds, as a dict.

    Raises:
        Refusal: if it holds something else.
    """
    try:
        described = json.loads(Path(path).read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal(f"{path} is no JSON: restore the file, or download it again ({in_short(error)}).") from error
    if not isinstance(described, dict):
        raise Refusal(f"{path} holds no JSON object: restore the file, or download it again.")
    return described
