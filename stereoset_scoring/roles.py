"""Who stands for whom: what a scorer asks of a source of heads, and what a run asks of a scorer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from stereoset_scoring.planning.job import Job, Planned, Questions
from stereoset_scoring.planning.portions import Portion
from stereoset_scoring.planning.rows import Row, Values
from stereoset_scoring.planning.units import Unit
from stereoset_scoring.questions.tokens import Tokenizer

if TYPE_CHECKING:  # it imports torch, which takes seconds
    from stereoset_scoring.checkpoints.next_sentence_head import HeadSpec


class Rows(Protocol):
    """Rows of a data set, in any layout that `read_example` reads: a list of mappings, or a Dataset."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Mapping[str, Any]]: ...
    def __getitem__(self, index: int, /) -> Mapping[str, Any]: ...


class Named(Protocol):
    """What a task is scored by: a method, or a baseline's rule; a dataclass, whose fields are its options."""

    @property
    def name(self) -> str: ...


class Engine(Protocol):
    """What computes, or has computed, the log-probabilities of rows.

    Attributes:
        model: the transformers model that is asked; None where that is elsewhere.
        shares_prefixes: whether the shared beginnings of the rows of a unit are computed once.
        padding_is_inert: whether a row's output is the same beside longer rows.
        is_sharded: whether the model lies in parts on several processes.
        shown: the names of the attributes that hold what trials have shown.
        costs: what was asked of a server so far, by this process; nothing where there is none.
    """

    @property
    def model(self) -> Any: ...
    @property
    def shown(self) -> tuple[str, ...]: ...
    @property
    def shares_prefixes(self) -> bool: ...
    @property
    def padding_is_inert(self) -> bool: ...
    @property
    def is_sharded(self) -> bool: ...
    @property
    def costs(self) -> Mapping[str, int]: ...

    def try_out(self, groups: Sequence[Sequence[Row]]) -> None:
        """Try what is promised, on the rows of each example.

        Raises:
            Refusal: if it does not hold.
        """

    def log_probs(self, units: Sequence[Unit]) -> list[list[float]]:
        """ln P, in nats, of each row's reads: a list of lists of float, aligned with the rows of the units in order."""


class Head(Protocol):
    """One head of a source.

    Attributes:
        engine: what asks it.
        longest_input: how many tokens it reads at most; None where there is no limit.
        longest_decoder: how many its decoder does; None where there is no limit or none.
        record: what it is, and how it was loaded, as a record says it.
    """

    @property
    def engine(self) -> Engine: ...
    @property
    def longest_input(self) -> int | None: ...
    @property
    def longest_decoder(self) -> int | None: ...
    @property
    def record(self) -> dict[str, Any]: ...


class Origin(Protocol):
    """Where scores come from, as a record says it.

    Attributes:
        name: hub id, folder, or what else tells it from others.
        family: the kind of model, "baseline" where there is none.
        revision: branch, tag or commit that was asked for.
        commit: the hub's commit that the files come from.
        base: the hub id or folder of the model that this is an adapter of.
        next_sentence_head: the path of a trained head.
        tokenizer: the model's.
    """

    @property
    def name(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def revision(self) -> str | None: ...
    @property
    def commit(self) -> str | None: ...
    @property
    def base(self) -> str | None: ...
    @property
    def next_sentence_head(self) -> str | None: ...
    @property
    def tokenizer(self) -> Tokenizer | None: ...

    def head(self, name: str) -> Head:
        """A head by its name, such as "masked".

        Raises:
            MissingHead: if there is no such head.
            Refusal: if it cannot be loaded.
        """


class Source(Origin, Protocol):
    """A model with its heads: a checkpoint, one in memory, or one behind a server.

    Attributes:
        device: where the model's inputs go.
        trained: how its next-sentence head was trained, where it has such a one.
        config: the model's configuration; None where that is elsewhere.
    """

    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def device(self) -> Any: ...
    @property
    def trained(self) -> "HeadSpec | None": ...
    @property
    def config(self) -> Any: ...


class Scores(Protocol):
    """What a run asks of a scorer, be there a model or not.

    Attributes:
        preset: the bundle of options that is asked for.
        max_tokens: how many tokens a batch holds, where there are any.
        costs: what was asked of servers so far, by this process; nothing where there are none.
        computes_elsewhere: whether this process's own cores are idle while the model computes.
        width: the size of the model's hidden states; None where that is not known here.
    """

    @property
    def source(self) -> Origin: ...
    @property
    def preset(self) -> str | None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def costs(self) -> Mapping[str, int]: ...
    @property
    def computes_elsewhere(self) -> bool: ...
    @property
    def width(self) -> int | None: ...

    def method(self, task: str) -> Named:
        """What scores a task."""

    def fallback(self, task: str) -> str | None:
        """Why a task is not scored by its usual default, in words; None where it is, or another was asked for."""

    def unanswerable(self, data: Mapping[str, Rows]) -> dict[str, str]:
        """The data sets of which no row can be scored: {name: the reason}."""

    def asks(self, data: Mapping[str, Rows]) -> Any:
        """All that the questions to this model depend on, to be compared; None where it cannot be told."""

    def try_out(self, data: Mapping[str, Rows]) -> dict[str, Job]:
        """See on a few examples of each data set that the model is what it promises; their Jobs, {name: Job}."""

    def questions(self, portion: Portion, rows: Sequence[Mapping[str, Any]], leave_out: bool = False) -> Questions:
        """What the rows of a portion ask; the model is not asked, so that any thread may see to it."""

    def plan_part(
        self,
        portion: Portion,
        rows: Sequence[Mapping[str, Any]],
        leave_out: bool = False,
        questions: Questions | None = None,
    ) -> Planned:
        """What is read of the rows of a portion of what was tried out, and why others are left out.

        leave_out: whether all are that cannot be scored; questions: theirs, where they are known.
        """

    def as_tried(self) -> AbstractContextManager[None]:
        """Within, what a portion shows beyond what was tried out counts; afterwards no more."""

    def is_sharded(self, heads: Iterable[str]) -> bool:
        """Whether a model of some heads lies in parts on several processes."""

    def evaluating(self, heads: Iterable[str]) -> AbstractContextManager[None]:
        """Within, what the heads' models need to be asked."""

    def log_probs(self, units: Sequence[Unit]) -> Values:
        """ln P of the reads of the rows of a batch of units, which ask one head: a list for each row, in order."""
