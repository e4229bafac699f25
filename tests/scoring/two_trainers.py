"""A script for two processes: a Trainer with StereosetCallback, and a fully sharded model; each prints what it saw.

python -m torch.distributed.run --nproc_per_node 2 two_trainers.py FOLDER OUTPUT
"""

import json
import sys
from pathlib import Path

import torch
from torch import distributed
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM, AutoTokenizer

from stereoset_metric.compute_score import compute_score, flat_references
from stereoset_scoring import StereosetCallback, load_scorer
from stereoset_scoring.reading import score_everywhere
from stereoset_scoring.sample import load_sample
from tests.scoring.trainers import as_batch, learned, numbers_of, train

STEPS = 2


class Counting(StereosetCallback):
    """Counts the rows that this process reads."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.read = 0

    def _plan(self, model, tokenizer):
        scorer, jobs = super()._plan(model, tokenizer)
        log_probs = scorer.log_probs

        def counted(units):
            self.read += sum(len(unit.rows) for unit in units)
            return log_probs(units)

        scorer.log_probs = counted
        return scorer, jobs


def try_trainer(folder, output, examples):
    """Training with the callback, and without it."""
    callback = Counting(examples, max_tokens=128, strict=True)
    trainer = train(folder, output, [callback], max_steps=STEPS)
    plain = train(folder, output, [], max_steps=STEPS)
    pairs = zip(trainer.model.parameters(), plain.model.parameters(), strict=True)
    scorer = load_scorer(model=trainer.model, tokenizer=trainer.processing_class, max_tokens=128)
    job = scorer.plan(examples)
    alone = compute_score(scorer.score(examples), flat_references(examples))
    return {
        "numbers": numbers_of(trainer),
        "alone": [alone[name] for name in ("ss", "lms", "icat")],
        "same weights": all(torch.equal(one, other) for one, other in pairs),
        "rows": [callback.read / STEPS, len(job.rows)],
    }


def try_sharded(folder, examples):
    """A fully sharded model scored between its steps, beside one that is not sharded and learns the same."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = as_batch(learned(tokenizer, "causal"))
    whole, undisturbed, scored = (AutoModelForCausalLM.from_pretrained(folder).train() for _ in range(3))
    for model in (undisturbed, scored):
        for block in model.transformer.h:
            fully_shard(block)
        fully_shard(model)
    scorer, found, expected = load_scorer(model=scored, tokenizer=tokenizer), [], []
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (whole, undisturbed, scored)]
    for step in range(STEPS):
        for model, optimizer in zip((whole, undisturbed, scored), optimizers, strict=True):
            torch.manual_seed(step)  # the same dropout on both processes, whose gradients are averaged
            model(**batch).loss.backward()
            if model is scored:
                scorer.score(examples, everywhere=True)  # between the gradients and the step that takes them
            optimizer.step()
            optimizer.zero_grad()
        found.append(scorer.score(examples, everywhere=True))
        expected.append(load_scorer(model=whole, tokenizer=tokenizer).score(examples))
    pairs = zip(undisturbed.parameters(), scored.parameters(), strict=True)
    difference = (torch.tensor(found) - torch.tensor(expected)).abs().max().item()
    same = all(torch.equal(one.to_local(), other.to_local()) for one, other in pairs)
    return {"difference": difference, "same weights": same}


def try_failure(folder, examples):
    """A process that fails alone: the other one is told."""
    scorer = load_scorer(folder, device="cpu")
    job = scorer.plan(examples)
    if distributed.get_rank() == 1:
        scorer.log_probs = None
    try:
        score_everywhere(scorer, job)
    except Exception as error:
        return type(error).__name__
    return "nothing"


def main(folder, output):
    """All of them; what each process saw, in a file of its own."""
    torch.set_num_threads(1)
    examples = load_sample("intrasentence")
    seen = {"trainer": try_trainer(folder, output, examples)}
    seen["sharded"] = try_sharded(folder, examples)
    seen["failure"] = try_failure(folder, examples)
    Path(output, f"seen-{distributed.get_rank()}.json").write_text(json.dumps(seen))


if __name__ == "__main__":
    main(*sys.argv[1:])
