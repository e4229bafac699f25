"""Portuguese StereoSet and the versions of CrowS-Pairs: their rows, how they align, what is flagged, who agrees."""

import collections

import pytest

from stereoset_dataset import Refusal, load_parallel
from stereoset_dataset.quality import agreement, comment_flags, text_flags


def rows_of(prepared, config):
    (rows,) = prepared[config].values()
    return {row["id"]: row for row in rows.to_list()}


def test_the_task_is_the_file_s_also_where_the_context_holds_blank(prepared):
    rows = rows_of(prepared, "intersentence_pt").values()
    assert {row["task"] for row in rows} == {"intersentence"}
    assert sum("BLANK" in row["context"] for row in rows) == 41
    assert all(("BLANK" in row["context"]) == ("blank_between" in row["flags"]) for row in rows)


# Counted by the data's curators.
@pytest.mark.parametrize(
    ("config", "unscorable", "directions"),
    [
        ("crows_pairs_en_revised", {}, {"stereo": 1466, "antistereo": 211}),
        ("crows_pairs_fr", {"129", "59", "379", "388"}, {"stereo": 1466, "antistereo": 211}),
        ("crows_pairs_nl", {}, {"stereo": 1249, "antistereo": 214}),
        ("crows_pairs_gender_id", {"29"}, {"stereo": 122, "antistereo": 90}),
        ("crows_pairs_gender_zh", {}, {"stereo": 122, "antistereo": 90}),
    ],
)
def test_pairs_have_their_directions_and_what_cannot_be_scored_is_flagged(prepared, config, unscorable, directions):
    rows = rows_of(prepared, config)
    assert collections.Counter(row["direction"] for row in rows.values()) == directions
    flagged = {name for name, row in rows.items() if {"empty_sentence", "forced_tie"} & set(row["flags"])}
    equal = {name for name, row in rows.items() if len(set(row["sentences"]["sentence"])) == 1}
    empty = {name for name, row in rows.items() if "" in row["sentences"]["sentence"]}
    assert flagged == equal | empty == set(unscorable)


def test_pairs_align_with_those_of_crows_pairs_by_id(prepared):
    original = rows_of(prepared, "crows_pairs")
    for config in ("crows_pairs_nl", "crows_pairs_gender_th"):
        assert rows_of(prepared, config).keys() < original.keys()
    revised, french = (rows_of(prepared, config) for config in ("crows_pairs_en_revised", "crows_pairs_fr"))
    assert list(revised) == list(french)
    assert sum(name in original for name in revised) == 1467
    assert all(name.startswith("LA") for name in revised.keys() - original.keys())
    # A translation of the same sentence, not of the one in the same row.
    assert revised["1507"]["sentences"]["sentence"][0] == original["1507"]["sentences"]["sentence"][0]


def test_dutch_is_read_in_the_character_set_of_old_macintoshes(prepared):
    texts = "".join(
        text for row in rows_of(prepared, "crows_pairs_nl").values() for text in row["sentences"]["sentence"]
    )
    assert texts.count("é") > 20
    assert "\ufffd" not in texts
    assert "Ž" not in texts


# As the data's curators counted: 3, 4 and 5 of five annotators.
@pytest.mark.parametrize("language", ["", "_es", "_pt"])
def test_agreement_is_the_english_one_in_every_language(prepared, language):
    for task, counts in (("intrasentence", (528, 896, 682)), ("intersentence", (589, 914, 620))):
        found = collections.Counter(row["agreement"] for row in rows_of(prepared, task + language).values())
        assert found == dict(zip((3, 4, 5), counts, strict=True))


def labelled(*gold_and_labels):
    return {
        "sentences": [{"gold_label": gold, "labels": [{"label": one} for one in ls]} for gold, ls in gold_and_labels]
    }


def test_agreement_is_the_smaller_count_of_the_pair_and_unknown_without_labels():
    pro, anti = ("stereotype", ["stereotype"] * 5), ("anti-stereotype", ["anti-stereotype"] * 3 + ["stereotype"] * 2)
    assert agreement(labelled(pro, anti, ("unrelated", ["related"]))) == 3
    assert agreement(labelled(("stereotype", []), ("anti-stereotype", []))) is None


