"""A tiny training with transformers' Trainer, for tests in this process and in others."""

import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer, Trainer, TrainingArguments

MODELS = {"causal": AutoModelForCausalLM, "masked": AutoModelForMaskedLM}


def learned(tokenizer, kind, count=8):
    """What is learned: rows of ids and labels, all of one length."""
    texts = [f"The gardener was kind and {word}, and the river was calm." for word in ("quiet", "long") * count]
    encoded = [ids[:12] for ids in tokenizer(texts[:count])["input_ids"]]
    if kind == "causal":
        return [{"input_ids": ids, "labels": ids} for ids in encoded]
    hidden = [[*ids[:4], tokenizer.mask_token_id, *ids[5:]] for ids in encoded]
    return [{"input_ids": ids, "labels": labels} for ids, labels in zip(hidden, encoded, strict=True)]


def as_batch(rows):
    """Rows as a batch of tensors."""
    return {name: torch.tensor([row[name] for row in rows]) for name in rows[0]}


def make_trainer(folder, output, callbacks=(), kind="causal", change=lambda model: model, eval_sets=None, **arguments):
    """A Trainer of the checkpoint in a folder that evaluates at every step.

    Args:
        folder: of the checkpoint.
        output: where the Trainer writes.
        callbacks: as the Trainer takes them.
        kind: "causal" or "masked".
        change: what is done to the model first.
        eval_sets: the names of several sets of evaluation data; None for one without a name.
        arguments: of TrainingArguments.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(1)
    model = change(MODELS[kind].from_pretrained(folder))
    usual = {"max_steps": 3, "report_to": "none", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1}
    usual |= {"eval_strategy": "steps", "eval_steps": 1, "save_strategy": "no", "learning_rate": 5e-3}
    data = learned(tokenizer, kind)
    return Trainer(
        model,
        TrainingArguments(str(output), **{**usual, **arguments}),
        data_collator=as_batch,
        train_dataset=data,
        eval_dataset=dict.fromkeys(eval_sets, data[:4]) if eval_sets else data[:4],
        processing_class=tokenizer,
        callbacks=list(callbacks),
    )


def train(*args, **kwargs):
    """The Trainer that `make_trainer` makes, when it has trained."""
    trainer = make_trainer(*args, **kwargs)
    trainer.train()
    return trainer


def numbers_of(trainer, names=("eval_ss", "eval_lms", "eval_icat")):
    """What the log holds of each evaluation that has such numbers."""
    return [[entry[name] for name in names] for entry in trainer.state.log_history if names[0] in entry]
