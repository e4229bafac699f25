"""Score a model on StereoSet, on one process or many, and print its table.

    accelerate launch scripts/score.py --model bert-base-cased --languages en de --output-dir runs/bert
    accelerate launch scripts/score.py --sample --output-dir runs/sample    # no network needed

Writes scores.json (StereoSet's own layout), results.json (the table) and run.json (the record) to --output-dir.
"""

import argparse
import json
import os
import sys
from math import exp
from pathlib import Path

import torch
from accelerate import PartialState
from report import make_results, render, render_difference
from saved import load_rows
from transformers.utils import logging

from stereoset_scoring.baselines import is_baseline, load_baseline, sentiment_model
from stereoset_scoring.methods.registry import METHODS, PRESETS, methods_table, read_option
from stereoset_scoring.predictions import option_ids, write_predictions
from stereoset_scoring.record import beginning_record, model_record, signature, task_record, versions
from stereoset_scoring.runner import score_everywhere
from stereoset_scoring.sample import build_model
from stereoset_scoring.scorer import load_scorer
from stereoset_scoring.store import write_json

TASKS = ("intrasentence", "intersentence", "crows_pairs", "intrasentence_pairs")
TRANSLATED = TASKS[:2]
TASK_OF = dict.fromkeys(TASKS[2:], "pairs")  # what a scorer calls them
DEFAULTS = "defaults"
LANGUAGES = ("en", "de", "es", "fr", "tr")


def main():
    """Data, model, scores, files, table."""
    args = parse_args()
    if args.list_methods:
        print(methods_table())
        return
    state = PartialState()
    args.output_dir.mkdir(parents=True, exist_ok=True)
    data = load_data(args, state)
    scorer = load_model(args, state)
    if args.compare_presets:
        results = [
            run(args, state, scorer.with_preset(None if preset == DEFAULTS else preset), data, args.output_dir / preset)
            for preset in args.compare_presets
        ]
        if state.is_main_process:
            print(render_difference(*results, *args.compare_presets))
    else:
        run(args, state, scorer, data, args.output_dir)
    if state.num_processes > 1:
        state.destroy_process_group()


