"""Causal language models: the likelihood of a sentence, alone or after its context."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.reductions import mean_log, total
from stereoset_scoring.planning.rows import Recipe, Row, Values
from stereoset_scoring.questions.chat import said
from stereoset_scoring.questions.examples import Example
from stereoset_scoring.questions.tokens import Joined, Texts, Tokenizer
from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class CausalMethod(Method):
    """What the causal methods share: how the first token of a text is conditioned.

    Options:
        bos: "context": one pass over the beginning-of-sequence token and the text; "released": the first
            token given that token alone, the rest given the text alone; "none": the first token is not scored,
            in any option. Default: "context" where the tokenizer puts the token there by itself (Llama, Gemma),
            "released" where it does not (GPT-2), "none" where it has none.
        bos_text: the text whose first piece serves as that token, whatever the tokenizer says.
        reduction: "mean" over tokens, "sum", or "mean_per_byte" of the text's UTF-8: which compares models with
            different vocabularies.
    """

    source = "Öztürk et al. 2023, Eq. 4 and Appendix E"
    head = "causal"

    bos: Literal["context", "released", "none"] | None = None
    bos_text: str | None = None
    reduction: Literal["mean", "sum", "mean_per_byte"] = "mean"

    def likelihood_of(self, ids: tuple[int, ...], wanted: range, text: str, tokenizer: Tokenizer) -> Recipe:
        """The Recipe of a text's log-likelihood: ln P of ids[i] given ids[:i], for each i in wanted, reduced."""
        return self._reduced(self.rows_of(ids, wanted, tokenizer), text)

    def likelihood_in_chat(self, user: str, text: str, tokenizer: Tokenizer) -> Recipe:
        """The Recipe of a text's log-likelihood as the assistant's turn, after what a user says; reduced likewise.

        Raises:
            Refusal: if the tokenizer has no chat template, or a beginning is asked for besides the template's own.
        """
        if self.bos is not None or self.bos_text is not None:
            raise Refusal("A chat begins as its template says: leave bos and bos_text out, or chat.")
        turn = said(user, text, tokenizer)
        reads = tuple((i - 1, turn.ids[i]) for i in turn.own)
        return self._reduced((Row(self.head, turn.ids[: turn.own.stop - 1], reads),), text)

    def _reduced(self, rows: tuple[Row, ...], text: str) -> Recipe:
        if self.reduction == "mean":
            return Recipe(rows, mean_log)
        if self.reduction == "sum":
            return Recipe(rows, total)
        n_bytes = len(text.encode())
        return Recipe(rows, lambda values: total(values) / n_bytes)

    def rows_of(self, ids: tuple[int, ...], wanted: range, tokenizer: Tokenizer) -> tuple[Row, ...]:
        """Rows that read ln P of ids[i] given ids[:i], for each i in wanted.

        Raises:
            Refusal: if a beginning-of-sequence token is asked for that the tokenizer does not have.
        """
        beginning, bos = self.beginning(tokenizer)
        if not wanted:
            return ()
        if bos == "context":
            return (self._row(beginning + ids, wanted, len(beginning)),)
        rows = []
        if bos == "released" and 0 in wanted:
            last = len(beginning) - 1
            rows.append(Row(self.head, beginning, ((last, ids[0]),), optional=range(last)))
        later = wanted[1:] if 0 in wanted else wanted
        if later:
            rows.append(self._row(ids, later))
        return tuple(rows)

    def _row(self, ids: tuple[int, ...], wanted: range, beginning: int = 0) -> Row:
        """The row that reads the wanted ones of the ids that follow a beginning, each before it stands there."""
        # Nothing after the last position that is read can matter to a causal model, and what stands before the
        # first one matters less the farther away it is.
        first, end = wanted.start + beginning - 1, wanted.stop + beginning - 1
        reads = tuple(zip(range(first, end), ids[first + 1 : end + 1], strict=True))
        return Row(self.head, ids[:end], reads, optional=range(beginning, first), following=ids[end : end + 1])

    def beginning(self, tokenizer: Tokenizer) -> tuple[tuple[int, ...], str]:
        """(ids of what the first token of a text is conditioned on, how: "context", "released" or "none").

        Raises:
            Refusal: as `rows_of`.
        """
        if self.bos_text is not None:
            ids = tokenizer.encode_bare(self.bos_text)[:1]
            if not ids:
                raise Refusal(f"bos_text={self.bos_text!r} has no token: give a text that has one.")
            return ids, self.bos or "released"
        beginning = tokenizer.beginning
        if not beginning.ids:
            if self.bos in ("context", "released"):
                raise Refusal(
                    f"bos={self.bos!r} needs a beginning-of-sequence token, and the tokenizer "
                    f"{tokenizer.hub.name_or_path!r} has none: use bos='none'."
                )
            return (), "none"
        return beginning.ids, self.bos or ("context" if beginning.habit else "released")


