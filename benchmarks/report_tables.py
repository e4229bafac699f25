"""From what was measured to Markdown."""

from page import table
from rounds import middle, spread

FLOOR, AIM = 0.75, 0.9  # of the machine's own matrix-product rate


def comparison_tables(outcomes):
    """Speed-ups and shares of the machine's rate, and below them the counts that they rest on."""
    return f"{_speed_ups(outcomes)}\n\n{_counts(outcomes)}"


def _speed_ups(outcomes):
    head = ["work", "against", "ours, s", "theirs, s", "speed-up", "floor", "aim", "limit", "share of matrix rate"]
    return table(head, [_speed_up(outcome) for outcome in outcomes])


def _speed_up(outcome):
    comparison, seconds = outcome.comparison, outcome.seconds
    return [
        comparison.work,
        outcome.against,
        spread(seconds["ours"]),
        spread(seconds["theirs"]) if "theirs" in seconds else "not installed",
        speed_up_in_words(outcome),
        f"{comparison.floor}x",
        f"{comparison.aim}x",
        "-" if outcome.limit is None else f"{outcome.limit:.2f}x",
        f"{spread([100 * share for share in outcome.shares], 0)} %",
    ]


def speed_up_in_words(outcome):
    """The speed-up with its spread over rounds; none where the two sides computed something else."""
    if outcome.difference is None:
        return "-"
    if not outcome.same:
        return f"none: they differ by {outcome.difference:.1e} nats"
    ratios = outcome.speed_ups
    below = " **below the floor**" if outcome.speed_up < outcome.comparison.floor else ""
    return f"{outcome.speed_up:.2f}x ({min(ratios):.2f}-{max(ratios):.2f}){below}"


def _counts(outcomes):
    head = ["work", "against", "tokens", "projections", "largest difference, nats"]
    lines = []
    for outcome in outcomes:
        spent, useful = outcome.spent, outcome.useful
        before = ("-", "-") if spent is None else (f"{spent.tokens:,}", f"{spent.places:,}")
        lines.append(
            [
                outcome.comparison.work,
                outcome.against,
                f"{before[0]} → {useful.tokens:,}",
                f"{before[1]} → {useful.places:,}",
                "-" if outcome.difference is None else f"{outcome.difference:.1e}",
            ]
        )
    return table(head, lines)


def shares_table(shares):
    """What kinds of models take that no peer is compared on."""
    head = ["work", "examples", "tokens", "padding", "s", "tokens/s", "share of matrix rate"]
    return table(
        head,
        [
            [
                one.work,
                f"{one.examples:,}",
                f"{one.tokens:,}",
                f"{100 * one.padding:.0f} %",
                spread(one.seconds),
                spread(one.rates, 0),
                f"{spread([100 * share for share in one.shares], 0)} %",
            ]
            for one in shares
        ],
    )


def precision_table(precisions):
    """What bfloat16 gains and costs."""
    head = [
        "work",
        "float32, s",
        "bfloat16, s",
        "speed-up",
        "share of bfloat16's matrix rate",
        "largest difference, nats",
        "ties and near-ties",
        "order changed",
    ]
    return table(
        head,
        [
            [
                one.work,
                spread(one.seconds["float32"]),
                spread(one.seconds["bfloat16"]),
                f"{middle(one.seconds['float32']) / middle(one.seconds['bfloat16']):.2f}x",
                f"{spread([100 * share for share in one.shares], 0)} %",
                f"{one.difference:.2g}",
                f"{one.near_ties['float32']} → {one.near_ties['bfloat16']}",
                f"{100 * one.changed:.1f} % of pairs",
            ]
            for one in precisions
        ],
    )


def growth_table(growths):
    """Time and memory by examples and processes."""
    head = ["examples", "processes", "time, s", "largest process, MB", "processes together, MB"]
    return table(
        head,
        [
            [
                str(one.examples),
                str(one.processes),
                f"{one.seconds:.1f}",
                f"{one.largest / 1e6:.0f}",
                f"{one.together / 1e6:.0f}",
            ]
            for one in growths
        ],
    )


def start_up_table(seconds, limit):
    """Start-up beside the imports alone, with a model's class and without."""
    ratio = {name: f"{middle(seconds['score.py']) / middle(of_one):.2f}" for name, of_one in seconds.items()}
    return table(
        ["start-up", "s", f"`score.py` over it, at most {limit}"],
        [
            ["importing torch, transformers and datasets", spread(seconds["imports"]), ratio["imports"]],
            ["the same, and a model's class of transformers", spread(seconds["class"]), ratio["class"]],
            ["`scripts/score.py` to its first batch", spread(seconds["score.py"]), ""],
        ],
    )


def phases_table(runs):
    """Runs with a tiny model, phase by phase."""
    head = ["examples", "processes", "first line, s", "first batch, s", "last line, s", "end, s", "largest process, MB"]
    return table(
        head,
        [
            [
                f"{one.examples:,}",
                str(one.processes),
                *(f"{seconds:.1f}" for seconds in (one.first_line, one.first_batch, one.last_line, one.end)),
                str(one.largest // 2**20),
            ]
            for one in runs
        ],
    )


def trial_table(costs, limit):
    """What trials cost, of the scoring of both tasks and of each alone."""
    return table(
        ["trials of", "s", f"of both tasks, at most {limit} %", "of intrasentence alone", "of intersentence alone"],
        [
            [
                one.family,
                f"{one.trial:.2f}",
                *(f"{one.share(*tasks):.1f} %" for tasks in (tuple(one.scoring), *((task,) for task in one.scoring))),
            ]
            for one in costs
        ],
    )


def llama_table(scored):
    """Large models on every example."""
    head = ["model, bfloat16", "examples", "s", "tokens/s", "share of matrix rate", "peak memory, GB"]
    return table(
        head,
        [
            [
                one.name,
                f"{one.examples:,}",
                f"{one.seconds:.1f}",
                f"{one.tokens / one.seconds:,.0f}",
                f"{100 * one.share:.0f} %",
                f"{one.peak / 1e9:.1f}",
            ]
            for one in scored
        ],
    )
