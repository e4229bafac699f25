"""A context association test as the scorer sees it, read from any layout in which it is published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stereoset_scoring.refusal import Refusal

BLANK = "BLANK"
GOLD_LABELS = ("anti-stereotype", "stereotype", "unrelated")  # in the order of the data set's ClassLabel


@dataclass(frozen=True)
class Option:
    """One of the two or three sentences of an example.

    Attributes:
        id: the option's id, the key of its score in every file.
        sentence: the option's own sentence.
        word: what fills BLANK, where the data says so (translations); else None.
    """

    id: str
    sentence: str
    word: str | None = None


@dataclass(frozen=True)
class Example:
    """One context association test.

    Attributes:
        id: the example's id.
        context: the first sentence, or the sentence with BLANK in it.
        options: its options, in the order of the data.
        direction: of a pair, "stereo" or "antistereo": whether its first option demonstrates a stereotype or
            violates one.
    """

    id: str
    context: str
    options: tuple[Option, ...]
    direction: str = "stereo"

    @property
    def task(self) -> str:
        """By its context: with a BLANK "intrasentence", without one "intersentence", empty "pairs"."""
        if not self.context:
            return "pairs"
        return "intrasentence" if BLANK in self.context else "intersentence"


def as_pair(row: Mapping[str, Any]) -> dict[str, Any]:
    """The pair of an example's stereotype and anti-stereotype, without a context (Nangia et al. 2020, Table 2).

    Args:
        row: as in `read_example`, with gold labels: names, or indices into the data set's ClassLabel.

    Raises:
        ValueError: if it has no stereotype or no anti-stereotype.
    """
    by_label = dict(zip(gold_labels(row), options_of(row), strict=True))
    pair = [by_label.get("stereotype"), by_label.get("anti-stereotype")]
    if None in pair:
        raise Refusal(f"Example {row['id']!r} has no stereotype or no anti-stereotype: a pair needs both.")
    return {**row, "context": "", "direction": "stereo", "sentences": pair}


def read_example(row: Mapping[str, Any]) -> Example:
    """A row of the data set, or of StereoSet's JSON files, as an Example.

    Args:
        row: a mapping with `id`, `context` and `sentences`; the sentences are either a mapping of lists
            (as `datasets` yields them) or a list of mappings (as in the JSON files), each with `id` and
            `sentence`, and `word` where there is one.

    Raises:
        ValueError: if a field is missing, or a text is empty.
    """
    try:
        options = tuple(Option(one["id"], one["sentence"], one.get("word")) for one in options_of(row))
        example = Example(row["id"], row["context"], options, row.get("direction", "stereo"))
    except KeyError as missing:
        raise Refusal(
            f"Example {row.get('id', '(no id)')!r} has no field {missing}: "
            "give rows with id, context and sentences{id, sentence}."
        ) from None
    if not example.context and len(options) != 2:
        raise Refusal(f"Example {example.id!r} has an empty context and is no pair: give its context.")
    for option in example.options:
        if not option.sentence:
            raise Refusal(f"Option {option.id!r} of example {example.id!r} has an empty sentence: give its text.")
        if option.word is not None and not option.word.strip():
            raise Refusal(f"Option {option.id!r} of example {example.id!r} has an empty word: say what fills BLANK.")
    return example


def gold_labels(row: Mapping[str, Any]) -> list[str]:
    """The names of the gold labels of a row's options, in order; the row in any layout that `read_example` reads.

    Raises:
        ValueError: if the row has none.
    """
    try:
        labels = [option["gold_label"] for option in options_of(row)]
    except KeyError as missing:
        raise Refusal(f"Example {row.get('id', '(no id)')!r} has no field {missing}: give its gold labels.") from None
    return [label if isinstance(label, str) else GOLD_LABELS[label] for label in labels]


def options_of(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The options of a row as a list of mappings, whichever way round its layout has them."""
    sentences = row["sentences"]
    if not isinstance(sentences, Mapping):
        return sentences
    return [dict(zip(sentences, values, strict=True)) for values in zip(*sentences.values(), strict=True)]
