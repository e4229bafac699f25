"""What holds for any batch, text, span, context and job: drawn at random."""

import re
from itertools import combinations, pairwise
from math import fsum

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from stereoset_scoring.engines.padding import visibility
from stereoset_scoring.methods.reductions import log_mean_probability, mean_log
from stereoset_scoring.planning.batching import LARGE_ENOUGH, PASS_COST, SIMILAR, by_tokens, in_passes, side_by_side
from stereoset_scoring.planning.packing import pack
from stereoset_scoring.planning.plan import make_job
from stereoset_scoring.planning.rows import Recipe, Row
from stereoset_scoring.planning.units import joined_units, unit_of
from stereoset_scoring.questions.attribute import aligned_fillers, fill, released_word
from stereoset_scoring.questions.examples import Example, Option, read_example
from stereoset_scoring.questions.tokens import Tokens

settings.register_profile("quick", max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("quick")


@st.composite
def lengths_and_budget(draw):
    lengths = draw(st.lists(st.integers(1, 60), max_size=40))
    return lengths, draw(st.integers(max(lengths, default=1), 400))


@given(lengths_and_budget())
def test_batches_hold_every_index_once_under_the_budget_longest_first(drawn):
    lengths, budget = drawn
    batches = by_tokens(lengths, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(len(batch) * max(lengths[i] for i in batch) <= budget for batch in batches)
    order = [lengths[i] for batch in batches for i in batch]
    assert order == sorted(order, reverse=True)


@given(lengths_and_budget(), st.integers(1, 80))
def test_what_stands_side_by_side_fills_the_width_and_nothing_is_left_over(drawn, width):
    lengths, _ = drawn
    groups = side_by_side(lengths, width)
    assert sorted(i for group in groups for i in group) == list(range(len(lengths)))
    taken = [sum(lengths[i] for i in group) for group in groups]
    assert all(one <= max(width, lengths[group[0]]) for one, group in zip(taken, groups, strict=True))
    for i, group in enumerate(groups):  # nothing that comes later would have fitted
        room = max(width, lengths[group[0]]) - taken[i]
        assert all(lengths[j] > room for later in groups[i + 1 :] for j in later)


@given(lengths_and_budget())
def test_a_batch_ends_where_it_is_full_or_where_it_is_large_and_the_next_row_much_shorter(drawn):
    lengths, budget = drawn
    for batch, following in pairwise(by_tokens(lengths, budget)):
        longest = lengths[batch[0]]
        full = (len(batch) + 1) * longest > budget
        large = len(batch) * longest >= LARGE_ENOUGH * budget
        assert full or (large and lengths[following[0]] < SIMILAR * longest)


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_passes_take_as_little_as_any_do(lengths):
    passes = in_passes(lengths)
    assert sorted(i for one in passes for i in one) == list(range(len(lengths)))
    ordered = sorted(lengths, reverse=True)
    assert [lengths[i] for one in passes for i in one] == ordered
    least = min(
        sum((stop - start) * ordered[start] + PASS_COST for start, stop in pairwise((0, *borders, len(lengths))))
        for count in range(len(lengths))
        for borders in combinations(range(1, len(lengths)), count)
    )
    assert sum(len(one) * lengths[one[0]] + PASS_COST for one in passes) == least


@given(st.lists(st.integers(1, 60), min_size=1), st.integers(1, 59))
def test_row_longer_than_the_budget_is_refused_with_both_numbers(lengths, budget):
    assume(max(lengths) > budget)
    with pytest.raises(ValueError, match=rf"{max(lengths)} tokens.*max_tokens={budget}.*larger"):
        by_tokens(lengths, budget)


@st.composite
def tokenized_text(draw):
    """A text cut into tokens, with special tokens, characters of no token, and characters of several."""
    text = draw(st.text(alphabet="ab é ", min_size=1, max_size=14))
    offsets, at = [(0, 0)], 0
    while at < len(text):
        width = draw(st.integers(1, 4))
        offsets += [(at, min(at + width, len(text)))] * draw(st.sampled_from([0, 1, 1, 1, 2]))
        at += width
    offsets.append((0, 0))
    count = len(offsets)
    return Tokens(text, tuple(range(count)), tuple(offsets), None, (False,) * count, (0,) * count)


def holds(span, characters):
    return any(c in characters for c in range(*span))


@given(tokenized_text(), st.integers(0, 14), st.integers(0, 14))
def test_tokens_within_a_span_are_those_that_hold_one_of_its_characters(tokens, start, end):
    inside = [i for i, span in enumerate(tokens.offsets) if holds(span, range(start, end))]
    expected = range(inside[0], inside[-1] + 1) if inside else range(0)
    assert tokens.within(start, end) == expected


@given(tokenized_text(), st.integers(0, 14))
def test_straddling_tokens_hold_something_on_both_sides_of_the_border(tokens, border):
    visible = {c for c, character in enumerate(tokens.text) if not character.isspace()}
    before, after = {c for c in visible if c < border}, {c for c in visible if c >= border}
    expected = sum(holds(span, before) and holds(span, after) for span in tokens.offsets)
    assert tokens.straddling(border) == expected


WORDS = st.text(alphabet="abcéß", min_size=1, max_size=5)
SIGNS = st.sampled_from([" ", ", ", " (", ") ", " - ", ' "', '" ', ".", "? ", " [", "]* "])


@st.composite
def filled_context(draw):
    """A context with one to three BLANKs, fillers, and the sentence in a letter case of its own."""
    count = draw(st.integers(1, 3))
    pieces = [draw(WORDS) + draw(SIGNS) for _ in range(count + 1)]
    if draw(st.booleans()):
        pieces[0] = ""
    fillers = [draw(st.lists(WORDS, min_size=1, max_size=2).map(" ".join)) for _ in range(count)]
    swap = draw(st.lists(st.booleans(), min_size=80, max_size=80))
    turned = [
        "".join(c.upper() if flag and len(c.upper()) == 1 else c for c, flag in zip(piece, swap, strict=False))
        for piece in pieces
    ]
    sentence = turned[0] + "".join(filler + piece for filler, piece in zip(fillers, turned[1:], strict=True))
    return "BLANK".join(pieces), fillers, sentence


def ways_to_fill(parts, text):
    """All lists of fillers that turn the parts into the text, found without a pattern."""
    if not text.startswith(parts[0]):
        return []
    text = text[len(parts[0]) :]
    if len(parts) == 1:
        return [[]] if not text else []
    return [[text[:end], *rest] for end in range(1, len(text) + 1) for rest in ways_to_fill(parts[1:], text[end:])]


@given(filled_context())
def test_alignment_gives_the_fillers_back_where_there_is_one_way(drawn):
    context, fillers, sentence = drawn
    ways = ways_to_fill(context.lower().split("blank"), sentence.lower())
    assume("blank" not in sentence.lower() and len(ways) == 1)
    example = Example("e", context, (Option("o", sentence),))
    assert aligned_fillers(example, example.options[0]) == fillers


@given(filled_context())
def test_filled_context_holds_the_first_filler_at_the_place_it_names(drawn):
    context, fillers, sentence = drawn
    text, (start, end) = fill(context, fillers)
    assert text[start:end] == fillers[0].strip()
    assert text.lower() == sentence.lower()


@given(st.lists(WORDS, min_size=1, max_size=6), st.data())
def test_released_word_is_that_at_the_same_place_less_punctuation(words, data):
    place = data.draw(st.integers(0, len(words) - 1))
    context = " ".join([*words[:place], "BLANK.", *words[place + 1 :]])
    sentence = " ".join([*words[:place], f"({words[place]})'", *words[place + 1 :]])
    example = Example("e", context, (Option("o", sentence),))
    assert released_word(example, example.options[0]) == words[place]


def plain_row(head, ids, reads, segments):
    return Row(head, ids, reads, segments)


ROWS = st.builds(
    plain_row,
    head=st.sampled_from(["masked", "next_sentence"]),
    ids=st.lists(st.integers(0, 2), min_size=1, max_size=4).map(tuple),
    reads=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=4).map(tuple),
    segments=st.sampled_from([None, (0, 1)]),
)
RECIPES = st.builds(Recipe, rows=st.lists(ROWS, min_size=1, max_size=3).map(tuple), combine=st.just(list))


def fake_engine(row):
    """Values that depend on everything that a value may depend on, and on nothing else."""
    return [hash((row.head, row.ids, row.segments, read)) for read in row.reads]


@given(st.lists(st.lists(RECIPES, min_size=1, max_size=3), max_size=4), st.integers(4, 40))
def test_merging_rows_changes_no_value(recipes, max_tokens):
    job = make_job(recipes, max_tokens)
    values = {i: fake_engine(job.rows[i]) for batch in job.batches for unit in batch for i in unit.indices}
    alone = [[[fake_engine(row) for row in recipe.rows] for recipe in options] for options in recipes]
    assert job.scores(values) == alone


@given(st.lists(st.lists(RECIPES, min_size=1, max_size=3), max_size=4), st.integers(4, 40))
def test_job_asks_every_input_once_and_one_head_per_batch(recipes, max_tokens):
    job = make_job(recipes, max_tokens)
    inputs = [(row.head, row.ids, row.segments) for row in job.rows]
    assert len(set(inputs)) == len(inputs)
    assert all(len({job.rows[i].head for unit in batch for i in unit.indices}) == 1 for batch in job.batches)
    assert all(len(set(row.reads)) == len(row.reads) for row in job.rows)


def test_row_that_came_back_without_values_is_noticed():
    job = make_job([[Recipe((Row("masked", (1,), ((0, 1),)), Row("masked", (2,), ((0, 1),))), mean_log)]], 10)
    with pytest.raises(RuntimeError, match=re.escape("1 of 2 rows came back without values, first row 1")):
        job.scores({0: [-1.0]})


@given(st.data())
def test_row_without_some_context_reads_the_same_tokens_at_the_same_ids(data):
    count = data.draw(st.integers(1, 12))
    start = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(start, count - 1))
    reads = tuple((i, i) for i in range(stop, count))
    segments = data.draw(st.sampled_from([None, tuple(range(count))]))
    row = Row("causal", tuple(range(count)), reads, segments, range(start, stop))
    cut = row.without(data.draw(st.integers(0, 15)))
    assert [cut.ids[position] for position, _ in cut.reads] == [token for _, token in reads]
    assert cut.ids[:start] == row.ids[:start]
    assert cut.ids[start:] == row.ids[count - len(cut.ids) + start :]
    assert cut.segments == (None if segments is None else cut.ids)


