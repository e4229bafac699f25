"""The table of saved scores: of a run of score.py, or of anybody's StereoSet prediction file. No torch.

python scripts/evaluate_scores.py runs/bert
python scripts/evaluate_scores.py predictions_gpt2.json --language de --average example
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the project is only checked out

from stereoset_cli.table import door

if __name__ == "__main__":
    door()
