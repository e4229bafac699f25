"""Whatever is given for scores, references and options: a result, or one sentence that names the culprit."""

import datetime
import decimal
import fractions
import inspect
import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stereoset_metric.compute_score import compare_scores, compute_score, confidences, flat_references

LABELS = ["stereotype", "anti-stereotype", "unrelated"]
ROW = {"target": "baker", "bias_type": "profession", "gold_label": LABELS}
OPTIONS = ("average", "ties", "breakdown", "confidence_level", "n_resamples", "seed", "signature", "min_agreement")


def nested(depth):
    """A tuple that holds the one before twice: a few objects that write as 2 ** depth."""
    value = ()
    for _ in range(depth):
        value = (value, value)
    return value


NO_SCORES = [
    ({0: -1.0, 1: -2.0, 2: -9.0}, "has the prediction {0: -1.0, 1: -2.0, 2: -9.0}: give a list"),
    ({0: -1.0, 1: -2.0, 2: -9.0}.keys(), "has the prediction dict_keys"),
    ({0: -1.0, 1: -2.0, 2: -9.0}.values(), "has the prediction dict_values"),
    ({-1.0, -2.0, -9.0}, "has the prediction {-9.0, -2.0, -1.0}: give a list"),
    (frozenset((1, 2, 3)), "has the prediction frozenset"),
    (iter([1, 2, 3]), "has the prediction <list_iterator"),
    ("123", "has the prediction '123'"),
    (b"123", "has the prediction b'123'"),
    (bytearray(b"123"), "has the prediction bytearray"),
    (memoryview(b"123"), "has the prediction <memory"),
    (np.float32(3), "has the prediction"),
    (np.array(3.0), "has the prediction array"),
    (None, "has the prediction None"),
    (list, "has the prediction <class 'list'>"),
    ([True, False, True], "has the score True"),
    (np.array([True, False, True]), "has the score True"),
    ([np.bool_(True), 0, 1], "has the score"),
    ([1, 2, 10**400], "has the score 1000000000000000"),
    ([1, 2, -(10**5000)], "has the score one int"),
    ([1, 2, fractions.Fraction(10**400, 3)], "has the score Fraction"),
    ([1, 2, decimal.Decimal("1e400")], r"has the score Decimal\('1E\+400'\)"),
    ([1, 2, decimal.Decimal("sNaN")], "has the score Decimal"),
    ([1, 2, 3j], "has the score 3j"),
    ([1, 2, None], "has the score None"),
    ([1, 2, math.nan], "has the score nan"),
    ([1, 2, "3"], "has the score '3'"),
    ([1, 2, b"3"], "has the score b'3'"),
    ([1, 2, [3]], r"has the score \[3\]"),
    ([1, 2, np.array([3.0])], "has the score"),
    (np.array([[1.0], [2.0], [3.0]]), r"has the score \[1.0\]"),
    ([1, 2, {"score": 3}], "has the score {'score': 3}"),
    ([1, 2, datetime.date(2020, 1, 1)], "has the score datetime.date"),
    ([1, 2, object()], "has the score <object object"),
    ([1, 2, "\x1b[2J"], r"has the score '\\x1b\[2J'"),
    (np.ma.masked_array([1.0, 2.0, 3.0], mask=[0, 1, 0]), "has the score None"),
    ([], "has 0 scores for 3 options"),
    ([1, 2, 3, 4], "has 4 scores for 3 options"),
]


@pytest.mark.parametrize(("scores", "message"), NO_SCORES)
def test_what_is_no_score_is_refused_by_example(metric, scores, message):
    for compute in (compute_score, metric_of(metric)):
        if hasattr(scores, "__next__"):
            scores = iter([1, 2, 3])
        with pytest.raises(ValueError, match=message) as refusal:
            compute([scores], [ROW])
        assert str(refusal.value).startswith("Example 0 (target 'baker') has ")
        assert str(refusal.value).isprintable()
        assert len(str(refusal.value)) < 400


def metric_of(metric):
    return lambda predictions, references, **options: metric.compute(
        predictions=predictions, references=references, **options
    )


@pytest.mark.parametrize(
    "scores",
    [
        [decimal.Decimal("-1.5"), decimal.Decimal("-2"), decimal.Decimal("-Infinity")],
        [fractions.Fraction(1, 2), fractions.Fraction(1, 3), 0],
        [np.float16(3), np.float64(2), np.int8(1)],
        [np.array(3.0), np.array(2), 1],
        np.array([3, 2, 1], dtype=np.uint8),
        np.longdouble([3, 2, 1]),
        (3, 2.0, -math.inf),
        deque([3, 2, 1]),
        range(3, 0, -1),
        [10**300, 10**299, 1],
    ],
)
def test_real_numbers_of_every_kind_are_scores(scores):
    result = compute_score([scores], [ROW])
    assert (result["ss"], result["lms"], result["ties"]) == (100, 100, 0)


