"""Running a job, on one process or on many: the one module that knows that there are several."""

from tqdm.auto import tqdm


def score_here(scorer, job, progress=False):
    """Scores of a job, computed by this process alone.

    Args:
        scorer: a Scorer.
        job: a Job of its `plan`.
        progress: what to call the progress bar; True for "scoring", False for no bar.

    Returns:
        scores[i][j] of option j of example i.
    """
    return job.scores(_read(scorer, job, job.batches, progress))


def score_everywhere(scorer, job, progress=True):
    """Scores of a job, computed by all processes together; every process returns all of them.

    The plan is the same on every process and whole batches are shared out, so the numbers do not depend on
    how many there are. Progress is shown by the main process, for its own share; see `score_here`.
    """
    from accelerate import PartialState
    from accelerate.utils import gather_object

    state = PartialState()
    mine = job.batches[state.process_index :: state.num_processes]
    values = _read(scorer, job, mine, progress if state.is_main_process else False)
    if state.num_processes > 1:
        shares = gather_object([values])
        values = {row: found for share in shares for row, found in share.items()}
    return job.scores(values)


def _read(scorer, job, batches, progress):
    """The values of each row of some batches: {index of the row: values of its reads}."""
    values = {}
    total = sum(len(unit) for batch in batches for unit in batch)
    with (
        scorer.evaluating(job),
        tqdm(
            total=total, unit="row", desc=progress if isinstance(progress, str) else "scoring", disable=not progress
        ) as bar,
    ):
        for batch in batches:
            indices = [i for unit in batch for i in unit]
            found = scorer.log_probs([[job.rows[i] for i in unit] for unit in batch])
            values.update(zip(indices, found, strict=True))
            bar.update(len(indices))
    return values
