"""Score a model on StereoSet, on one process or many, and print its table.

    accelerate launch scripts/score.py --model bert-base-cased --languages en de --output-dir runs/bert
    accelerate launch scripts/score.py --sample --output-dir runs/sample    # no network needed

Writes scores.json (StereoSet's own layout), results.json (the table) and run.json (the record) to --output-dir.
"""

import argparse
import json
import os
import sys
from contextlib import nullcontext
from functools import partial
from math import exp
from pathlib import Path

import torch
from report import make_results, render, render_difference
from saved import load_rows
from transformers.utils import logging

from stereoset_scoring.baselines import is_baseline, load_baseline, sentiment_model
from stereoset_scoring.interruption import Interrupted, listening
from stereoset_scoring.ledger import Ledger, set_aside
from stereoset_scoring.methods.registry import METHODS, PRESETS, methods_table, read_option
from stereoset_scoring.predictions import option_ids, write_predictions
from stereoset_scoring.record import beginning_record, identity, model_record, signature, task_record, versions
from stereoset_scoring.runner import Unreadable, read_everywhere
from stereoset_scoring.scorer import load_scorer
from stereoset_scoring.store import claimed, write_json
from stereoset_scoring.team import Lost, our_team

TASKS = ("intrasentence", "intersentence", "crows_pairs", "intrasentence_pairs")
TRANSLATED = TASKS[:2]
TASK_OF = dict.fromkeys(TASKS[2:], "pairs")  # what a scorer calls them
DEFAULTS = "defaults"
PROGRESS = "progress"  # the folder, in the output folder, of what was computed so far
LANGUAGES = ("en", "de", "es", "fr", "tr")


def main():
    """One process's part, from start to end; if it fails, the others are told."""
    args = parse_args()
    if args.list_methods:
        print(methods_table())
        return
    team = our_team()
    try:
        with listening(), claimed(args.output_dir) if team.is_main else nullcontext():
            score(args, team)
    except BaseException as error:
        team.fail("it was asked to end" if isinstance(error, Interrupted) else str(error) or type(error).__name__)
        raise
    team.leave()


def score(args, team):
    """Data, model, scores, files, table."""
    data = load_data(args, team)
    scorer = load_model(args, team)
    scorers = {None: scorer}
    if args.compare_presets:
        scorers = {name: scorer.with_preset(None if name == DEFAULTS else name) for name in args.compare_presets}
    folders = {name: args.output_dir / (name or "") for name in scorers}
    if args.restart:
        begin_anew(team, folders.values())
    for one in scorers.values():
        for config in data:
            one.method(task_of(config))  # refused now rather than when the first preset is through
    results = [run(args, team, one, data, folders[name]) for name, one in scorers.items()]
    if args.compare_presets and team.is_main:
        print(render_difference(*results, *args.compare_presets))


def begin_anew(team, folders):
    """Set the progress of earlier runs aside, on every machine."""
    with team.first_of_machine_first():
        for folder in folders:
            aside = set_aside(folder / PROGRESS)
            if aside:
                print(f"What was computed before is in {aside}.", file=sys.stderr)
    team.meet()


