"""A checkpoint of the hub or of a folder, as a source of heads."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch import nn

from stereoset_scoring.checkpoints.adapters import find_adapter
from stereoset_scoring.checkpoints.families import family_of, knows
from stereoset_scoring.checkpoints.heads import Head, how_to_train, make_engine, without_adapter, words
from stereoset_scoring.checkpoints.next_sentence_head import NextSentenceModel, TrainedHead, find_trained_head
from stereoset_scoring.checkpoints.opening import Loading, open_weights
from stereoset_scoring.checkpoints.placement import Placement
from stereoset_scoring.checkpoints.precision import cast, dtype_named, fits_together, suit
from stereoset_scoring.checkpoints.repository import Repository
from stereoset_scoring.engines.prepacked import prepack
from stereoset_scoring.questions.tokenizer_files import load_tokenizer
from stereoset_scoring.refusal import MissingHead, Refusal


class Checkpoint:
    """A checkpoint of the hub or of a folder; its heads are loaded when they are first asked.

    Args:
        name: hub id or folder.
        loading: which state of it is loaded, and how; None for the checkpoint's own dtype, at its head.
        placement: where it goes; None for this process's own device.
        next_sentence_head: path of a trained next-sentence head, see `find_trained_head`.
        next_sentence_pooling: what that head reads, where its files do not say so.

    Attributes:
        trained: how the next-sentence head was trained that was given or that the checkpoint is: a HeadSpec; None
            where there is none.
        commit: the hub's commit that the files come from; None for a folder.
        base: the hub id or folder of the model that this is an adapter of; None for a whole model.

    Raises:
        Refusal: if it is a kind of model that has no methods here, or shall go to two places.
        OSError: if there is no such checkpoint within reach.
    """

    def __init__(
        self,
        name: str | Path,
        loading: Loading | None = None,
        placement: Placement | None = None,
        *,
        next_sentence_head: str | Path | None = None,
        next_sentence_pooling: str | None = None,
    ):
        loading, placement = loading or Loading(), placement or Placement()
        own = Repository(name, loading.revision, loading.trust_remote_code)
        self.name, self.revision, self.commit = own.name, loading.revision, own.commit
        self.dtype = dtype_named(loading.dtype)
        self._loading, self._placement, self._spread = loading, placement, placement.spread()
        self.device = placement.chosen_device()
        self._adapter = find_adapter(own)
        self._base = own if self._adapter is None else self._adapter.base()
        self.base = None if self._adapter is None else self._base.name
        self.config = self._base.config
        self._trained_head = find_trained_head(self.name, next_sentence_head, next_sentence_pooling, self.revision)
        self.trained = None if self._trained_head is None else self._trained_head.spec
        self.next_sentence_head = None if self._trained_head is None else self._trained_head.path
        self.family = self._family(alone=next_sentence_head is None)
        if self._adapter is not None:
            self._adapter.check(self.family)
        spoken = own if self._adapter is None or own.file("tokenizer_config.json") else self._base
        self.tokenizer = load_tokenizer(spoken.name, self.config, **spoken.where)
        self._heads: dict[str, Head] = {}

    def _family(self, alone: bool) -> str:
        """family_of the configuration; "next_sentence" where the trained head is all there is to ask."""
        if self.trained is None:
            return family_of(self.config)
        try:
            return "next_sentence" if alone else family_of(self.config)
        except Refusal:
            return "next_sentence"

    def head(self, name: str) -> Head:
        """A head by its name, such as "masked"; loaded at the first call.

        Raises:
            MissingHead: if the architecture has no such head, or the checkpoint lacks weights for it: the
                library would draw them at random.
            Refusal: if it cannot be loaded so.
        """
        if name not in self._heads:
            self._heads[name] = self._load(name)
        return self._heads[name]

    def _load(self, head: str) -> Head:
        if head == "next_sentence" and self._trained_head is not None:
            return self._load_trained(self._trained_head)
        if not knows(head, self.config) and not self._base.trust_remote_code:
            raise MissingHead(
                f"A {self.config.model_type} model has no {words(head)} head: choose another method or checkpoint"
                f"{how_to_train(head)}."
            )
        how = self._how()
        model: Any
        model, report = open_weights(self._base, head, self.dtype, how)
        dtype = "auto" if self._placement.is_quantized else self.dtype  # quantized weights stay as they are
        if dtype != "auto":
            cast(model, dtype)
        elif not self._placement.is_quantized and not fits_together(model):
            cast(model, model.config.dtype)
        suit(model)
        if self._adapter is not None:
            model = self._adapter.put_on(model, dtype)
        if "device_map" not in how:
            model = model.to(self.device)
        return self._asked(head, model, report["unexpected_keys"])

    def _how(self) -> dict[str, Any]:
        """What from_pretrained is told beside the name: where the weights go, and in which form."""
        how = dict(self._spread)
        if self._placement.is_quantized:
            how["quantization_config"] = self._placement.quantization_config
            how.setdefault("device_map", {"": self.device})  # quantized weights do not move afterwards
        if self._loading.attention is not None:
            how["attn_implementation"] = self._loading.attention
        return how

    def _load_trained(self, trained: TrainedHead) -> Head:
        if self._spread or self._placement.is_quantized or self._adapter:
            raise Refusal(
                f"{trained.path} is a trained next-sentence head, which is neither spread over devices nor quantized, "
                "and takes no adapter: load it on one device."
            )
        model, dropped = trained.load(self.config, self.dtype, self._base.trust_remote_code, self._loading.attention)
        return self._asked("next_sentence", model.to(self.device), dropped)

    def _asked(self, head: str, model: Any, unexpected: Iterable[str]) -> Head:
        """A loaded model as a Head that can be asked."""
        if self._loading.compile:
            for part in _without_heads(without_adapter(model)):
                part.compile(dynamic=True)
        elif not self._spread and not self._placement.is_quantized:
            prepack(model)
        return Head(make_engine(head, model.eval(), self.tokenizer), unexpected=unexpected)


def _without_heads(model: Any) -> list[nn.Module]:
    """What is compiled of a model: all but the heads, which the engines look into."""
    if isinstance(model, NextSentenceModel):
        return [model.core_model]
    if model.config.is_encoder_decoder:
        return [model.get_encoder(), model.get_decoder()]
    if model.base_model is model:
        raise Refusal(f"A {type(model).__name__} has no part below its head to compile: leave compile out.")
    return [model.base_model]
