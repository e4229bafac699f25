"""A served model, asked for the log-probabilities of a batch of rows."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

from stereoset_scoring.planning.rows import Row
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import Refusal
from stereoset_scoring.served.client import Client
from stereoset_scoring.served.echo import ByIds, ByText, Echo, Ids, no_log_probs, read_echo
from stereoset_scoring.served.trial import Found, try_server

Writing = ByIds | ByText
Values = tuple[float | None, ...]


class ServedEngine:
    """Rows in, log-probabilities out, of a causal model behind a server.

    Args:
        client: asks the server.
        name: what the model is called there.
        tokenizer: the model's.

    Attributes:
        model: none of ours.
        found: what the trial found; None before it.
    """

    model = None
    shown = ()
    shares_prefixes = False
    padding_is_inert = True
    is_sharded = False

    def __init__(self, client: Client, name: str, tokenizer: Tokenizer):
        self.client, self.name, self.tokenizer = client, name, tokenizer
        self.writing: Writing = ByIds(tokenizer)
        self.found: Found | None = None

    @property
    def costs(self) -> Mapping[str, int]:
        """Requests, and tokens as the server counts them, of this process so far."""
        return self.client.costs

    def try_out(self, groups: Sequence[Sequence[Row]]) -> None:
        """See on the first rows that the server gives what is asked of it.

        Args:
            groups: the rows of each example.

        Raises:
            Refusal: if it does not.
            ConnectionError: if it does not answer.
        """
        if self.found is None:
            longest = max(groups, key=lambda rows: max(len(row.ids) for row in rows))
            self.found = try_server(self, list(dict.fromkeys(prompts_of([*longest, *groups[0]]).values())))
        for row in chain.from_iterable(groups):
            self._check_first(row)

    def _check_first(self, row: Row) -> None:
        if any(position < self.writing.hidden for position, _ in row.reads):
            raise Refusal(
                f"{self.name} says nothing of the first token of a text, which is read: choose conditional, or serve "
                "the model with a server that takes token ids, such as vLLM."
            )

    def log_probs(self, units: Sequence[Unit]) -> list[list[float]]:
        """ln P, in nats, of each row's reads: a list of lists of float, aligned with the rows of the units in order.

        Raises:
            Refusal: if the server does not take a text, or says nothing of what is read.
            ConnectionError: if it does not answer.
        """
        rows = [row for unit in units for row in unit.rows]
        prompts = prompts_of(rows)
        found = self.ask(dict.fromkeys(prompts.values()))
        return [self._read(row, prompts, found) for row in rows]

    def _read(self, row: Row, prompts: Mapping[Ids, Ids], found: Mapping[Ids, Values]) -> list[float]:
        """The values of a row's reads, of what was found for their prompts."""
        self._check_first(row)
        values = [found[prompts[text]][len(text) - 1] for text in texts_of(row)]
        return [value for value in values if value is not None]  # all are there: `values` and `_check_first` see to it

    def ask(self, prompts: Iterable[Ids], at_once: int | None = None) -> dict[Ids, Values]:
        """{prompt: ln P of each of its tokens given those before it}, as many at once as the server is to bear."""
        prompts = list(prompts)
        threads = ThreadPoolExecutor(at_once or self.client.server.concurrency)
        try:
            return dict(zip(prompts, threads.map(self._values_of, prompts), strict=True))
        finally:
            threads.shutdown(cancel_futures=True)  # where one fails, the others need not be tried

    def _values_of(self, prompt: Ids) -> Values:
        return self.values(self.echo(prompt), prompt)

    def values(self, echo: Echo, prompt: Ids) -> Values:
        """ln P of each token of a prompt given those before it; None of the first.

        Raises:
            Refusal: if that cannot be told.
        """
        self.writing.check(echo, prompt, self.name)
        values = ((None,) * self.writing.hidden + echo.values)[: len(prompt)]
        if None in values[1 + self.writing.hidden :]:
            raise no_log_probs(self.name)
        return values

    def echo(self, prompt: Ids, retries: int | None = None) -> Echo:
        """What the server says of a prompt, and of one token after it, for some give no echo alone."""
        body = {
            "model": self.name,
            "prompt": self.writing.prompt(prompt),
            "max_tokens": 1,
            "echo": True,
            "logprobs": 1,
            "temperature": 0,
        }
        return read_echo(self.client.complete(body, retries), self.name)


def texts_of(row: Row) -> list[Ids]:
    """Of each read of a row, the ids up to the token that is read."""
    return [(*row.ids[: position + 1], token) for position, token in row.reads]


def prompts_of(rows: Iterable[Row]) -> dict[Ids, Ids]:
    """{ids up to a token that is read: the prompt whose echo tells of it}; the longest, and so few."""
    texts = set(chain.from_iterable(map(texts_of, rows)))
    prompts: dict[Ids, Ids] = {}
    for text in sorted(texts, key=lambda ids: (-len(ids), ids)):
        if text not in prompts:
            for length in range(len(text), 0, -1):
                prompts.setdefault(text[:length], text)
    return prompts
