"""Causal language models: the likelihood of a sentence, alone or after its context."""

from dataclasses import dataclass
from typing import Literal

from stereoset_scoring.methods.reductions import mean_log
from stereoset_scoring.rows import Recipe, Row


@dataclass(frozen=True)
class CausalMethod:
    """What the causal methods share: how the first token of a text is conditioned.

    Options:
        bos: "context": one pass over the beginning-of-sequence token and the text; "released": the first
            token given that token alone, the rest given the text alone; "none": the first token is not scored,
            in any option. Default: "context" where the tokenizer puts the token there by itself (Llama, Gemma),
            "released" where it does not (GPT-2), "none" where it has none.
        bos_text: the text whose first piece serves as that token, whatever the tokenizer says.
    """

    source = "Öztürk et al. 2023, Eq. 4 and Appendix E"
    head = "causal"

    bos: Literal["context", "released", "none"] | None = None
    bos_text: str | None = None

    def rows_of(self, ids, wanted, tokenizer):
        """Rows that read ln P of ids[i] given ids[:i], for each i in wanted.

        Raises:
            ValueError: if a beginning-of-sequence token is asked for that the tokenizer does not have.
        """
        beginning, bos = self._beginning(tokenizer)
        if bos == "context":
            shift = len(beginning) - 1
            return (self._row(beginning + ids, [(i + shift, ids[i]) for i in wanted], len(beginning)),)
        rows = []
        if bos == "released" and 0 in wanted:
            rows.append(self._row(beginning, [(len(beginning) - 1, ids[0])]))
        later = [(i - 1, ids[i]) for i in wanted if i > 0]
        if later:
            rows.append(self._row(ids, later))
        return tuple(rows)

    def _row(self, ids, reads, beginning=0):
        # Nothing after the last position that is read can matter to a causal model, and what stands before the
        # first one matters less the farther away it is.
        optional = range(beginning, reads[0][0])
        return Row(self.head, ids[: reads[-1][0] + 1], tuple(reads), optional=optional)

    def _beginning(self, tokenizer):
        if self.bos_text is not None:
            return tokenizer.encode_bare(self.bos_text)[:1], self.bos or "released"
        beginning = tokenizer.beginning
        if not beginning.ids:
            if self.bos in ("context", "released"):
                raise ValueError(
                    f"bos={self.bos!r} needs a beginning-of-sequence token, and the tokenizer "
                    f"{tokenizer.hub.name_or_path!r} has none: use bos='none'."
                )
            return (), "none"
        return beginning.ids, self.bos or ("context" if beginning.habit else "released")


@dataclass(frozen=True)
class CausalLikelihood(CausalMethod):
    """Mean ln P(token | those before it) over all tokens of the option's own sentence; at most 0."""

    name = "likelihood"
    source = "Nadeem et al. 2021, §7.4; Öztürk et al. 2023, Eq. 4"

    def recipes(self, example, tokenizer):
        """One Recipe per option."""
        return [self._recipe(option, tokenizer) for option in example.options]

    def _recipe(self, option, tokenizer):
        ids = tokenizer.encode_bare(option.sentence)
        return Recipe(self.rows_of(ids, range(len(ids)), tokenizer), mean_log)


@dataclass(frozen=True)
class ContextAndOption(CausalMethod):
    """What the intersentence methods share: where the option begins in "<context> <option>".

    Options:
        border: "offsets": the option's tokens are those that reach beyond the context's last character: the
            space between the two is the option's, and so is a token that straddles; "length": as many tokens
            are the context's as it has alone, as released.
    """

    border: Literal["offsets", "length"] = "offsets"

    def recipes(self, example, tokenizer):
        """One Recipe per option of an intersentence example."""
        context = with_full_stop(example.context)
        return [self._recipe(context, option, tokenizer) for option in example.options]

    def _recipe(self, context, option, tokenizer):
        tokens = tokenizer.tokenize(f"{context} {option.sentence}", special=False)
        if self.border == "offsets":
            first = next(i for i, (_, end) in enumerate(tokens.offsets) if end > len(context))
            straddling = tokens.straddling(len(context))
        else:
            first, straddling = len(tokenizer.encode_bare(context)), 0
        wanted = self.wanted(first, len(tokens.ids))
        return Recipe(self.rows_of(tokens.ids, wanted, tokenizer), mean_log, straddling)


@dataclass(frozen=True)
class Conditional(ContextAndOption):
    """PL(option | context): mean ln P over the option's tokens, after its context; at most 0."""

    name = "conditional"

    def wanted(self, first, end):
        """The option's tokens."""
        return range(first, end)


@dataclass(frozen=True)
class Joint(ContextAndOption):
    """PL(context option): mean ln P over all tokens of both; at most 0."""

    name = "joint"

    def wanted(self, first, end):
        """All tokens."""
        return range(end)


def with_full_stop(context):
    """The context, ended by a "." where it does not end in one of . ! ?."""
    return context if context.endswith((".", "!", "?")) else context + "."