def run(args, state, scorer, data, folder):
    """Score the data and write and print what came out; the main process returns the results."""
    data, left_out = without_unscorable(scorer, data) if args.keep_going else (data, {})
    jobs = scorer.plan_all(data)
    record = describe(args, state, scorer, jobs, left_out)
    if state.is_main_process:
        print(headline(record["model"]))
    scores = {config: score_everywhere(scorer, job, progress=config) for config, job in jobs.items()}
    if not state.is_main_process:
        return None
    for config, rows in data.items():
        method = scorer.method(TASK_OF.get(config) or config.partition("_")[0])
        record["tasks"][config] = task_record(method, rows, jobs[config], scores[config])
    folder.mkdir(exist_ok=True)
    results, table = write_files(args, folder, record, data, scores)
    print(table)
    return results


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--model",
        help="hub id or folder of a language model; or a baseline: baseline:ideal, "
        "baseline:stereotyped, baseline:random, baseline:sentiment=MODEL (hub id or folder of a classifier), "
        "baseline:ensemble=FILE,FILE,FILE (prediction files of gpt2-large, bert-large-cased, gpt2-medium)",
    )
    parser.add_argument("--seed", type=int, default=0, help="of baseline:random")
    parser.add_argument(
        "--sample",
        action="store_true",
        help="score the built-in examples; without --model, a model built on the spot",
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TRANSLATED)
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
    parser.add_argument("--option", nargs="+", metavar="NAME=VALUE", help="options of the methods: see --list-methods")
    parser.add_argument(
        "--compare-presets", nargs=2, choices=[DEFAULTS, *sorted(PRESETS)], help="both, and the difference"
    )
    parser.add_argument("--list-methods", action="store_true", help="every method with its source, and nothing else")
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
    parser.add_argument("--attention", help="eager, sdpa, flash_attention_2, …; default: transformers' own choice")
    parser.add_argument("--compile", action="store_true", help="compile the model, its heads left out")
    parser.add_argument("--tf32", action="store_true", help="multiply float32 matrices in TensorFloat-32, on a GPU")
    parser.add_argument("--device-map", choices=("auto",), help="spread one model over all devices of the machine")
    parser.add_argument(
        "--gpus-per-model", type=int, metavar="K", help="each process spreads its model over K of its machine's GPUs"
    )
    parser.add_argument(
        "--quantization",
        type=read_quantization,
        metavar="JSON",
        help="how weights are quantized as they are loaded: a JSON object such as "
        '{"quant_method": "bitsandbytes", "load_in_4bit": true}, or a file that holds one',
    )
    parser.add_argument("--revision", help="branch, tag or commit of the model")
    parser.add_argument("--max-tokens", type=int, help="tokens, padding included, in one forward pass")
    parser.add_argument("--limit", type=int, help="only the first examples of each task: a PARTIAL result")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        help="leave out and list examples that cannot be scored, instead of refusing all: a PARTIAL result",
    )
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--output-dir", type=Path, help="where the files go")
    args = parser.parse_args()
    if args.list_methods:
        return args
    if not args.output_dir:
        parser.error("give an --output-dir for the files")
    if not args.model and not args.sample:
        parser.error("give a --model, or --sample to try the machinery")
    if args.sample and list(args.languages) != ["en"]:
        parser.error("the sample is English: leave --languages out")
    if is_baseline(args.model) and not sentiment_model(args.model) and args.scale == "probability":
        parser.error("a baseline's scores are no logarithms of probabilities: leave --scale out")
    if (
        args.device_map
        and torch.cuda.is_available()
        and int(os.environ.get("LOCAL_WORLD_SIZE", 1)) > 1
        and not args.gpus_per_model
    ):
        parser.error("every process would spread its model over the same GPUs: give --gpus-per-model")
    if is_baseline(args.model) and args.compare_presets:
        parser.error("a baseline has no presets: leave --compare-presets out")
    if args.limit is not None and args.limit < 1:
        parser.error("--limit counts examples: give 1 or more")
    if set(args.languages) != {"en"} and not set(args.tasks) <= set(TRANSLATED):
        parser.error("pairs are English only: score them without --languages")
    if args.sample and not set(args.tasks) <= set(TRANSLATED):
        parser.error("the sample has no pairs: leave them out of --tasks")
    return args


