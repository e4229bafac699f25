"""Train a next-sentence head, and the model under it, on sentence pairs of a corpus; on one process or many.

    accelerate launch scripts/train_next_sentence.py --model roberta-base --corpus wikimedia/wikipedia \\
        --corpus-config 20231101.en --max-documents 22000 --epochs 1 --language en --output-dir runs/roberta-nsp
    accelerate launch scripts/score.py --model runs/roberta-nsp/best --tasks intersentence --output-dir runs/roberta

The defaults are the papers': Nadeem et al. 2021, A.4 [S], and Öztürk et al. 2023, §5.2 [M].
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from stereoset_cli.ending import run
from stereoset_scoring.checkpoints.head_spec import POOLINGS
from stereoset_scoring.processes.threads import sleep_at_barriers, take_threads
from stereoset_scoring.training.corpus import Pairs, hold_out, read_documents, split_sentences
from stereoset_scoring.training.settings import Settings

if TYPE_CHECKING:  # not before: --help is for machines without torch, too
    from accelerate import Accelerator


def main() -> None:
    """Corpus, model, training, result."""
    args = parse_args()
    sleep_at_barriers()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # the loader's own processes are the parallel ones

    # Not before: --help is for machines without torch, too.
    import sentencex  # noqa: F401
    from accelerate import Accelerator
    from accelerate.utils import DistributedDataParallelKwargs
    from transformers.utils import logging

    from stereoset_scoring.training.loop import Training, new_model

    # Some cores have weights that a pooled output does not depend on.
    accelerator = Accelerator(kwargs_handlers=[DistributedDataParallelKwargs(find_unused_parameters=True)])
    if accelerator.num_processes == 1:
        take_threads()
    logging.set_verbosity_error()
    pairs, held_out = load_pairs(args, accelerator)
    model, tokenizer, fresh = new_model(args.model, args.pooling, args.seed, args.revision, args.trust_remote_code)
    training = Training(
        model,
        tokenizer,
        pairs,
        held_out,
        accelerator,
        args.output_dir,
        settings=Settings(**{field.name: getattr(args, field.name) for field in fields(Settings)}),
        fresh=fresh,
        measure_every=args.measure_every,
        measured_pairs=args.measured_pairs,
        workers=args.workers,
        resume=args.resume,
        origin={"model": args.model, "revision": args.revision, "language": args.language},
        report=lambda measured: tqdm.write(describe(measured)),
    )
    if accelerator.is_main_process:
        print(
            f"{len(pairs)} pairs to learn from, {len(held_out)} held out, {training.steps} updates of "
            f"{args.batch_size} pairs; the head reads {model.spec.pooling}."
        )
    training.run()
    best = training.progress.best
    if best is not None and accelerator.is_main_process:
        print(f"Best: {describe(best)}; saved as {args.output_dir / 'best'}")
    accelerator.end_training()


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="hub id or folder of an encoder or a decoder")
    parser.add_argument("--revision", help="branch, tag or commit of the model")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--pooling", choices=POOLINGS, help="what the head reads; default: by kind of model")
    parser.add_argument(
        "--corpus",
        required=True,
        help="a text file, its documents separated by blank lines; a folder of .txt files; or a data set's hub id",
    )
    parser.add_argument("--corpus-config", help="the data set's config")
    parser.add_argument("--corpus-split", default="train", help="the data set's split")
    parser.add_argument("--text-column", default="text", help="the data set's column of documents")
    parser.add_argument("--max-documents", type=int, help="only the first documents [M: 22,000 or 110,000]")
    parser.add_argument("--language", default="en", help="ISO 639-1 code of the corpus, for cutting it into sentences")
    parser.add_argument("--held-out", type=float, default=0.05, help="share of the documents to measure with")
    units = {"max_steps": int}
    for field in fields(Settings):
        name = "--" + field.name.replace("_", "-")
        kind = units.get(field.name, type(field.default))
        parser.add_argument(name, type=kind, default=field.default, help="%(default)s by default")
    parser.add_argument("--measure-every", type=int, default=1000, help="updates between measurements and checkpoints")
    parser.add_argument("--measured-pairs", type=int, default=10_000, help="held-out pairs to measure with at most")
    parser.add_argument("--workers", type=int, default=0, help="processes that tokenize, per process that trains")
    parser.add_argument("--resume", action="store_true", help="go on where the output folder's run was interrupted")
    parser.add_argument("--output-dir", type=Path, required=True)
    return parser.parse_args()


def load_pairs(args: argparse.Namespace, accelerator: "Accelerator") -> tuple[Pairs, Pairs]:
    """(Pairs to learn from, Pairs held out); each machine's first process reads the corpus before the others."""
    with accelerator.local_main_process_first():
        texts = read_documents(args.corpus, args.corpus_config, args.corpus_split, args.text_column, args.max_documents)
    documents = [
        split_sentences(text, args.language)
        for text in tqdm(texts, desc="sentences", unit="document", disable=not accelerator.is_main_process)
    ]
    learnt, held_out = hold_out(documents, args.held_out, args.seed)
    return Pairs(learnt, args.seed), Pairs(held_out, args.seed)


def describe(measured: Mapping[str, float]) -> str:
    """A measurement in a line."""
    return (
        f"update {measured['step']}: held-out accuracy {measured['accuracy']:.4f}, loss {measured['loss']:.4f}, "
        f"training loss {measured['train_loss']:.4f}"
    )


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
