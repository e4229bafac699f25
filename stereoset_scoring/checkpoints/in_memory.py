"""A model that somebody holds, as a source of heads."""

from collections.abc import Mapping
from typing import Any

import torch
from accelerate.utils import extract_model_from_parallel
from torch import nn
from transformers import PreTrainedModel, ProcessorMixin
from transformers.models.auto.modeling_auto import MODEL_FOR_PRETRAINING_MAPPING_NAMES

from stereoset_scoring.checkpoints.families import architectures_of, family_of, knows
from stereoset_scoring.checkpoints.heads import Head, make_engine, without_adapter, words
from stereoset_scoring.checkpoints.next_sentence_head import NextSentenceModel
from stereoset_scoring.checkpoints.precision import takes_its_dtype
from stereoset_scoring.engines.devices import input_device
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import MissingHead, Refusal

LANGUAGE_MODELS = ("masked", "permutation", "causal", "seq2seq")


class ModelInMemory:
    """A model that somebody holds, maybe wrapped, maybe in training, with its tokenizer.

    Args:
        model: a transformers model with a language-model head, or a wrapper around one.
        tokenizer: its hub tokenizer, or the processor that holds it.

    Raises:
        Refusal: if it is no transformers model, or a kind that has no methods here.
    """

    revision: str | None = None
    commit: str | None = None
    base: str | None = None
    next_sentence_head: str | None = None

    def __init__(self, model: Any, tokenizer: Any):
        self.model = model = _unwrapped(model)
        self.config = model.config
        self._classes = [one.__name__ for one in type(without_adapter(model)).__mro__]
        self.name = str(self.config.name_or_path or type(model).__name__)
        hub = tokenizer.tokenizer if isinstance(tokenizer, ProcessorMixin) else tokenizer
        self.tokenizer = Tokenizer(hub, self.config)
        self.trained = model.spec if isinstance(model, NextSentenceModel) else None
        self.family = "next_sentence" if self.trained else family_of(self.config, self._classes)
        self._heads: dict[str, Head] = {}

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights."""
        return self.model.dtype

    @property
    def device(self) -> torch.device:
        """Where the model's inputs go."""
        return input_device(self.model)

    def head(self, name: str) -> Head:
        """A head by its name, such as "masked".

        Raises:
            MissingHead: if the model in memory does not have that head.
            Refusal: if it cannot be computed in its dtype.
        """
        if name not in self._heads:
            self._check(name)
            self._heads[name] = Head(make_engine(name, self.model, self.tokenizer))
        return self._heads[name]

    def _check(self, head: str) -> None:
        if not self._has(head):
            raise MissingHead(
                f"A {self._classes[0]} in memory has no {words(head)} head: choose another method, or give "
                f"a {' or a '.join(architectures_of(head, self.config)) or 'model that has one'}."
            )
        if not takes_its_dtype(without_adapter(self.model)):
            raise Refusal(
                f"The experts of a {self._classes[0]} cannot be computed in float64: give it in float32, or call "
                "its set_experts_implementation('eager') before."
            )

    def _has(self, head: str) -> bool:
        """Whether the model has a head: by its class, or by its projection to the vocabulary."""
        known: set[str | None] = set(architectures_of(head, self.config))
        if head == "next_sentence":
            known.add(NextSentenceModel.__name__)
            if knows(head, self.config):  # then the class for both tasks has this head beside the other
                known.add(MODEL_FOR_PRETRAINING_MAPPING_NAMES.get(self.config.model_type))
        if known & set(self._classes):
            return True
        return head in LANGUAGE_MODELS and without_adapter(self.model).get_output_embeddings() is not None


def _unwrapped(model: Any) -> Any:
    """The transformers model, maybe with an adapter, or the NextSentenceModel that somebody gave.

    Raises:
        Refusal: if it is something else.
    """
    if isinstance(model, nn.Module):
        if any(type(part).__name__ == "FullyShardedDataParallel" for part in model.modules()):
            raise Refusal("A FullyShardedDataParallel is not asked in parts: shard with fully_shard (FSDP version 2).")
        model = extract_model_from_parallel(model, keep_torch_compile=False)
        if isinstance(without_adapter(model), (PreTrainedModel, NextSentenceModel)):
            return model
    given = type(model).__name__
    if isinstance(model, str):
        raise Refusal(f"model is the text {model!r}: give a name or a folder as load_scorer's first argument.")
    if isinstance(model, Mapping):
        raise Refusal(f"model is a {given}, not a model: load its weights into a transformers model, and give that.")
    holders = [name for name, part in _parts(model) if isinstance(without_adapter(part), PreTrainedModel)]
    mend = f"the transformers model that it holds, its .{holders[0]}" if holders else "one, such as BertForMaskedLM"
    raise Refusal(f"A {given} is no transformers model: give {mend}, and its tokenizer.")


def _parts(holder: Any) -> list[tuple[str, Any]]:
    """What lies directly in an object: [(name, part), …]."""
    modules = holder.named_children() if isinstance(holder, nn.Module) else ()
    return [*modules, *getattr(holder, "__dict__", {}).items()]
