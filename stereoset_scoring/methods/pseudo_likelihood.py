"""Masked language models: sums over the tokens of a whole sentence, each masked in its turn.

Each method declares by `reduce` how the readings of an option become its score; a subclass may declare another.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import ClassVar

from stereoset_scoring.methods.masked import attribute_tokens, masked_row, spaced
from stereoset_scoring.methods.method import Method
from stereoset_scoring.methods.reductions import mean_log, total
from stereoset_scoring.planning.rows import Recipe, Row, Values
from stereoset_scoring.questions.attribute import sentence_of
from stereoset_scoring.questions.examples import Example, Option
from stereoset_scoring.questions.tokens import Texts, Tokenizer, Tokens
from stereoset_scoring.refusal import Refusal


@dataclass(frozen=True)
class PseudoLikelihood(Method):
    """Sum of ln P over the tokens that the options share, each masked alone; at most 0.

    Intrasentence: all tokens but the attribute's. Intersentence: the context's, before the whole option.
    """

    name = "pseudo_likelihood"
    source = "Nangia et al. 2020, §3; Nadeem et al. 2021, §6.1"

    reduce = staticmethod(total)

    def texts(self, example: Example) -> Texts:
        """As Method."""
        return whole_texts(example)

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option."""
        unmodified = self._outside_attribute if example.task == "intrasentence" else self._context
        return [self._recipe(*unmodified(example, option, tokenizer), tokenizer) for option in example.options]

    def _recipe(self, tokens: Tokens, positions: Sequence[int], straddling: int, tokenizer: Tokenizer) -> Recipe:
        rows = [masked_row(tokens, position, {position}, tokenizer) for position in positions]
        return Recipe(tuple(rows), self.reduce, straddling)

    def _outside_attribute(
        self, example: Example, option: Option, tokenizer: Tokenizer
    ) -> tuple[Tokens, list[int], int]:
        tokens, attribute, straddling = attribute_tokens(example, option, tokenizer)
        return tokens, [i for i in tokens.ordinary if i not in attribute], straddling

    def _context(self, example: Example, option: Option, tokenizer: Tokenizer) -> tuple[Tokens, list[int], int]:
        tokens, border = tokenizer.tokenize(whole_text(example, option)), len(example.context)
        positions = [i for i in tokens.ordinary if tokens.offsets[i][1] <= border]
        return tokens, positions, tokens.straddling(border)


@dataclass(frozen=True)
class MaskedConditional(Method):
    """Mean ln P over the option's tokens, each masked alone, after its context; at most 0.

    A token is the option's if it reaches beyond the context. The beginning of a context that is too long for the model
    may be left out.
    """

    name = "conditional"
    source = "Salazar et al. 2020, of the option alone, as in the Portuguese StereoSet"

    reduce = staticmethod(mean_log)

    def texts(self, example: Example) -> Texts:
        """As Method."""
        return whole_texts(example)

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option of an intersentence example."""
        return [self._recipe(example, option, tokenizer) for option in example.options]

    def _recipe(self, example: Example, option: Option, tokenizer: Tokenizer) -> Recipe:
        tokens, positions, straddling = option_tokens(example, option, tokenizer)
        context = range(tokens.ordinary[0], positions[0]) if positions else range(0)
        rows = [masked_row(tokens, i, {i}, tokenizer)._replace(optional=context) for i in positions]
        return Recipe(tuple(rows), self.reduce, straddling)


@dataclass(frozen=True)
class PairMethod(Method):
    """What the methods for pairs share: which tokens difflib finds equal in the two sentences.

    Options:
        lowercase: whether the text is lower-cased first, unless the tokenizer is a byte-level BPE.
        sentence_space: whether a byte-level BPE reads the sentence with a space before it, as in transformers 2.
        decimals: to how many the score is rounded; None to leave it as it is.
    """

    lowercase: bool = False
    sentence_space: bool = False
    decimals: int | None = None

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per sentence of a pair."""
        first, second = (self._tokens(option.sentence, tokenizer) for option in example.options)
        # difflib's answer depends on the order, and the released code puts the stereotype first.
        if example.direction == "antistereo":
            chosen_second, chosen_first = self.positions(second, first)
        else:
            chosen_first, chosen_second = self.positions(first, second)
        return [self._recipe(first, chosen_first, tokenizer), self._recipe(second, chosen_second, tokenizer)]

    @abstractmethod
    def positions(self, first: Tokens, second: Tokens) -> tuple[list[int], list[int]]:
        """The positions that are read in each of two sentences."""

    @staticmethod
    @abstractmethod
    def reduce(values: Values) -> float:
        """From the readings of a sentence to its score."""

    def _recipe(self, tokens: Tokens, chosen: Sequence[int], tokenizer: Tokenizer) -> Recipe:
        return Recipe(tuple(masked_row(tokens, i, {i}, tokenizer) for i in chosen), self._combine)

    def _tokens(self, sentence: str, tokenizer: Tokenizer) -> Tokens:
        if self.lowercase and not tokenizer.is_byte_level:
            sentence = sentence.lower()
        return tokenizer.tokenize(spaced(sentence, tokenizer) if self.sentence_space else sentence)

    def _combine(self, values: Values) -> float:
        score = self.reduce(values)
        return score if self.decimals is None else round(score, self.decimals)


