"""The arithmetic of simulated clusters, and that recorded times go into it."""

import pytest


@pytest.mark.parametrize(
    ("hand_out", "speeds", "end"),
    [
        ("dealt", [1, 1], 4),  # 3 | 2, 2
        ("shared", [1, 1], 5),  # 3, 2 | 2
        ("dealt", [1, 0.5], 5),  # 3, 2 | 4
        ("shared", [0.5, 1], 10),
        ("dealt", [1, 1, 1, 1], 3),
    ],
)
def test_two_processes_at_three_portions(benchmarks, hand_out, speeds, end):
    dealing = benchmarks("dealing")
    loads = [dealing.Load(1, (2,)), dealing.Load(1, (0.5, 0.5)), dealing.Load(1, (1,))]
    assert dealing.end_of(getattr(dealing, hand_out)(loads, speeds)) == end


@pytest.mark.parametrize(
    ("spent", "left"), [(-1, (2, 2)), (0.5, (2, 2)), (2.9, (2, 2)), (3, (2,)), (4.9, (2,)), (5, ()), (9, ())]
)
def test_batches_that_were_finished_are_not_read_again_but_planned(benchmarks, spent, left):
    dealing = benchmarks("dealing")
    assert dealing.Load(1, (2, 2)).rest(spent) == dealing.Load(1, left)


def test_what_a_lost_process_had_not_finished_is_left(benchmarks):
    dealing = benchmarks("dealing")
    speeds = [1, 0.5]
    turns = dealing.dealt([dealing.Load(0, (1, 1)), dealing.Load(0, (1, 1)), dealing.Load(0, (1, 1))], speeds)
    left = dealing.left_of(turns, speeds, [2.5, 3])
    assert [len(load.batches) for load in left] == [0, 1, 2]


def test_a_cluster_is_simulated_with_recorded_times(benchmarks):
    cluster = benchmarks("cluster")
    slices = {("a", 64): [(0.25, [500, 500])], ("a", 128): [(0.5, [500, 500, 500, 500])]}
    recorded = cluster.Recorded(slices, {"a": 1024}, budget=1024, start_up=10, ending=0.001)
    assert recorded.least(1024, rate=1000) == 8 * 2.5
    # Of 128 examples and fewer, the last of 16: one GPU loses nothing, and three wait for the last portion.
    assert cluster.efficiencies(recorded, 1024, 1000, 1, "equal", 1) == pytest.approx([100], rel=0.05)
    assert 50 < cluster.efficiencies(recorded, 1024, 1000, 3, "equal", 1)[0] < 100
    undisturbed, lost = (cluster.whole_runs(recorded, 1024, 1000, 8, 2, lost) for lost in (False, True))
    assert all(one + cluster.SILENCE < other for one, other in zip(undisturbed, lost, strict=True))
