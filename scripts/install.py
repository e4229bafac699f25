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

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the project is only checked out

from stereoset_cli.install import door

if __name__ == "__main__":
    door()
