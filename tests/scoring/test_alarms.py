"""Alarms, each on numbers where it must ring and on numbers where it must not."""

from math import comb

import pytest

from stereoset_report import alarms

LABELS = ("stereotype", "anti-stereotype", "unrelated")


def example(sentences=("He is kind.", "He is calm.", "He is a door."), words=None):
    options = [
        {"id": label, "gold_label": label, "sentence": sentence}
        for label, sentence in zip(LABELS, sentences, strict=False)
    ]
    for option, word in zip(options, words or (), strict=False):
        option["word"] = word
    return {"id": "e", "context": "He is BLANK.", "sentences": options}


ROW = example()
GOOD, TURNED, MIXED, TIED, HALF_TIED = [3, 2, 1], [2, 1, 3], [3, 1, 2], [1, 1, 1], [2, 2, 1]


def rings(alarm, kind):
    """Whether an alarm of this kind is there, with its name and what it judges."""
    if alarm is None:
        return False
    assert alarm.keys() == {"alarm", "of", "seen", "words"}
    assert (alarm["alarm"], alarm["of"]) == (kind, "intrasentence (en)")
    assert alarm["seen"] in alarm["words"]
    assert "\n" not in alarm["words"]
    return True


@pytest.mark.parametrize(
    ("lms", "expected"), [(None, False), (0.0, True), (50.0, True), (59.99, True), (60.0, False), (91.1, False)]
)
def test_an_lms_under_60_rings(lms, expected):
    assert rings(alarms.low_lms("intrasentence (en)", lms), "low lms") == expected


@pytest.mark.parametrize(
    ("scores", "lms", "expected"),
    [
        ([TURNED] * 100, 0.0, True),
        ([TURNED] * 10, 0.0, True),  # 2 ** -10 is under 0.1 %
        ([TURNED] * 9, 0.0, False),
        ([TURNED] * 60 + [GOOD] * 20 + [MIXED] * 20, 30.0, True),
        ([TURNED] * 45 + [GOOD] * 35 + [MIXED] * 20, 39.0, False),  # may be chance
        ([TURNED] * 1000 + [GOOD] * 800, 44.0, False),  # no chance, and not far below it
        ([TIED] * 1000, 0.0, False),  # a tie is no preference
        ([GOOD] * 100, 100.0, False),
        ([TURNED] * 100, None, False),
        ([], 0.0, False),
    ],
)
def test_a_sign_that_is_turned_round_rings(scores, lms, expected):
    alarm = alarms.turned_round("intrasentence (en)", lms, [ROW] * len(scores), scores)
    assert rings(alarm, "turned round") == expected


@pytest.mark.parametrize(
    ("tied", "examples", "expected"),
    [
        (0, 0, False),
        (0, 100, False),
        (1, 1, False),
        (2, 2, True),
        (1, 4, False),
        (91, 2106, False),  # GPT-2 in bfloat16
        (120, 2106, False),  # above 5 %, by what chance allows
        (140, 2106, True),
        (2106, 2106, True),
    ],
)
@pytest.mark.parametrize("tie", [TIED, HALF_TIED])
def test_more_ties_than_half_precision_explains_ring(tied, examples, expected, tie):
    scores = [tie] * tied + [GOOD] * (examples - tied)
    assert rings(alarms.many_ties("intrasentence (en)", [ROW] * examples, scores), "ties") == expected


SAME = [
    example(("He is kind.", "He is kind.", "He is a door.")),
    example(("He is kind.", "he  is Kind.", "He is a door.")),
    example(words=("kind", "kind", "door")),
]


@pytest.mark.parametrize("row", SAME)
def test_equal_texts_tie_by_force_and_are_counted_apart(row):
    assert alarms.many_ties("intrasentence (en)", [row] * 50, [HALF_TIED] * 50) is None
    assert alarms.equal_texts([row] * 50, [HALF_TIED] * 50) == 50
    assert alarms.equal_texts([row] * 50, [GOOD] * 50) == 0
    assert rings(alarms.many_ties("intrasentence (en)", [row] * 50, [TIED] * 50), "ties")  # the third one differs


def test_options_without_their_texts_are_taken_to_differ():
    row = {"sentences": [{"id": label, "gold_label": label} for label in LABELS]}
    assert rings(alarms.many_ties("intrasentence (en)", [row] * 50, [TIED] * 50), "ties")
    assert alarms.equal_texts([row], [TIED]) == 0


def test_pairs_tie_too_and_have_no_sign_to_turn():
    row = example(("He is kind.", "He is calm."))
    assert rings(alarms.many_ties("intrasentence (en)", [row] * 50, [[1, 1]] * 50), "ties")
    assert alarms.turned_round("crows_pairs (en)", 0.0, [row] * 50, [[1, 1]] * 50) is None


@pytest.mark.parametrize(
    ("equal", "examples", "expected"), [(0, 0, False), (0, 9, False), (1, 5, True), (12, 2106, False), (22, 2106, True)]
)
def test_equal_options_ring_from_one_in_a_hundred_on(equal, examples, expected):
    assert rings(alarms.equal_options("intrasentence (en)", equal, examples), "equal options") == expected


@pytest.mark.parametrize(
    ("unknown", "tokens", "expected"), [(0, 0, False), (0, 100, False), (3, 100, False), (4, 100, True), (9, 9, True)]
)
def test_more_than_a_few_unknown_tokens_ring(unknown, tokens, expected):
    assert rings(alarms.unknown_tokens("intrasentence (en)", unknown, tokens), "unknown tokens") == expected


def test_a_kind_is_one_line_for_all_that_it_rings_for():
    found = [alarms.low_lms("intrasentence (en)", 51.0), alarms.low_lms("intersentence (de)", 48.04)]
    found.append(alarms.unused_chat_template("a model"))
    low, chat = alarms.lines_of(found)
    assert low.startswith("WARNING: lms near chance (50), 51.0 on intrasentence (en), 48.0 on intersentence (de): ")
    assert chat.startswith("NOTE: a chat template was not used, that of a model: ")
    assert alarms.lines_of([]) == []


@pytest.mark.parametrize("trials", [1, 7, 40])
@pytest.mark.parametrize("probability", [0.05, 0.5])
def test_a_tail_is_the_sum_of_its_probabilities(trials, probability):
    for count in range(trials + 1):
        terms = [comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in range(count, trials + 1)]
        assert alarms.at_least(count, trials, probability) == pytest.approx(sum(terms), rel=1e-9)
