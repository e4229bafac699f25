"""The table of saved scores: of a run of score.py, of anybody's prediction file, or of a log of lm-eval. No torch.

python scripts/evaluate_scores.py runs/bert
python scripts/evaluate_scores.py predictions_gpt2.json --language de --average example
python scripts/evaluate_scores.py runs/bert --without options_equal forced_tie

A CSV of CrowS-Pairs' own code carries its pairs itself: sent_more, sent_less, sent_more_score, sent_less_score, ….
So does what lm-eval logs of the tasks of `stereoset export lm-eval`: samples_stereoset_*.jsonl, or the folder of them.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from stereoset_cli.arguments import (
    Formatter,
    add_breakdown,
    add_selection,
    read_label,
    read_language,
    selection_of,
)
from stereoset_cli.counting import add_average, add_ties, share
from stereoset_cli.ending import run
from stereoset_cli.telling import table_width
from stereoset_metric.compute_score import VERSION, compare_scores, flat_references
from stereoset_report.questions_asked import differing_facts, facts_of
from stereoset_report.results import Results, find_alarms, make_results
from stereoset_report.saved import Saved, read_saved
from stereoset_report.selection import Parts, difference, effect
from stereoset_report.text import find_notes, render, render_difference
from stereoset_scoring.files.predictions import option_ids
from stereoset_scoring.refusal import Refusal

LEVEL = 0.95  # of the intervals of differences, where none is asked for


def main() -> None:
    """Scores, data, numbers, table."""
    args = parse_args()
    saved = read(args, args.scores)
    parts, partial = saved.parts, saved.partial
    results = make_results(parts, **metric_options(args))
    alarms = find_alarms(results, parts, saved.record)
    line = signature(args, parts, partial)
    other = read(args, args.compare) if args.compare else None
    compared = compare(args, parts, other.parts) if other else None
    selected = select(args, parts)
    if args.json:
        report = {"partial": partial, "signature": line, "results": results, "alarms": alarms}
        report |= {"differences": compared} if compared else {}
        print(json.dumps(report | ({"selected": plain(results, selected)} if selected else {}), indent=1))
        return
    title = args.name or saved.label
    print(render(results, title, line, partial, alarms, find_notes(saved.record), table_width()))
    if compared and other:
        print(render_differences(args, compared, title, other.label))
        for line in different_questions(saved, other):
            print(line)
    if selected:
        print(render_selected(args, title, results, selected))


def select(args: argparse.Namespace, parts: Parts) -> "Selected | None":
    """What comes out of the examples that --without and --min-agreement leave; None where all are asked for."""
    selection = selection_of(args)
    if not selection:
        return None
    kept = selection.parts(parts)
    counted = {"average": args.average, "ties": args.ties}
    words = effect(parts, kept, args.confidence_level or LEVEL, **counted)
    return Selected(str(selection), make_results(kept, **metric_options(args)), signature(args, kept, selection), words)


class Selected(NamedTuple):
    """The results of some of the examples, which they are, and how far that moves the figures."""

    which: str
    results: Results
    signature: str
    effect: list[str]


def plain(results: Results, selected: Selected) -> dict[str, Any]:
    """A Selected as JSON holds it, with its differences from the results of all examples."""
    return {**selected._asdict(), "differences": difference(results, selected.results)}


def render_selected(args: argparse.Namespace, title: str, results: Results, selected: Selected) -> str:
    """The table of a Selected, and what leaving the others out changes."""
    table = render(selected.results, title, selected.signature, selected.which, [], (), table_width())
    change = render_difference(results, selected.results, "all", selected.which, table_width())
    return "\n".join(["", table, change, "", *selected.effect])


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=Formatter)
    scored = parser.add_argument_group("what was scored")
    scored.add_argument(
        "scores",
        type=Path,
        help="a prediction file, JSON or CSV; the output folder of a run; samples_*.jsonl of lm-eval, or their folder",
    )
    scored.add_argument("--language", type=read_language, default="en", help="of a file whose tasks do not say it")
    scored.add_argument("--split", choices=("validation", "test"), default="validation", help="of a file")
    scored.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    scored.add_argument(
        "--data-file", type=Path, metavar="FILE", help="the examples of your own that were scored, as score takes them"
    )
    add_selection(scored)
    add_breakdown(scored)
    counted = parser.add_argument_group("how it is counted")
    add_average(counted)
    add_ties(counted)
    counted.add_argument("--confidence-level", type=share, help="such as 0.95: intervals, by resampling target terms")
    counted.add_argument("--compare", type=Path, help="other scores of the same examples: paired differences")
    shown = parser.add_argument_group("how it is shown")
    shown.add_argument("--name", type=read_label, metavar="LABEL", help="title of the table; default: the run's own")
    shown.add_argument("--json", action="store_true", help="all numbers as JSON instead of the table")
    return parser.parse_args()


def read(args: argparse.Namespace, path: Path) -> Saved:
    """The Saved scores of a file or a run."""
    return read_saved(path, args.language, args.split, args.data_dir, args.data_file)


def metric_options(args: argparse.Namespace) -> dict[str, Any]:
    """The metric's arguments."""
    return {
        "average": args.average,
        "ties": args.ties,
        "confidence_level": args.confidence_level,
        "breakdown": args.breakdown,
    }


