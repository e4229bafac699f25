"""Make evaluate.load("stereoset") and datasets.load_dataset("stereoset", ...) work by name on this machine, offline.

    python scripts/install.py
    python scripts/install.py --data-dir MIRROR --configs intrasentence crows_pairs
    python scripts/install.py --metric-only

The first downloads the upstream files, the second reads them from a mirror laid out as
<owner>/<repository>/<commit>/<path>. Both libraries look into their caches for a name that the hub does not answer,
so that is where the metric's code and the prepared rows are placed: below HF_HOME, and only there.

The metric and each config are installed whole or not at all, and each for itself: where some data cannot be had, the
rest is installed all the same. The exit status is 0 if all that was asked for is there, else 1, and a line for each
thing that is missing says why.
"""

import argparse
import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import datasets

import stereoset_metric
from stereoset_cli.ending import run
from stereoset_dataset import Refusal, Stereoset, load_stereoset

METRIC = Path(stereoset_metric.__file__).parent


def main() -> int:
    """Each part by itself; the exit status."""
    arguments = parse_arguments()
    refusals = {"metric": attempt("metric", install_metric, METRIC)}
    for config in arguments.configs:
        refusals[config] = attempt("data", prepare, config, arguments.data_dir)
    print_calls([part for part, refusal in refusals.items() if refusal is None])
    command = Path(sys.argv[0]).name
    missing = {part: refusal for part, refusal in refusals.items() if refusal is not None}
    for refusal in missing.values():
        print(f"{command}: {refusal}", file=sys.stderr)
    if missing:
        print(f"{command}: Not installed: {', '.join(missing)}.", file=sys.stderr)
    return 1 if missing else 0


def attempt(kind: str, install: Callable[..., object], *arguments: Any) -> str | None:
    """Install a part and say so; None, or why it could not be."""
    try:
        print(f"{kind + ':':<8}{install(*arguments)}", flush=True)
    except (OSError, Refusal) as refusal:
        return str(refusal).replace("data_dir=", "--data-dir")  # as the option is called here
    return None


def parse_arguments() -> argparse.Namespace:
    names = list(Stereoset.builder_configs)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data-dir", metavar="MIRROR", help="a mirror of the upstream files (default: download)")
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--configs", nargs="+", choices=names, default=names, metavar="CONFIG", help=", ".join(names))
    wanted.add_argument("--metric-only", action="store_const", const=[], dest="configs", help="no data")
    return parser.parse_args()


def install_metric(folder: Path) -> Path:
    """Place a metric module where `evaluate` finds it by name.

    Args:
        folder: holds stereoset_metric.py and the neighbours that it imports by `from .name import ...`.

    Returns:
        the installed module, which is called stereoset.py: evaluate takes the name from the file.

    Raises:
        FileNotFoundError: the folder lacks the module or a neighbour.
        OSError: the cache cannot be written to; what was installed before is as it was.
    """
    # `evaluate` itself is not imported: it would import torch along with transformers.
    files = module_files(folder / "stereoset_metric.py")
    code_sum = hashlib.sha256(b"".join(name.encode() + code for name, code in sorted(files.items()))).hexdigest()
    modules = Path(datasets.config.HF_MODULES_CACHE)
    target = modules / "evaluate_modules" / "metrics" / "evaluate-metric--stereoset" / code_sum
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for package in (target.parent, *target.parent.parents):
            if package == modules:
                break
            (package / "__init__.py").touch()
        place(files, target)
    except OSError as error:
        raise OSError(
            f"The metric cannot be written to {target.parent} ({error.strerror}): make room there, or set HF_HOME to "
            "a folder of yours on a disk with room."
        ) from error
    return target / "stereoset.py"


def place(files: Mapping[str, bytes], target: Path) -> None:
    """Write files into a folder beside the target, then put it in the target's place; no moment shows half of them.

    Several processes may do so at once, for the target is named after what is in it.
    """
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".installing-"))
    try:
        scratch.chmod(0o777 & ~_umask())
        for name, code in {"__init__.py": b"", **files}.items():
            with open(scratch / name, "wb") as file:
                file.write(code)
                file.flush()
                os.fsync(file.fileno())
        try:
            os.rename(scratch, target)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            renew(files, scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def renew(files: Collection[str], scratch: Path, target: Path) -> None:
    """Replace what is installed, file by file: it should be the same, but an older installer may have left it torn."""
    # The main file comes last: evaluate takes the folder whose main file is the youngest.
    for name in ("__init__.py", *files):
        os.replace(scratch / name, target / name)


def module_files(main_file: Path) -> dict[str, bytes]:
    """{installed name: bytes} of a module and of the neighbours it imports, itself last."""
    code = _read(main_file)
    neighbours = dict.fromkeys(re.findall(r"^from \.(\w+) import ", code.decode("utf-8"), flags=re.MULTILINE))
    files = {f"{name}.py": _read(main_file.with_name(f"{name}.py")) for name in neighbours}
    return {**files, "stereoset.py": code}


def prepare(config: str, data_dir: str | None) -> str:
    """Prepare a config's rows; in words, what is there."""
    splits = load_stereoset(config, data_dir=data_dir)
    return f"{config}, " + ", ".join(f"{len(rows):,} rows for {split}" for split, rows in splits.items())


def print_calls(parts: Collection[str]) -> None:
    """What works now."""
    if parts:
        print("Where the hub is out of reach, or with HF_HUB_OFFLINE=1, these now work:")
    if "metric" in parts:
        print('  evaluate.load("stereoset")')
    configs = [part for part in parts if part != "metric"]
    if configs:
        print(f'  datasets.load_dataset("stereoset", CONFIG), where CONFIG is one of: {", ".join(configs)}')


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is absent: the metric cannot be installed; install stereoset itself again.")
    return path.read_bytes()


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
