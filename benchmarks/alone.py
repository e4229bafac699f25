"""Works of kinds of models that no peer is compared on, against the machine's own rate."""

from dataclasses import dataclass, field
from functools import partial

from arithmetic import multiply_adds, useful_load
from matrix_rate import between_rates, matrix_rate, products_meanwhile
from meter import matrices_of
from rounds import alternate

from stereoset_scoring import load_scorer


@dataclass(frozen=True)
class Alone:
    """One work of ours, by the default method of its kind of model and task.

    Attributes:
        name: what --only calls it.
        work: in words.
        family: the kind of model, see `shapes.MAKERS`.
        task: whose examples.
        most: how many examples at most, of a work that takes long; None for no limit.
    """

    name: str
    work: str
    family: str
    task: str
    most: int | None = None


ALONE = (
    Alone("t5_intrasentence", "T5-base, intrasentence `likelihood`", "encoder_decoder", "intrasentence"),
    Alone("t5_intersentence", "T5-base, intersentence `conditional`", "encoder_decoder", "intersentence"),
    Alone("mamba_intrasentence", "Mamba 130M, intrasentence `likelihood`", "recurrent", "intrasentence"),
    Alone("hybrid_intrasentence", "LFM2 350M, intrasentence `likelihood`", "hybrid", "intrasentence"),
    Alone("xlnet_intrasentence", "XLNet-base, intrasentence `likelihood`", "permutation", "intrasentence", most=16),
)


@dataclass(frozen=True)
class Share:
    """What came of a work.

    Attributes:
        work: in words.
        examples: how many.
        tokens: distinct ones that go through the model, without padding.
        padding: tokens of padding for each of them.
        seconds: one figure a round.
        shares: of each round, useful multiply-adds over what the machine's matrix products would do in that time.
    """

    work: str
    examples: int
    tokens: int
    padding: float
    seconds: list = field(repr=False)
    shares: list = field(repr=False)

    @property
    def rates(self):
        """Tokens a second, of each round."""
        return [self.tokens / seconds for seconds in self.seconds]


def measure_alone(alone, model, tokenizer, rows, rounds):
    """The Share of a work."""
    rows = rows[: alone.most]
    scorer = load_scorer(model=model, tokenizer=tokenizer)
    job = scorer.plan(rows)
    load, tokens = useful_load(job), job.forward_tokens
    needed = multiply_adds(matrices_of(model), load)
    rate = partial(matrix_rate, model, load, len(job.batches))
    seconds, found = alternate(between_rates("ours", partial(scorer.score, rows), rate), rounds)
    shares = [needed / possible for possible in products_meanwhile(seconds["ours"], found)]
    return Share(alone.work, len(rows), tokens, job.padded_tokens / tokens - 1, seconds["ours"], shares)
