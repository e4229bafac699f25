"""The table of saved scores: of a run of score.py, or of anybody's StereoSet prediction file. No torch.

python scripts/evaluate_scores.py runs/bert
python scripts/evaluate_scores.py predictions_gpt2.json --language de --average example
"""

import argparse
import json
import sys
from pathlib import Path

from report import make_results, render
from saved import read_saved

from stereoset_metric.compute_score import AVERAGES, TIES, compare_scores, flat_reference


def main():
    """Scores, data, numbers, table."""
    args = parse_args()
    parts, partial = read_parts(args, args.scores)
    results = make_results(parts, **metric_options(args))
    if args.json:
        print(json.dumps(results, indent=1))
    else:
        print(render(results, title=str(args.scores), signature=signature(args, parts, partial), partial=partial))
    if args.compare:
        print(differences(args, parts))


def parse_args():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, help="a prediction file, or the output folder of a run")
    parser.add_argument("--language", default="en", help="of a file whose tasks do not say it")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
    parser.add_argument("--average", choices=AVERAGES, default="target", help="over target terms or examples")
    parser.add_argument("--ties", choices=tuple(TIES), default="strict")
    parser.add_argument("--confidence-level", type=float, help="such as 0.95: intervals, in --json")
    parser.add_argument("--compare", type=Path, help="other scores of the same examples: paired differences")
    parser.add_argument("--json", action="store_true", help="all numbers as JSON instead of the table")
    return parser.parse_args()


def read_parts(args, path):
    """({config: (rows, scores)}, what part of the data they are of)."""
    saved = read_saved(path, args.language, args.split, args.data_dir)
    return saved.parts, saved.partial


def metric_options(args):
    """The metric's arguments."""
    return {"average": args.average, "ties": args.ties, "confidence_level": args.confidence_level}


def signature(args, parts, partial):
    """How the numbers were made, in a line."""
    count = sum(len(rows) for rows, _ in parts.values())
    return f"average:{args.average}|ties:{args.ties}|n:{count}" + (f"|partial:{partial}" if partial else "")


def differences(args, parts):
    """The paired differences to the other scores, a line for each config and number, with 95 % intervals."""
    others, _ = read_parts(args, args.compare)
    lines = [
        "",
        f"{args.scores} minus {args.compare}, percentage points, {args.confidence_level or 0.95:.0%} intervals",
    ]
    for config in parts.keys() & others.keys():
        rows, scores = parts[config]
        other_rows, other_scores = others[config]
        if [row["sentences"] for row in rows] != [row["sentences"] for row in other_rows]:
            raise ValueError(f"The two files score different examples of {config}: score the same ones.")
        found = compare_scores(
            scores,
            other_scores,
            list(map(flat_reference, rows)),
            average=args.average,
            ties=args.ties,
            confidence_level=args.confidence_level or 0.95,
        )
        for name in ("ss", "lms", "icat"):
            if found[name] is not None:
                low, high = found[f"{name}_low"], found[f"{name}_high"]
                lines.append(f"{config:<20} {name:<5} {found[name]:>+8.2f}   [{low:+.2f}, {high:+.2f}]")
    return "\n".join(lines)


if __name__ == "__main__":
    try:
        main()
    except (ValueError, OSError) as refusal:
        sys.exit(f"evaluate_scores.py: {refusal}")
