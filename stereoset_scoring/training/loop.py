"""The training of a next-sentence head with its core model: any number of processes, and exact resumption."""

import json
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import AutoModel, AutoTokenizer

from stereoset_scoring.checkpoints.next_sentence_head import (
    HeadSpec,
    NextSentenceModel,
    released_pooling,
    save_trained_head,
)
from stereoset_scoring.engines.first_calls import make_first_calls
from stereoset_scoring.engines.padding import pad
from stereoset_scoring.files.store import write_json
from stereoset_scoring.methods.next_sentence import NextSentence
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.training.corpus import Pair, Pairs
from stereoset_scoring.training.settings import Settings

Batch = tuple[dict[str, torch.Tensor], torch.Tensor]  # the model's inputs, and the classes (B,)


class Progress:
    """How far the training is; a part of every checkpoint.

    Attributes:
        step: updates made.
        history: what was measured: {"step", "train_loss", "loss", "accuracy"}; losses in nats per pair.
        train_loss: sum over the pairs that this process learnt from since then, in nats.
    """

    def __init__(self) -> None:
        self.step = 0
        self.history: list[dict[str, float]] = []
        self.train_loss: float | torch.Tensor = 0.0  # a tensor on its device, which nobody waits for, until it is read

    @property
    def best(self) -> dict[str, float] | None:
        """The measurement with the highest accuracy, the lowest loss among equals; None before the first."""
        return max(self.history, key=lambda one: (one["accuracy"], -one["loss"]), default=None)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        return {**vars(self), "train_loss": float(self.train_loss)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go back to what a checkpoint kept."""
        vars(self).update(state)


class Collate:
    """Pairs to one batch: the inputs of the model, tokenized as they will be for scoring, and the classes.

    Args:
        tokenizer: a hub tokenizer.
        spec: how the head is trained.
        max_length: tokens of a pair; the rest is cut.
    """

    def __init__(self, tokenizer: Any, spec: HeadSpec, max_length: int):
        self.tokenizer, self.spec, self.max_length = Tokenizer(tokenizer), spec, max_length
        self.method = NextSentence(**spec.options)

    def __call__(self, pairs: Sequence[Pair]) -> Batch:
        rows = [self.method.pair(pair.first, pair.second, self.tokenizer, self.max_length) for pair in pairs]
        filler = self.tokenizer.hub.pad_token_id or 0  # any id will do, since padding is masked
        inputs = {
            "input_ids": pad([ids for ids, _ in rows], filler, "cpu"),  # (B, T)
            "attention_mask": pad([[1] * len(ids) for ids, _ in rows], 0, "cpu"),
        }
        if rows[0][1] is not None:
            inputs["token_type_ids"] = pad([segments or () for _, segments in rows], 0, "cpu")
        follows = self.spec.follows
        return inputs, torch.tensor([follows if pair.follows else 1 - follows for pair in pairs])


def new_model(
    name: str | Path,
    pooling: str | None = None,
    seed: int = 0,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> tuple[NextSentenceModel, Any, list[str]]:
    """(NextSentenceModel with a new head, hub tokenizer, names of the weights that the checkpoint lacks).

    Args:
        name: hub id or folder of an encoder or decoder, with or without a language-model head.
        pooling: what the head reads, see HeadSpec; None for the pooler where there is one, the mean of causal cores,
            `<cls>` of XLNet, else the first position.
        seed: draws the head.
        revision: branch, tag or commit.
        trust_remote_code: whether code that comes with the checkpoint may run.

    Raises:
        Refusal: if the checkpoint lacks more than a pooler, or is an encoder-decoder.
        OSError: if there is no such checkpoint within reach.
    """
    torch.manual_seed(seed)
    where = {"revision": revision, "trust_remote_code": trust_remote_code}
    tokenizer = AutoTokenizer.from_pretrained(name, **where)
    core, report = AutoModel.from_pretrained(name, dtype=torch.float32, output_loading_info=True, **where)
    lacking = sorted(report["missing_keys"])
    needed = [key for key in lacking if not key.startswith("pooler.")]
    if needed:
        raise Refusal(
            f"{name} lacks {len(needed)} weights of its core model, first {needed[0]!r}: choose another checkpoint."
        )
    causal = released_pooling(core) == "mean"
    last = core.config.model_type == "xlnet"  # where its tokenizer puts <cls>
    spec = HeadSpec(pooling=pooling or ("last" if last else None), join="space" if causal else "none")
    return NextSentenceModel(core, spec), tokenizer, [f"core_model.{key}" for key in lacking]


class Training:
    """The training of a NextSentenceModel; `run` does it.

    Writes folder/best and folder/last, which `load_scorer` reads, folder/training.json, and checkpoints.

    Args:
        model: as `new_model` makes it.
        tokenizer: its hub tokenizer.
        pairs: to learn from.
        held_out: pairs to measure with.
        accelerator: an accelerate.Accelerator: its processes, devices and mixed precision are used.
        folder: where everything goes.
        settings: what else decides the weights.
        fresh: names of weights, beside the head's, that are new and learn at the head's rate.
        measure_every: updates between measurements, each of which leaves a checkpoint.
        measured_pairs: how many pairs to measure with at most.
        workers: processes that tokenize for each process that trains; 0 for none.
        resume: whether to go on from the folder's checkpoint, where there is one: with as many processes, the weights
            become those of an undisturbed run.
        origin: what else must be equal to resume, by name.
        report: takes each measurement; called by the main process.

    Raises:
        Refusal: if the folder holds another run, or a batch has fewer pairs than there are processes.
    """

    def __init__(
        self,
        model: NextSentenceModel,
        tokenizer: Any,
        pairs: Pairs,
        held_out: Pairs,
        accelerator: Any,
        folder: str | Path,
        settings: Settings = Settings(),
        fresh: Collection[str] = (),
        measure_every: int = 1000,
        measured_pairs: int = 10_000,
        workers: int = 0,
        resume: bool = False,
        origin: Mapping[str, Any] | None = None,
        report: Callable[[dict[str, float]], None] = lambda measured: None,
    ):
        self.folder, self.settings, self.pairs, self.tokenizer = Path(folder), settings, pairs, tokenizer
        make_first_calls()
        self.accelerator, self.measure_every, self.workers, self.report = accelerator, measure_every, workers, report
        self.world, self.rank = accelerator.num_processes, accelerator.process_index
        if settings.batch_size < self.world:
            raise Refusal(f"batch_size={settings.batch_size} leaves some of {self.world} processes idle: raise it.")
        self.held_out, self.measured = held_out, range(min(measured_pairs, len(held_out)))
        self.steps = settings.steps(len(pairs))
        self.collate = Collate(tokenizer, model.spec, settings.max_length)
        started_with = {"corpus": pairs.fingerprint, **(origin or {}), **asdict(model.spec), **asdict(settings)}
        self.run_record = json.loads(json.dumps(started_with))
        self._check_folder(resume)
        optimizer = torch.optim.AdamW(self._groups(model, fresh), weight_decay=settings.weight_decay)
        self.full_rates = [group["lr"] for group in optimizer.param_groups]
        self.model, self.optimizer = accelerator.prepare(model, optimizer)
        self.progress = Progress()
        accelerator.register_for_checkpointing(self.progress)
        torch.manual_seed(settings.seed + self.rank)  # its own dropout for every process
        checkpoints = sorted(self.folder.glob("checkpoints/step-*[0-9]"))
        if checkpoints:
            accelerator.load_state(str(checkpoints[-1]))

    def run(self) -> list[dict[str, float]]:
        """Train to the end; the measurements, see Progress."""
        progress, settings = self.progress, self.settings
        batches = self._loader(self.pairs, _Plan(self._plan))
        self.model.train()
        with tqdm(
            total=self.steps, initial=progress.step, unit="update", disable=not self.accelerator.is_main_process
        ) as bar:
            while progress.step < self.steps:
                share = settings.share_of_rate(progress.step, self.steps)
                for group, rate in zip(self.optimizer.param_groups, self.full_rates, strict=True):
                    group["lr"] = rate * share
                self._update(batches)
                progress.step += 1
                bar.update()
                if progress.step % self.measure_every == 0 or progress.step == self.steps:
                    self._measure()
                    self._save()
        return progress.history

    def _update(self, batches: Iterator[Batch]) -> None:
        """One step of the optimizer, on this process's share of settings.batch_size pairs."""
        passes = len(self._split(self._share(range(self.settings.batch_size))))
        for n in range(1, passes + 1):
            inputs, classes = self._to_device(next(batches))
            with self.accelerator.no_sync(self.model) if n < passes else nullcontext():
                logits = self.model(**inputs).logits.float()  # (B, 2)
                loss = cross_entropy(logits, classes, reduction="sum")
                # Processes average their gradients, however many pairs each had: this makes it the mean over pairs.
                self.accelerator.backward(loss * self.world / self.settings.batch_size)
            self.progress.train_loss += loss.detach().double()
        self.accelerator.clip_grad_norm_(self.model.parameters(), self.settings.max_norm)
        self.optimizer.step()
        self.optimizer.zero_grad()

    @torch.no_grad()
    def _measure(self) -> None:
        """Loss and accuracy on the held-out pairs, noted in the history; the best model so far is kept."""
        progress = self.progress
        model = self.accelerator.unwrap_model(self.model)  # not the wrapper, which waits for the other processes
        model.eval()
        loss = right = 0.0
        for batch in self._loader(self.held_out, self._split(self._share(self.measured))):
            inputs, classes = self._to_device(batch)
            logits = model(**inputs).logits.float()  # (B, 2)
            loss += cross_entropy(logits, classes, reduction="sum").item()
            right += (logits.argmax(-1) == classes).sum().item()
        model.train()
        sums = torch.tensor([float(progress.train_loss), loss, right], device=self.accelerator.device)
        train_loss, loss, right = self.accelerator.reduce(sums, "sum").tolist()
        since = progress.step - (progress.history[-1]["step"] if progress.history else 0)
        measured = {
            "step": progress.step,
            "train_loss": train_loss / (since * self.settings.batch_size),
            "loss": loss / len(self.measured),
            "accuracy": right / len(self.measured),
        }
        progress.history.append(measured)
        progress.train_loss = 0.0
        if self.accelerator.is_main_process:
            self.report(measured)
            if progress.best is measured:
                self._save_model("best")

    def _save(self) -> None:
        """A checkpoint, in the place of the one before it; at the end also the model."""
        name = f"step-{self.progress.step:09d}"
        checkpoints = self.folder / "checkpoints"
        self.accelerator.save_state(str(checkpoints / f"{name}.partial"))
        self.accelerator.wait_for_everyone()
        if self.accelerator.is_main_process:
            if self.progress.step == self.steps:
                self._save_model("last")
            older = list(checkpoints.glob("step-*[0-9]"))
            (checkpoints / f"{name}.partial").rename(checkpoints / name)
            for folder in older:
                shutil.rmtree(folder)
            self._write_record()
        self.accelerator.wait_for_everyone()

    def _save_model(self, name: str) -> None:
        partial = self.folder / f"{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        save_trained_head(partial, self.accelerator.unwrap_model(self.model), self.tokenizer)
        shutil.rmtree(self.folder / name, ignore_errors=True)
        partial.rename(self.folder / name)

    def _write_record(self) -> None:
        progress = self.progress
        record = {"run": self.run_record, "updates": self.steps, "history": progress.history, "best": progress.best}
        write_json(self.folder / "training.json", record)

    def _check_folder(self, resume: bool) -> None:
        """Refuse to mix two runs in one folder."""
        record = self.folder / "training.json"
        if not record.exists():
            started_with = None
        elif not resume:
            raise Refusal(f"{self.folder} holds a run already: go on with --resume, or choose another folder.")
        else:
            started_with = json.loads(record.read_text(encoding="utf-8"))["run"]
            changed = [f"{key}={value!r}" for key, value in started_with.items() if self.run_record.get(key) != value]
            if changed:
                raise Refusal(
                    f"{self.folder} was started with {', '.join(changed)}: resume it with the same, or choose another "
                    "folder."
                )
        self.accelerator.wait_for_everyone()
        if started_with is None and self.accelerator.is_main_process:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_json(record, {"run": self.run_record, "updates": self.steps, "history": [], "best": None})

    def _groups(self, model: nn.Module, fresh: Collection[str]) -> list[dict[str, Any]]:
        """The optimizer's groups: the core, and what is new."""
        core: list[torch.Tensor] = []
        new: list[torch.Tensor] = []
        for name, weights in model.named_parameters():
            is_new = name.startswith("nsp_head.") or name in fresh
            (new if is_new else core).append(weights)
        settings = self.settings
        return [{"params": core, "lr": settings.learning_rate}, {"params": new, "lr": settings.head_learning_rate}]

    def _plan(self) -> Iterator[Sequence[int]]:
        """This process's batches of indices of pairs, to the end: a permutation for every epoch, one after another."""
        size = self.settings.batch_size
        indices = _permutations(len(self.pairs), self.settings.seed, self.progress.step * size)
        for _ in range(self.progress.step, self.steps):
            yield from self._split(self._share(list(islice(indices, size))))

    def _share(self, indices: Sequence[int]) -> Sequence[int]:
        return indices[self.rank :: self.world]

    def _split(self, indices: Sequence[int]) -> list[Sequence[int]]:
        at_once = self.settings.pairs_at_once
        return [indices[start : start + at_once] for start in range(0, len(indices), at_once)]

    def _loader(self, pairs: Any, plan: Any) -> Iterator[Batch]:
        """An iterator over batches of pairs, as `Collate` makes them."""
        return iter(
            DataLoader(
                pairs,
                batch_sampler=plan,
                collate_fn=self.collate,
                num_workers=self.workers,
                generator=torch.Generator(),  # else it would draw from the one that draws the dropout
            )
        )

    def _to_device(self, batch: Batch) -> Batch:
        inputs, classes = batch
        device = self.accelerator.device
        return {name: tensor.to(device) for name, tensor in inputs.items()}, classes.to(device)


class _Plan:
    """An iterable from a generator function: unlike a list it is made as it is read."""

    def __init__(self, generate: Callable[[], Iterator[Sequence[int]]]):
        self.generate = generate

    def __iter__(self) -> Iterator[Sequence[int]]:
        return self.generate()


def _permutations(count: int, seed: int, start: int) -> Iterator[int]:
    """Numbers below count without end, in a new order every time round, from a position on."""
    around, position = divmod(start, count)
    while True:
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed * 1_000_003 + around))
        for some in order[position:].split(65_536):
            yield from some.tolist()
        around, position = around + 1, 0
