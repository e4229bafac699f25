"""The works that are compared, each with the same quantity by other means, and how a comparison is run."""

from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import peers
from arithmetic import Load, multiply_adds, useful_load
from matrix_rate import between_rates, matrix_rate, products_meanwhile
from meter import matrices_of, metered
from rounds import alternate, middle

from stereoset_scoring import load_scorer

SAME = 1e-3  # nats: sums over a sentence in float32 that differ by more are not the same quantity


@dataclass(frozen=True)
class Comparison:
    """One work, done by us and by somebody else.

    Attributes:
        name: what --only calls it.
        work: in words.
        against: in words.
        package: what must be installed for it, with the version that the figures are of; None for nothing.
        family: the kind of model, "causal" or "masked".
        task: whose examples.
        method: our method.
        options: its options, chosen such that it computes what the other computes.
        peer: prepares the other, see `peers`.
        floor: the speed-up under which we would have failed.
        aim: the speed-up that we are after.
        part: how many examples a turn takes, of a work so long that the machine may change its pace meanwhile; a
            round is then all parts, one after the other. None for all in one turn.
    """

    name: str
    work: str
    against: str
    package: str | None
    family: str
    task: str
    method: str
    options: dict
    peer: object
    floor: float
    aim: float
    part: int | None = None


CAUSAL = {"bos": "context", "reduction": "sum"}
COMPARISONS = (
    Comparison(
        name="causal_intrasentence_lm_eval",
        work="causal intrasentence `likelihood`",
        against="lm-eval `HFLM.loglikelihood`",
        package="lm_eval",
        family="causal",
        task="intrasentence",
        method="likelihood",
        options=CAUSAL,
        peer=peers.lm_eval_sentences,
        floor=1.8,
        aim=2.3,
    ),
    Comparison(
        name="causal_intrasentence_minicons",
        work="causal intrasentence `likelihood`",
        against="minicons `IncrementalLMScorer`",
        package="minicons",
        family="causal",
        task="intrasentence",
        method="likelihood",
        options=CAUSAL,
        peer=peers.minicons_sentences,
        floor=2.7,
        aim=3.7,
    ),
    Comparison(
        name="causal_intersentence_lm_eval",
        work="causal intersentence `conditional`",
        against="lm-eval `HFLM.loglikelihood`",
        package="lm_eval",
        family="causal",
        task="intersentence",
        method="conditional",
        options={"reduction": "sum", "border": "length"},
        peer=peers.lm_eval_after_context,
        floor=1.8,
        aim=2.2,
    ),
    Comparison(
        name="masked_pseudo_likelihood_minicons",
        work="masked `pll`",
        against="minicons `MaskedLMScorer`",
        package="minicons",
        family="masked",
        task="intrasentence",
        method="pll",
        options={},
        peer=peers.minicons_pseudo_likelihood,
        floor=1.9,
        aim=2.2,
        part=50,
    ),
    Comparison(
        name="masked_likelihood_plain",
        work="masked `likelihood`",
        against="the plain way",
        package=None,
        family="masked",
        task="intrasentence",
        method="likelihood",
        options={},
        peer=peers.plain_likelihood,
        floor=3.3,
        aim=4.2,
    ),
)


USUAL = 32  # sentences in a batch of the other's
SIZES = (8, USUAL, 128)
TRIAL = 48  # examples on which the other's best is sought


