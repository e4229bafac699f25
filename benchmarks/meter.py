"""What a model is given, noted down while somebody else uses it: their padding and their batches included."""

from contextlib import contextmanager

import torch
from arithmetic import Load, Matrices
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention
from transformers.pytorch_utils import Conv1D

ENCODED = ("EncDecAttention.k", "EncDecAttention.v")  # what a T5's decoder makes of every token of its encoder


def weights_of(model):
    """The weight matrices of a transformers language model, each (inputs, outputs).

    Returns:
        {"body": …, "head": …, "decoder": …}, see Matrices; decoders as T5 names their parts.
    """
    body = set(model.base_model.modules()) - {model.get_output_embeddings()}
    weights = {"body": [], "head": [], "decoder": []}
    for name, module in model.named_modules():
        decodes = name.startswith("decoder.") and not name.endswith(ENCODED)
        part = "head" if module not in body else "decoder" if decodes else "body"
        weights[part] += _weights_in(module)
    return weights


def _weights_in(module):
    if isinstance(module, Conv1D):
        return [module.weight]
    if isinstance(module, XLNetRelativeAttention):  # a fifth is for positions, which are the same for all rows
        return [weight.flatten(1) for weight in (module.q, module.k, module.v, module.o)]
    return [module.weight.T] if isinstance(module, torch.nn.Linear) else []


def matrices_of(model):
    """The Matrices of a transformers language model."""
    shapes = {part: tuple(tuple(one.shape) for one in weights) for part, weights in weights_of(model).items()}
    return Matrices(**shapes, attention=_attending_layers(model.config) * model.config.hidden_size)


def _attending_layers(config):
    """How many layers let tokens see one another: not those of a hybrid that convolve, or scan."""
    kinds = getattr(config, "layer_types", None)
    return config.num_hidden_layers if kinds is None else kinds.count("full_attention")


@contextmanager
def metered(model):
    """A list that receives the Load of every forward pass, padding included."""
    loads = []
    causal = type(model).__name__ in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()

    def note_tokens(module, args, kwargs):
        rows, length = (args[0] if args else kwargs["input_ids"]).shape
        seen = length * (length + 1) // 2 if causal else length**2
        loads.append(Load(rows * length, rows * seen))

    def note_places(module, args):
        loads.append(Load(places=args[0].shape[:-1].numel()))

    handles = [
        model.register_forward_pre_hook(note_tokens, with_kwargs=True),
        model.get_output_embeddings().register_forward_pre_hook(note_places),
    ]
    try:
        yield loads
    finally:
        for handle in handles:
            handle.remove()
