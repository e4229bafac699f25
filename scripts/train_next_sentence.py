"""Train a next-sentence head, and the model under it, on sentence pairs of a corpus; on one process or many.

    accelerate launch scripts/train_next_sentence.py --model roberta-base --corpus wikimedia/wikipedia \\
        --corpus-config 20231101.en --max-documents 22000 --epochs 1 --language en --output-dir runs/roberta-nsp
    accelerate launch scripts/score.py --model runs/roberta-nsp/best --tasks intersentence --output-dir runs/roberta

The defaults are the papers': Nadeem et al. 2021, A.4 [S], and Öztürk et al. 2023, §5.2 [M].
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # also where the project is only checked out

from stereoset_cli.train_head import door

if __name__ == "__main__":
    door()
