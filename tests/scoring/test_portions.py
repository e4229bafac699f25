"""Data in portions: cut by counts alone, dealt to whoever is free, planned and read as if they were one."""

import gc
from itertools import islice
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stereoset_scoring.planning.portions import MOST, Portion, in_portions
from stereoset_scoring.planning.probes import telling
from stereoset_scoring.processes import garbage
from stereoset_scoring.processes.ahead import prepared_ahead
from stereoset_scoring.questions.tokens import Texts, Tokenizer
from stereoset_scoring.reading import score_here
from stereoset_scoring.runs.counting import Counter, Farthest

SIZES = st.dictionaries(st.sampled_from(["a", "b", "c", "d"]), st.integers(0, 5000), min_size=1)


@given(SIZES, st.none() | st.integers(1, 100_000))
def test_portions_hold_every_example_once_in_order(sizes, max_tokens):
    seen = {config: [] for config in sizes}
    for portion in in_portions(sizes, max_tokens):
        assert 0 < portion.size <= MOST
        seen[portion.config] += range(portion.start, portion.stop)
    assert seen == {config: list(range(size)) for config, size in sizes.items()}


@pytest.mark.parametrize(
    ("sizes", "max_tokens", "first", "last"),
    [
        # all of StereoSet on a CPU and on a GPU: large ones while much is left, small ones in the end
        ({"intrasentence": 2106, "intersentence": 2123}, 2048, 512, 32),
        ({"intrasentence": 2106, "intersentence": 2123}, 16384, 528, 64),
        ({"intrasentence": 200}, 2048, 32, 8),  # few examples: shared by several processes all the same
        ({"intrasentence": 3}, 1, 1, 1),
    ],
)
def test_portions_fit_the_budget_and_the_last_ones_are_small(sizes, max_tokens, first, last):
    found = [portion.size for portion in in_portions(sizes, max_tokens)]
    assert found[0] == first
    assert last / 8 < found[-1] <= last


def example(length, **more):
    return {"context": "a" * length, "sentences": [{"sentence": "b"}, {"sentence": "c"}], **more}


def test_what_a_model_is_tried_on_holds_the_longest_the_shortest_and_the_first_examples():
    lengths = [50] * 20 + [900, 50, 3, 800]
    found = telling(list(map(example, lengths)))
    assert {0, 1, 2, 20, 22, 23} <= set(found)
    assert len(found) < len(lengths)


def test_progress_counts_what_others_have_taken_when_it_passes_by():
    portions, told = [Portion("a", 0, 10), Portion("a", 10, 16), Portion("b", 0, 4)], []
    progress = Farthest(told.append)
    counter = Counter(portions, progress.reach)
    tick = counter.within(portions[0], 4)
    tick(2)
    tick(2)
    counter.within(portions[2], 8)(4)  # somebody else reads the second
    progress.reach(20)
    assert told == [5, 5, 6, 2, 2]


def test_progress_of_a_portion_without_rows_is_no_trouble():
    told = []
    progress = Farthest(told.append)
    Counter([Portion("a", 0, 3)], progress.reach).within(Portion("a", 0, 3), 0)
    progress.reach(3)
    assert told == [3]


def test_progress_of_several_is_that_of_the_farthest():
    told = []
    progress = Farthest(told.append)
    for place in (0, 5, 3, 9, 9, 7, 10):
        progress.reach(place)
    progress.go_on(2)
    assert told == [5, 4, 1, 2]


@pytest.mark.parametrize("name", ["gpt2", "bert", "t5"])
@pytest.mark.parametrize("task", ["intrasentence", "intersentence"])
def test_what_comes_of_a_portion_does_not_depend_on_the_others(scorer_of_one, request, name, task):
    rows = request.getfixturevalue(task)
    together, apart = scorer_of_one(name), scorer_of_one(name)
    whole = score_here(together, together.plan(rows))
    apart.try_out({task: rows})
    scores = []
    for portion in (Portion(task, 0, 3), Portion(task, 3, len(rows))):
        planned = apart.plan_part(portion, rows[portion.start : portion.stop])
        assert planned.refused == {}
        scores += score_here(apart, planned.job)
    assert scores == [pytest.approx(of_row, abs=1e-5) for of_row in whole]


