"""Score a model on StereoSet, on one process or many, and print its table.

    accelerate launch scripts/score.py --model bert-base-cased --languages en de --output-dir runs/bert
    accelerate launch scripts/score.py --sample --output-dir runs/sample    # no network needed

Writes scores.json (StereoSet's own layout), results.json (the table) and run.json (the record) to --output-dir.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the project is only checked out

from stereoset_cli.early import begin

if __name__ == "__main__":
    begin()  # before the imports, which take seconds
    from stereoset_cli.score import door

    door()
