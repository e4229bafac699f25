"""Fetch what scoring needs, on a machine with internet for one without: data files, models, tokenizers.

    stereoset fetch --data-dir mirror --model bert-base-cased gpt2
    stereoset fetch --data-dir mirror --configs intrasentence intrasentence_de
    stereoset fetch --model bert-base-cased --revision main

The data files go to a mirror, laid out as <owner>/<repository>/<commit>/<path>, that every --data-dir reads; each is
checked against its pinned sum before it is put there. Models go to the hub's cache, below HF_HOME: of all files of a
repository those that scoring reads, safetensors where there are any. An adapter brings its base model along.

What is there already is not fetched again, so the same command goes on after an interruption. The exit status is 0 if
all that was asked for is there, else 1, and a line for each thing that is missing says why.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from stereoset_cli.ending import run
from stereoset_dataset import Stereoset
from stereoset_dataset.mirror import fetch_file
from stereoset_dataset.upstream import BASE_URL, UpstreamFile
from stereoset_scoring.checkpoints.download import base_of, fetch_model


def main() -> int:
    """Each file and each model by itself; the exit status."""
    args = parse_args()
    parts = list(data_parts(args)) if args.data_dir else []
    parts += [partial(model_part, name, args.revision) for name in args.model]
    missing = sum(not attempt(part) for part in parts)
    if missing:
        print(
            f"stereoset fetch: {missing} of {len(parts)} missing; the same command fetches only those.", file=sys.stderr
        )
    return 1 if missing else 0


def parse_args() -> argparse.Namespace:
    """The command line."""
    names = list(Stereoset.builder_configs)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data-dir", type=Path, metavar="MIRROR", help="the folder that the data files go to")
    parser.add_argument(
        "--configs", nargs="+", choices=names, metavar="CONFIG", help=f"which data; default: all of {', '.join(names)}"
    )
    parser.add_argument("--model", nargs="+", default=[], metavar="ID", help="hub ids of models, or of PEFT's adapters")
    parser.add_argument("--revision", help="branch, tag or commit of the model")
    parser.add_argument(
        "--data-server", default=BASE_URL, metavar="URL", help="whose layout is the mirror's; default: %(default)s"
    )
    args = parser.parse_args()
    if not args.data_dir and not args.model:
        parser.error("give a --data-dir for the data files, a --model, or both")
    if args.configs and not args.data_dir:
        parser.error("give a --data-dir, the folder that the data files go to")
    if args.revision and len(args.model) != 1:
        parser.error("--revision is of one --model: fetch models one by one")
    if not args.data_server.startswith(("http://", "https://")):
        parser.error("--data-server is an address that begins with https://")
    args.configs = args.configs or names
    return args


def attempt(part: Callable[[], str]) -> bool:
    """Fetch a part and say so, or why not; whether it is there."""
    try:
        print(part(), flush=True)
    except (OSError, ValueError) as refusal:
        print(f"stereoset fetch: {refusal}", file=sys.stderr)
        return False
    return True


def data_parts(args: argparse.Namespace) -> Iterator[Callable[[], str]]:
    """What fetches the upstream files of the configs, each once."""
    seen = set()
    for config in args.configs:
        first, *others = Stereoset.builder_configs[config].files
        for file in (first, *others):
            standard = first if file.sha256 is None else None
            if file.location not in seen:
                yield partial(data_part, file, args.data_dir, args.data_server.rstrip("/"), standard)
            seen.add(file.location)


def data_part(file: UpstreamFile, mirror: Path, server: str, standard: UpstreamFile | None) -> str:
    """Fetch a data file; in words, what is there."""
    fetched = fetch_file(file, mirror, server, standard)
    size = (mirror / file.location).stat().st_size / 1e6
    return f"data:  {file.location}, {size:.1f} MB{'' if fetched else ', was there'}"


def model_part(name: str, revision: str | None) -> str:
    """Fetch a model, and an adapter's base; in words, what is there."""
    if Path(name).is_dir():
        return f"model: {name} is a folder of this machine, and is read from there"
    folder = fetch_model(name, revision)
    base = base_of(folder)
    line = f"model: {name}, commit {folder.name}"
    return line if base is None else f"{line}\n{model_part(*base)}"


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
