"""What stands at BLANK, in any script: by the context, or among the options; and where it cannot be told."""

import pytest

from stereoset_scoring.questions.attribute import attribute_in_text, has_attribute, sentence_of
from stereoset_scoring.questions.examples import Example, Option, read_example
from stereoset_scoring.refusal import MissingAttribute, Refusal


def example(context, *sentences):
    return Example("e", context, tuple(Option(f"o{i}", sentence) for i, sentence in enumerate(sentences)))


def attributes(one):
    found = [attribute_in_text(one, option) for option in one.options]
    return [text[start:end] for text, (start, end) in found]


@pytest.mark.parametrize(
    ("context", "sentences", "expected"),
    [
        # All options fit the context: as ever.
        (
            "The river is BLANK.",
            ["The river is calm.", "the river is very long.", "The river is a."],
            "calm|very long|a",
        ),
        # One does not: what differs among them.
        (
            "O rio estava BLANK.",
            ["O rio era calmo.", "O rio era longo.", "O rio era muito alto."],
            "calmo|longo|muito alto",
        ),
        ("O rio estava BLANK.", ["O Rio era calmo.", "O rio era longo.", "o rio era alto."], "calmo|longo|alto"),
        # No word is cut: a common first or last letter is no common beginning or end.
        ("Ele está BLANK", ["Ele era pobre", "Ele era podre", "Ele era pardo"], "pobre|podre|pardo"),
        ("O BLANK fala.", ["Um pintor falou.", "Um pastor falou.", "Um autor falou."], "pintor|pastor|autor"),
        # The same text may both begin and end what differs.
        ("Es BLANK.", ["sehr, sehr", "sehr gut, sehr", "sehr alt, sehr"], None),
        # Scripts without spaces: between any letters.
        ("园丁是BLANK。", ["园丁很安静。", "园丁很高。", "园丁很老实。"], "安静|高|老实"),
        ("คนสวนคือBLANK", ["คนสวนดูเงียบ", "คนสวนดูสูง", "คนสวนดูใจดี"], "เงียบ|สูง|ใจดี"),
        # A mark stays with its letter.
        ("ที่BLANK", ["ปู่กา", "ปู้กา", "ปูกา"], "ปู่|ปู้|ปู"),
        # Written from right to left: characters are counted as they are read.
        (
            "البستاني BLANK.",
            ["كان البستاني هادئا.", "كان البستاني طويلا.", "كان البستاني لطيفا جدا."],
            "هادئا|طويلا|لطيفا جدا",
        ),
        ("הגנן הוא BLANK.", ["הגנן היה שקט.", "הגנן היה גבוה.", "הגנן היה זקן."], "שקט|גבוה|זקן"),
        # Nothing in common, nothing left, the same twice, two BLANKs.
        ("Vê BLANK.", ["Um rio.", "Duas casas.", "Nada."], None),
        ("Vê BLANK.", ["Ela vê um rio.", "Ela vê rio.", "Ela vê um belo rio."], None),
        ("BLANK e BLANK", ["um e outro", "os dois e outro", "nada e outro"], "um|os dois|nada"),
        ("Ela BLANK e BLANK", ["um e outro", "os dois e outro", "nada e outro"], None),
    ],
)
def test_the_attribute_is_found_exactly_or_not_at_all(context, sentences, expected):
    one = example(context, *sentences)
    assert has_attribute(one) == (expected is not None)
    if expected is not None:
        assert attributes(one) == expected.split("|")
    else:
        with pytest.raises(MissingAttribute, match=r"'o0' of example 'e'.* methods? that reads whole sentences"):
            attributes(one)


def test_whole_sentences_are_read_also_where_there_is_no_attribute():
    one = example("Vê BLANK.", "Um rio.", "Duas casas.", "Nada.")
    assert [sentence_of(one, option) for option in one.options] == ["Um rio.", "Duas casas.", "Nada."]


def row(context, *sentences, **more):
    return {
        "id": "p",
        "context": context,
        "sentences": [{"id": str(i), "sentence": text} for i, text in enumerate(sentences)],
        **more,
    }


@pytest.mark.parametrize(
    ("context", "named", "task"),
    [
        ("He is BLANK.", "intersentence", "intersentence"),
        ("He is BLANK.", "intrasentence", "intrasentence"),
        ("He is BLANK.", None, "intrasentence"),
        ("He is BLANK.", "sst2", "intrasentence"),
        ("He is.", None, "intersentence"),
        ("", "intrasentence", "pairs"),
    ],
)
def test_the_task_is_what_the_data_says_it_is(context, named, task):
    assert read_example(row(context, "He is kind.", "He is calm.", task=named)).task == task


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (row("", "One.", "One."), r"'p' are the same, .*--without forced_tie"),
        (row("", "One.", ""), r"'1' of example 'p' has an empty sentence.*--without empty_sentence"),
        (
            row("He is.", "He is kind.", "He is calm.", task="intrasentence"),
            "'p' is an intrasentence one and has no",
        ),
    ],
)
def test_pairs_without_a_choice_are_refused_by_name(bad, words):
    with pytest.raises(Refusal, match=words):
        read_example(bad)
