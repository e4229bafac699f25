"""What a method is: the hooks that the table of methods and the scorer ask."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from stereoset_scoring.planning.rows import Recipe
from stereoset_scoring.questions.examples import Example
from stereoset_scoring.questions.tokens import Texts, Tokenizer


class Method(ABC):
    """How the options of an example get their scores; a frozen dataclass, whose fields are the method's options.

    The first line of a method's docstring says what the score is, for the table of methods.

    Attributes:
        name: what it is called by, the same for several families where they do the same.
        source: the paper or the code that it comes from.
        head: the name of the head that it asks; None for the one that is called as the family.
        preset_only: whether it only repeats a released code, so that a preset alone may choose it.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    head: ClassVar[str | None] = None
    preset_only: ClassVar[bool] = False

    @staticmethod
    def fits(tokenizer: Tokenizer) -> bool:
        """Whether a model was trained for this method, as far as its tokenizer tells; by default, all were."""
        return True

    def texts(self, example: Example) -> Texts:
        """The texts of an example that `recipes` tokenizes, by what it asks of them.

        Those of many examples are tokenized at once, which takes less time; what is not named here, one by one.
        """
        return Texts()

    @abstractmethod
    def recipes(self, example: Example, tokenizer: Tokenizer) -> Sequence[Recipe]:
        """How each option of an example gets its score, in order.

        Raises:
            Refusal: if an option, or the tokenizer, lacks what the method needs.
        """
