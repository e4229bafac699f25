"""Running a job, on one process or on many."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan

from tqdm.auto import tqdm

from stereoset_scoring.planning.job import Job
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.processes.interruption import undisturbed
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.roles import Scores

Batches = Sequence[list[Unit]]
Known = Mapping[int, Sequence[float]]  # index of a row in its job -> its values in nats
Read = dict[int, Sequence[float]]  # likewise
Failures = dict[int, str]  # index of a row -> why it cannot be read
# The title of a bar, whether there is one, or what to call with how many rows were read, after every batch.
Progress = str | bool | Callable[[int], object]

NO_NUMBER = "the model gives NaN: choose another dtype, such as float32, or mend the example"


class Unreadable(RuntimeError):
    """A model fails on what an example holds, or gives no number for it."""


def score_here(scorer: Scores, job: Job, progress: Progress = False) -> list[list[float]]:
    """Scores of a job, computed by this process alone.

    Args:
        scorer: who reads.
        job: of its `plan`.
        progress: what to call the progress bar; True for "scoring", False for no bar; or what to call with how many
            rows were read, after every batch.

    Returns:
        scores[i][j] of option j of example i.

    Raises:
        Unreadable: if the model fails on an example, or gives no number; the message names the example.
    """
    return _all_scores(job, _read_at_once(scorer, job, job.batches, progress))


def score_everywhere(scorer: Scores, job: Job, progress: Progress = False) -> list[list[float]]:
    """Scores of a job, computed by all processes of a training together; every process returns all of them.

    Whole batches are shared out, so the numbers do not depend on how many processes there are. Where a model lies in
    parts on all of them, every process computes every batch.

    Args:
        scorer, job, progress: as `score_here`; progress is shown by the first process, for its own share.

    Returns:
        as `score_here`.

    Raises:
        Unreadable: as `score_here`.
        Lost: if another process fails.
    """
    from stereoset_scoring.processes.peers import Peers

    peers = Peers(in_step=scorer.is_sharded(job.heads))
    mine, bar = peers.share(job.batches), progress if peers.is_main else False
    values = peers.together(lambda: _read_at_once(scorer, job, mine, bar))
    return _all_scores(job, _union(peers.gather(values)))


def _read_at_once(scorer: Scores, job: Job, batches: Batches, progress: Progress) -> Read:
    """The values of the rows of some batches of a job, which is all that the scorer is asked."""
    with scorer.evaluating(job.heads), _shown(progress, _count(batches)) as tick:
        return _read(scorer, job, batches, tick)[0]


def read_rest(
    scorer: Scores,
    job: Job,
    known: Known,
    progress: Callable[[int], object],
    keep: Callable[[Known], object],
    keep_going: bool,
    between: Callable[[], object],
) -> tuple[Read, Failures]:
    """The values of all rows of a job, of which this process computes what is not known yet.

    Args:
        scorer: who reads, evaluating.
        job: of its `plan_part`.
        known: {index of a row: its values}.
        progress: as `score_here`.
        keep: called with {index of a row: its values} after every batch.
        keep_going: whether to leave out the rows that cannot be read, and to say why, instead of raising.
        between: called after every batch.

    Returns:
        (values, failures): {index of a row: its values}, and {index of a row: why it cannot be read}.

    Raises:
        Unreadable: as `score_here`.
    """
    values, failures = _read(scorer, job, job.without(known), progress, keep, keep_going, between)
    return {**known, **values}, failures


def _all_scores(job: Job, values: Known) -> list[list[float]]:
    """The scores of all examples, of the values of all rows."""
    return [of_example for of_example in job.scores(values) if of_example is not None]


def _union(shares: Sequence[Known]) -> Read:
    """One mapping of all; what the first of them knows holds."""
    return {key: value for share in reversed(shares) for key, value in share.items()}


def _read(
    scorer: Scores,
    job: Job,
    batches: Batches,
    tick: Callable[[int], object],
    keep: Callable[[Known], object] | None = None,
    keep_going: bool = False,
    between: Callable[[], object] = lambda: None,
) -> tuple[Read, Failures]:
    """(values, failures) of some batches of units, see `read_rest`."""
    values: Read = {}
    failures: Failures = {}
    for batch in batches:
        with undisturbed():
            found, failed = _read_batch(scorer, job, batch)
            if failed and not keep_going:
                index, error = next(iter(failed.items()))
                raise Unreadable(f"{job.name_of(index)} cannot be scored: {_words(error)}") from error
            if keep and found:
                keep(found)
        values.update(found)
        failures.update((index, _words(error)) for index, error in failed.items())
        tick(_count([batch]))
        between()
    return values, failures


@contextmanager
def _shown(progress: Progress, total: int) -> Iterator[Callable[[int], object]]:
    """What to call with how many rows were read: the caller's own, or that of a bar."""
    if callable(progress):
        yield progress
        return
    title = progress if isinstance(progress, str) else "scoring"
    with tqdm(total=total, unit="row", desc=title, disable=not progress) as bar:
        yield bar.update


def _count(batches: Batches) -> int:
    """How many rows there are in some batches."""
    return sum(len(unit.rows) for batch in batches for unit in batch)


def _read_batch(scorer: Scores, job: Job, batch: list[Unit]) -> tuple[Read, dict[int, Exception]]:
    """(values, errors) of a batch; where it fails as a whole, of each of its rows for itself."""
    errors: dict[int, Exception]
    try:
        read = scorer.log_probs(batch)
    except ConnectionError:
        raise  # a server is gone, and no text is to blame
    except Exception as error:  # of any make: the model's code may be anybody's
        rows = [alone for unit in batch for alone in unit.alone()]
        if len(rows) == 1:
            return {}, {rows[0].indices[0]: error}
        parts = [_read_batch(scorer, job, [alone]) for alone in rows]
        values = {i: of_row for found, _ in parts for i, of_row in found.items()}
        errors = {i: reason for _, failed in parts for i, reason in failed.items()}
        if not errors:
            raise  # of the batch as a whole, and of nothing in it
        if not values and len(job.unscored({i: _words(reason) for i, reason in errors.items()})) > 1:
            # What several examples fail for is not what one of them holds.
            if isinstance(error, (MemoryError, Refusal)):
                raise
            raise Unreadable(f"{scorer.source.name} fails on every text that was tried: {_words(error)}") from error
        return values, errors
    found = dict(zip((i for unit in batch for i in unit.indices), read, strict=True))
    errors = {i: ArithmeticError(NO_NUMBER) for i, of_row in found.items() if any(map(isnan, of_row))}
    return {i: of_row for i, of_row in found.items() if i not in errors}, errors


def _words(error: Exception) -> str:
    """The first line of what an error says; a refusal says who refuses by itself."""
    first = next(iter(str(error).splitlines()), "")
    return first if isinstance(error, Refusal) else f"{type(error).__name__}: {first}"
