"""Families: the kind of model that a configuration describes, and the library's classes that open it.

A family is called as the head that its models are asked by: "masked", "causal", … A checkpoint of one family may hold
another head beside its own: "next_sentence".
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForMultimodalLM,
    AutoModelForNextSentencePrediction,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
)
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_CTC_MAPPING_NAMES,
    MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES,
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES,
    MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
    MODEL_MAPPING_NAMES,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES as MULTIMODAL

from stereoset_scoring.checkpoints.modalities import check_reads_text
from stereoset_scoring.refusal import Refusal

# What each family, or head, is opened with: {auto class: {model type: architecture}}; the first that knows a model
# type, unless the checkpoint was saved as the architecture of another.
AUTO_CLASSES: dict[str, dict[Any, Mapping[str, str]]] = {
    "masked": {AutoModelForMaskedLM: MODEL_FOR_MASKED_LM_MAPPING_NAMES},
    # Where transformers keeps XLNet.
    "permutation": {AutoModelForCausalLM: {"xlnet": MODEL_FOR_CAUSAL_LM_MAPPING_NAMES["xlnet"]}},
    "causal": {
        AutoModelForCausalLM: {
            model_type: name for model_type, name in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.items() if model_type != "xlnet"
        },
        # Text, and images or sound, from which a language model goes on: asked with text alone.
        AutoModelForMultimodalLM: MULTIMODAL,
        # One class for masked and causal models, which a flag of the configuration tells apart.
        AutoModelForMaskedLM: {"flaubert": MODEL_FOR_MASKED_LM_MAPPING_NAMES["flaubert"]},
    },
    "seq2seq": {AutoModelForSeq2SeqLM: MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES},
    "next_sentence": {AutoModelForNextSentencePrediction: MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING_NAMES},
    "sentiment": {
        AutoModelForSequenceClassification: {
            model_type: name
            for model_type, name in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.items()
            if model_type != "xlnet"  # it classifies at the last position, be it padding
        }
    },
}
_WITH_HEADS = {name for by_class in AUTO_CLASSES.values() for names in by_class.values() for name in names.values()}
_MODELS = {name for names in MODEL_MAPPING_NAMES.values() for name in ([names] if isinstance(names, str) else names)}
BASE_MODELS = _MODELS - _WITH_HEADS  # a few types have one class for both
# Those that write down what they hear; among the multimodal ones, chat models with ears are not.
SPEECH_MODELS = MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES.keys() | MODEL_FOR_CTC_MAPPING_NAMES.keys()


def family_of(config: Any, architectures: Sequence[str] | None = None) -> str:
    """The kind of model that a configuration describes: "masked", "permutation", "causal", "seq2seq" or "sentiment".

    Asked of the architecture that the checkpoint was saved as, then of what its model type can be; never of
    the checkpoint's name.

    Args:
        config: a transformers configuration.
        architectures: names of classes, should they be known better than from the configuration.

    Raises:
        Refusal: if it is a kind that has no methods here.
    """
    saved_as = architectures or config.architectures or []
    if _saved_for("sentiment", config, saved_as):
        return "sentiment"
    # Encoder-decoders first: some of them can also be opened as causal models, with half of their weights.
    if config.is_encoder_decoder:
        check_reads_text(config, saved_as, known=knows("seq2seq", config) or _in_own_code("seq2seq", config))
        return "seq2seq"
    if getattr(config, "causal", False) and knows("causal", config):  # XLM and Flaubert, one class for both kinds
        return "causal"
    for family in ("masked", "permutation", "causal"):
        if _saved_for(family, config, saved_as) or _in_own_code(family, config):
            return family
    if knows("masked", config) and not getattr(config, "is_decoder", False):
        return "masked"
    return "permutation" if knows("permutation", config) else _known_causal(config)


def knows(family: str, config: Any) -> bool:
    """Whether a model of this configuration can be opened as one of a family."""
    return any(config.model_type in names for names in AUTO_CLASSES[family].values())


def architectures_of(family: str, config: Any) -> list[str]:
    """The names of the classes as which a model of this configuration is one of a family."""
    return [names[config.model_type] for names in AUTO_CLASSES[family].values() if config.model_type in names]


def saved_without_head(config: Any) -> bool:
    """Whether a checkpoint was saved as the base model of its architecture: what its outputs are for, nobody says."""
    return bool(config.architectures) and set(config.architectures) <= BASE_MODELS


def auto_class(family: str, config: Any) -> Any:
    """The class that opens a checkpoint of this configuration as one of a family.

    Code that comes with a checkpoint is opened as its description says: by the family's first class.
    """
    classes, saved_as = AUTO_CLASSES[family], config.architectures or []
    fitting = [one for one, names in classes.items() if config.model_type in names]
    same = [one for one in fitting if classes[one][config.model_type] in saved_as]
    return next(iter([*same, *fitting, *classes]))


def _saved_for(family: str, config: Any, saved_as: Collection[str]) -> bool:
    return any(name in saved_as for name in architectures_of(family, config))


def _in_own_code(family: str, config: Any) -> bool:
    """Whether code that comes with the checkpoint makes it one of a family."""
    return any(one.__name__ in (getattr(config, "auto_map", None) or {}) for one in AUTO_CLASSES[family])


def _known_causal(config: Any) -> str:
    """ "causal", if a model of this configuration can be opened so.

    Raises:
        Refusal: if it cannot.
    """
    if knows("causal", config):
        return "causal"
    model_type = config.model_type
    if model_type in SPEECH_MODELS:
        raise Refusal(f"A {model_type} model writes down speech and cannot be asked about text: give a language model.")
    if model_type in MULTIMODAL:
        raise Refusal(
            f"A {model_type} model encodes images and cannot be asked about text alone: give a language model."
        )
    raise Refusal(f"A {model_type} model has no language-model head: give a masked or a causal language model.")
