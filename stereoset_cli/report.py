"""A page about runs that opens anywhere, offline: numbers, figures, items, in one file of HTML. No torch.

stereoset report runs/bert runs/gpt2 --output report.html
stereoset report runs/* --output leaderboard.html --figures figures
"""

import argparse
from pathlib import Path

from stereoset_cli.arguments import Formatter
from stereoset_cli.counting import add_counting, manner_of
from stereoset_cli.ending import run
from stereoset_cli.labelled import HELP, add_saved, read_asked
from stereoset_cli.telling import say
from stereoset_report.harness.samples import find_logs
from stereoset_scoring.files.finished import RECORD


def main() -> None:
    """Scores, numbers, page."""
    from stereoset_report.page.build import build, find_terms
    from stereoset_report.page.content import make_content
    from stereoset_report.page.figures import drawings, write

    args = parse_args()
    models = read_asked(within(args.scores), args, whole=True)
    manner = manner_of(args)
    content = make_content(models, manner, args.baseline)
    figures = drawings(content, find_terms(models, content, manner))
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(build(content, figures, args.confidence_level, args.title), encoding="utf-8")
    say(f"{args.output}: {len(content.runs)} runs, {len(figures)} figures.")
    if args.figures:
        args.figures.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            say(*map(str, write(figure, args.figures)))


def within(words: list[str]) -> list[str]:
    """The words, and instead of a folder that holds runs, or folders with logs of lm-eval, these."""
    return [one for word in words for one in runs_in(Path(word)) or [word]]


def runs_in(folder: Path) -> list[str]:
    """The folders in a folder that hold a run or logs; none for a run, or for what is no folder."""
    if not folder.is_dir() or (folder / RECORD).exists() or (folder / "scores.json").exists():
        return []
    return sorted({str(path.parent) for path in (*folder.rglob(RECORD), *find_logs(folder))})


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    scored = parser.add_argument_group("what was scored")
    scored.add_argument("scores", nargs="+", metavar="[NAME=]PATH", help=f"{HELP}; or a folder of runs")
    add_saved(scored)
    counted = parser.add_argument_group("how it is counted")
    counted.add_argument("--baseline", metavar="NAME", help="what the others are set against; default: the first")
    add_counting(counted)
    made = parser.add_argument_group("what is made")
    made.add_argument("--output", type=Path, required=True, metavar="FILE", help="the page, such as report.html")
    made.add_argument("--figures", type=Path, metavar="DIR", help="the figures too, as SVG, PDF and PNG for papers")
    made.add_argument("--title", default="StereoSet scores", help="of the page")
    return parser.parse_args()


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
