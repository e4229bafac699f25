"""What a model is given, noted down while somebody else uses it: their padding and their batches included."""

from contextlib import contextmanager

import torch
from arithmetic import Load, Matrices
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.pytorch_utils import Conv1D


def matrices_of(model):
    """The Matrices of a transformers language model."""
    body = set(model.base_model.modules())
    layers = {True: [], False: []}
    for module in model.modules():
        if isinstance(module, torch.nn.Linear):
            layers[module in body].append((module.in_features, module.out_features))
        elif isinstance(module, Conv1D):
            layers[module in body].append((module.nx, module.nf))
    config = model.config
    return Matrices(tuple(layers[True]), tuple(layers[False]), config.num_hidden_layers * config.hidden_size)


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