def test_rows_are_known_by_what_they_ask_in_any_portion(scorer_of_one, intrasentence):
    scorer = scorer_of_one("bert")
    whole = scorer.plan(intrasentence)
    part = scorer.plan_part(Portion("intrasentence", 1, 3), intrasentence[1:3]).job
    assert len(set(whole.keys)) == len(whole.rows)
    assert set(part.keys) < set(whole.keys)
    asked = dict(zip(whole.keys, whole.rows, strict=True))
    assert all(asked[key] == row for key, row in zip(part.keys, part.rows, strict=True))


def test_what_longer_rows_show_counts_for_their_portion_alone(scorer_of_one, intrasentence):
    scorer = scorer_of_one("gpt2")
    scorer.try_out({"intrasentence": intrasentence})
    engine = scorer.source.head("causal").engine
    before = engine.trial
    with scorer.as_tried():
        engine.trial = None
    assert engine.trial == before


TEXT = st.text(max_size=12)
TEXTS = st.lists(TEXT, max_size=6)
ASKED = st.builds(Texts, whole=TEXTS, bare=TEXTS, joined=st.tuples(TEXT, TEXTS))


@pytest.mark.parametrize("name", ["gpt2", "bert", "t5"])
def test_texts_that_are_read_ahead_are_the_same_tokens(scorer_of, name):
    hub = scorer_of(name).source.tokenizer.hub

    @settings(max_examples=25)
    @given(st.lists(ASKED, max_size=3))
    def same(asked):
        ahead, alone = Tokenizer(hub), Tokenizer(hub)
        ahead.read_ahead(asked)
        for whole, bare, (context, options) in asked:
            for text in whole:
                assert ahead.tokenize(text) == alone.tokenize(text)
            for text in bare:
                assert ahead.encode_bare(text) == alone.encode_bare(text)
            assert ahead.join(context, options) == alone.join(context, options)
            for text in (*whole, *bare, *options):
                assert ahead.tokenize(text, special=False) == alone.tokenize(text, special=False)

    same()


@pytest.mark.parametrize(
    ("name", "task", "method"),
    [
        ("gpt2", "intrasentence", "likelihood"),
        ("gpt2", "intersentence", "conditional"),
        ("gpt2", "intersentence", "gain"),
        ("bert", "intrasentence", "pseudo_likelihood"),
        ("bert", "intrasentence", "pll"),
        ("bert", "intersentence", "conditional"),
        ("bert", "intersentence", "aul"),
    ],
)
def test_nothing_is_tokenized_but_what_was_read_ahead(scorer_of_one, request, monkeypatch, name, task, method):
    scorer, rows = scorer_of_one(name, method={task: method}), request.getfixturevalue(task)
    whole = Portion(task, 0, len(rows))
    scorer.plan_part(whole, rows)  # also what is asked once, such as how a text begins
    monkeypatch.setattr(scorer.source.tokenizer, "_read", lambda how, text, *_, **__: pytest.fail(text))
    assert scorer.plan_part(whole, rows).job.rows


def test_garbage_is_looked_for_again_afterwards_even_after_a_failure():
    def fail():
        with garbage.kept():
            enabled.append(gc.isenabled())
            raise ValueError("on purpose")

    enabled = []
    with pytest.raises(ValueError, match="on purpose"):
        fail()
    assert enabled == [False]
    assert gc.isenabled()


def test_the_next_thing_is_prepared_while_one_is_worked_on():
    begun = [Event() for _ in range(3)]

    def prepare(number):
        begun[number].set()
        return str(number)

    found = []
    for number, made in prepared_ahead(range(3), prepare):
        assert begun[min(number + 1, 2)].wait(10)
        found.append(made)
    assert found == ["0", "1", "2"]


def test_what_cannot_be_prepared_is_said_when_its_turn_comes():
    coming = prepared_ahead([2, 1, 0, 5], lambda number: 2 // number)
    assert list(islice(coming, 2)) == [(2, 1), (1, 2)]
    with pytest.raises(ZeroDivisionError):
        next(coming)
