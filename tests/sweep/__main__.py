"""Every text architecture of transformers, scored and compared with a reference of its own.

python -m tests.sweep --page stereoset_scoring/ARCHITECTURES.md    all of them; writes the page
python -m tests.sweep --only llama masked --trials trials.json     some model types or mappings; writes what was found

Ends with status 1 where a number is wrong, or where anything but a refusal in one sentence keeps one from being given.
"""

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path

# Before any hub library is imported: they read it once.
os.environ.update(
    HF_HUB_OFFLINE="1", HF_HUB_DISABLE_PROGRESS_BARS="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false"
)

from tests.sweep.architectures import architectures
from tests.sweep.page import page
from tests.sweep.trial import SOURCES
from tests.sweep.variants import sweep


def main():
    """Sweep, and write what was asked for."""
    arguments = parse()
    chosen = [one for one in architectures() if named(one, arguments.only)][arguments.skip :]
    begun, found = time.monotonic(), []
    for done, variants in enumerate(sweep(chosen, arguments.processes, arguments.sources), 1):
        found.extend(variants)
        print(f"{done} of {len(chosen)}: {variants[0].architecture}", file=sys.stderr, flush=True)
        if arguments.trials:
            arguments.trials.write_text(json.dumps([asdict(one) for one in found], indent=1))
    if arguments.page:
        arguments.page.write_text(page(found))
    print(f"{len(chosen)} architectures in {(time.monotonic() - begun) / 60:.1f} minutes.", file=sys.stderr)
    sys.exit(any(trial.wrong or trial.error for one in found for trial in one.trials))


def parse():
    """The arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="NAME", help="model types or mappings")
    parser.add_argument("--skip", type=int, default=0, metavar="N", help="leave out the first N")
    parser.add_argument("--sources", nargs="*", default=SOURCES, choices=SOURCES)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--page", type=Path, metavar="FILE.md")
    parser.add_argument("--trials", type=Path, metavar="FILE.json")
    return parser.parse_args()


def named(architecture, names):
    """Whether an architecture is asked for."""
    return not names or bool({architecture.model_type, architecture.mapping} & {*names})


if __name__ == "__main__":
    main()
