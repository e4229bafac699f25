"""Adapters of PEFT: little that was learned, to be put on a base model."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from stereoset_scoring.checkpoints.precision import Dtype, widen
from stereoset_scoring.checkpoints.repository import ADAPTER, Repository, read_json_object
from stereoset_scoring.checkpoints.weight_files import read_weights
from stereoset_scoring.refusal import Refusal, in_short

WEIGHTS = ("adapter_model.safetensors", "adapter_model.bin")
# What PEFT calls the tasks whose models have no language-model head, and those that tell one family from the others.
WITHOUT_WORDS = ("SEQ_CLS", "TOKEN_CLS", "QUESTION_ANS")
TEXT_TO_TEXT = {"SEQ_2_SEQ_LM": True, "CAUSAL_LM": False}


def find_adapter(repository: Repository) -> "Adapter | None":
    """The adapter that a repository holds; None where it holds none."""
    path = repository.file(ADAPTER)
    return None if path is None else Adapter(repository, read_json_object(path))


class Adapter:
    """An adapter and the base that it names.

    Args:
        repository: which holds it.
        described: what its adapter_config.json says.

    Raises:
        Refusal: if PEFT is missing, or it is an adapter for models without a language-model head.
    """

    def __init__(self, repository: Repository, described: Mapping[str, Any]):
        self.repository, self._task = repository, described.get("task_type")
        self._base, self._base_revision = described.get("base_model_name_or_path"), described.get("revision")
        if find_spec("peft") is None:
            raise Refusal(f"{self.name} is an adapter of PEFT, which is missing: pip install 'stereoset[peft]'.")
        if self._task in WITHOUT_WORDS:
            raise Refusal(f"{self.name} is an adapter for {self._task}, without words: give one of a language model.")

    @property
    def name(self) -> str:
        """The hub id or folder of the adapter."""
        return self.repository.name

    def base(self) -> Repository:
        """The Repository of the base, at the revision that the adapter names.

        Raises:
            Refusal: if it names none.
            OSError: if that is not within reach.
        """
        if not self._base or not isinstance(self._base, str):
            raise Refusal(f"{self.name} names no base model: write its name into {ADAPTER}.")
        beside = Path(self.name) / self._base
        name = beside if beside.is_dir() and not Path(self._base).is_dir() else self._base
        try:
            return Repository(name, self._base_revision, self.repository.trust_remote_code)
        except OSError as error:
            raise OSError(
                f"The base model {self._base} of the adapter {self.name} is not within reach: download it, or write "
                f"where it is into {ADAPTER} ({in_short(error)})"
            ) from error

    def check(self, family: str) -> None:
        """Refuse to be put on a base of another family.

        Raises:
            Refusal: if the adapter was learned for another.
        """
        if self._task in TEXT_TO_TEXT and TEXT_TO_TEXT[self._task] is not (family == "seq2seq"):
            raise Refusal(
                f"{self.name} is an adapter for {self._task}, and its base {self._base} is a {family} model: give the "
                "base that it was learned on."
            )

    def put_on(self, model: Any, dtype: Dtype = "auto") -> Any:
        """The model with the adapter on it, as PEFT makes it; weights narrower than the dtype are widened.

        Raises:
            Refusal: if the adapter has no weights, or they do not fit the model.
        """
        from peft import PeftConfig, get_peft_model

        weights = self._weights()
        _make_room(model, weights)
        where = {"revision": self.repository.commit or self.repository.revision}
        try:
            adapted = get_peft_model(model, PeftConfig.from_pretrained(self.name, **where))
            report = adapted.load_adapter(self.name, adapted.active_adapter, is_trainable=False, **where)
        except (ValueError, TypeError, KeyError, AttributeError, RuntimeError) as error:
            raise Refusal(
                f"The adapter {self.name} cannot be put on {self._base}: give the base that it was learned on, or save "
                f"the adapter again ({in_short(error)})."
            ) from error
        # What a learned prompt loads by itself the report calls unexpected.
        prompted = adapted.active_peft_config.is_prompt_learning
        astray = [*report.missing_keys, *(() if prompted else report.unexpected_keys)]
        if astray:
            raise Refusal(
                f"The adapter {self.name} does not fit {self._base} ({len(astray)} weights missing or unexpected, "
                f"first {astray[0]!r}): give the base that it was learned on."
            )
        if dtype != "auto":
            widen(adapted, dtype)
        return adapted

    def _weights(self) -> dict[str, torch.Tensor]:
        """{name: tensor} of the adapter."""
        for name in WEIGHTS:
            if (path := self.repository.file(name)) is not None:
                return read_weights(path)
        raise Refusal(f"{self.name} has an {ADAPTER} and no {WEIGHTS[0]}: copy the whole folder.")


def _make_room(model: Any, weights: Mapping[str, torch.Tensor]) -> None:
    """Give a model as many embeddings as an adapter brings, which was learned with tokens of its own.

    Raises:
        Refusal: if it does not bring all that then is new.
    """
    rows = {}
    for part in (model.get_input_embeddings(), model.get_output_embeddings()):
        names = [name for name, weight in model.named_parameters(remove_duplicate=False) if weight is part.weight]
        keys = [f"base_model.model.{name}" for name in names]
        brought = [len(weights[key]) for key in keys if key in weights]
        rows[names[0]] = brought[0] if brought else len(part.weight)
    if len(set(rows.values())) > 1:
        raise Refusal(f"The adapter brings embeddings of {rows}: save it again with both of them.")
    size = next(iter(rows.values()))
    if size != len(model.get_input_embeddings().weight):
        model.resize_token_embeddings(size, mean_resizing=False)
