"""Llamas of one and of seven billion weights, random and in bfloat16, on every example: for a GPU."""

import time
from dataclasses import dataclass

import torch
from arithmetic import multiply_adds, useful_load
from matrix_rate import matrix_rate
from meter import matrices_of
from transformers import LlamaConfig, LlamaForCausalLM

from stereoset_scoring import load_scorer

SHAPES = {
    "1B (Llama 3.2)": {
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
    },
    "7B (Llama 2)": {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "vocab_size": 32000,
    },
}


@dataclass(frozen=True)
class Scored:
    """One model on every example.

    Attributes:
        name: the model's shape.
        examples: how many.
        seconds: of scorer.score, planning included.
        tokens: distinct tokens that went through it.
        share: useful multiply-adds over what matrix products of the same shapes do in that time.
        peak: the most memory allocated on the device, in bytes, weights included.
    """

    name: str
    examples: int
    seconds: float
    tokens: int
    share: float
    peak: int


def score_llama(name, shape, tokenizer, rows, device):
    """The Scored of one shape; its weights are drawn on the device."""
    torch.cuda.reset_peak_memory_stats(device)
    config = LlamaConfig(**shape, dtype=torch.bfloat16, bos_token_id=0, eos_token_id=0, pad_token_id=0)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(default)
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    scorer.score(rows[:32])  # compiles and allocates what later batches use too
    job, matrices = scorer.plan(rows), matrices_of(model)
    load = useful_load(job)
    start = time.perf_counter()
    scorer.score(rows)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated(device)
    rate = matrix_rate(model, load, len(job.batches))
    return Scored(name, len(rows), seconds, load.tokens, multiply_adds(matrices, load) / seconds / rate, peak)
