"""StereoSet's interchange layout: what is read, what is written, how scores find their rows, and what is refused."""

import json
import math
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stereoset_scoring.files.predictions import align, option_ids, read_predictions, write_predictions

SCORES = {
    "intrasentence": {"a": -1.5, "b": 1e-300, "c": -math.inf},
    "intersentence": {"d": 0.1 + 0.2, "e": math.inf, "f": -0.0},
    "intrasentence_de": {"a": -2.0, "b": -3.0, "c": -4.0},
}
ROWS = [{"sentences": {"id": ["a", "b"]}}, {"sentences": [{"id": "c"}, {"id": "d"}]}]  # both layouts of a row
WHOLE = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}


def test_scores_come_back_as_they_were_written(tmp_path):
    write_predictions(tmp_path / "scores.json", SCORES)
    assert read_predictions(tmp_path / "scores.json") == (SCORES, None)


def test_a_partial_run_says_so(tmp_path):
    write_predictions(tmp_path / "scores.json", SCORES, partial="first 3 examples of each task")
    assert read_predictions(tmp_path / "scores.json") == (SCORES, "first 3 examples of each task")


def test_the_layout_is_stereosets(tmp_path):
    write_predictions(tmp_path / "scores.json", {"intrasentence": {"a": -1.5, "b": 0.25}})
    content = json.loads((tmp_path / "scores.json").read_text())
    assert content == {"intrasentence": [{"id": "a", "score": -1.5}, {"id": "b", "score": 0.25}]}


@settings(deadline=None)
@given(score=st.floats(allow_nan=False))
def test_every_float_survives_to_its_last_bit(tmp_path_factory, score):
    path = tmp_path_factory.getbasetemp() / "one.json"
    write_predictions(path, {"intrasentence": {"a": score}})
    (found,) = read_predictions(path)[0]["intrasentence"].values()
    assert (found, math.copysign(1, found)) == (score, math.copysign(1, score))