def signature(args: argparse.Namespace, parts: Parts, partial: object) -> str:
    """How the numbers were made, in a line."""
    count = sum(len(rows) for rows, _ in parts.values())
    made = {"average": args.average, "ties": args.ties, "n": count, "partial": partial or None, "version": VERSION}
    return "|".join(f"{name}:{value}" for name, value in made.items() if value is not None)


def compare(args: argparse.Namespace, parts: Parts, others: Parts) -> dict[str, dict[str, Any]]:
    """{config: the paired differences to the other scores, with their intervals}.

    Raises:
        ValueError: if the two have no config in common, or scored different examples of one.
    """
    common = [config for config in parts if config in others]
    if not common:
        raise Refusal(
            f"{args.scores} scores {', '.join(parts)} and {args.compare} {', '.join(others)}: "
            "compare scores of the same task and language."
        )
    compared = {}
    for config in common:
        (rows, scores), (other_rows, other_scores) = parts[config], others[config]
        if list(map(option_ids, rows)) != list(map(option_ids, other_rows)):
            raise Refusal(
                f"{args.scores} and {args.compare} score different examples of {config}: score the same ones."
            )
        compared[config] = compare_scores(
            scores,
            other_scores,
            flat_references(rows),
            average=args.average,
            ties=args.ties,
            confidence_level=args.confidence_level or LEVEL,
        )
    return compared


def different_questions(saved: Saved, other: Saved) -> list[str]:
    """A line for each config that two runs were asked differently of, as far as their records say so."""
    common = [config for config in saved.parts if config in other.parts]
    words = {config: differing_facts(facts_of(saved, config), facts_of(other, config)) for config in common}
    return [f"DIFFERENT QUESTIONS: {config}: {'; '.join(some)}." for config, some in words.items() if some]


def render_differences(
    args: argparse.Namespace, compared: Mapping[str, Mapping[str, Any]], label: str, other_label: str
) -> str:
    """What `compare` returned as text: a line for each config and number."""
    level = f"{args.confidence_level or LEVEL:.0%} intervals"
    lines = ["", f"{label} minus {other_label}, percentage points, {level}"]
    for config, found in compared.items():
        for name in ("ss", "lms", "icat"):
            if found[name] is not None:
                low, high = found[f"{name}_low"], found[f"{name}_high"]
                lines.append(f"{config:<20} {name:<5} {found[name]:>+8.2f}   [{low:+.2f}, {high:+.2f}]")
    return "\n".join(lines)


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