@dataclass(frozen=True)
class Outcome:
    """What came out of a comparison.

    Attributes:
        comparison: the Comparison.
        batch: how many sentences the other computed at a time; None where it is absent.
        best: whether it is as fast with no other size that was tried.
        difference: the largest difference between the two, in nats.
        useful: our Load, as little as can be.
        spent: the other's Load, padding included; None where the other is absent.
        limit: multiply-adds of the other over the useful ones of ours.
        seconds: of "ours" and "theirs", one figure a round.
        shares: of each round, our useful multiply-adds over what the machine's matrix products would do in that time.
    """

    comparison: Comparison
    batch: int | None
    best: bool
    difference: float | None
    useful: Load
    spent: Load | None
    limit: float | None
    seconds: dict = field(repr=False)
    shares: list

    @property
    def against(self):
        """The other with its batch, in words."""
        batch = "" if self.batch is None else f", batch {self.batch}"
        return f"{self.comparison.against}{batch}{' (their best)' if self.best else ''}"

    @property
    def same(self):
        """Whether both computed the same."""
        return self.difference is not None and self.difference <= SAME

    @property
    def speed_ups(self):
        """How many times as long the other took, of each round."""
        return [theirs / ours for ours, theirs in zip(self.seconds["ours"], self.seconds["theirs"], strict=True)]

    @property
    def speed_up(self):
        """The ratio of the medians; None where the two did not compute the same."""
        return middle(self.seconds["theirs"]) / middle(self.seconds["ours"]) if self.same else None


def installed(package):
    """A package's version; None where it is absent."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def compare(comparison, model, tokenizer, rows, rounds):
    """The Outcomes of a Comparison: of the other's usual batch and of its best; of ours alone where it is absent."""
    scorer = load_scorer(model=model, tokenizer=tokenizer, method=comparison.method, **comparison.options)
    peer = partial(comparison.peer, model, tokenizer)
    job, matrices = scorer.plan(rows), matrices_of(model)
    useful = useful_load(job)
    needed, scores = multiply_adds(matrices, useful), scorer.score(rows)
    sizes = batch_sizes(comparison, peer, rows)
    checked = {size: checked_against(scores, peer(rows, size), model) for size in sizes}
    parts = [rows[start:][: comparison.part] for start in range(0, len(rows), comparison.part or len(rows))]
    rate = partial(matrix_rate, model, useful, len(job.batches))
    seconds, products = in_turns(scorer, peer, sizes, parts, rounds, rate)
    shares = [needed / possible for possible in products]
    outcomes = []
    for size, best in (sizes or {None: False}).items():
        difference, spent = checked.get(size, (None, None))
        limit = None if spent is None else multiply_adds(matrices, spent) / needed
        both = {"ours": seconds["ours"]} | ({"theirs": seconds[size]} if size in sizes else {})
        outcomes.append(Outcome(comparison, size, best, difference, useful, spent, limit, both, shares))
    return outcomes


def in_turns(scorer, peer, sizes, parts, rounds, rate):
    """Both sides in turn, part by part: ({"ours" or a batch size: seconds of each round}, products, see below).

    The products are the multiply-adds that matrix products would have done in each of our turns.
    """
    seconds, products = {name: [0] * rounds for name in ("ours", *sizes)}, [0] * rounds
    for number, part in enumerate(parts):
        works = between_rates("ours", partial(scorer.score, part), rate) | {size: peer(part, size) for size in sizes}
        taken, found = alternate(works, rounds, idle=int(number == 0))
        products = _added(products, products_meanwhile(taken["ours"], found))
        seconds = {name: _added(seconds[name], taken[name]) for name in seconds}
    return seconds, products


def batch_sizes(comparison, peer, rows):
    """{batch size: whether it is the other's best of SIZES}: the usual one, and the best; none where it is absent."""
    if comparison.package is None:
        return {USUAL: False}
    if not installed(comparison.package):
        return {}
    seconds, _ = alternate({size: peer(rows[:TRIAL], size) for size in SIZES}, rounds=1)
    best = min(SIZES, key=seconds.get)
    return {size: size == best for size in (USUAL, best)}


def checked_against(ours, theirs, model):
    """(the largest difference between our scores and those that the other computes, the Load that it takes)."""
    with metered(model) as loads:
        found = theirs()
    return largest_difference(ours, found), sum(loads, Load())


def _added(first, second):
    return [sum(both) for both in zip(first, second, strict=True)]


def largest_difference(first, second):
    """Of two nested lists of scores, in nats."""
    return max(
        abs(a - b)
        for of_first, of_second in zip(first, second, strict=True)
        for a, b in zip(of_first, of_second, strict=True)
    )