LOGS = st.lists(st.lists(st.floats(-800, 0), min_size=1, max_size=4), min_size=1, max_size=4)


@given(LOGS)
def test_logarithm_of_a_mean_lies_between_the_smallest_and_the_largest(values):
    flat = [value for one in values for value in one]
    low, middle, high = min(flat), log_mean_probability(values), max(flat)
    assert low - 1e-9 <= mean_log(values) <= middle + 1e-9 <= high + 2e-9
    assert mean_log(values) == pytest.approx(fsum(flat) / len(flat))


def test_probabilities_below_the_smallest_float_still_count():
    assert log_mean_probability([[-2000.0], [-2000.0]]) == -2000.0
    assert log_mean_probability([[float("-inf")]]) == float("-inf")


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=3), st.booleans())
def test_both_layouts_of_a_row_read_as_the_same_example(options, words):
    listed = [{"id": str(i), "sentence": a, **({"word": b} if words else {})} for i, (a, b) in enumerate(options)]
    mapped = {key: [one[key] for one in listed] for key in listed[0]}
    row = {"id": "e", "context": "It was."}
    assert read_example({**row, "sentences": listed}) == read_example({**row, "sentences": mapped})


SEQUENCES = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=8).map(tuple), min_size=1, max_size=6)


@given(SEQUENCES)
def test_a_pack_holds_every_distinct_beginning_once_and_every_row_whole(sequences):
    tree = pack(sequences)
    assert len(tree.ids) == len({one[: i + 1] for one in sequences for i in range(len(one))})
    assert [tuple(tree.ids[node] for node in path) for path in tree.paths] == sequences
    assert all(tree.positions[node] == i for path in tree.paths for i, node in enumerate(path))


