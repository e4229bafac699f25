"""From documents to pairs of sentences: half of them follow each other, half come from two documents."""

import hashlib
import random
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from stereoset_scoring.refusal import Refusal

Document = TypeVar("Document")


@dataclass(frozen=True)
class Pair:
    """Two sentences, and whether the second follows the first."""

    first: str
    second: str
    follows: bool


class Pairs:
    """The pairs of some documents: for every sentence but a document's last, the next one and one from elsewhere.

    Pair 2n follows, pair 2n + 1 begins alike and does not. What comes from elsewhere is drawn evenly from the sentences
    of all other documents; it depends on seed and n alone.

    Args:
        documents: lists of sentences; those of a single sentence are left out.
        seed: draws the sentences from elsewhere.

    Raises:
        Refusal: if fewer than two documents have two sentences.
    """

    def __init__(self, documents: Iterable[Sequence[str]], seed: int = 0):
        documents = [document for document in documents if len(document) > 1]
        if len(documents) < 2:
            raise Refusal(
                f"The corpus has {len(documents)} documents of two sentences or more, and negative pairs need two: "
                "give more documents."
            )
        self.seed = seed
        self.sentences = [sentence for document in documents for sentence in document]
        self.starts = [0]  # of the documents, among the sentences; at the end their number
        for document in documents:
            self.starts.append(self.starts[-1] + len(document))
        # Every document before it has a last sentence, which begins no pair.
        self._first_places = [start - n for n, start in enumerate(self.starts)]

    def __len__(self) -> int:
        return 2 * self._first_places[-1]

    def __getitem__(self, index: int) -> Pair:
        place, negative = divmod(index, 2)
        document = bisect_right(self._first_places, place) - 1
        first = place + document
        second = self._elsewhere(place, document) if negative else first + 1
        return Pair(self.sentences[first], self.sentences[second], not negative)

    def _elsewhere(self, place: int, document: int) -> int:
        start, stop = self.starts[document : document + 2]
        drawn = random.Random(f"{self.seed}-{place}").randrange(len(self.sentences) - (stop - start))
        return drawn if drawn < start else drawn + stop - start

    @property
    def fingerprint(self) -> str:
        """sha256, as hex, over sentences, documents and seed."""
        digest = hashlib.sha256(f"{self.seed} {self.starts}".encode())
        for sentence in self.sentences:
            digest.update(sentence.encode("utf-8", "surrogatepass") + b"\n")
        return digest.hexdigest()


def read_documents(
    corpus: str | Path, config: str | None = None, split: str = "train", column: str = "text", limit: int | None = None
) -> list[str]:
    """Texts of the documents of a corpus.

    Args:
        corpus: a text file, whose documents are separated by blank lines; a folder of .txt files, each a document; or
            else the hub id of a data set, whose rows are documents.
        config: the data set's config.
        split: the data set's split.
        column: the data set's column of texts.
        limit: how many documents to read at most; None for all.

    Raises:
        OSError: if there is no such data set within reach.
        Refusal: if a file is no text, a folder has no text files, or a data set no such config, split or column.
    """
    path = Path(corpus)
    if path.is_file():
        texts: Iterable[str] = (block for block in re.split(r"\n\s*\n", _text_of(path)) if block.strip())
    elif path.is_dir():
        files = sorted(path.rglob("*.txt"))
        if not files:
            raise Refusal(f"The folder {corpus} has no .txt file: give a folder of texts, a text file or a hub id.")
        texts = map(_text_of, files)
    else:
        rows = _data_set(corpus, config, split)
        if column not in rows.column_names:
            raise Refusal(f"{corpus} has no column {column!r}: choose one of {', '.join(rows.column_names)}.")
        texts = (row[column] for row in rows)
    return list(islice(texts, limit))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(f"{path} is no text in UTF-8 ({error}): write it as such, or leave it out.") from error


def _data_set(corpus, config, split):
    from datasets import load_dataset

    try:
        return load_dataset(str(corpus), config, split=split)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise Refusal(f"{corpus} cannot be loaded ({reason}): give another config or split, or a file.") from error


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a text, with single spaces between their words.

    Args:
        text: running text.
        language: its ISO 639-1 code.
    """
    from sentencex import segment

    return [" ".join(sentence.split()) for sentence in segment(language, text) if not sentence.isspace()]


def hold_out(documents: Sequence[Document], share: float, seed: int) -> tuple[list[Document], list[Document]]:
    """(documents to learn from, documents held out), each in their order; at least two are held out.

    Args:
        documents: any list.
        share: how large a part is held out.
        seed: draws which.
    """
    held = set(
        random.Random(seed).sample(range(len(documents)), min(len(documents), max(2, round(share * len(documents)))))
    )
    return (
        [document for n, document in enumerate(documents) if n not in held],
        [document for n, document in enumerate(documents) if n in held],
    )
