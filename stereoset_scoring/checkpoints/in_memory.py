"""A model that somebody holds, as a source of heads."""

from collections.abc import Mapping

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
from stereoset_scoring.refusal import Refusal

LANGUAGE_MODELS = ("masked", "permutation", "causal", "seq2seq")


class ModelInMemory:
    """A model that somebody holds, maybe wrapped, maybe in training, with its tokenizer.

    Args:
        model: a transformers model with a language-model head, or a wrapper around one.
        tokenizer: its hub tokenizer, or the processor that holds it.

    Raises:
        Refusal: if it is no transformers model, or a kind that has no methods here.
    """

    revision = commit = base = next_sentence_head = None

    def __init__(self, model, tokenizer):
        model = _unwrapped(model)
        self.model, self.config = model, model.config
        self._classes = [one.__name__ for one in type(without_adapter(model)).__mro__]
        self.name = self.config.name_or_path or type(model).__name__
        hub = tokenizer.tokenizer if isinstance(tokenizer, ProcessorMixin) else tokenizer
        self.tokenizer = Tokenizer(hub, self.config)
        self.trained = model.spec if isinstance(model, NextSentenceModel) else None
        self.family = "next_sentence" if self.trained else family_of(self.config, self._classes)
        self._heads = {}

    @property
    def dtype(self):
        """The dtype of the weights."""
        return self.model.dtype

    @property
    def device(self):
        """Where the model's inputs go."""
        return input_device(self.model)

    def head(self, kind):
        """The Head of a kind.

        Raises:
            Refusal: if the model in memory does not have that head.
        """
        if kind not in self._heads:
            if not self._has(kind):
                raise Refusal(
                    f"A {self._classes[0]} in memory has no {words(kind)} head: choose another method, or give "
                    f"a {' or a '.join(architectures_of(kind, self.config)) or 'model that has one'}."
                )
            if not takes_its_dtype(without_adapter(self.model)):
                raise Refusal(
                    f"The experts of a {self._classes[0]} cannot be computed in float64: give it in float32, or call "
                    "its set_experts_implementation('eager') before."
                )
            self._heads[kind] = Head(make_engine(kind, self.model, self.tokenizer))
        return self._heads[kind]

    def _has(self, kind):
        """Whether the model has a head of a kind: by its class, or by its projection to the vocabulary."""
        known = set(architectures_of(kind, self.config))
        if kind == "next_sentence":
            known.add(NextSentenceModel.__name__)
            if knows(kind, self.config):  # then the class for both tasks has this head beside the other
                known.add(MODEL_FOR_PRETRAINING_MAPPING_NAMES.get(self.config.model_type))
        if known & set(self._classes):
            return True
        return kind in LANGUAGE_MODELS and without_adapter(self.model).get_output_embeddings() is not None


def _unwrapped(model):
    """The transformers model, maybe with an adapter, or the NextSentenceModel that somebody gave.

    Raises:
        Refusal: if it is something else.
    """
    if isinstance(model, nn.Module):
        model = extract_model_from_parallel(model, keep_torch_compile=False)
        if isinstance(without_adapter(model), (PreTrainedModel, NextSentenceModel)):
            return model
    kind = type(model).__name__
    if isinstance(model, str):
        raise Refusal(f"model is the text {model!r}: give a name or a folder as load_scorer's first argument.")
    if isinstance(model, Mapping):
        raise Refusal(f"model is a {kind}, not a model: load its weights into a transformers model, and give that.")
    holders = [name for name, part in _parts(model) if isinstance(without_adapter(part), PreTrainedModel)]
    mend = f"the transformers model that it holds, its .{holders[0]}" if holders else "one, such as BertForMaskedLM"
    raise Refusal(f"A {kind} is no transformers model: give {mend}, and its tokenizer.")


def _parts(holder):
    """What lies directly in an object: [(name, part), …]."""
    modules = holder.named_children() if isinstance(holder, nn.Module) else ()
    return [*modules, *getattr(holder, "__dict__", {}).items()]