@given(st.lists(SEQUENCES, min_size=1, max_size=4))
def test_packs_side_by_side_are_the_pack_of_all_their_rows(groups):
    units = [unit_of([Row("causal", one, ()) for one in some], packed=True) for some in groups]
    assert joined_units(units).pack == pack([one for some in groups for one in some])


@given(SEQUENCES, st.data())
def test_a_unit_without_what_is_known_holds_the_rest_and_the_tree_of_the_rest(sequences, data):
    known = data.draw(st.sets(st.integers(0, len(sequences))))
    unit = unit_of([Row("causal", one, ()) for one in sequences], packed=True)
    rest = unit.without(known)
    left = [i for i in range(len(sequences)) if i not in known]
    assert (list(rest.indices) if rest else []) == left
    if rest:
        assert [row.ids for row in rest.rows] == [sequences[i] for i in left]
        assert rest.pack == pack([sequences[i] for i in left])
        assert rest.tokens == len(rest.pack.ids)


@given(SEQUENCES)
def test_rows_of_a_unit_each_alone_are_all_its_rows_in_order(sequences):
    unit = unit_of([Row("causal", one, ()) for one in sequences], range(5, 5 + len(sequences)), packed=True)
    alone = unit.alone()
    assert [(one.rows, one.indices) for one in alone] == [((row,), (5 + i,)) for i, row in enumerate(unit.rows)]
    assert [one.tokens for one in alone] == [len(one) for one in sequences]
    assert unit.unpacked().tokens == sum(map(len, sequences)) >= unit.tokens


@given(SEQUENCES)
def test_a_token_of_a_pack_sees_its_own_beginning_and_nothing_else(sequences):
    tree = pack(sequences)
    visible = visibility([tree, pack([(9,) * 12])])[0]
    for path in tree.paths:
        for i, node in enumerate(path):
            assert set(visible[node].nonzero().flatten().tolist()) == set(path[: i + 1])


@given(st.lists(st.lists(RECIPES, min_size=1, max_size=3), max_size=4), st.integers(4, 40))
def test_units_whose_beginnings_are_shared_hold_every_row_once_and_keep_the_budget(recipes, max_tokens):
    job = make_job(recipes, max_tokens, shares_prefixes=lambda head: True)
    assert sorted(i for batch in job.batches for unit in batch for i in unit.indices) == list(range(len(job.rows)))
    lengths = [[len(pack([row.ids for row in unit.rows]).ids) for unit in batch] for batch in job.batches]
    assert all(len(batch) * max(batch) <= max_tokens for batch in lengths)