def run(args, team, scorer, data, folder):
    """Score the data and write and print what came out; the main process returns the results."""
    data, left_out = without_unscorable(scorer, data) if args.keep_going else (data, {})
    jobs = scorer.plan_all(data)
    record = describe(args, team, scorer, jobs)
    methods = {config: scorer.method(task_of(config)) for config in data}
    ledger = Ledger(
        folder / PROGRESS,
        {config: identity(record["model"], methods[config], data[config], job) for config, job in jobs.items()},
    )
    if team.is_main:
        print(headline(record["model"]))
    known = go_on(team, ledger)
    scores = {}
    for config, job in jobs.items():
        keep = partial(ledger.add, config)
        values, failures = read_everywhere(team, scorer, job, config, known[config], keep, args.keep_going)
        unscored = job.unscored(failures)
        scores[config] = [of_row for of_row in job.scores(values, unscored) if of_row is not None]
        if len(unscored) == len(job.recipes):
            raise Unreadable(f"No example of {config} can be scored, the first for this: {unscored[0]}")
        if unscored:
            left_out.setdefault(config, {}).update({job.ids[i]: why for i, why in unscored.items()})
            data = {**data, config: [row for i, row in enumerate(data[config]) if i not in unscored]}
    results = None
    if team.is_main:
        record["partial"], record["left_out"] = part_of(args, left_out), left_out
        for config, rows in data.items():
            record["tasks"][config] = task_record(methods[config], rows, jobs[config], scores[config])
        folder.mkdir(exist_ok=True)
        results, table = write_files(args, folder, record, data, scores)
        print(table)
    team.meet()  # nothing is removed before it is written
    with team.first_of_machine_first():
        ledger.remove()
    return results


def go_on(team, ledger):
    """What earlier runs have computed, {config: {index of a row: its values}}; from now on the ledger takes more."""
    known = ledger.read()
    team.meet()  # nobody writes while another one reads
    ledger.open()
    count = sum(map(len, known.values()))
    if count and team.is_main:
        print(f"Going on: {count} rows were computed before.", file=sys.stderr)
    if ledger.damaged and team.state.is_local_main_process:
        print(f"{ledger.damaged} lines in {ledger.folder} were torn or damaged and do not count.", file=sys.stderr)
    return known


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
    parser.add_argument(
        "--restart", action="store_true", help="set aside what an interrupted run has computed, and begin anew"
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


def load_data(args, team):
    """{name of the data set's config: its rows}; each machine's first process prepares them for the others."""
    split = "sample" if args.sample else args.split
    configs = [config_name(task, language) for language in args.languages for task in args.tasks]
    with team.first_of_machine_first():
        data = {config: load_rows(config, split, args.data_dir, whole=True) for config in configs}
    return {config: rows[: args.limit] for config, rows in data.items()}


def config_name(task, language):
    """The data set's name for a task in a language."""
    return task if language == "en" else f"{task}_{language}"


def load_model(args, team):
    """The scorer of --model, be it a baseline, or of a tiny model built in the output folder."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    sentiment = sentiment_model(args.model)
    if is_baseline(args.model) and not sentiment:
        return load_baseline(args.model, args.seed)
    folder = sentiment or args.model or args.output_dir / "sample-model"
    if not args.model:
        from stereoset_scoring.sample import build_model  # here, for it imports a model's code

        with team.first_of_machine_first():
            if team.state.is_local_main_process:
                build_model(folder)
    return load_scorer(
        folder,
        method="sentiment" if sentiment else methods_by_task(args.method),
        preset=args.preset,
        device=None if args.device_map or args.gpus_per_model else team.state.device,
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


def describe(args, team, scorer, jobs):
    """The record of the run; what comes out of it is still to be filled in."""
    heads = dict.fromkeys(row.head for job in jobs.values() for row in job.rows)
    methods = {config: scorer.method(task_of(config)) for config in jobs}
    beginnings = {config: beginning_record(method, scorer.source) for config, method in methods.items()}
    return {
        "model": model_record(scorer.source, heads),
        "tasks": {},
        "preset": scorer.preset,
        "split": "sample" if args.sample else args.split,
        "scale": args.scale,
        "partial": None,
        "left_out": {},
        "max_tokens": scorer.max_tokens,
        "world_size": team.size,
        "device": str(team.state.device),
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "beginnings": beginnings,
        "threads": torch.get_num_threads(),
        "versions": versions(),
    }


def task_of(config):
    """What a scorer calls the task of a config."""
    return TASK_OF.get(config) or config.partition("_")[0]


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
    except Interrupted as end:
        print("score.py: asked to end; the same command goes on from here.", file=sys.stderr)
        raise end
    except (ValueError, OSError, Unreadable, Lost) as refusal:
        sys.exit(f"score.py: {refusal}")
