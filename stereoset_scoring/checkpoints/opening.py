"""Weights opened by the library, and its report read: nothing may be drawn at random."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers import PreTrainedModel

from stereoset_scoring.checkpoints.families import auto_class, knows, saved_without_head
from stereoset_scoring.checkpoints.heads import how_to_train, words
from stereoset_scoring.checkpoints.precision import Dtype
from stereoset_scoring.checkpoints.repository import Repository
from stereoset_scoring.checkpoints.weight_files import check_weights, names_of_weights
from stereoset_scoring.engines.budget import ran_out_of_memory
from stereoset_scoring.refusal import MissingHead, Refusal, in_short


@dataclass(frozen=True)
class Loading:
    """Which state of a checkpoint is loaded, and how.

    Attributes:
        dtype: a torch dtype or its name; None, or "auto", for the checkpoint's own.
        revision: branch, tag or commit.
        trust_remote_code: whether code that comes with the checkpoint may run.
        attention: the implementation of attention, as transformers calls it; None for transformers' own choice.
        compile: whether the model is compiled, its heads left out.
    """

    dtype: str | torch.dtype | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    attention: str | None = None
    compile: bool = False


def open_weights(
    repository: Repository, head: str, dtype: Dtype, how: Mapping[str, Any]
) -> tuple[PreTrainedModel, Mapping[str, Any]]:
    """(model, the library's report) of a repository's weights with a head.

    Args:
        repository: where they are.
        head: "masked", "permutation", "causal", "seq2seq", "next_sentence" or "sentiment".
        dtype: a torch dtype, or "auto" for the checkpoint's own.
        how: what from_pretrained is told beside: where the weights go, how they are quantized, which attention.

    Raises:
        MissingHead: if the head is not in them.
        Refusal: if a file of weights cannot be read, or a library is missing.
        OSError: if there are no weights within reach.
    """
    if head == "next_sentence":
        _check_lacking(repository, head, _lacking_by_name(repository, head))
    model, report = _from_pretrained(repository, head, dtype, how)
    mismatched = [key for key, *_ in report["mismatched_keys"]]
    _check_lacking(repository, head, [*sorted(report["missing_keys"]), *sorted(mismatched)])
    if saved_without_head(repository.config):
        raise MissingHead(
            f"{repository.name} was saved as a {repository.config.architectures[0]}, without a {words(head)} head; its "
            "tied embeddings would stand in for one that nobody trained: choose a checkpoint that was saved with it."
        )
    return model, report


def _check_lacking(repository: Repository, head: str, lacking: Sequence[str]) -> None:
    if lacking:
        raise MissingHead(
            f"{repository.name} holds no {words(head)} head that fits ({len(lacking)} weights missing or of another "
            f"shape, first {lacking[0]!r}), and a random one says nothing: choose another method or checkpoint"
            f"{how_to_train(head)}."
        )


def _lacking_by_name(repository: Repository, head: str) -> list[str]:
    """The weights of a head that a repository's files lack, so far as names alone tell; nothing is loaded.

    Told only where the files name nothing at all that could belong to such a part of the model: they may also call it
    otherwise, which the library knows and this does not. For heads of which no weights are tied.
    """
    saved = names_of_weights(repository)
    if saved is None or not knows(head, repository.config):
        return []
    with torch.device("meta"):
        model = auto_class(head, repository.config).from_config(repository.config)
    lacking = sorted(model.state_dict().keys() - saved)
    mentioned = "\n".join(saved)
    return [] if any(_part_of(name) in mentioned for name in lacking) else lacking


def _part_of(name: str) -> str:
    """The part of a model that a weight belongs to, by its last two names: "pooler.dense" of bert.pooler.dense.bias."""
    return ".".join(name.split(".")[-3:-1])


def _from_pretrained(
    repository: Repository, head: str, dtype: Dtype, how: Mapping[str, Any]
) -> tuple[PreTrainedModel, Mapping[str, Any]]:
    try:
        # What does not fit is reported, and refused then.
        return auto_class(head, repository.config).from_pretrained(
            repository.name,
            dtype=dtype,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **how,
            **repository.where,
        )
    except ImportError as error:
        options = f" with {', '.join(how)}" if how else ""
        mend = "install it, or leave the option out" if how else "install it"
        raise Refusal(
            f"{repository.name} cannot be loaded{options}, for a library is missing: {mend} ({in_short(error)})."
        ) from error
    except Exception as error:  # whatever broken files make the library raise
        if ran_out_of_memory(error):
            raise
        check_weights(repository)
        if isinstance(error, OSError):
            raise OSError(
                f"The weights of {repository.name} are not within reach: copy or download all of its files "
                f"({in_short(error)})"
            ) from error
        raise Refusal(
            f"{repository.name} cannot be opened as a {words(head)}: mend its files or the options ({in_short(error)})."
        ) from error
