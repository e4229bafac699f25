"""A loaded head: a model that an engine can ask."""

import inspect
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from stereoset_scoring.checkpoints.families import MULTIMODAL
from stereoset_scoring.checkpoints.fingerprints import fingerprint
from stereoset_scoring.checkpoints.precision import why_it_fails
from stereoset_scoring.checkpoints.settings import settings
from stereoset_scoring.engines.base import Engine
from stereoset_scoring.engines.kinds import engine_for
from stereoset_scoring.engines.prepacked import packed_matrices
from stereoset_scoring.engines.sharing import longest_side
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal, in_short

WORDS = {"masked": "masked-language-model", "causal": "causal-language-model", "seq2seq": "encoder-decoder"}


class Head:
    """One loaded head of a checkpoint.

    Attributes:
        engine: what asks it.
        missing: names of weights that the head needs and the checkpoint lacks; always empty, since such a
            checkpoint is refused.
        unexpected: names of weights in the checkpoint that this head does not use.
    """

    def __init__(self, engine: Engine, missing: Iterable[str] = (), unexpected: Iterable[str] = ()):
        self.engine = engine
        self.missing = tuple(sorted(missing))
        self.unexpected = tuple(sorted(unexpected))

    @cached_property
    def longest_input(self) -> int | None:
        """How many tokens the model reads at most; None where there is no limit."""
        return longest_input(self.engine.model)

    @cached_property
    def longest_decoder(self) -> int | None:
        """How many tokens the decoder reads at most, its start token included; None where there is no limit or none."""
        config = self.engine.model.config
        return longest_side(config, "decoder") if config.is_encoder_decoder else None

    @property
    def fingerprint(self) -> str:
        """sha256 over names, shapes, dtypes and bytes of the weights as they lie in memory now."""
        return fingerprint(self.engine.model)

    @property
    def settings(self) -> dict:
        """What the model's outputs depend on beside the weights, see `checkpoints.settings`."""
        return settings(self.engine.model)

    @property
    def record(self) -> dict[str, Any]:
        """What was loaded, and how, as a record says it."""
        model = self.engine.model
        return {
            "architecture": type(model).__name__,
            "dtype": str(model.dtype).removeprefix("torch."),
            "weights_sha256": self.fingerprint,
            **self.settings,
            "devices": devices(model),
            "quantization": quantization(model),
            "packed_matrices": packed_matrices(model),
            "shared_prefixes": self.engine.shares_prefixes,
            "sharing": _sharing(self.engine),
            "missing": list(self.missing),
            "unexpected": list(self.unexpected),
        }


def _sharing(engine: Any) -> str | None:
    """What the rows of an encoder-decoder share, as its trial found, such as "PASSES"; None for other models."""
    found = getattr(engine, "sharing", None)
    return None if found is None else str(found.name)


def devices(model: Any) -> list[str]:
    """Names of the devices that a model lies on, "disk" among them."""
    spread = getattr(model, "hf_device_map", {}).values()
    return sorted(set(map(str, spread or [parameter.device for parameter in model.parameters()])))


def quantization(model: Any) -> str | None:
    """The name of the method by which a model's weights are quantized; None where they are not."""
    config = getattr(model.config, "quantization_config", None)
    name = config.get("quant_method") if isinstance(config, dict) else getattr(config, "quant_method", None)
    return name and str(getattr(name, "value", name))


def make_engine(head: str, model: Any, tokenizer: Tokenizer) -> Engine:
    """The Engine that asks a head of a model.

    Args:
        head: "masked", "permutation", "causal", "seq2seq", "next_sentence" or "sentiment".
        model: a transformers model, maybe with an adapter, or a NextSentenceModel.
        tokenizer: the model's own.
    """
    pad = tokenizer.hub.pad_token_id
    accepts = inspect.signature(without_adapter(model).forward).parameters
    if head == "causal":
        _must_go_without_images(model)
    return engine_for(head, model.config)(model, 0 if pad is None else pad, accepts)


def _must_go_without_images(model: Any) -> None:
    """Refuse a model that cannot go without an image or a sound."""
    model_type = model.config.model_type
    error = why_it_fails(model) if model_type in MULTIMODAL else None
    if isinstance(error, (TypeError, ValueError, AttributeError)):
        raise Refusal(
            f"A {model_type} model cannot be asked with text alone: give a language model ({in_short(error)})."
        ) from error


def without_adapter(model: Any) -> Any:
    """The transformers model inside an adapter of PEFT, or the model itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def longest_input(model: Any) -> int | None:
    """How many tokens a model reads at most, special ones included; None where positions are not counted."""
    if model.config.is_encoder_decoder:
        longest = longest_side(model.config, "encoder")
    else:
        longest = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if not isinstance(longest, int) or longest <= 0:
        return None
    longest -= virtual_tokens(model)
    for name, module in model.named_modules():
        # RoBERTa and its kin number positions from the padding id on.
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return longest - module.padding_idx - 1
    return longest


def virtual_tokens(model: Any) -> int:
    """How many positions of a model's adapter precede every text: those of prompts and prefixes that were learned."""
    active = getattr(model, "active_peft_config", None)
    return getattr(active, "num_virtual_tokens", None) or 0


def words(head: str) -> str:
    """A head's name in words."""
    return WORDS.get(head, head.replace("_", "-"))


def how_to_train(head: str) -> str:
    """The mend for a checkpoint without a head, where one can be trained; else nothing."""
    return ", or train one with scripts/train_next_sentence.py" if head == "next_sentence" else ""