@dataclass(frozen=True)
class PairPseudoLikelihood(PairMethod):
    """Sum of ln P over the tokens that both sentences share, each masked alone; at most 0."""

    name = "pseudo_likelihood"
    source = "Nangia et al. 2020, §3"

    reduce = staticmethod(total)

    def positions(self, first: Tokens, second: Tokens) -> tuple[list[int], list[int]]:
        """Positions in both of the tokens that difflib finds equal, special ones left out."""
        pairs = [
            (i, j)
            for a, b, size in matcher(first, second).get_matching_blocks()
            for i, j in zip(range(a, a + size), range(b, b + size), strict=True)
            if not first.special[i]
        ]
        return [i for i, _ in pairs], [j for _, j in pairs]


@dataclass(frozen=True)
class DifferingTokens(PairMethod):
    """Mean ln P of the tokens in which the sentences differ, each masked alone; at most 0."""

    name = "differing_tokens"
    source = "Meade et al. 2022 (bias-bench)"

    reduce = staticmethod(mean_log)

    def positions(self, first: Tokens, second: Tokens) -> tuple[list[int], list[int]]:
        """Positions in both of the tokens that difflib does not find equal."""
        changes = [change for change in matcher(first, second).get_opcodes() if change[0] != "equal"]
        return (
            [i for _, start, end, _, _ in changes for i in range(start, end)],
            [j for _, _, _, start, end in changes for j in range(start, end)],
        )


@dataclass(frozen=True)
class PLL(Method):
    """Sum of ln P over all tokens of the sentence, each masked alone; at most 0."""

    name = "pll"
    source = "Salazar et al. 2020"

    reduce = staticmethod(total)

    def texts(self, example: Example) -> Texts:
        """As Method."""
        return whole_texts(example)

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option."""
        return [self._recipe(tokenizer.tokenize(whole_text(example, one)), tokenizer) for one in example.options]

    def _recipe(self, tokens: Tokens, tokenizer: Tokenizer) -> Recipe:
        rows = [masked_row(tokens, i, self.masked(tokens, i), tokenizer) for i in tokens.ordinary]
        return Recipe(tuple(rows), self.reduce)

    def masked(self, tokens: Tokens, position: int) -> set[int]:
        """The positions that are masked while one is read."""
        return {position}


@dataclass(frozen=True)
class PLLWordL2R(PLL):
    """Sum of ln P over all tokens of the sentence, each with the later tokens of its word masked too; at most 0."""

    name = "pll_word_l2r"
    source = "Kauf & Ivanova 2023"

    def masked(self, tokens: Tokens, position: int) -> set[int]:
        """The positions that are masked while one is read."""
        word = tokens.words[position]
        return {position} | {i for i, other in enumerate(tokens.words) if i > position and other == word is not None}


@dataclass(frozen=True)
class AUL(Method):
    """Mean ln P over all tokens of the sentence, none of them masked; at most 0."""

    name = "aul"
    source = "Kaneko & Bollegala 2022"
    weighted: ClassVar[bool] = False

    reduce = staticmethod(mean_log)

    def texts(self, example: Example) -> Texts:
        """As Method."""
        return whole_texts(example)

    def recipes(self, example: Example, tokenizer: Tokenizer) -> list[Recipe]:
        """One Recipe per option."""
        return [self._recipe(tokenizer.tokenize(whole_text(example, one))) for one in example.options]

    def _recipe(self, tokens: Tokens) -> Recipe:
        reads = tuple((i, tokens.ids[i]) for i in tokens.ordinary)
        return Recipe((Row("masked", tokens.ids, reads, tokens.segments, weighted=self.weighted),), self.reduce)


@dataclass(frozen=True)
class AULA(AUL):
    """Mean over all tokens, none of them masked, of ln P times the mean attention that the token receives."""

    name = "aula"
    weighted = True


def whole_text(example: Example, option: Option) -> str:
    """The text of an option with its context: the context filled, the two joined by a space, or the sentence."""
    if example.task == "intrasentence":
        return sentence_of(example, option)
    return f"{example.context} {option.sentence}" if example.context else option.sentence


def whole_texts(example: Example) -> Texts:
    """The texts of all options with their contexts, each to be tokenized with special tokens; none that is refused."""
    try:
        return Texts(whole=[whole_text(example, option) for option in example.options])
    except Refusal:
        return Texts()


def option_tokens(example: Example, option: Option, tokenizer: Tokenizer) -> tuple[Tokens, list[int], int]:
    """(tokens of context and option, positions of the option's, which reach beyond the context, how many straddle)."""
    tokens, border = tokenizer.tokenize(whole_text(example, option)), len(example.context)
    positions = [i for i in tokens.ordinary if tokens.offsets[i][1] > border]
    return tokens, positions, tokens.straddling(border)


def matcher(first: Tokens, second: Tokens) -> SequenceMatcher[str]:
    """difflib's matcher of two token sequences, special tokens included, as released."""
    return SequenceMatcher(None, list(map(str, first.ids)), list(map(str, second.ids)))
