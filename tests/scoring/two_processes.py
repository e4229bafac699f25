"""A script for two processes: scores in shares equal scores at once, to the last bit, on every process.

python -m torch.distributed.run --nproc_per_node 2 two_processes.py FOLDER...
"""

import sys

import torch
from accelerate import PartialState

from stereoset_scoring import load_scorer
from stereoset_scoring.reading import score_everywhere, score_here


def examples(count, task):
    """Examples of many lengths, some of them equal."""
    rows = []
    for i in range(count):
        context = "The gardener was BLANK." if task == "intrasentence" else "The gardener was quiet."
        tail = " and calm" * (i % 7)
        sentences = [f"The gardener was {word}{tail}." for word in ("kind", "thoughtful", "long")]
        options = [{"id": f"{i}-{j}", "sentence": sentence} for j, sentence in enumerate(sentences)]
        rows.append({"id": str(i), "context": context, "sentences": options})
    return rows


def check(folder, task, count, max_tokens):
    """Compare for one data set; returns how many batches there were."""
    scorer = load_scorer(folder, device="cpu", max_tokens=max_tokens)
    job = scorer.plan(examples(count, task))
    shared, alone = score_everywhere(scorer, job, progress=False), score_here(scorer, job)
    assert [len(one) for one in shared] == [3] * count, "a process has not got all scores"
    assert shared == alone, f"{folder} {task}: {count} examples, max_tokens={max_tokens}: shares differ"
    return len(job.batches)


def main(folders):
    """Sizes that do not divide, and fewer examples, or batches, than processes."""
    torch.set_num_threads(1)
    state = PartialState(cpu=True)
    assert state.num_processes == 2, f"{state.num_processes} processes, not 2"
    batches = {
        (folder, task, count, max_tokens): check(folder, task, count, max_tokens)
        for folder in folders
        for task in ("intrasentence", "intersentence")
        for count in (1, 7, 13)
        for max_tokens in (64, 250, 4096)
    }
    assert 1 in batches.values(), "one batch for two processes was meant to be among the cases"
    assert any(n > 1 and n % 2 for n in batches.values()), "a number of batches that does not divide was meant"
    print(f"process {state.process_index} of {state.num_processes} agrees")


if __name__ == "__main__":
    main(sys.argv[1:])
