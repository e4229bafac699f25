"""The page that the sweep writes: one line for each architecture."""

import math
from importlib.metadata import version
from itertools import groupby

HEADER = """# Architectures

Every text architecture in the causal, masked, encoder-decoder and image-text mappings of transformers {transformers}
(torch {torch}, CPU), each as tiny models with random weights: all its kinds of layers, windows shorter and longer than
the rows, in float32 and in bfloat16, in memory and from a folder. Their scores within and across sentences are compared
with those of the model's own plain forward pass, one row at a time. `make sweep` writes this page.

- packed: what rows share is computed once; plain: every row is computed.
- padded: rows of several lengths in one batch; by lengths: padding would change the numbers.
- float32, bfloat16: the largest difference of a log-score from the reference's, in nats; beside bfloat16, what the
  model's own batches of eight make of the reference. Allowed are {float32:g} nats in float32; in bfloat16, as a root
  mean square over the options, twice what batching makes, or an eighth of the spacing of the dtype's numbers at the
  size of the scores. What is more is **bold**.

{counts}

"""
COLUMNS = ["architecture", "mapping", "asked by", "rows", "lengths", "float32", "bfloat16 (batching)", "remarks"]
TITLE = f"| {' | '.join(COLUMNS)} |\n|" + "---|" * len(COLUMNS)


def page(variants):
    """The page, of all variants in order."""
    from tests.sweep.trial import FLOAT32

    by_architecture = [
        (architecture, list(some)) for architecture, some in groupby(variants, lambda variant: variant.architecture)
    ]
    lines = [line(architecture, some) for architecture, some in by_architecture]
    header = HEADER.format(
        transformers=version("transformers"), torch=version("torch"), float32=FLOAT32, counts=counts(by_architecture)
    )
    return header + "\n".join([TITLE, *lines]) + "\n"


def counts(by_architecture):
    """How many there are, and how many of each outcome."""
    words = [outcome(some) for _, some in by_architecture]
    of_each = ", ".join(f"{words.count(word)} {word}" for word in ("right", "wrong", "refused", "failed", "not built"))
    return f"Of {len(words)}: {of_each}."


def outcome(variants):
    """What came of an architecture, the worst first."""
    trials = [trial for variant in variants for trial in variant.trials]
    if any(trial.wrong for trial in trials):
        return "wrong"
    if any(trial.error for trial in trials):
        return "failed"
    if not trials or any(variant.unbuilt for variant in variants):
        return "not built"
    return "right" if any(trial.deviation is not None for trial in trials) else "refused"


def line(architecture, variants):
    """An architecture's line of the table."""
    trials = [trial for variant in variants for trial in variant.trials]
    read = [trial for trial in trials if trial.deviation is not None]
    cells = [
        architecture.model_type,
        architecture.mapping,
        each(trial.method for trial in read),
        each("packed" if trial.packed else "plain" for trial in read),
        each("padded" if trial.inert else "by lengths" for trial in read),
        largest([trial for trial in read if trial.dtype == "float32"]),
        largest([trial for trial in read if trial.dtype == "bfloat16"], batching=True),
        "; ".join(remarks(variants, trials)),
    ]
    return "| " + " | ".join(cells) + " |"


def each(words):
    """The different ones, in order."""
    return ", ".join(dict.fromkeys(words))


def largest(trials, batching=False):
    """The largest deviation; beside it the largest that batching makes."""
    if not trials:
        return ""
    most = max(trial.deviation for trial in trials)
    text = f"**{most:.1g}**" if any(trial.wrong for trial in trials) else rounded(most)
    return text + (f" ({rounded(max(trial.batching for trial in trials))})" if batching else "")


def rounded(number):
    """A power of ten that the number does not exceed: the page shall not change with the last digits."""
    if not math.isfinite(number):
        return "no number"
    return f"1e{math.ceil(math.log10(number))}" if number > 0 else "0"


def remarks(variants, trials):
    """Why there is no number: of the model, or of one of the tasks."""
    found = [f"not built: {variant.unbuilt}" for variant in variants if variant.unbuilt]
    for said in dict.fromkeys(trial.error or trial.refusal for trial in trials if trial.error or trial.refusal):
        some = [trial for trial in trials if said in (trial.error, trial.refusal)]
        tasks = {trial.task for trial in some}
        where = f"{tasks.pop()}: " if len(tasks) == 1 else ""
        found.append(where + ("**error** " if some[0].error else "refused: ") + said.replace("|", "\\|"))
    return list(dict.fromkeys(found))
