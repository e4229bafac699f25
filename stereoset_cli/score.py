"""Score a model on StereoSet, on one process or many, and print its table.

    accelerate launch scripts/score.py --model bert-base-cased --languages en de --output-dir runs/bert
    accelerate launch scripts/score.py --sample --output-dir runs/sample    # no network needed

Writes scores.json (StereoSet's own layout), results.json (the table) and run.json (the record) to --output-dir.
"""

import sys
from contextlib import nullcontext
from functools import partial
from math import exp
from pathlib import Path

import torch
from transformers.utils import logging

from stereoset_cli import ending
from stereoset_cli.arguments import DEFAULTS, methods_by_task, options, parse_args
from stereoset_report.results import find_alarms, make_results
from stereoset_report.saved import load_rows
from stereoset_report.text import fallback_words, find_notes, render, render_difference
from stereoset_scoring.baselines import is_baseline, load_baseline, sentiment_model
from stereoset_scoring.files.ledger import Ledger, set_aside
from stereoset_scoring.files.predictions import option_ids, write_predictions
from stereoset_scoring.files.store import claimed, write_json
from stereoset_scoring.methods.registry import methods_table
from stereoset_scoring.processes.interruption import Interrupted, listening
from stereoset_scoring.processes.team import Lost, our_team
from stereoset_scoring.questions.configs import asked_as, config_name
from stereoset_scoring.reading import Unreadable, read_everywhere
from stereoset_scoring.runs.record import beginning_record, identity, model_record, signature, task_record, versions
from stereoset_scoring.scorer import load_scorer

PROGRESS = "progress"  # the folder, in the output folder, of what was computed so far


def main():
    """One process's part, from start to end; if it fails, the others are told."""
    args = parse_args(__doc__)
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
        one.unanswerable(data)  # refused now rather than when the first preset is through
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
    unscored = scorer.unanswerable(data)
    data = {config: rows for config, rows in data.items() if config not in unscored}
    data, left_out = without_unscorable(scorer, data) if args.keep_going else (data, {})
    jobs = scorer.plan_all(data)
    methods = {config: scorer.method(asked_as(config)) for config in data}
    record = describe(args, team, scorer, jobs, methods) | {"unscored": unscored}
    fallbacks = {config: scorer.fallback(asked_as(config)) for config in data}
    ledger = Ledger(
        folder / PROGRESS,
        {config: identity(record, methods[config], data[config], job) for config, job in jobs.items()},
    )
    if team.is_main:
        print(headline(record["model"]), *exceptions(methods, fallbacks, unscored), sep="\n")
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
            record["tasks"][config] = task_record(
                methods[config], rows, jobs[config], scores[config], scorer.source.tokenizer, fallbacks[config]
            )
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


def load_data(args, team):
    """{name of the data set's config: its rows}; each machine's first process prepares them for the others."""
    split = "sample" if args.sample else args.split
    configs = [config_name(task, language) for language in args.languages for task in args.tasks]
    with team.first_of_machine_first():
        data = {config: load_rows(config, split, args.data_dir, whole=True) for config in configs}
    return {config: rows[: args.limit] for config, rows in data.items()}


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


def without_unscorable(scorer, data):
    """(the data without the examples that the scorer refuses, {config: {id: why}} of those that have any)."""
    left_out = {}
    for config, rows in data.items():
        refused = scorer.unscorable(rows)
        if refused:
            left_out[config] = {rows[i]["id"]: why for i, why in refused.items()}
            data = {**data, config: [row for i, row in enumerate(rows) if i not in refused]}
    return data, left_out


def describe(args, team, scorer, jobs, methods):
    """The record of the run; what comes out of it is still to be filled in."""
    heads = dict.fromkeys(row.head for job in jobs.values() for row in job.rows)
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


def exceptions(methods, fallbacks, unscored):
    """What is not scored as usual, or not at all, a line each."""
    lines = [
        f"  {config}: {fallback_words(methods[config].name, reason)}" for config, reason in fallbacks.items() if reason
    ]
    return lines + [f"  {config}: not scored: {reason}" for config, reason in unscored.items()]


def write_files(args, folder, record, data, scores):
    """Write scores.json, run.json and results.json; (the results, the table as text)."""
    parts = {config: (rows, scores[config]) for config, rows in data.items()}
    results = make_results(parts)
    alarms = record["alarms"] = find_alarms(results, parts, record)
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
    write_json(folder / "results.json", {"partial": partial, "signature": line, "results": results, "alarms": alarms})
    return results, render(results, args.model or "sample model", line, partial, alarms, find_notes(record))


def door() -> None:
    """The command."""
    try:
        ending.run(main, Unreadable, Lost)
    except Interrupted:
        print(f"{Path(sys.argv[0]).name}: asked to end; the same command goes on from here.", file=sys.stderr)
        raise


if __name__ == "__main__":
    door()
