"""Score a model on StereoSet, on one process or many, and print its table.

    accelerate launch scripts/score.py --model bert-base-cased --languages en de --output-dir runs/bert
    accelerate launch scripts/score.py --sample --output-dir runs/sample    # no network needed

Writes scores.json (StereoSet's own layout), results.json (the table) and run.json (the record) to --output-dir.
"""

import argparse
import sys
from math import exp
from pathlib import Path

import torch
from accelerate import PartialState
from report import make_results, render
from transformers.utils import logging

from stereoset_dataset import load_stereoset
from stereoset_scoring.methods.registry import METHODS, PRESETS
from stereoset_scoring.predictions import option_ids, write_predictions
from stereoset_scoring.record import model_record, signature, task_record, versions
from stereoset_scoring.runner import score_everywhere
from stereoset_scoring.sample import build_model, load_sample
from stereoset_scoring.scorer import load_scorer
from stereoset_scoring.store import write_json

TASKS = ("intrasentence", "intersentence")
LANGUAGES = ("en", "de", "es", "fr", "tr")


def main():
    """Data, model, scores, files, table."""
    args = parse_args()
    state = PartialState()
    args.output_dir.mkdir(parents=True, exist_ok=True)
    data = load_data(args, state)
    scorer = load_model(args, state)
    jobs = {config: scorer.plan(rows) for config, rows in data.items()}
    record = describe(args, state, scorer, jobs)
    if state.is_main_process:
        print(headline(record["model"]))
    scores = {config: score_everywhere(scorer, job, progress=config) for config, job in jobs.items()}
    if state.is_main_process:
        for config, rows in data.items():
            method = scorer.method(config.partition("_")[0])
            record["tasks"][config] = task_record(method, rows, jobs[config], scores[config])
        print(write_files(args, record, data, scores))
    if state.num_processes > 1:
        state.destroy_process_group()


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="hub id or folder of a masked or causal language model")
    parser.add_argument(
        "--sample",
        action="store_true",
        help="score the built-in examples; without --model, a model built on the spot",
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=["en"])
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        help="a method for every task, or TASK=NAME for one: "
        + ", ".join(sorted({one.name for some in METHODS.values() for one in some})),
    )
    parser.add_argument("--preset", choices=sorted(PRESETS), help="the options of somebody's released code")
    parser.add_argument(
        "--next-sentence-head",
        type=Path,
        metavar="PATH",
        help="a trained head for the intersentence task: a folder of train_next_sentence.py, or a .pth or .safetensors",
    )
    parser.add_argument("--follows", type=int, choices=(0, 1), help="that head's class that means: the option follows")
    parser.add_argument("--scale", choices=("log", "probability"), default="log", help="what scores.json holds")
    parser.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    parser.add_argument(
        "--dtype", default="auto", help="auto (the checkpoint's own), float32, bfloat16, float16 or float64"
    )
    parser.add_argument("--revision", help="branch, tag or commit of the model")
    parser.add_argument("--max-tokens", type=int, help="tokens, padding included, in one forward pass")
    parser.add_argument("--limit", type=int, help="only the first examples of each task: a PARTIAL result")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--output-dir", type=Path, required=True)
    args = parser.parse_args()
    if not args.model and not args.sample:
        parser.error("give a --model, or --sample to try the machinery")
    if args.sample and list(args.languages) != ["en"]:
        parser.error("the sample is English: leave --languages out")
    if args.limit is not None and args.limit < 1:
        parser.error("--limit counts examples: give 1 or more")
    return args


def load_data(args, state):
    """{name of the data set's config: its rows}; each machine's first process prepares them for the others."""
    with state.local_main_process_first():
        if args.sample:
            data = {task: load_sample(task) for task in args.tasks}
        else:
            configs = [config_name(task, language) for language in args.languages for task in args.tasks]
            data = {name: load_stereoset(name, split=args.split, data_dir=args.data_dir).to_list() for name in configs}
    return {config: rows[: args.limit] for config, rows in data.items()}


def config_name(task, language):
    """The data set's name for a task in a language."""
    return task if language == "en" else f"{task}_{language}"


def load_model(args, state):
    """The scorer of --model, or of a tiny model built in the output folder."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder = args.model or args.output_dir / "sample-model"
    if not args.model:
        if state.is_local_main_process:
            build_model(folder)
        state.wait_for_everyone()
    return load_scorer(
        folder,
        method=methods_by_task(args.method),
        preset=args.preset,
        device=state.device,
        dtype=args.dtype,
        revision=args.revision,
        trust_remote_code=args.trust_remote_code,
        max_tokens=args.max_tokens,
        next_sentence_head=args.next_sentence_head,
        **({} if args.follows is None else {"follows": args.follows}),
    )


def methods_by_task(words):
    """--method as load_scorer takes it: None, a name, or {task: name}."""
    if not words or (len(words) == 1 and "=" not in words[0]):
        return words[0] if words else None
    pairs = dict(word.partition("=")[::2] for word in words)
    if not set(pairs) <= set(TASKS) or not all(pairs.values()):
        raise ValueError(
            f"--method {' '.join(words)} is neither a name nor TASK=NAME for the tasks {', '.join(TASKS)}."
        )
    return pairs


def describe(args, state, scorer, jobs):
    """The record of the run, its tasks still to be filled in."""
    heads = dict.fromkeys(row.head for job in jobs.values() for row in job.rows)
    return {
        "model": model_record(scorer.source, heads),
        "tasks": {},
        "preset": args.preset,
        "split": "sample" if args.sample else args.split,
        "scale": args.scale,
        "partial": f"first {args.limit} examples of each task" if args.limit else None,
        "max_tokens": scorer.max_tokens,
        "world_size": state.num_processes,
        "device": str(state.device),
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def headline(model):
    """What was really loaded, a line a head."""
    lines = [f"{model['name']} ({model['commit'] or 'local'}), {model['family']}"]
    for kind, head in model["heads"].items():
        unexpected = len(head["unexpected"])
        lines.append(
            f"  {kind}: {head['architecture']}, {head['dtype']}, weights {head['weights_sha256'][:16]}, "
            f"{len(head['missing'])} missing, {unexpected} unexpected"
            + (f" ({', '.join(head['unexpected'][:3])}{', …' if unexpected > 3 else ''})" if unexpected else "")
        )
    return "\n".join(lines)


def write_files(args, record, data, scores):
    """Write scores.json, run.json and results.json; the table as text."""
    results = make_results({config: (rows, scores[config]) for config, rows in data.items()})
    line = signature(record)
    scale = exp if args.scale == "probability" else float
    by_config = {
        config: {
            option: scale(score)
            for row, of_row in zip(rows, scores[config], strict=True)
            for option, score in zip(option_ids(row), of_row, strict=True)
        }
        for config, rows in data.items()
    }
    write_predictions(args.output_dir / "scores.json", by_config, record["partial"])
    write_json(args.output_dir / "run.json", record)
    write_json(
        args.output_dir / "results.json",
        {"partial": record["partial"], "signature": line, "results": results},
    )
    table = render(results, title=args.model or "sample model", partial=record["partial"], signature=line)
    cut = [f"{task['truncated']} of {config}" for config, task in record["tasks"].items() if task["truncated"]]
    note = f"\nNOTE: longer than the model, and so scored with the end of their context: {', '.join(cut)}."
    return table + (note if cut else "")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as refusal:
        sys.exit(f"score.py: {refusal}")
