"""A tiny causal language model, trained in seconds on the sample's own sentences.

It has seen the examples that it is asked about, so its figures say that the machinery works and nothing else.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from stereoset_scoring.questions.configs import CONTEXT_TASKS
from stereoset_scoring.sample.examples import load_sample

BOS = "<|endoftext|>"
STEPS = 40
LEARNING_RATE = 5e-3


def build_model(folder: str | Path, seed: int = 0) -> None:
    """Train the sample's model and save it with its tokenizer, as a checkpoint like any other.

    The caller's random state, gradient mode and threads stay as they are.

    Args:
        folder: where the checkpoint goes; made if need be.
        seed: draws the initial weights.
    """
    tokenizer = make_tokenizer(every_text())
    with one_thread():
        model = train(make_model(tokenizer, seed), tokenizer, meaningful_texts())
    tokenizer.save_pretrained(folder)
    model.save_pretrained(folder)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch, then as many as before: tensors this small gain nothing from more.

    More would wait for each other where the machine is busy, and round differently where it has more cores.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def every_text() -> list[str]:
    """Contexts and options of both tasks, the unrelated ones included."""
    texts: list[str] = []
    for row in chain.from_iterable(map(load_sample, CONTEXT_TASKS)):
        texts += [row["context"], *(one["sentence"] for one in row["sentences"])]
    return texts


def meaningful_texts() -> list[str]:
    """What the model learns: stereotypes and anti-stereotypes alike, in intersentence after their context."""
    return [
        f"{row['context']} {one['sentence']}" if task == "intersentence" else one["sentence"]
        for task in CONTEXT_TASKS
        for row in load_sample(task)
        for one in row["sentences"]
        if one["gold_label"] != "unrelated"
    ]


def make_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A byte-level BPE learnt from texts: it can spell anything, and puts BOS before every text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(vocab_size=512, special_tokens=[BOS], initial_alphabet=alphabet, show_progress=False),
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, tokenizer.token_to_id(BOS))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=BOS, eos_token=BOS, pad_token=BOS)


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> GPT2LMHeadModel:
    """An untrained GPT-2 of about 0.1 million weights."""
    config = GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=64,
        n_embd=64,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # the CPU's alone: a GPU's state is none of ours
        return GPT2LMHeadModel(config)


@torch.enable_grad()
def train(model: GPT2LMHeadModel, tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> GPT2LMHeadModel:
    """The model after STEPS steps, each on all texts at once."""
    batch = tokenizer(texts, padding=True, padding_side="right", return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE)
    model.train()
    for _ in range(STEPS):
        optimizer.zero_grad()
        logits = model(**batch).logits  # (B, T, V)
        # Position t predicts t + 1; nats per token.
        torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten()).backward()
        optimizer.step()
    return model.eval()
