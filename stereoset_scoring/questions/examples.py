"""A context association test as the scorer sees it, read from any layout in which it is published."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from stereoset_scoring.refusal import Refusal

BLANK = "BLANK"
WITHIN, ACROSS, PAIR = "intrasentence", "intersentence", "pairs"  # what methods call the tasks
GOLD_LABELS = ("anti-stereotype", "stereotype", "unrelated")  # in the order of the data set's ClassLabel


class Option(NamedTuple):
    """One of the two or three sentences of an example.

    Attributes:
        id: the option's id, the key of its score in every file.
        sentence: the option's own sentence.
        word: what fills BLANK, where the data says so (translations); else None.
    """

    id: str
    sentence: str
    word: str | None = None


class Example(NamedTuple):
    """One context association test.

    Attributes:
        id: the example's id.
        context: the first sentence, or the sentence with BLANK in it.
        options: its options, in the order of the data.
        direction: of a pair, "stereo" or "antistereo": whether its first option demonstrates a stereotype or
            violates one.
        named: the task, where the data names it, "intrasentence" or "intersentence"; else None.
    """

    id: str
    context: str
    options: tuple[Option, ...]
    direction: str = "stereo"
    named: str | None = None

    @property
    def sentences(self) -> list[str]:
        """The sentences of its options."""
        return [option.sentence for option in self.options]

    @property
    def task(self) -> str:
        """As the data names it; else by its context: with a BLANK "intrasentence", without one "intersentence".

        Without a context it is one of "pairs".
        """
        if not self.context:
            return PAIR
        return self.named or (WITHIN if BLANK in self.context else ACROSS)


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
            `sentence`, and `word` where there is one. A `task` that is "intrasentence" or "intersentence" is taken at
            its word, whether or not the context holds BLANK; any other says nothing.

    Raises:
        ValueError: if a field is missing, a text is empty, or the two sentences of a pair are the same.
    """
    try:
        options = tuple(Option(one["id"], one["sentence"], one.get("word")) for one in options_of(row))
        named = row.get("task") if row.get("task") in (WITHIN, ACROSS) else None
        example = Example(row["id"], row["context"], options, row.get("direction", "stereo"), named)
    except KeyError as missing:
        raise Refusal(
            f"Example {row.get('id', '(no id)')!r} has no field {missing}: "
            "give rows with id, context and sentences{id, sentence}."
        ) from None
    if not example.context and len(options) != 2:
        raise Refusal(f"Example {example.id!r} has an empty context and is no pair: give its context.")
    if example.named == WITHIN and example.context and BLANK not in example.context:
        raise Refusal(f"Example {example.id!r} is an {WITHIN} one and has no {BLANK} in its context: mend its context.")
    for option in example.options:
        if not option.sentence:
            raise Refusal(
                f"Option {option.id!r} of example {example.id!r} has an empty sentence: give its text, or leave it out "
                "(--without empty_sentence)."
            )
        if option.word is not None and not option.word.strip():
            raise Refusal(f"Option {option.id!r} of example {example.id!r} has an empty word: say what fills BLANK.")
    if example.task == PAIR and len(set(example.sentences)) == 1:
        raise Refusal(
            f"The two sentences of pair {example.id!r} are the same, and nothing can prefer one: mend one of them, or "
            "leave it out (--without forced_tie)."
        )
    return example


def read_task(row: Mapping[str, Any]) -> str:
    """What methods call the task of a row, whatever its options are: see `Example.task`."""
    named = row.get("task") if row.get("task") in (WITHIN, ACROSS) else None
    return Example(row["id"], row["context"], (), named=named).task


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
