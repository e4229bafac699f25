"""How long scripts/score.py takes to reach its first batch, beside a process that only imports the libraries."""

from pathlib import Path

from processes import command_of_score, prepared, run
from rounds import alternate

LIMIT = 1.5

# Both end in the same abrupt way, at the moment that counts.
IMPORTS = "import os, torch, transformers, datasets; os._exit(0)"
# Without it nobody loads a model; transformers imports most of itself only then.
MODEL_CLASS = "import os, torch, datasets; from transformers import GPT2LMHeadModel; os._exit(0)"
TO_FIRST_BATCH = """
import os, runpy, sys
from stereoset_scoring.scorer import Scorer
Scorer.log_probs = lambda self, units: os._exit(0)
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
runpy.run_path(sys.argv[0], run_name="__main__")
sys.exit("score.py ended without a batch")
"""


def measure_start_up(folder, model, tokenizer, rounds):
    """Seconds of each round: {"imports": …, "class": … with a model's class, "score.py": …}."""
    folder = Path(folder)
    words = command_of_score(prepared(folder / "model", model, tokenizer), folder / "scores", "--limit", "8")
    run(words)  # prepares the data
    works = {
        "imports": lambda: run(["-c", IMPORTS]),
        "class": lambda: run(["-c", MODEL_CLASS]),
        "score.py": lambda: run(["-c", TO_FIRST_BATCH, *words]),
    }
    return alternate(works, rounds)[0]
