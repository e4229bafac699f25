"""Scores of a run in the forms in which others keep results, and what can be uploaded to the hub. No torch.

    stereoset export runs/bert --to model-index
    stereoset export runs/bert --to every-eval-ever --output bert.json
    stereoset export dataset published/dataset    # and: metric DIR, card; see stereoset export dataset --help
    stereoset export lm-eval tasks                # tasks for lm-eval; see stereoset export lm-eval --help

model-index: metadata of a model card; eval-results: a file of the hub's folder .eval_results; every-eval-ever: a record
of its schema 0.3; lm-eval: a results file of lm-evaluation-harness; items-csv, items-jsonl: every example.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stereoset_cli.arguments import Formatter
from stereoset_cli.counting import add_counting, manner_of
from stereoset_cli.ending import run
from stereoset_cli.labelled import HELP, add_saved, read_asked
from stereoset_cli.telling import note
from stereoset_report.comparison import Named
from stereoset_report.exports import RECORDS, TEXTS, left_out, measure
from stereoset_report.items import make_items
from stereoset_report.items_text import as_json_lines, items_as_csv
from stereoset_scoring.files.store import write_all
from stereoset_scoring.refusal import Refusal

ITEMS = {"items-csv": items_as_csv, "items-jsonl": as_json_lines}


# What stereoset_cli.publish makes; a run that is called so is given as ./dataset.
FOLDERS = ("dataset", "metric", "card", "lm-eval")


def main() -> None:
    """Scores, and what is made of them; or a folder for the hub or for lm-eval."""
    if sys.argv[1:2] and sys.argv[1] in FOLDERS:
        from stereoset_cli import publish  # here, for it imports what reads and writes data sets

        publish.main()
        return
    args = parse_args()
    (named,) = read_asked([args.scores], args, whole=args.to in ITEMS)
    text = export(named, args)
    if args.output is None:
        print(text)
        return
    args.output.parent.mkdir(parents=True, exist_ok=True)
    write_all(args.output.parent, {args.output.name: f"{text}\n"})


def export(named: Named, args: argparse.Namespace) -> str:
    """Saved scores in another form, as text."""
    if args.to in ITEMS:
        return ITEMS[args.to](make_items(named))
    measured = measure(named, manner_of(args))
    if args.to in RECORDS:
        options = {"organization": args.organization} if args.to == "every-eval-ever" else {}
        return json.dumps(RECORDS[args.to](measured, **options), indent=1)
    if args.to == "eval-results":
        _tell_left_out(measured)
    return TEXTS[args.to](measured)


def _tell_left_out(measured: Sequence) -> None:
    """Say what the hub has no data set of."""
    without = [f"{one.config} ({one.cell.split})" for one in left_out(measured)]
    if len(without) == len(measured):
        raise Refusal(f"The hub has no data set of {', '.join(without)}: choose another --to.")
    if without:
        note(f"Left out, for the hub has no data set of them: {', '.join(without)}.")


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    parser.add_argument("scores", metavar="[NAME=]PATH", help=HELP)
    parser.add_argument("--to", required=True, choices=(*TEXTS, *RECORDS, *ITEMS), metavar="FORMAT", help=_formats())
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: print it")
    add_saved(parser.add_argument_group("what was scored"))
    add_counting(parser.add_argument_group("how it is counted"))
    parser.add_argument("--organization", default="unknown", help="who gives the data, for every-eval-ever")
    return parser.parse_args()


def _formats():
    return ", ".join((*TEXTS, *RECORDS, *ITEMS))


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