@dataclass(frozen=True)
class SentenceLikelihood(CausalMethod):
    """What the methods of lone sentences share."""

    def texts(self, example: Example) -> Texts:
        """As Method."""
        return Texts(bare=example.sentences)

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option."""
        return [self._recipe(sentence, tokenizer) for sentence in example.sentences]

    def _recipe(self, sentence: str, tokenizer: Tokenizer) -> Recipe:
        ids = tokenizer.encode_bare(sentence)
        return self.likelihood_of(ids, range(len(ids)), sentence, tokenizer)


@dataclass(frozen=True)
class CausalLikelihood(SentenceLikelihood):
    """Mean ln P(token | those before it) over all tokens of the option's own sentence; at most 0.

    Options:
        chat: whether the sentence is the assistant's turn, as the chat template writes it, after `user`.
        user: what the user says before.
    """

    name = "likelihood"
    source = "Nadeem et al. 2021, §7.4; Öztürk et al. 2023, Eq. 4"

    chat: bool = False
    user: str = "Write a sentence."

    def _recipe(self, sentence: str, tokenizer: Tokenizer) -> Recipe:
        if self.chat:
            return self.likelihood_in_chat(self.user, sentence, tokenizer)
        return super()._recipe(sentence, tokenizer)


@dataclass(frozen=True)
class PairJoint(SentenceLikelihood):
    """Mean ln P(token | those before it) over all tokens of a sentence of a pair; at most 0."""

    name = "joint"
    source = "Meade et al. 2022 (bias-bench)"


@dataclass(frozen=True)
class ContextAndOption(CausalMethod):
    """What the intersentence methods share: the likelihoods they are made of, A the context and B the option.

    Options:
        border: "offsets": the option's tokens are those that reach beyond the context's last character: the
            space between the two is the option's, and so is a token that straddles; "length": as many tokens
            are the context's as it has alone, as released.
    """

    border: Literal["offsets", "length"] = "offsets"
    reads_options_alone: ClassVar[bool] = False

    def texts(self, example: Example) -> Texts:
        """As Method."""
        alone = example.sentences if self.reads_options_alone else ()
        return Texts(bare=alone, joined=(with_full_stop(example.context), example.sentences))

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        joined = tokenizer.join(with_full_stop(example.context), example.sentences)
        return [self._recipe(one, tokenizer) for one in joined]

    def _recipe(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        if self.border == "length":
            joined = joined._replace(first=len(tokenizer.encode_bare(joined.context)), straddling=0)
        recipe = self.score(joined, tokenizer)
        return replace(recipe, straddling=joined.straddling) if joined.straddling else recipe

    @abstractmethod
    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""

    def option_given_context(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """ln PL(B|A)"""
        wanted = range(joined.first, len(joined.ids))
        return self.likelihood_of(joined.ids, wanted, " " + joined.option, tokenizer)

    def both(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """ln PL(AB)"""
        text = f"{joined.context} {joined.option}"
        return self.likelihood_of(joined.ids, range(len(joined.ids)), text, tokenizer)

    def option_alone(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """ln PL(B)"""
        ids = tokenizer.encode_bare(joined.option)
        return self.likelihood_of(ids, range(len(ids)), joined.option, tokenizer)

    def context_alone(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """ln PL(A)"""
        return self.likelihood_of(joined.ids, range(joined.first), joined.context, tokenizer)


@dataclass(frozen=True)
class Conditional(ContextAndOption):
    """ln PL(B|A): mean ln P over the option's tokens, after its context; at most 0.

    Options:
        chat: whether the context is the user's turn and the option the assistant's, as the chat template writes them.
    """

    name = "conditional"

    chat: bool = False

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        if not self.chat:
            return super().recipes(example, tokenizer)
        return [self.likelihood_in_chat(example.context, one.sentence, tokenizer) for one in example.options]

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return self.option_given_context(joined, tokenizer)


@dataclass(frozen=True)
class Joint(ContextAndOption):
    """ln PL(AB): mean ln P over all tokens of context and option; at most 0."""

    name = "joint"

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return self.both(joined, tokenizer)


@dataclass(frozen=True)
class ConditionalShare(ContextAndOption):
    """ln PL(B|A) - ln PL(AB)."""

    name = "conditional_share"

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return difference(self.option_given_context(joined, tokenizer), self.both(joined, tokenizer))


@dataclass(frozen=True)
class Gain(ContextAndOption):
    """ln PL(B|A) - ln PL(B): what the context adds; with reduction="sum" the ranking of StereoSet's Table 7."""

    name = "gain"
    reads_options_alone = True

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return difference(self.option_given_context(joined, tokenizer), self.option_alone(joined, tokenizer))


@dataclass(frozen=True)
class JointGain(ContextAndOption):
    """ln PL(AB) - ln PL(B)."""

    name = "joint_gain"
    reads_options_alone = True

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return difference(self.both(joined, tokenizer), self.option_alone(joined, tokenizer))


@dataclass(frozen=True)
class Ratio(ContextAndOption):
    """ln PL(B) - ln PL(A), each alone."""

    name = "ratio"
    reads_options_alone = True

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return difference(self.option_alone(joined, tokenizer), self.context_alone(joined, tokenizer))


@dataclass(frozen=True)
class Quotient(ContextAndOption):
    """ln PL(B) / ln PL(A), no logarithm of anything: larger means less likely, so ss and lms come out inverted."""

    name = "quotient"
    source = "Nadeem et al. 2021, released generative code"
    preset_only = True
    reads_options_alone = True

    def score(self, joined: Joined, tokenizer: Tokenizer) -> Recipe:
        """The option's Recipe."""
        return combined(self.option_alone(joined, tokenizer), self.context_alone(joined, tokenizer), lambda b, a: b / a)


def difference(first: Recipe, second: Recipe) -> Recipe:
    """The Recipe of a difference of two scores."""
    return combined(first, second, lambda a, b: a - b)


def combined(first: Recipe, second: Recipe, function: Callable[[float, float], float]) -> Recipe:
    """The Recipe of a function of the scores of two; without rows where one of them has nothing to read."""
    border = len(first.rows)

    def combine(values: Values) -> float:
        return function(first.combine(values[:border]), second.combine(values[border:]))

    return Recipe(first.rows + second.rows if first.rows and second.rows else (), combine)


def with_full_stop(context: str) -> str:
    """The context, ended by a "." where it does not end in one of . ! ?"""
    return context if context.endswith((".", "!", "?")) else context + "."
