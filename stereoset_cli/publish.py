"""Make folders that can be uploaded to the hub, the data set or the metric's Space; or tasks for lm-eval.

    stereoset export dataset published/dataset --data-dir mirror
    stereoset export metric published/metric
    stereoset export card
    stereoset export lm-eval tasks --languages en de

`dataset` writes a Parquet file for every split of every config that can be had, the card, which promises no other, and
eval.yaml, which registers the data as a benchmark. `metric` writes the Space from which `evaluate.load` takes the
metric. `card` renews what is counted and listed in the card of this installation. `lm-eval` writes tasks for lm-eval's
`--include_path`, with their examples; `stereoset table` reads what lm-eval logs of them with `--log_samples`.
"""

import argparse
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet

import stereoset_dataset
import stereoset_metric
from stereoset_cli.arguments import Formatter
from stereoset_cli.ending import run
from stereoset_dataset import Stereoset, card, load_stereoset
from stereoset_report.harness.tasks import task_files
from stereoset_report.saved import load_rows
from stereoset_scoring.files.store import write_all
from stereoset_scoring.questions.configs import CONTEXT_TASKS, ENGLISH, STEREOSET, config_name
from stereoset_scoring.refusal import Refusal

README, EVALUATION = "README.md", "eval.yaml"
SPACE = {"stereoset_metric.py": "stereoset.py"}  # evaluate finds a module by the name of its repository
REQUIREMENTS = "datasets\nevaluate\n"

Rows = dict[tuple[str, str], Any]  # {(config, split): a Dataset}


def main() -> None:
    """Write what the command line names."""
    args = parse_args()
    args.write(args)


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True, metavar="WHAT")
    for name, (write, what) in KINDS.items():
        kind = kinds.add_parser(name, help=what, description=what, formatter_class=Formatter)
        kind.set_defaults(write=write)
        if name != "card":
            kind.add_argument("folder", type=Path, metavar="DIR", help="where it goes; empty, or not there yet")
        if name != "metric":
            kind.add_argument("--data-dir", type=Path, help="a mirror of the upstream files, instead of the network")
        if name == "dataset":
            names = list(Stereoset.builder_configs)
            kind.add_argument(
                "--configs", nargs="+", choices=names, default=names, metavar="CONFIG", help="default: all"
            )
        if name == "lm-eval":
            _add_questions(kind)
    return parser.parse_args()


def _add_questions(kind):
    kind.add_argument("--tasks", nargs="+", choices=CONTEXT_TASKS, default=CONTEXT_TASKS, metavar="TASK", help="which")
    kind.add_argument(
        "--languages", nargs="+", choices=STEREOSET, default=[ENGLISH], metavar="XX", help=f"of {', '.join(STEREOSET)}"
    )
    kind.add_argument(
        "--splits", nargs="+", choices=("validation", "test"), default=["validation"], help="test: of English alone"
    )
    kind.add_argument("--sample", action="store_true", help="the built-in examples, to try the machinery")


def write_dataset(args: argparse.Namespace) -> None:
    """The data set's folder.

    Raises:
        Refusal: if there is something in it already.
        OSError: if it cannot be written to, or the data cannot be had.
    """
    rows = read_all(args.configs, args.data_dir)
    _make(args.folder)
    for (config, split), some in rows.items():
        path = args.folder / config / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(some.data.table.replace_schema_metadata(_metadata(some.features)), path)
        print(f"{path}: {len(some):,} rows")
    (args.folder / README).write_text(_card(rows), encoding="utf-8")
    (args.folder / EVALUATION).write_text(evaluation(rows), encoding="utf-8")


def write_metric(args: argparse.Namespace) -> None:
    """The Space's folder.

    Raises:
        Refusal, OSError: as `write_dataset`.
    """
    _make(args.folder)
    for path in sorted(_folder(stereoset_metric).iterdir()):
        if path.suffix in (".py", ".md") and path.name != "__init__.py":
            shutil.copyfile(path, args.folder / SPACE.get(path.name, path.name))
    (args.folder / "requirements.txt").write_text(REQUIREMENTS, encoding="utf-8")
    print(f"{args.folder}: {', '.join(sorted(path.name for path in args.folder.iterdir()))}")


def write_lm_eval(args: argparse.Namespace) -> None:
    """The folder of lm-eval's tasks.

    Raises:
        Refusal, OSError: as `write_dataset`.
    """
    languages, splits = ([ENGLISH], ["sample"]) if args.sample else (args.languages, args.splits)
    asked = [(config_name(task, one), split) for one in languages for task in args.tasks for split in splits]
    texts = task_files({(config, split): load_rows(config, split, args.data_dir) for config, split in asked})
    _make(args.folder)
    write_all(args.folder, texts)
    print(f"{args.folder}: {', '.join(sorted(texts))}")


def write_card(args: argparse.Namespace) -> None:
    """The card of this installation, its generated parts made anew."""
    path = _folder(stereoset_dataset) / README
    path.write_text(make_card(args.data_dir), encoding="utf-8")
    print(path)


KINDS: dict[str, tuple[Callable[[argparse.Namespace], None], str]] = {
    "dataset": (write_dataset, "the data set: Parquet files, the card, eval.yaml"),
    "metric": (write_metric, "the metric's Space"),
    "lm-eval": (write_lm_eval, "tasks for lm-eval 0.4.13, with their examples"),
    "card": (write_card, "the counts and lists in the card of this installation"),
}


def make_card(data_dir: Path | None = None) -> str:
    """The text of this installation's card, with all configs and splits that there are anywhere."""
    rows = read_all(list(Stereoset.builder_configs), data_dir, first_only=True)
    return _card(
        rows, [(name, split) for name, config in Stereoset.builder_configs.items() for split in config.sources]
    )


def read_all(configs: list[str], data_dir: Path | None, first_only: bool = False) -> Rows:
    """The rows of all splits that can be had; or of the first split of each config."""
    rows = {}
    for config in configs:
        if first_only:
            first = next(iter(Stereoset.builder_configs[config].sources))
            rows[config, first] = load_stereoset(config, first, data_dir)
        else:
            rows |= {(config, split): some for split, some in load_stereoset(config, data_dir=data_dir).items()}
    return rows


def evaluation(rows: Rows) -> str:
    """eval.yaml: a task for each config."""
    lines = [
        "name: StereoSet and CrowS-Pairs",
        "description: How often a language model prefers a stereotype to its opposite, and either to nonsense.",
        "evaluation_framework: stereoset",
        "tasks:",
    ]
    for config in dict.fromkeys(config for config, _ in rows):
        split = next(split for name, split in rows if name == config)
        lines += [f"  - id: {config}", f"    config: {config}", f"    split: {split}"]
    return "\n".join([*lines, ""])


def _card(rows, splits=None):
    text = (_folder(stereoset_dataset) / README).read_text(encoding="utf-8")
    return card.filled(text, card.count(rows, "bias_type"), card.count(rows, "flags"), splits or list(rows))


def _metadata(features):
    """What a Parquet file says of its columns, as every version of `datasets` reads it: lists by their old name."""
    columns = json.loads(json.dumps(features.to_dict()), object_hook=_with_sequences)
    return {"huggingface": json.dumps({"info": {"features": columns}})}


def _with_sequences(column):
    return {**column, "_type": "Sequence"} if column.get("_type") == "List" else column


def _make(folder):
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise Refusal(f"{folder} is there already: give another folder, or remove it.")
    folder.mkdir(parents=True, exist_ok=True)


def _folder(package):
    return Path(package.__file__).parent


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
