"""Texts as people write them: whatever is in them, a score is that of its rows one by one, or a refusal by name."""

import math
import tempfile
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from stereoset_scoring.files.predictions import read_predictions, write_predictions
from stereoset_scoring.planning.units import unit_of
from stereoset_scoring.reading import score_here
from tests.crossing import thorough

wild = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)

PIECES = [
    *("The gardener", "kind,", "Gärtner", "größer?", "jardinière", "l'été", "niño", "¿qué?", "çalışkan", "İyi"),  # noqa: RUF001
    *(
        "\U0001f469\u200d\U0001f33e",
        "\U0001f3f3\ufe0f\u200d\U0001f308",
        "\U0001f1f9\U0001f1f7",
        "\u2600\ufe0f",
    ),  # emoji
    *("e\u0301", "a\u0308\u0308", "\ufb01", "\uff11\uff12"),  # combining marks, a ligature, wide digits
    *("\u05e9\u05dc\u05d5\u05dd", "\u0645\u0631\u062d\u0628\u0627", "\u200f\u05e0\u200e"),  # right to left
    *("a\u200bb", "\u200d", "\ufeffx", "\u00ad"),  # of no width
    *("\t", "\u2026", "BLANK.", "Donaudampfschifffahrtsgesellschaftskapitän", "x" * 70),
]
WORDS = st.sampled_from(PIECES) | st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=6)
TEXTS = st.lists(WORDS, min_size=1, max_size=4).map(" ".join)


@st.composite
def examples(draw, task):
    """A row of three options whose texts are drawn; the fillers of an intrasentence one stand at its BLANK."""
    if task == "intrasentence":
        before, after = (draw(TEXTS | st.just("")).replace("BLANK", "blank") for _ in range(2))
        context = f"{before} BLANK {after}".strip()
        options = [context.replace("BLANK", draw(WORDS).replace("BLANK", "blank")) for _ in range(3)]
    else:
        context, options = draw(TEXTS).replace("BLANK", "blank"), [draw(TEXTS) for _ in range(3)]
    return {
        "id": "e",
        "context": context,
        "sentences": [{"id": f"e-{i}", "sentence": option} for i, option in enumerate(options)],
    }


@pytest.fixture(scope="module")
def opened(scorer_of):
    return cache(scorer_of)


def score_or_reason(scorer, row):
    """(its job, its options' scores, None), or (None, None, the refusal)."""
    try:
        job = scorer.plan([row])
        (scores,) = score_here(scorer, job)
    except ValueError as refusal:
        return None, None, str(refusal)
    return job, scores, None


CASES = [
    # Of each make of tokenizer one: WordPiece, byte-level BPE, BPE with bytes for the unknown, unigram.
    *(("bert", task) for task in ("intrasentence", "intersentence")),
    *(("gpt2", task) for task in ("intrasentence", "intersentence")),
    ("llama", "intrasentence"),
    ("t5", "intrasentence"),
    # Like one of these.
    thorough("t5", "intersentence"),
    *(thorough(name, "intrasentence") for name in ("roberta", "albert", "mt5")),
]


@pytest.mark.parametrize(("name", "task"), CASES)
@wild
@given(data=st.data())
def test_any_text_is_scored_as_its_rows_one_by_one_or_refused_by_name(opened, name, task, data):
    scorer = opened(name)
    row = data.draw(examples(task))
    job, scores, reason = score_or_reason(scorer, row)
    if reason is not None:
        event("refused")
        assert "'e" in reason  # the example's or the option's id
        return
    alone = job.scores({i: scorer.log_probs([unit_of([one])])[0] for i, one in enumerate(job.rows)})
    assert not any(map(math.isnan, scores))
    assert scores == pytest.approx(alone[0], rel=1e-5 if name in ("t5", "mt5") else 1e-9)


@wild
@given(data=st.data())
def test_what_is_beside_an_example_does_not_move_its_scores(opened, data):
    scorer = opened("gpt2")
    rows = [data.draw(examples(task)) for task in ("intrasentence", "intersentence", "intrasentence")]
    rows = [{**row, "id": f"e{i}"} for i, row in enumerate(rows)]
    alone = [score_or_reason(scorer, row)[1] for row in rows]
    rows = [row for row, scores in zip(rows, alone, strict=True) if scores]
    together = scorer.score(rows) if rows else []
    for scores, expected in zip(together, filter(None, alone), strict=True):
        assert scores == pytest.approx(expected, rel=1e-9)


SCORES = st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, -5e-324, math.inf, -math.inf, -1.5])


@given(st.dictionaries(st.text(min_size=1), SCORES, min_size=1))
def test_a_file_of_scores_gives_back_every_number_of_any_kind(by_id):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.json"
        write_predictions(path, {"intrasentence": by_id})
        found, _ = read_predictions(path)
        assert repr(found["intrasentence"]) == repr(by_id)
