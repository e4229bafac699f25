"""The text architectures of transformers' mappings, and tiny models of them with random weights."""

import inspect
from dataclasses import dataclass

import torch
import transformers
from transformers.models.auto import modeling_auto

from tests.sweep.configurations import LONG, SHORT, Request, tiny_configuration

MAPPINGS = {
    "causal": modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    "masked": modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    "seq2seq": modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    "multimodal": modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
}
SPREAD = 0.3  # standard deviation of the weights: wide enough that a wrong number shows
# What decides how fast a state fades keeps the values that its architecture gives it.
DECAYS = ("A_log", ".D", "dt_bias", "time_decay", "recurrent_param", "slope_rate")


@dataclass(frozen=True)
class Architecture:
    """One entry of a mapping.

    Attributes:
        mapping: "causal", "masked", "seq2seq" or "multimodal".
        model_type: the configuration's.
        model_class: the class's name.
    """

    mapping: str
    model_type: str
    model_class: str

    def __str__(self):
        return f"{self.model_type} ({self.mapping})"


def architectures() -> list[Architecture]:
    """All entries of the mappings; what is an encoder-decoder or multimodal is not listed as half of itself too."""
    whole = {*MAPPINGS["seq2seq"].items(), *MAPPINGS["multimodal"].items()}
    return [
        Architecture(mapping, model_type, model_class)
        for mapping, entries in MAPPINGS.items()
        for model_type, model_class in sorted(entries.items())
        if mapping in ("seq2seq", "multimodal")
        or not ((model_type, model_class) in whole or (mapping == "causal" and model_type in MAPPINGS["multimodal"]))
    ]


def windows(architecture) -> list[int]:
    """How far the windows of the variants reach: one variant where the configuration has no window."""
    short, long = (tiny_configuration(architecture.model_type, Request(400, window)) for window in (SHORT, LONG))
    return [LONG] if short.to_dict() == long.to_dict() else [SHORT, LONG]


def tiny_model(architecture, vocabulary, window):
    """A tiny model with random weights, float32, in evaluation mode."""
    model_class = getattr(transformers, architecture.model_class)
    config = tiny_configuration(architecture.model_type, Request(vocabulary, window))
    text = config.get_text_config(decoder=True)
    if not isinstance(config, model_class.config_class) and isinstance(text, model_class.config_class):
        config = text
    if architecture.mapping == "causal" and not config.is_encoder_decoder and hasattr(config, "is_decoder"):
        config.is_decoder = True
    if architecture.mapping == "causal" and hasattr(config, "causal"):
        config.causal = True  # XLM's word for it
    if config.is_encoder_decoder and getattr(config, "decoder_start_token_id", None) is None:
        config.decoder_start_token_id = 1  # the padding, as T5's checkpoints say
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        model = model_class(config).eval()
        spread(model)
    return model


@torch.no_grad()
def spread(model):
    """Weights wide enough that a wrong number shows; biases and norms, which start at 0 and 1, moved from there."""
    for name, weight in model.named_parameters():
        if not weight.is_floating_point() or name.endswith(DECAYS):
            continue
        if weight.dim() == 1 or not weight.any():
            weight += 0.1 * torch.randn_like(weight)
        else:
            weight.normal_(0, SPREAD)


# Encoder-decoders by what they were trained for; a model of any other type writes what follows its encoder's text.
SPANS = ["t5", "mt5", "umt5", "longt5", "switch_transformers"]
DENOISING = ["bart", "mbart", "plbart", "mvp", "led", "bigbird_pegasus"]


def frame_of(model):
    """Which of the tokenizers fits a model."""
    kind = kind_of(model)
    if kind != "seq2seq":
        return kind
    model_type = model.config.model_type
    return "spans" if model_type in SPANS else "denoising" if model_type in DENOISING else "prefix"


def kind_of(model):
    """How a model is asked: "causal", "masked", "permutation" or "seq2seq"."""
    if model.config.model_type == "xlnet":
        return "permutation"
    if "decoder_input_ids" in inspect.signature(model.forward).parameters:
        return "seq2seq"
    causal = getattr(model.config, "is_decoder", False) or getattr(model.config, "causal", False)
    return "masked" if type(model).__name__ in MAPPINGS["masked"].values() and not causal else "causal"
