"""Score a model on StereoSet, on one process or many, and print its table.

    accelerate launch scripts/score.py --model bert-base-cased --languages en de --output-dir runs/bert
    accelerate launch scripts/score.py --sample --output-dir runs/sample    # no network needed

Writes scores.json (StereoSet's own layout), results.json (the table) and run.json (the record) to --output-dir.
"""

import argparse
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from stereoset_scoring.processes import garbage, interruption

if __name__ == "__main__":
    interruption.begin()  # before the imports, which take seconds


from stereoset_cli import ending
from stereoset_cli.arguments import asked_for, label_of, parse_args, selection_of
from stereoset_cli.telling import is_main, note, progress, say, table_width
from stereoset_scoring.methods.registry import methods_table
from stereoset_scoring.processes.interruption import Interrupted, listening
from stereoset_scoring.processes.threads import sleep_at_barriers
from stereoset_scoring.questions.configs import CONTEXT_TASKS, ENGLISH, config_name
from stereoset_scoring.questions.examples import options_of

if TYPE_CHECKING:  # they import torch, which takes seconds
    from stereoset_report.alarms import Alarm
    from stereoset_report.own_data import OwnData
    from stereoset_report.selection import Selection
    from stereoset_scoring.runs.outcome import Outcome, Results, Scored
    from stereoset_scoring.runs.plan import Plan
    from stereoset_scoring.runs.run import Data


def main() -> None:
    """Parse, run, print."""
    args = parse_args(__doc__)
    if args.list_methods:
        print(methods_table())
        return
    with listening():
        if is_main():
            say(f"loading {args.name or label_of(args.model or (args.revisions or [None])[0])} ...")
        score(args)


def score(args: argparse.Namespace) -> None:
    """The run, and for two presets their difference."""
    sleep_at_barriers()
    with garbage.lasting():  # here, for importing them takes seconds
        from stereoset_report.results import find_alarms, make_results
        from stereoset_report.text import render_curve, render_difference
        from stereoset_scoring.processes.team import Lost
        from stereoset_scoring.reading import Unreadable
        from stereoset_scoring.runs.asked import name_of
        from stereoset_scoring.runs.part import Listener
        from stereoset_scoring.runs.run import run

    def judge(parts: "Scored", record: Mapping[str, Any]) -> "tuple[Results, list[Alarm]]":
        results = make_results(parts, breakdown=args.breakdown)
        return results, find_alarms(results, parts, record)

    own, selection = read_own(args), selection_of(args)
    asked = asked_for(args, own.reference if own else None, str(selection) or None)
    listener = Listener(lambda plan: say(*headline(plan.record["model"]), *exceptions(plan)), show, note, progress)
    try:
        outcomes = run(asked, partial(read_data, args, own), partial(choose, args, selection), judge, listener)
    except (Lost, Unreadable) as failure:
        raise Failed(str(failure)) from failure
    if asked.model.revisions and outcomes:
        names = map(name_of, asked.model.revisions)
        curve = {name: outcome.results for name, outcome in zip(names, outcomes, strict=True)}
        say(render_curve(curve, asked.output.label, table_width()))
    if asked.manner.compared and outcomes:
        first, second = [outcome.results for outcome in outcomes]
        one, other = asked.manner.compared
        say(render_difference(first, second, one, other, table_width()))


class Failed(RuntimeError):
    """A run that went wrong for a reason that can be told in a sentence."""


def read_own(args: argparse.Namespace) -> "OwnData | None":
    """The examples of --data-file; None without one."""
    if not args.data_file:
        return None
    from stereoset_report.own_data import read_data_file

    return read_data_file(args.data_file, args.language or ENGLISH, args.tasks)


def read_data(args: argparse.Namespace, own: "OwnData | None") -> "Data":
    """{name of the data set's config: all its rows}."""
    from stereoset_report.saved import load_rows

    if own:
        return own.rows
    split = "sample" if args.sample else args.split
    tasks, languages = args.tasks or CONTEXT_TASKS, args.languages or [ENGLISH]
    configs = [config_name(task, language) for language in languages for task in tasks]
    return {config: load_rows(config, split, args.data_dir, whole=True) for config in configs}


def choose(args: argparse.Namespace, selection: "Selection", data: "Data") -> "Data":
    """Those rows that count, the first ones if so asked."""
    from stereoset_report.selection import check_pairs

    kept = selection.rows(data)
    if selection and is_main():
        for config, rows in data.items():
            say(f"  {config}: {len(rows) - len(kept[config])} of {len(rows)} examples left out ({selection})")
    first = {config: list(map(_with_listed_options, rows[: args.limit])) for config, rows in kept.items()}
    if not args.keep_going:
        check_pairs(first)
    return first


def _with_listed_options(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """A row whose options are a list: they are taken apart some six times, and a mapping of lists more slowly."""
    options = options_of(row)
    return row if options is row["sentences"] else {**row, "sentences": options}  # one's own may be a million


def headline(model: Mapping[str, Any]) -> list[str]:
    """What was really loaded, a line a head."""
    servers = [head["server"] for head in model["heads"].values() if "server" in head]
    lines = [f"{model['name']} ({model['commit'] or next(iter(servers), 'local')}), {model['family']}"]
    for kind, head in model["heads"].items():
        some, more = head["unexpected"][:3], ", …" if len(head["unexpected"]) > 3 else ""
        lines.append(
            f"  {kind}: {head['architecture']}, {head['dtype']}, weights {head['weights_sha256'][:16]}, "
            f"{len(head['missing'])} missing, {len(head['unexpected'])} unexpected"
            + (f" ({', '.join(some)}{more})" if some else "")
        )
    return lines


def exceptions(plan: "Plan") -> list[str]:
    """What is not scored as usual, or not at all, a line each."""
    from stereoset_report.results import is_chat
    from stereoset_report.text import fallback_words

    fallbacks = {config: reason for config, reason in plan.fallbacks.items() if reason}
    asked = [{"method": one.name, "options": vars(one)} for one in plan.methods.values()]
    ignored = plan.record["model"].get("chat_template") and not all(map(is_chat, asked))
    return [
        *(["  a chat template: not used"] if ignored else []),
        *(f"  {config}: {fallback_words(plan.methods[config].name, reason)}" for config, reason in fallbacks.items()),
        *(f"  {config}: not scored: {reason}" for config, reason in plan.unscored.items()),
    ]


def show(outcome: "Outcome") -> None:
    """Print the table of an Outcome."""
    from stereoset_report.text import find_notes, render

    record = outcome.record
    notes = find_notes(record)
    say(
        render(
            outcome.results,
            record["label"],
            outcome.signature,
            record["partial"],
            record["alarms"],
            notes,
            table_width(),
        )
    )


def door() -> None:
    """The command."""
    interruption.begin()
    try:
        ending.run(main, Failed)
    except Interrupted:
        interruption.say()
        raise


if __name__ == "__main__":
    door()
