"""What a model is given, noted down while somebody else uses it: their padding and their batches included."""

from contextlib import contextmanager

import torch
from arithmetic import Load, Matrices
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.pytorch_utils import Conv1D


def weights_of(model):
    """The weight matrices of a transformers language model, each (inputs, outputs): (body, head), see Matrices."""
    inside = set(model.base_model.modules())
    body, head = [], []
    for module in model.modules():
        if isinstance(module, (torch.nn.Linear, Conv1D)):
            weight = module.weight if isinstance(module, Conv1D) else module.weight.T
            (body if module in inside else head).append(weight)
    return body, head


def matrices_of(model):
    """The Matrices of a transformers language model."""
    shapes = (tuple(tuple(weight.shape) for weight in weights) for weights in weights_of(model))
    return Matrices(*shapes, model.config.num_hidden_layers * model.config.hidden_size)


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