def read_quantization(text):
    """--quantization as load_scorer takes it: a JSON object, or what a file holds."""
    try:
        found = json.loads(text if text.lstrip().startswith("{") else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a JSON object nor a file with one ({error})") from error
    if not isinstance(found, dict) or "quant_method" not in found:
        raise argparse.ArgumentTypeError(f"{text!r} names no quant_method: give one, such as bitsandbytes")
    return found


def load_data(args, state):
    """{name of the data set's config: its rows}; each machine's first process prepares them for the others."""
    split = "sample" if args.sample else args.split
    configs = [config_name(task, language) for language in args.languages for task in args.tasks]
    with state.local_main_process_first():
        data = {config: load_rows(config, split, args.data_dir, whole=True) for config in configs}
    return {config: rows[: args.limit] for config, rows in data.items()}


def config_name(task, language):
    """The data set's name for a task in a language."""
    return task if language == "en" else f"{task}_{language}"


def load_model(args, state):
    """The scorer of --model, be it a baseline, or of a tiny model built in the output folder."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    sentiment = sentiment_model(args.model)
    if is_baseline(args.model) and not sentiment:
        return load_baseline(args.model, args.seed)
    folder = sentiment or args.model or args.output_dir / "sample-model"
    if not args.model:
        if state.is_local_main_process:
            build_model(folder)
        state.wait_for_everyone()
    return load_scorer(
        folder,
        method="sentiment" if sentiment else methods_by_task(args.method),
        preset=args.preset,
        device=None if args.device_map or args.gpus_per_model else state.device,
        device_map=args.device_map,
        gpus_per_model=args.gpus_per_model,
        quantization_config=args.quantization,
        attention=args.attention,
        compile=args.compile,
        tf32=args.tf32,
        dtype=args.dtype,
        revision=args.revision,
        trust_remote_code=args.trust_remote_code,
        max_tokens=args.max_tokens,
        **options(args.option),
        next_sentence_head=args.next_sentence_head,
        **({} if args.follows is None else {"follows": args.follows}),
    )


def options(words):
    """--option as a Scorer takes it: {name: value}."""
    pairs = dict(word.partition("=")[::2] for word in words or ())
    return {name: read_option(name, value) for name, value in pairs.items()}


def methods_by_task(words):
    """--method as load_scorer takes it: None, a name, or {task: name}."""
    if not words or (len(words) == 1 and "=" not in words[0]):
        return words[0] if words else None
    pairs = dict(word.partition("=")[::2] for word in words)
    if not set(pairs) <= set(TASKS) or not all(pairs.values()):
        raise ValueError(
            f"--method {' '.join(words)} is neither a name nor TASK=NAME for the tasks {', '.join(TASKS)}."
        )
    methods = {}
    for task, name in pairs.items():
        if methods.setdefault(TASK_OF.get(task, task), name) != name:
            raise ValueError(f"--method {' '.join(words)} gives pairs two methods: score each in a run of its own.")
    return methods


def without_unscorable(scorer, data):
    """(the data without the examples that the scorer refuses, {config: {id: why}} of those that have any)."""
    left_out = {}
    for config, rows in data.items():
        refused = scorer.unscorable(rows)
        if refused:
            left_out[config] = {rows[i]["id"]: why for i, why in refused.items()}
            data = {**data, config: [row for i, row in enumerate(rows) if i not in refused]}
    return data, left_out


def describe(args, state, scorer, jobs, left_out):
    """The record of the run, its tasks still to be filled in."""
    heads = dict.fromkeys(row.head for job in jobs.values() for row in job.rows)
    methods = {config: scorer.method(TASK_OF.get(config) or config.partition("_")[0]) for config in jobs}
    beginnings = {config: beginning_record(method, scorer.source) for config, method in methods.items()}
    return {
        "model": model_record(scorer.source, heads),
        "tasks": {},
        "preset": scorer.preset,
        "split": "sample" if args.sample else args.split,
        "scale": args.scale,
        "partial": part_of(args, left_out),
        "left_out": left_out,
        "max_tokens": scorer.max_tokens,
        "world_size": state.num_processes,
        "device": str(state.device),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "beginnings": beginnings,
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def part_of(args, left_out):
    """What part of the data is scored, in words; None for all of it."""
    parts = [f"first {args.limit} examples of each task"] if args.limit else []
    parts += [f"{len(some)} of {config} left out" for config, some in left_out.items()]
    return ", ".join(parts) or None


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


def write_files(args, folder, record, data, scores):
    """Write scores.json, run.json and results.json; (the results, the table as text)."""
    results = make_results({config: (rows, scores[config]) for config, rows in data.items()})
    line, partial = signature(record), record["partial"]
    scale = exp if args.scale == "probability" else float
    by_config = {
        config: {
            option: scale(score)
            for row, of_row in zip(rows, scores[config], strict=True)
            for option, score in zip(option_ids(row), of_row, strict=True)
        }
        for config, rows in data.items()
    }
    write_predictions(folder / "scores.json", by_config, partial)
    write_json(folder / "run.json", record)
    write_json(folder / "results.json", {"partial": partial, "signature": line, "results": results})
    table = render(results, title=args.model or "sample model", partial=partial, signature=line)
    cut = [f"{task['truncated']} of {config}" for config, task in record["tasks"].items() if task["truncated"]]
    note = f"\nNOTE: longer than the model, and so scored with the end of their context: {', '.join(cut)}."
    return results, table + (note if cut else "")


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as refusal:
        sys.exit(f"score.py: {refusal}")
