"""The papers' tables, from saved scores: of runs of score.py, or of anybody's prediction files. No torch.

    python scripts/reproduce.py BERT-base=runs/bert GPT2=predictions_gpt2.json
    python scripts/reproduce.py BERT:de=german-bert.json BERT:tr=turkish-bert.json --tables multilingual-2 languages

Published numbers stand beside those of models of the same name, with --published FILE; scripts/published.py describes
the files.
"""

import argparse
from collections.abc import Iterable
from pathlib import Path

from stereoset_cli.arguments import Formatter
from stereoset_cli.counting import share
from stereoset_cli.ending import run
from stereoset_cli.labelled import HELP, read_labelled
from stereoset_cli.telling import table_width
from stereoset_report.common import common_only
from stereoset_report.formats import FORMATS, render
from stereoset_report.paper_tables import TABLES, Model, make_table
from stereoset_report.published import read_published
from stereoset_report.resampling import Resampling
from stereoset_scoring.refusal import Refusal


def main() -> None:
    """Scores, published numbers, tables."""
    args = parse_args()
    models = read_models(args)
    if args.common:
        limited = common_only([model.saved for model in models])
        models = [Model(model.name, saved) for model, saved in zip(models, limited, strict=True)]
    published = read_published(args.published)
    options = {"5": {"terms": args.terms}}
    tables = {
        name: make_table(name, models, published, **options.get(name, {}))
        for name in args.tables or default_tables(models)
    }
    unfilled = [name for name, table in tables.items() if table is None]
    if args.tables and unfilled:
        raise Refusal(f"The scores given cannot fill {', '.join(unfilled)}: give scores of its tasks, split, language.")
    print("\n\n\n".join(render(table, args.format, table_width()) for table in tables.values() if table is not None))


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    parser.add_argument(
        "scores",
        nargs="+",
        metavar="[NAME=]PATH",
        help=f"{HELP}; one name may come several times, for several languages",
    )
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), help="default: all that the scores can fill")
    parser.add_argument(
        "--published",
        nargs="+",
        default=[],
        metavar="[OF=]FILE",
        help="published numbers; OF: the split or language that a file does not say",
    )
    parser.add_argument(
        "--common", action="store_true", help="count only examples that all the languages given have, by their ids"
    )
    parser.add_argument(
        "--confidence-level", type=share, metavar="SHARE", help="such as 0.95: intervals beside numbers"
    )
    parser.add_argument("--format", choices=tuple(FORMATS), default="terminal")
    parser.add_argument("--terms", type=int, default=3, help="how many terms at each end, in Table 5")
    parser.add_argument("--split", choices=("validation", "test"), default="validation", help="of prediction files")
    parser.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    args = parser.parse_args()
    if args.common and args.published:
        parser.error("published numbers are of all examples: leave --common or --published out")
    return args


def read_models(args: argparse.Namespace) -> list[Model]:
    """The Models that the command line names."""
    resampling = Resampling(args.confidence_level) if args.confidence_level else None
    models: list[Model] = []
    seen: set[tuple[str, str, str]] = set()
    for named in read_labelled(args.scores, args.split, args.data_dir):
        model = Model(named.name, named.saved, resampling)
        parts = {(model.name, model.split, config) for config in model.saved.parts}
        if parts & seen:
            raise Refusal(
                f"{model.name} has two sets of scores for {sorted(parts & seen)[0][2]}: "
                "give one of them a name of its own."
            )
        seen |= parts
        models.append(model)
    return models


def default_tables(models: Iterable[Model]) -> list[str]:
    """All tables, those by language only where there is more than English."""
    several = {language for model in models for language in model.languages} - {"en"}
    return [name for name in TABLES if name.isdigit() or several]


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