@pytest.mark.parametrize(
    ("comment", "original", "french"),
    [
        ("", [], []),
        ("adapatationPrénom ; Vince=Vincent", [], ["adapted"]),
        ("double switch fixed", ["double_switch"], []),
        ("doubleSwitch in original", ["double_switch"], ["double_switch"]),
        ("bias type mismacth fixed // Pb dans la phrase EN", ["bias_type_mismatch", "doubtful"], ["doubtful"]),
        ("bias mismatch in original", ["bias_type_mismatch"], ["bias_type_mismatch"]),
        ("non minial pairs (fixed)", ["not_minimal"], []),
        ("*intraduisible", ["culture"], ["culture"]),
        ("adaptationCulture", [], ["adapted"]),
        ("bizarre", ["doubtful"], ["doubtful"]),
        ("adaptationPays, typo in original sentences", ["ill_formed"], ["ill_formed", "adapted"]),
        ("duplicate with 1459 ?", ["commented"], ["commented"]),
    ],
)
def test_a_comment_stands_for_a_few_kinds(comment, original, french):
    assert comment_flags(comment) == original
    assert comment_flags(comment, revised=True, french=True) == french


def test_comments_are_kept_as_they_are(prepared):
    rows = rows_of(prepared, "crows_pairs_fr").values()
    assert sum(bool(row["comment"]) for row in rows) > 500
    assert all(bool(row["comment"]) or not {"adapted", "doubtful"} & set(row["flags"]) for row in rows)


def example(context, *sentences):
    kinds = ("stereotype", "anti-stereotype", "unrelated")
    options = [{"id": kind, "sentence": text, "gold_label": kind} for kind, text in zip(kinds, sentences, strict=False)]
    return {"context": context, "sentences": options}


@pytest.mark.parametrize(
    ("task", "context", "sentences", "flags"),
    [
        ("intrasentence", "He is BLANK.", ("He is calm.", "HE is loud.", "He is seven."), []),
        ("intrasentence", "He is BLANK.", ("He is calm.", "He was loud.", "He is seven."), ["not_its_context"]),
        ("intrasentence", "He is BLANK.", ("He is a.", "He is a.", "He is b."), ["options_equal", "forced_tie"]),
        ("intrasentence", "He is BLANK.", ("He is a.", "He is b.", "He is a."), ["options_equal"]),
        ("intrasentence", "BLANKed BLANK", ("aed a", "bed b", "ced c"), ["blank_twice", "blank_glued"]),
        ("intersentence", "He is BLANK.", ("A.", "B.", "C."), ["blank_between"]),
        ("crows_pairs", "", ("A.", " "), ["empty_sentence"]),
    ],
)
def test_texts_call_for_flags(task, context, sentences, flags):
    assert text_flags(example(context, *sentences), task) == flags


@pytest.mark.parametrize(("third", "flags"), [("He sings.", ["untranslated"]), ("Er singt.", [])])
def test_a_text_that_was_not_translated_is_flagged(third, flags):
    english, german = example("He sits.", "He reads.", "He sings.", "Trees."), ("Er liest.", third, "Bäume.")
    assert text_flags(example("Er sitzt.", *german), "intersentence", english) == flags


def test_parallel_examples_are_those_that_all_languages_have(prepared, upstream):
    rows = load_parallel(["en", "de", "pt"], "intrasentence", data_dir=upstream)
    assert list(rows) == ["en", "de", "pt"]
    assert rows["en"]["id"] == rows["de"]["id"] == rows["pt"]["id"]
    assert len(rows["de"]) == 2103
    pairs = load_parallel(["zh", "ar"], "crows_pairs_gender", data_dir=upstream)
    assert pairs["zh"]["id"] == pairs["ar"]["id"]
    assert len(load_parallel(["nl", "fr"], "crows_pairs", data_dir=upstream)["nl"]) > 1400


@pytest.mark.parametrize(
    ("languages", "task", "words"),
    [
        (["en", "it"], "intrasentence", "'it' is no language of intrasentence"),
        (["en"], "intrasentense", "'intrasentense' is no task (nearest: intrasentence)"),
        ("en", "intrasentence", "give a list of them"),
        ([], "intrasentence", "give a list of them"),
    ],
)
def test_what_is_not_there_in_parallel_is_refused(languages, task, words):
    with pytest.raises(Refusal) as refusal:
        load_parallel(languages, task)
    assert words in str(refusal.value)
