"""The papers' tables, from saved scores: of runs of score.py, or of anybody's prediction files. No torch.

    python scripts/reproduce.py BERT-base=runs/bert GPT2=predictions_gpt2.json
    python scripts/reproduce.py BERT:de=german-bert.json BERT:tr=turkish-bert.json --tables multilingual-2 languages

Published numbers stand beside those of models of the same name, with --published FILE; scripts/published.py describes
the files.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the project is only checked out

from stereoset_cli.reproduce import door

if __name__ == "__main__":
    door()
