"""One architecture asked for scores, and what came of it beside the reference."""

import math
import re
import traceback
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from stereoset_scoring import load_scorer
from tests.sweep.architectures import frame_of, kind_of, tiny_model
from tests.sweep.reference import ignores_padding, reference
from tests.sweep.texts import data_for, hub_tokenizer

FLOAT32 = 1e-4  # nats
DTYPES, SOURCES = ("float32", "bfloat16"), ("memory", "folder")


@dataclass
class Trial:
    """What came of scoring one task with one model.

    Attributes:
        deviation: the largest |difference| from the reference, in nats; None where there is no number.
        rms: the root of the mean square of the differences.
        batching: the same of the model's own batches of two, beside its rows alone.
        resolution: an eighth of the spacing of the dtype's numbers at the size of the scores.
        refusal: the sentence by which it was refused.
        error: what ended the trial that is no refusal.
    """

    architecture: str
    window: int
    dtype: str
    source: str
    task: str
    method: str | None = None
    packed: bool | None = None
    inert: bool | None = None
    deviation: float | None = None
    rms: float | None = None
    batching: float | None = None
    batching_rms: float | None = None
    resolution: float | None = None
    refusal: str | None = None
    error: str | None = None

    @property
    def allowed(self):
        """The largest rms in half precision that passes.

        A mean over all options rather than the largest, which depends on luck: were both made by rounding alone, the
        squares of some 28 differences each would have a quotient over 4 once in five thousand times. What batching
        makes may be nothing at all where a kernel happens to compute each row in one way, so that some of the
        dtype's own resolution is allowed as well; what leaks between rows is ten times that and more.
        """
        return max(2 * self.batching_rms, self.resolution)

    @property
    def wrong(self):
        """Whether a number came out that is not the reference's."""
        if self.deviation is None:
            return False
        return not self.deviation <= FLOAT32 if self.dtype == "float32" else not self.rms <= self.allowed


def trials_of(architecture, window, dtypes=DTYPES, sources=SOURCES) -> list[Trial]:
    """All trials of one variant of an architecture.

    Raises:
        Exception: of any kind, where transformers cannot build, save or open the model, or make it read a text.
    """
    vocabulary = len(hub_tokenizer("spans"))
    made = tiny_model(architecture, vocabulary, window)
    found, padded = [], ignores_padding(made)
    for dtype in dtypes:
        with TemporaryDirectory(prefix="sweep-", dir=shared_memory()) as place:
            folder = Path(place, architecture.model_type)
            tokenizer = hub_tokenizer(frame_of(made))
            made.to(getattr(torch, dtype)).save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            model = opened(type(made), folder, getattr(torch, dtype))
            expected = Expected(model, tokenizer, padded)
            for source in sources:
                names = {"model": model, "tokenizer": tokenizer} if source == "memory" else {"name": str(folder)}
                scorer = attempt(load_scorer, **names, method=wanted(model))
                for task in expected.rows:
                    trial = Trial(str(architecture), window, dtype, source, task)
                    found.append(trial)
                    score_and_compare(trial, scorer, expected)
    return found


def opened(model_class, folder, dtype):
    """A model as from the hub: some architectures keep parts of themselves in float32, on purpose (T5) or not."""
    model = model_class.from_pretrained(folder, dtype=dtype).eval()
    broken = isinstance(attempt(ignores_padding, model), Exception)
    return model.to(dtype) if broken else model


class Expected:
    """The reference's scores of one model, each computed once: row by row, and in the model's own batches.

    Args:
        model: a model in evaluation mode.
        tokenizer: its hub tokenizer.
        padded: whether rows of several lengths may stand in one batch.
    """

    def __init__(self, model, tokenizer, padded):
        self.model, self.tokenizer, self.kind, self.padded = model, tokenizer, kind_of(model), padded
        self.rows, self._known = data_for(self.kind), {}

    def scores(self, task, method):
        """(alone, batched); None where the reference has no definition of the method."""
        if (task, method) not in self._known:
            asked = reference(self.kind, task, method, self.model, self.tokenizer, self.rows[task])
            if asked is None:
                return None
            alone = asked.scores(self.model.eval())
            half = self.model.dtype == torch.bfloat16
            self._known[task, method] = alone, asked.batched(self.model, self.padded) if half else alone
        return self._known[task, method]


def attempt(action, *arguments, **named):
    """What an action gives, or the error that ends it."""
    try:
        return action(*arguments, **named)
    except Exception as error:  # of any make: the sweep goes on, and says what it was
        return error


def score_and_compare(trial, scorer, expected):
    """One task scored and compared; whatever ends it is written into the trial."""
    broken = isinstance(scorer, Exception)
    found = scorer if broken else attempt(scored, trial, scorer, expected.rows[trial.task])
    if isinstance(found, Exception):
        said = plainly(str(found)) if is_sentence(found) else None
        trial.refusal, trial.error = said, None if said else told(found)
        return
    right = attempt(expected.scores, trial.task, scorer.method(trial.task).name)
    if isinstance(right, Exception):
        trial.error = f"The model's own forward pass fails: {told(right)}."
    elif right is None:
        trial.error = f"The reference has no definition of {trial.method}."
    else:
        compare(trial, found, *right)


def scored(trial, scorer, rows):
    """The options' scores; the trial is told how they were computed."""
    trial.method = f"{scorer.source.family} {scorer.method(trial.task).name}"
    scores = [score for row in scorer.score(rows) for score in row]
    trial.packed, trial.inert = shortcuts(scorer)
    return scores


def wanted(model):
    """The method that is compared where it is not the default: a next-sentence head is none of a language model's."""
    return {"intersentence": "pseudo_likelihood"} if kind_of(model) == "masked" else None


def shortcuts(scorer):
    """(whether rows are packed, whether padding is inert); None where that is not tried."""
    engine = scorer.source.head(scorer.source.family).engine
    return (engine.shares_prefixes or None) if scorer.source.family == "causal" else None, engine.padding_is_inert


def compare(trial, scores, expected, batched):
    """Scores beside those of one row at a time, and beside what batching alone makes of these."""
    trial.deviation, trial.rms = largest_and_rms(scores, expected)
    trial.batching, trial.batching_rms = largest_and_rms(batched, expected)
    size = math.sqrt(sum(score * score for score in expected) / len(expected))
    trial.resolution = size * torch.finfo(getattr(torch, trial.dtype)).eps / 8


def largest_and_rms(scores, expected):
    differences = [abs(a - b) for a, b in zip(scores, expected, strict=True)]
    if not all(map(math.isfinite, differences)):
        return math.inf, math.inf
    return max(differences), math.sqrt(sum(one * one for one in differences) / len(differences))


def plainly(text):
    """A text without the temporary folder that it may name."""
    return re.sub(r"[^\s']*/sweep-\w+/", "", " ".join(text.split()))


def is_sentence(error):
    """Whether an error is a refusal: a ValueError or OSError of one sentence, and no library's error in it."""
    if isinstance(error, TimeoutError):  # the sweep's own
        return False
    text = str(error)
    one = "\n" not in text and not re.search(r"[.!?] [A-Z]", text) and len(text) < 500
    return isinstance(error, ValueError | OSError) and one and "Error" not in text and text.endswith((".", ")"))


def told(error):
    """An error with the place it comes from."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {plainly(str(error))[:300]} ({Path(frame.filename).name}:{frame.lineno})"


def shared_memory():
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