def test_a_score_that_would_take_for_ever_to_write_down_is_refused_at_once():
    with pytest.raises(ValueError, match="has the score") as refusal:
        compute_score([[1, 2, nested(60)]], [ROW])
    assert len(str(refusal.value)) < 1000


NO_LISTS = [None, 3, 3.5, True, "text", b"bytes", {0: [1, 2, 3]}, {0: [1, 2, 3]}.keys(), {(1, 2, 3)}, object(), list]


@pytest.mark.parametrize("predictions", NO_LISTS)
def test_what_is_no_list_of_predictions_is_refused(metric, predictions):
    for refuse in (
        lambda: compute_score(predictions, [ROW]),
        lambda: compare_scores(predictions, [[1, 2, 3]], [ROW]),
        lambda: confidences(predictions, [ROW]),
        lambda: metric.add_batch(predictions=predictions, references=[ROW]),
    ):
        with pytest.raises(ValueError, match=r"The predictions are .*: give a list, one entry per example"):
            refuse()
    assert len(metric) == 0


@pytest.mark.parametrize("references", NO_LISTS)
def test_what_is_no_list_of_references_is_refused(metric, references):
    for refuse in (
        lambda: compute_score([[1, 2, 3]], references),
        lambda: metric.add_batch(predictions=[[1, 2, 3]], references=references),
    ):
        with pytest.raises(ValueError, match=r"[Rr]eferences are .*: give a list") as refusal:
            refuse()
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({**ROW, "target": ["baker"]}, r"has the target \['baker'\]: give text"),
        ({**ROW, "target": 5}, "has the target 5: give text"),
        ({**ROW, "bias_type": {"a": 1}}, "has the bias_type {'a': 1}: give text"),
        ({**ROW, "direction": ["stereo"]}, r"has the direction \['stereo'\]: give text"),
        ({**ROW, "gold_label": {"stereotype": 1, "anti-stereotype": 2}}, "has the gold label {.*: give a list"),
        ({**ROW, "gold_label": {0, 1, 2}}, "has the gold label {0, 1, 2}: give a list"),
        ({**ROW, "gold_label": 1}, "has the gold label 1: give a list"),
        ({**ROW, "gold_label": [[0], [1], [2]]}, r"has the gold label \[0\]: choose one of"),
        ({**ROW, "gold_label": [False, True, 2]}, "has the gold label False"),
        ({**ROW, "gold_label": [0, 1, 2 + 0j]}, r"has the gold label \(2\+0j\)"),
        ({**ROW, "gold_label": [0, 1, 10**400]}, "has the gold label 1000"),
        ({**ROW, "gold_label": [0, 1, np.array([2, 2])]}, "has the gold label array"),
        ([1, 2, 3], r"A reference is list \[1, 2, 3\]|has the reference \[1, 2, 3\]"),
        (None, "A reference is NoneType None|has the reference None"),
        ({"target": "a", "bias_type": "b", "sentences": 5}, "has the sentences 5: give mappings|has no gold_label"),
        ({"target": "a", "bias_type": "b", "sentences": "xyz"}, "has the sentences 'xyz'|has no gold_label"),
        ({"target": "a", "bias_type": "b", "sentences": [1, 2, 3]}, r"has the sentences \[1, 2, 3\]|has no gold_label"),
        ({"target": "a\x1b[2J", "bias_type": "b"}, r"Example 0 \(target 'a\\x1b\[2J'\) has no gold_label"),
    ],
)
def test_what_is_no_reference_is_refused(metric, row, message):
    for compute in (compute_score, metric_of(metric)):
        with pytest.raises(ValueError, match=message) as refusal:
            compute([[1, 2, 3]], [row])
        assert str(refusal.value).isprintable()


