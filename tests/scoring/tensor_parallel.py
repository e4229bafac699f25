"""A script for two processes that hold a part of each of a model's tensors: the scores are those of the whole model.

python -m torch.distributed.run --nproc_per_node 2 tensor_parallel.py FOLDER...
"""

import sys

import torch
from torch import distributed
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.distributed import DistributedConfig

from stereoset_scoring import load_scorer
from stereoset_scoring.engines import language_model
from stereoset_scoring.sample import load_sample

FEW = 2**12  # logits at a time, fewer than a batch has


def check(folder, task, **options):
    """Compare for one data set, and see that the parts are packed and projected as the whole is."""
    rows, tokenizer = load_sample(task), AutoTokenizer.from_pretrained(folder)
    whole = AutoModelForCausalLM.from_pretrained(folder)
    parts = AutoModelForCausalLM.from_pretrained(folder, distributed_config=DistributedConfig(tp_plan="auto"))
    assert any(map(in_parts, parts.parameters())), f"{folder}: every process has all of the model"
    expected = load_scorer(model=whole, tokenizer=tokenizer, **options).score(rows)
    scorer = load_scorer(model=parts, tokenizer=tokenizer, **options)
    found = scorer.score(rows, everywhere=True)
    difference = (torch.tensor(found) - torch.tensor(expected)).abs().max().item()
    assert difference < 1e-5, f"{folder} {task} {options}: parts give something else, by {difference}"
    trial = scorer.source.head("causal").engine.trial
    assert all((trial.packs, trial.selects, trial.projects)), f"{folder}: {trial}"


def in_parts(weight):
    """Whether this process has but a part of a weight."""
    return hasattr(weight, "to_local") and weight.to_local().numel() < weight.numel()


def main(folders):
    """Batches of all sizes, and logits all at once and some at a time."""
    torch.set_num_threads(1)
    for folder in folders:
        for task in ("intrasentence", "intersentence"):
            check(folder, task)
        language_model.LOGITS, all_at_once = FEW, language_model.LOGITS
        check(folder, "intrasentence", max_tokens=256)
        language_model.LOGITS = all_at_once
    print(f"process {distributed.get_rank()} of {distributed.get_world_size()} agrees")


if __name__ == "__main__":
    main(sys.argv[1:])
