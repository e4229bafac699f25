"""Models beside each other, from runs and prediction files: numbers with intervals, differences with tests. No torch.

stereoset compare BERT=runs/bert GPT-2=predictions_gpt2.json
stereoset compare runs/bert runs/gpt2 --baseline gpt2 --by task bias_type overall --format markdown
"""

import argparse
import json
from dataclasses import asdict

from stereoset_cli.arguments import Formatter
from stereoset_cli.counting import add_counting, manner_of
from stereoset_cli.ending import run
from stereoset_cli.labelled import HELP, add_saved, read_asked
from stereoset_cli.telling import table_width
from stereoset_report.comparison import BY, TASK, Comparison, compare
from stereoset_report.comparison_tables import above, as_json, below, csv_of, tables
from stereoset_report.formats import FORMATS, render
from stereoset_report.sensitivity import Sensitivity, sensitivity, sensitivity_table

JSON, CSV = "json", "csv"


def main() -> None:
    """Scores, numbers, tables."""
    args = parse_args()
    models = read_asked(args.scores, args)
    manner = manner_of(args, args.by)
    if args.methods:
        print(show_methods(sensitivity(models, manner), args.format))
        return
    print(show(compare(models, manner, args.baseline), args.format))


def show(comparison: Comparison, layout: str) -> str:
    """A comparison as text."""
    if layout == JSON:
        return json.dumps(as_json(comparison), indent=1)
    if layout == CSV:
        return csv_of(comparison.entries)
    shown = [render(table, layout, table_width()) for table in tables(comparison)]
    parts = ["\n".join(above(comparison)), *shown, "\n".join(below(comparison))]
    return "\n\n".join(part for part in parts if part)


def show_methods(found: list[Sensitivity], layout: str) -> str:
    """Methods of the same models as text."""
    if layout == JSON:
        return json.dumps([asdict(one) for one in found], indent=1)
    return render(sensitivity_table(found), layout, table_width())


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    scored = parser.add_argument_group("what was scored")
    scored.add_argument("scores", nargs="+", metavar="[NAME=]PATH", help=HELP)
    add_saved(scored)
    counted = parser.add_argument_group("how it is counted")
    counted.add_argument(
        "--baseline", metavar="NAME", help="what the others are set against; default: the first that there is"
    )
    counted.add_argument(
        "--methods",
        action="store_true",
        help="instead: runs of one model by several methods, and how far their numbers lie apart",
    )
    counted.add_argument("--by", nargs="+", choices=BY, default=[TASK], help="what has rows of its own")
    add_counting(counted)
    shown = parser.add_argument_group("how it is shown")
    shown.add_argument("--format", choices=(*FORMATS, JSON), default="terminal")
    return parser.parse_args()


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
