"""Every example with its texts, scores and margins, of one model or of two beside each other. No torch.

    stereoset items runs/bert --bias-type race --sort size --limit 20
    stereoset items runs/bert runs/gpt2 --flag flip --format csv
    stereoset items runs/bert --by target

The texts are StereoSet's, and offensive: they are printed as they are.
"""

import argparse

from stereoset_cli.arguments import Formatter
from stereoset_cli.counting import add_intervals, add_ties, count, resampling_of
from stereoset_cli.ending import run
from stereoset_cli.labelled import HELP, add_saved, read_asked
from stereoset_cli.telling import table_width
from stereoset_report.comparison import Manner, Named
from stereoset_report.formats import render
from stereoset_report.items import FLAGS, SORTS, Wanted, make_items, make_terms, select
from stereoset_report.items_text import as_json_lines, as_text, items_as_csv, terms_as_csv, terms_table
from stereoset_scoring.questions.configs import TASKS
from stereoset_scoring.refusal import Refusal

TARGET = "target"
TERMINAL, CSV, JSON_LINES = FORMATS = ("terminal", "csv", "jsonl")


def main() -> None:
    """Scores, items, text."""
    args = parse_args()
    if ("flip" in (args.flag or ()) and args.other is None) or (args.sort == "shift" and args.other is None):
        raise Refusal("Flips and shifts are against another model: give a second run or prediction file.")
    words = [args.scores] + ([args.other] if args.other else [])
    named, *others = read_asked(words, args, whole=not args.by)
    other = others[0] if others else None
    margins = tuple(args.margin) if args.margin else None
    wanted = Wanted(args.tasks, args.languages, args.bias_type, args.target, args.flag, margins)
    print(show_terms(args, named, other, wanted) if args.by else show_items(args, named, other, wanted))


def show_items(args: argparse.Namespace, named: Named, other: Named | None, wanted: Wanted) -> str:
    """The items as text."""
    items = select(make_items(named, other), wanted, args.sort, args.reverse)[: args.limit]
    if args.format == JSON_LINES:
        return as_json_lines(items)
    return items_as_csv(items) if args.format == CSV else as_text(items) or "no such example"


def show_terms(args: argparse.Namespace, named: Named, other: Named | None, wanted: Wanted) -> str:
    """The target terms as text."""
    manner = Manner(ties=args.ties, resampling=resampling_of(args))
    terms = make_terms(named, other, manner, wanted)
    terms = (terms[::-1] if args.reverse else terms)[: args.limit]
    if args.format == JSON_LINES:
        return as_json_lines(terms)
    return terms_as_csv(terms) if args.format == CSV else render(terms_table(terms), TERMINAL, table_width())


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    scored = parser.add_argument_group("what was scored")
    scored.add_argument("scores", metavar="[NAME=]PATH", help=HELP)
    scored.add_argument("other", nargs="?", metavar="[NAME=]OTHER", help="another model's, to find flips")
    add_saved(scored)
    chosen = parser.add_argument_group("which")
    chosen.add_argument("--tasks", nargs="+", choices=TASKS)
    chosen.add_argument("--languages", nargs="+", metavar="LANGUAGE")
    chosen.add_argument("--bias-type", nargs="+", metavar="TYPE", help="such as gender, profession, race, religion")
    chosen.add_argument("--target", nargs="+", metavar="TERM")
    chosen.add_argument(
        "--margin", nargs=2, type=float, metavar=("LOW", "HIGH"), help="of the stereotype over the anti-stereotype"
    )
    flags = "; ".join(f"{flag}: {words}" for flag, words in FLAGS.items())
    chosen.add_argument("--flag", nargs="+", choices=tuple(FLAGS), help=flags)
    chosen.add_argument("--limit", type=count, metavar="N", help="only the first N, after sorting")
    shown = parser.add_argument_group("how they are shown")
    shown.add_argument(
        "--by", choices=(TARGET,), help="target terms with intervals instead, the most stereotyped first"
    )
    shown.add_argument(
        "--sort", choices=tuple(SORTS), help="from the largest; size: of the margin; shift: of the margin, to the other"
    )
    shown.add_argument("--reverse", action="store_true", help="the other way round")
    shown.add_argument("--format", choices=FORMATS, default=TERMINAL)
    counted = parser.add_argument_group("how target terms are counted")
    add_ties(counted)
    add_intervals(counted)
    return parser.parse_args()


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