def test_columns_of_unlike_length_are_refused_by_name():
    columns = {"target": ["a", "b"], "bias_type": ["c"], "gold_label": [LABELS, LABELS]}
    with pytest.raises(ValueError, match=r"differ in length \(2 target, 1 bias_type, 2 gold_label\)"):
        flat_references(columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"average": ["target"]}, r"average is \['target'\]: choose one of target, example"),
        ({"ties": None}, "ties is None: choose one of strict, half"),
        ({"ties": {}}, "ties is {}: choose"),
        ({"breakdown": 5}, "breakdown is 5: give one of bias_type, target, direction, agreement or a list"),
        ({"breakdown": {"target": 1}}, "breakdown is {'target': 1}: give one of"),
        ({"breakdown": [["target"]]}, r"breakdown is \['target'\]: choose"),
        ({"confidence_level": "0.95"}, "confidence_level is '0.95': give a share"),
        ({"confidence_level": True}, "confidence_level is True"),
        ({"confidence_level": [0.9]}, r"confidence_level is \[0.9\]"),
        ({"confidence_level": 0.9, "n_resamples": 10.5}, "n_resamples is 10.5: give a number"),
        ({"confidence_level": 0.9, "n_resamples": "10"}, "n_resamples is '10'"),
        ({"confidence_level": 0.9, "n_resamples": True}, "n_resamples is True"),
        ({"confidence_level": 0.9, "seed": None}, "seed is None: give a whole number"),
        ({"confidence_level": 0.9, "seed": [1]}, r"seed is \[1\]"),
    ],
)
def test_options_of_another_kind_are_refused_by_name(metric, options, message):
    for compute in (compute_score, metric_of(metric)):
        with pytest.raises(ValueError, match=message):
            compute([[1, 2, 3]], [ROW], **options)


def test_whole_numbers_of_an_array_are_options_too():
    options = {"confidence_level": np.float64(0.9), "n_resamples": np.int64(10), "seed": np.int64(3)}
    plain = {"confidence_level": 0.9, "n_resamples": 10, "seed": 3}
    scores, rows = [[1, 2, 3], [3, 2, 1]], [ROW, {**ROW, "target": "sofa"}]
    assert compute_score(scores, rows, **options) == compute_score(scores, rows, **plain)


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        ("compute", {"averge": "target"}, r"compute has no argument 'averge' \(nearest: average\)"),
        ("compute", {"prediction": [[1, 2, 3]]}, r"compute has no argument 'prediction' \(nearest: predictions\)"),
        ("compute", {"xyz": 1}, "compute has no argument 'xyz': choose among predictions, references, average"),
        ("add_batch", {"prediction": [[1, 2, 3]]}, r"add_batch has no argument 'prediction' \(nearest: predictions\)"),
        ("add", {"predictions": [1, 2, 3]}, r"add has no argument 'predictions' \(nearest: prediction\)"),
        ("add_batch", {"predictions": [[1, 2, 3]]}, "The references are NoneType None"),
        ("add", {"prediction": [1, 2, 3]}, "A reference is NoneType None"),
    ],
)
def test_an_argument_of_another_name_is_refused_with_the_nearest(metric, call, given, message):
    with pytest.raises(ValueError, match=message):
        getattr(metric, call)(**given)


def test_the_module_knows_the_options_of_the_arithmetic(metric):
    assert (*inspect.signature(compute_score).parameters,)[2:] == OPTIONS
    result = metric.compute(predictions=[[3, 2, 1]], references=[ROW], ties="half", seed=1)
    assert result["ss"] == 100


def test_what_is_given_one_by_one_is_a_list_too(metric):
    rows = [ROW, {**ROW, "target": "sofa"}]
    expected = compute_score([[3, 2, 1], [1, 2, 3]], rows)
    assert metric.compute(predictions=(one for one in ([3, 2, 1], [1, 2, 3])), references=iter(rows)) == expected
    both = [[3, 2, 1], [1, 2, 3]]
    assert compare_scores(iter(both), iter(both), iter(rows))["ss"] == 0
    assert confidences(iter([[-1, -2, -3]]), iter([ROW]))["stereotype"]["count"] == 1


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**309),
    st.floats(),
    st.complex_numbers(),
    st.decimals(),
    st.fractions(),
    st.text(max_size=5),
    st.binary(max_size=4),
    st.sampled_from([*LABELS, "target", "gold_label", object(), list, np.float32(1), np.array([1.0, 2.0])]),
)
junk = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from([*ROW, "sentences", "direction", "id"]), inner, max_size=4),
        st.lists(inner, max_size=3).map(iter),
    ),
    max_leaves=12,
)
rows = st.one_of(junk, st.just(ROW), st.fixed_dictionaries({**dict.fromkeys(ROW, junk)}))
scores = st.one_of(junk, st.lists(leaves, min_size=3, max_size=3))


def compute_of_rows(predictions, references, **options):
    return compute_score(predictions, flat_references(references), **options)


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(junk, st.lists(scores, max_size=2)),
    st.one_of(junk, st.lists(rows, max_size=2)),
    st.dictionaries(st.sampled_from(OPTIONS[:4]), junk, max_size=1),
)
def test_any_junk_ends_in_a_result_or_in_one_sentence(predictions, references, options):
    for compute in (compute_score, compute_of_rows):
        refusal = None
        try:
            compute(predictions, references, **options)
        except ValueError as error:
            refusal = str(error)
        assert refusal is None or ("\n" not in refusal and len(refusal) < 1000)
