"""How the cost of scripts/score.py grows with examples and with processes."""

from dataclasses import dataclass
from pathlib import Path

from processes import command_of_score, prepared, run

FACTORS = (1, 4, 16)
PROCESSES = (1, 2, 4)


@dataclass(frozen=True)
class Growth:
    """One cell.

    Attributes:
        examples: how many.
        processes: how many.
        seconds: from the start of the launcher to its end.
        largest: peak resident memory of the largest process, in bytes.
        together: the processes' peaks, added up.
    """

    examples: int
    processes: int
    seconds: float
    largest: int
    together: int


def measure_growth(folder, model, tokenizer, examples, factors=FACTORS, processes=PROCESSES):
    """The Growths of all combinations, one thread a process; `examples` is the number at factor 1."""
    folder = Path(folder)
    checkpoint = prepared(folder / "model", model, tokenizer)
    run(command_of_score(checkpoint, folder / "scores", "--limit", "1"), threads=1)  # prepares the data
    found = []
    for factor in factors:
        for count in processes:
            words = command_of_score(checkpoint, folder / "scores", "--limit", str(examples * factor))
            launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(count)]
            measured = run([*launcher, *words], threads=1)
            found.append(
                Growth(examples * factor, count, measured.seconds, measured.peaks[-1], sum(measured.peaks[-count:]))
            )
    return found
