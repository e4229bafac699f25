"""Make evaluate.load("stereoset") and datasets.load_dataset("stereoset", ...) work by name on this machine, offline.

    python scripts/install.py
    python scripts/install.py --data-dir MIRROR --configs intrasentence crows_pairs

The first downloads the upstream files, the second reads them from a mirror laid out as
<owner>/<repository>/<commit>/<path>. Both libraries look into their caches for a name that the hub does not answer,
so that is where the metric's code and the prepared rows are placed: below HF_HOME, and only there.
"""

import argparse
import hashlib
import re
import sys
from pathlib import Path

import datasets

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))  # the script also runs where the project is only checked out

from stereoset_dataset import Stereoset, load_stereoset  # noqa: E402


def main():
    arguments = parse_arguments()
    installed = install_metric(REPOSITORY / "stereoset_metric")
    print(f"metric: {installed}")
    for config in arguments.configs:
        print(f"data:   {describe(load_stereoset(config, data_dir=arguments.data_dir))}")
    print_calls(arguments.configs)


def parse_arguments():
    names = list(Stereoset.builder_configs)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--data-dir", metavar="MIRROR", help="a mirror of the upstream files (default: download)")
    parser.add_argument("--configs", nargs="+", choices=names, default=names, metavar="CONFIG", help=", ".join(names))
    return parser.parse_args()


def install_metric(folder):
    """Place a metric module where `evaluate` finds it by name.

    Args:
        folder (Path): holds stereoset_metric.py and the neighbours that it imports by `from .name import ...`.

    Returns:
        Path of the installed module, which is called stereoset.py: evaluate takes the name from the file.

    Raises:
        FileNotFoundError: the folder lacks the module or a neighbour.
    """
    # `evaluate` itself is not imported: it would import torch along with transformers.
    files = module_files(Path(folder) / "stereoset_metric.py")
    code_sum = hashlib.sha256(b"".join(name.encode() + code for name, code in sorted(files.items()))).hexdigest()
    modules = Path(datasets.config.HF_MODULES_CACHE)
    target = modules / "evaluate_modules" / "metrics" / "evaluate-metric--stereoset" / code_sum
    target.mkdir(parents=True, exist_ok=True)
    for package in (target, *target.parents):
        if package == modules:
            break
        (package / "__init__.py").touch()
    # The main file comes last: evaluate takes the folder whose main file is the youngest.
    for name, code in files.items():
        (target / name).write_bytes(code)
    return target / "stereoset.py"


def module_files(main_file):
    """{installed name: bytes} of a module and of the neighbours it imports, itself last."""
    code = _read(main_file)
    neighbours = dict.fromkeys(re.findall(r"^from \.(\w+) import ", code.decode("utf-8"), flags=re.MULTILINE))
    files = {f"{name}.py": _read(main_file.with_name(f"{name}.py")) for name in neighbours}
    return {**files, "stereoset.py": code}


def describe(splits):
    (name,) = {split.info.config_name for split in splits.values()}
    return f"{name}, " + ", ".join(f"{len(rows):,} rows for {split}" for split, rows in splits.items())


def print_calls(configs):
    print("Where the hub is out of reach, or with HF_HUB_OFFLINE=1, these now work:")
    print('  evaluate.load("stereoset")')
    print(f'  datasets.load_dataset("stereoset", CONFIG), where CONFIG is one of: {", ".join(configs)}')


def _read(path):
    if not path.is_file():
        raise FileNotFoundError(f"{path} is absent: the metric cannot be installed, check the checkout out again.")
    return path.read_bytes()


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"install.py: {error}")
