"""Turns, and what is made of their times."""

from itertools import count

import pytest


def outcome(benchmarks, difference=1e-5, ours=(1.0, 2.0, 1.0), theirs=(3.0, 4.0, 2.0)):
    comparisons, arithmetic = benchmarks("comparisons"), benchmarks("arithmetic")
    seconds = {"ours": list(ours)} | ({"theirs": list(theirs)} if theirs else {})
    spent = arithmetic.Load(2000, 0, 2000) if theirs else None
    useful, limit = arithmetic.Load(1000, 0, 500), 2.5 if theirs else None
    batch, shares = 8 if theirs else None, [0.8, 0.9, 0.7]
    return comparisons.Outcome(
        comparisons.COMPARISONS[0], batch, bool(theirs), difference, useful, spent, limit, seconds, shares
    )


def test_works_take_turns_and_the_first_turn_does_not_count(benchmarks):
    done, ticks = [], count()
    works = {name: lambda name=name: done.append(name) or len(done) for name in ("A", "B")}
    seconds, found = benchmarks("rounds").alternate(works, 2, clock=lambda: next(ticks))
    assert done == ["A", "B"] * 3
    assert found == {"A": [3, 5], "B": [4, 6]}
    assert seconds == {"A": [1, 1], "B": [1, 1]}


def test_the_speed_up_is_the_ratio_of_medians_with_that_of_each_round(benchmarks):
    found = outcome(benchmarks)
    assert found.speed_up == 3.0
    assert found.speed_ups == [3.0, 2.0, 2.0]
    text = benchmarks("report_tables").comparison_tables([found])
    assert "| 1.00 (1.00-2.00) | 3.00 (2.00-4.00) | 3.00x (2.00-3.00) | 1.8x | 2.3x | 2.50x | 80 (70-90) % |" in text
    assert "| lm-eval `HFLM.loglikelihood`, batch 8 (their best) | 2,000 → 1,000 | 2,000 → 500 | 1.0e-05 |" in text


def test_a_speed_up_under_the_floor_is_marked(benchmarks):
    text = benchmarks("report_tables").speed_up_in_words(outcome(benchmarks, theirs=(1.7, 1.7, 1.7)))
    assert text == "1.70x (0.85-1.70) **below the floor**"


def test_no_speed_up_where_the_two_differ(benchmarks):
    found = outcome(benchmarks, difference=0.02)
    assert found.speed_up is None
    assert benchmarks("report_tables").speed_up_in_words(found) == "none: they differ by 2.0e-02 nats"


def test_our_side_alone_where_the_other_is_not_installed(benchmarks):
    text = benchmarks("report_tables").comparison_tables([outcome(benchmarks, difference=None, theirs=None)])
    assert "| lm-eval `HFLM.loglikelihood` | 1.00 (1.00-2.00) | not installed | - |" in text
    assert "| - → 1,000 | - → 500 | - |" in text


def test_the_machine_s_share_of_works_alone(benchmarks):
    share = benchmarks("alone").Share("a work", 3, 1000, 0.25, [2.0, 1.0, 4.0], [0.5, 0.25, 0.75])
    text = benchmarks("report_tables").shares_table([share])
    assert "| a work | 3 | 1,000 | 25 % | 2.00 (1.00-4.00) | 500 (250-1000) | 50 (25-75) % |" in text


def test_tables_are_put_between_their_marks(benchmarks, tmp_path):
    page = benchmarks("page")
    path = tmp_path / "README.md"
    path.write_text("before\n<!-- a -->\nold\n<!-- end -->\nafter <!-- end -->\n")
    page.write_between(path, "<!-- a -->", page.table(["x"], [["1"]]))
    assert path.read_text() == "before\n<!-- a -->\n| x |\n| --- |\n| 1 |\n<!-- end -->\nafter <!-- end -->\n"
    with pytest.raises(ValueError, match="no place"):
        page.write_between(path, "<!-- b -->", "")


@pytest.mark.parametrize("module", ["run", "profile_scoring", "cluster"])
def test_the_page_has_a_place_for_every_table(repository, benchmarks, module):
    assert f"\n{benchmarks(module).MARK}\n" in (repository / "benchmarks" / "README.md").read_text(encoding="utf-8")
