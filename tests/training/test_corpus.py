"""From documents to pairs: what follows is adjacent, what does not comes from another document."""

from collections import Counter
from itertools import pairwise

import pytest

from stereoset_scoring.refusal import Refusal
from stereoset_scoring.training.corpus import Pairs, hold_out, read_documents, split_sentences

# The first is alone, and so begins and ends no pair.
DOCUMENTS = [["lonely"], *([f"document {d} sentence {s}" for s in range(2 + d % 3)] for d in range(9))]


@pytest.fixture(scope="module")
def pairs():
    return Pairs(DOCUMENTS, seed=3)


def document_of(sentence):
    return int(sentence.split()[1])


def test_half_of_the_pairs_follow_and_begin_with_every_sentence_but_the_last(pairs):
    following = [(pair.first, pair.second) for pair in pairs if pair.follows]
    adjacent = [both for document in DOCUMENTS for both in pairwise(document)]
    assert following == adjacent
    assert len(pairs) == 2 * len(adjacent)


def test_the_other_half_begins_alike_and_goes_on_in_another_document(pairs):
    others = [pair for pair in pairs if not pair.follows]
    assert [pair.first for pair in others] == [pair.first for pair in pairs if pair.follows]
    assert all(document_of(pair.first) != document_of(pair.second) for pair in others)


def test_what_comes_from_elsewhere_is_drawn_evenly():
    documents = [["a 0 0", "a 0 1"], ["b 1 0", "b 1 1", "b 1 2"], *([[f"x 2 {n}" for n in range(5001)]])]
    drawn = Counter(
        document_of(pair.second) for pair in Pairs(documents) if pair.first.startswith("x 2") and not pair.follows
    )
    assert drawn[0] / 5000 == pytest.approx(2 / 5, abs=0.03)


def test_pairs_depend_on_the_seed_alone(pairs):
    assert list(pairs) == list(Pairs(DOCUMENTS, seed=3)) != list(Pairs(DOCUMENTS, seed=4))
    assert pairs.fingerprint == Pairs(DOCUMENTS, seed=3).fingerprint != Pairs(DOCUMENTS, seed=4).fingerprint
    assert pairs.fingerprint != Pairs(DOCUMENTS[:-1], seed=3).fingerprint


@pytest.mark.parametrize("documents", [[], [["one", "two"]], [["one", "two"], ["three"]]])
def test_a_corpus_without_another_document_is_refused(documents):
    with pytest.raises(ValueError, match="give more documents"):
        Pairs(documents)


SENTENCES = [
    (
        "en",
        "Dr. Smith left. He came\nback at 3 p.m. on Monday.",
        ["Dr. Smith left.", "He came back at 3 p.m. on Monday."],
    ),
    ("de", "Am 3. Mai kam er z. B. an. Dann ging er.", ["Am 3. Mai kam er z. B. an.", "Dann ging er."]),
    ("tr", "Prof. Dr. Ali geldi.   Sonra gitti.", ["Prof. Dr. Ali geldi.", "Sonra gitti."]),
    ("fr", "Il est venu. Elle partit !", ["Il est venu.", "Elle partit !"]),
    ("es", "¿Qué pasó? No lo sé.", ["¿Qué pasó?", "No lo sé."]),
]


@pytest.mark.parametrize(("language", "text", "sentences"), SENTENCES)
def test_sentences_are_cut_by_the_rules_of_their_language(language, text, sentences):
    assert split_sentences(text, language) == sentences


def test_blank_lines_separate_the_documents_of_a_file(tmp_path):
    file = tmp_path / "corpus.txt"
    file.write_text("One. Two.\nThree.\n\n \nFour. Five.\n", encoding="utf-8")
    assert [text.split() for text in read_documents(file)] == [["One.", "Two.", "Three."], ["Four.", "Five."]]
    assert len(read_documents(file, limit=1)) == 1


def test_every_file_of_a_folder_is_a_document(tmp_path):
    for name in ("b.txt", "a.txt", "notes.md"):
        (tmp_path / name).write_text(f"{name}.\n\nEnd.")
    assert read_documents(tmp_path) == ["a.txt.\n\nEnd.", "b.txt.\n\nEnd."]


def test_a_folder_without_texts_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"has no \.txt file"):
        read_documents(tmp_path)


def test_documents_are_held_out_whole_and_as_many_as_asked_for():
    documents = list(range(100))
    learnt, held = hold_out(documents, 0.05, seed=1)
    assert len(held) == 5
    assert sorted(learnt + held) == documents
    assert len(hold_out(documents, 0.0, seed=1)[1]) == 2


def test_a_file_that_is_no_text_is_refused_by_name(tmp_path):
    (tmp_path / "corpus.txt").write_bytes("Öl.".encode("latin-1"))
    for corpus in (tmp_path, tmp_path / "corpus.txt"):
        with pytest.raises(Refusal, match=r"corpus\.txt is no text in UTF-8"):
            read_documents(corpus)
