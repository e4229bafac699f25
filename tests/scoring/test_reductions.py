"""A method's reduction of its readings is a hook: what a subclass declares is what its scores are made by."""

from dataclasses import dataclass

import pytest

from stereoset_scoring.methods.pseudo_likelihood import (
    AUL,
    AULA,
    PLL,
    DifferingTokens,
    MaskedConditional,
    PairPseudoLikelihood,
    PLLWordL2R,
    PseudoLikelihood,
)
from stereoset_scoring.questions.examples import read_example

CONTEXTS = {"intrasentence": "It was BLANK.", "intersentence": "A gardener met us.", "pairs": ""}
SENTENCES = ["It was kind.", "It was calm."]
ASKED = [
    # method, task, how it reduces readings of -1 and -3
    (PseudoLikelihood, "intrasentence", -4.0),
    (PseudoLikelihood, "intersentence", -4.0),
    (MaskedConditional, "intersentence", -2.0),
    (PairPseudoLikelihood, "pairs", -4.0),
    (DifferingTokens, "pairs", -2.0),
    (PLL, "pairs", -4.0),
    (PLLWordL2R, "intrasentence", -4.0),
    (AUL, "intersentence", -2.0),
    (AULA, "pairs", -2.0),
]

every_method = pytest.mark.parametrize(("method", "task", "reduced"), ASKED)


def scores(method, task, tokenizer):
    """The score of each option, of two readings."""
    options = [{"id": str(i), "sentence": sentence} for i, sentence in enumerate(SENTENCES)]
    example = read_example({"id": "e", "context": CONTEXTS[task], "sentences": options})
    return [recipe.combine([[-1.0], [-3.0]]) for recipe in method().recipes(example, tokenizer)]


@every_method
def test_each_method_reduces_its_readings_as_it_says(scorer_of, method, task, reduced):
    assert scores(method, task, scorer_of("bert").source.tokenizer) == [reduced, reduced]


@every_method
def test_a_subclass_may_declare_another_reduction(scorer_of, method, task, reduced):
    @dataclass(frozen=True)
    class Worst(method):
        reduce = staticmethod(lambda values: min(map(min, values)))

    @dataclass(frozen=True)
    class Best(method):
        def reduce(self, values):
            return max(map(max, values))

    tokenizer = scorer_of("bert").source.tokenizer
    assert scores(Worst, task, tokenizer) == [-3.0, -3.0]
    assert scores(Best, task, tokenizer) == [-1.0, -1.0]