def test_writing_leaves_nothing_beside_the_file_and_obeys_the_umask(tmp_path):
    mask = os.umask(0o027)
    try:
        write_predictions(tmp_path / "scores.json", SCORES)
        write_predictions(tmp_path / "scores.json", SCORES)
    finally:
        os.umask(mask)
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]
    assert (tmp_path / "scores.json").stat().st_mode & 0o777 == 0o640


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    write_predictions(tmp_path / "scores.json", SCORES)

    def crash(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk full"):
        write_predictions(tmp_path / "scores.json", {"intrasentence": {"z": 0.0}})
    assert [path.name for path in tmp_path.iterdir()] == ["scores.json"]
    assert read_predictions(tmp_path / "scores.json") == (SCORES, None)


@pytest.mark.parametrize("score", [math.nan, None, "1.0"])
def test_what_is_no_score_is_not_written(tmp_path, score):
    with pytest.raises(ValueError, match=r"'intrasentence' gives option 'b' the score .*: give a number"):
        write_predictions(tmp_path / "scores.json", {"intrasentence": {"a": 1.0, "b": score}})
    assert not (tmp_path / "scores.json").exists()


BROKEN = [
    ("", "is not sound JSON"),
    ('{"intrasentence": [', "is not sound JSON"),
    ("[]", "is not in StereoSet's layout"),
    ("{}", "holds no scores"),
    ('{"partial": "first 3"}', "holds no scores"),
    ('{"intrasentence": {"a": 1.0}}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": 3}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [1, 2]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"id": "a"}]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"score": 1}]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"id": "a", "score": null}]}', "gives option 'a' the score None"),
    ('{"intrasentence": [{"id": "a", "score": NaN}]}', "gives option 'a' the score nan"),
    ('{"intrasentence": [{"id": "a", "score": "1"}]}', "gives option 'a' the score '1'"),
    ('{"intrasentence": [{"id": "a", "score": true}]}', "gives option 'a' the score True"),
    ('{"intrasentence": [{"id": "a", "score": 1}, {"id": "a", "score": 1}]}', "scores option 'a' twice"),
    ('{"intrasentence": [], "intrasentence": []}', "the key 'intrasentence' stands twice"),
    ('{"intrasentence": [{"id": ["a"], "score": 1}]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"id": {}, "score": 1}]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"id": null, "score": 1}]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"id": 3, "score": 1}]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [["id", "score"]]}', "'intrasentence' is not a list of records"),
    ('{"intrasentence": [{"id": "a", "score": 1%s}]}' % ("0" * 400), "gives option 'a' the score 10000"),
    ('{"intrasentence": [{"id": "a", "score": 1%s}]}' % ("0" * 5000), "is not sound JSON"),
    ('{"intrasentence": [{"id": "a", "score": [1]}]}', r"gives option 'a' the score \[1\]"),
    ('{"intrasentence": [{"id": "\\u001b[2J", "score": null}]}', r"gives option '\\x1b\[2J' the score None"),
    ('{"\\u001b[2J": 3}', r"'\\x1b\[2J' is not a list of records"),
    ('{"intrasentence": [], "partial": ["first 3"]}', "does not say under 'partial' what part was scored"),
    ('{"intrasentence": [], "partial": ""}', "does not say under 'partial'"),
    ('{"intrasentence": [], "partial": 3}', "does not say under 'partial'"),
    ("[" * 100_000, "is not sound JSON"),
    ("null", "is not in StereoSet's layout"),
    ("3", "is not in StereoSet's layout"),
    ('"text"', "is not in StereoSet's layout"),
]


@pytest.mark.parametrize(("content", "message"), BROKEN)
def test_what_is_not_in_the_layout_is_refused_by_name(tmp_path, content, message):
    path = tmp_path / "predictions.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as refusal:
        read_predictions(path)
    assert str(path) in str(refusal.value)
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 400


def test_bytes_that_are_no_text_are_refused_with_the_file(tmp_path):
    (tmp_path / "predictions.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match=r"predictions\.json is not sound JSON"):
        read_predictions(tmp_path / "predictions.json")


def test_what_a_terminal_would_obey_in_partial_is_spelled_out(tmp_path):
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps({"intrasentence": [], "partial": "first\x1b[2J 3\nof\u202e all, été"}))
    assert read_predictions(path)[1] == "first\\x1b[2J 3\\nof\\u202e all, été"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["id", "score", "partial", "intrasentence"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@settings(deadline=None)
@given(content=values)
def test_any_json_is_read_or_refused_with_the_file(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(content))
    try:
        scores, partial = read_predictions(path)
    except ValueError as error:
        scores, partial, refusal = {}, None, str(error)
    else:
        refusal = f"{path}"
    assert refusal.startswith(str(path))
    assert refusal.isprintable()
    assert all(isinstance(option, str) for by_id in scores.values() for option in by_id)
    assert partial is None or partial.isprintable()


def test_whole_numbers_and_infinities_are_scores(tmp_path):
    path = tmp_path / "predictions.json"
    path.write_text('{"intrasentence": [{"id": "a", "score": 3}, {"id": "b", "score": -Infinity}]}')
    assert read_predictions(path) == ({"intrasentence": {"a": 3, "b": -math.inf}}, None)


@pytest.mark.parametrize("seed", range(3))
def test_scores_find_their_rows_in_whatever_order_they_stand(seed):
    items = list(WHOLE.items())
    random.Random(seed).shuffle(items)
    assert align(dict(items), ROWS) == (ROWS, [[1.0, 2.0], [3.0, 4.0]])


def test_option_ids_of_both_layouts():
    assert [option_ids(row) for row in ROWS] == [["a", "b"], ["c", "d"]]


def test_a_missing_score_is_refused_with_the_first_id():
    with pytest.raises(ValueError, match="2 of 4 options have no score, first 'b'"):
        align({"a": 1.0, "d": 2.0}, ROWS)


def test_a_score_without_an_option_is_refused_with_the_first_id():
    with pytest.raises(ValueError, match="1 of 5 scores belong to no option of these rows, first 'x'"):
        align({**WHOLE, "x": 5.0}, ROWS)
    with pytest.raises(ValueError, match="1 of 3 scores belong to no option"):
        align({"a": 1.0, "b": 2.0, "x": 5.0}, ROWS, partial=True)


def test_rows_known_to_be_a_subset_may_leave_scores_over():
    assert align(WHOLE, ROWS[1:], subset=True) == (ROWS[1:], [[3.0, 4.0]])


def test_a_partial_run_keeps_the_rows_that_it_scored():
    assert align({"c": 3.0, "d": 4.0}, ROWS, partial=True) == (ROWS[1:], [[3.0, 4.0]])


def test_a_row_of_which_some_options_are_scored_is_refused_even_in_a_partial_run():
    with pytest.raises(ValueError, match="1 of 4 options have no score, first 'b'"):
        align({"a": 1.0, "c": 3.0, "d": 4.0}, ROWS, partial=True)


@pytest.mark.thorough
def test_every_published_file_fits_its_rows_one_to_one(shared, rows_of):
    for path in sorted((shared / "predictions").glob("*/*.json")):
        language = path.stem[-2:] if path.parent.name == "multilingual" else "en"
        for task, by_id in read_predictions(path)[0].items():
            config = task if language == "en" else f"{task}_{language}"
            rows, scores = align(by_id, rows_of(config))
            assert (len(rows), sum(map(len, scores))) == (len(rows_of(config)), len(by_id))


def test_scores_of_another_language_or_split_are_refused(shared, rows_of):
    scores, _ = read_predictions(shared / "predictions/stereoset/predictions_gpt2_ModelNSP_GPT2LM.json")
    # German lacks three examples of English, nine options.
    with pytest.raises(ValueError, match="9 of 6318 scores belong to no option"):
        align(scores["intrasentence"], rows_of("intrasentence_de"))
