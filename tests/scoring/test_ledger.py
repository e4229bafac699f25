"""What was computed survives on disk: torn, damaged, doubled or somebody else's records never become numbers."""

import errno
import math
import os
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stereoset_scoring.files import ledger as module
from stereoset_scoring.files.ledger import Ledger, set_aside

IDENTITY = {"weights": "a" * 64, "method": "likelihood", "options": {"text": "ids"}}
# Infinities, zeros of both signs, denormals, neighbours, and ties among them.
VALUES = st.lists(st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 5e-324, -math.inf, -1.5]), max_size=4)
ROWS = st.dictionaries(st.integers(0, 30), VALUES, max_size=8)


def make(folder, config="intrasentence", **changes):
    return Ledger(folder, {config: {**IDENTITY, **changes}})


def written(folder, *batches, config="intrasentence"):
    """A ledger's file that holds some batches: its path."""
    before = set(Path(folder).glob("*"))
    ledger = make(folder, config)
    ledger.open()
    for batch in batches:
        ledger.add(config, batch)
    ledger.close()
    (path,) = set(Path(folder).glob("*")) - before
    return path


def read(folder, config="intrasentence"):
    return make(folder, config).read()[config]


@given(batches=st.lists(ROWS, max_size=5))
def test_what_is_written_is_read_to_the_last_bit_and_the_first_to_say_a_row_holds(batches):
    expected = {}
    for batch in batches:
        expected = {**batch, **expected}
    with tempfile.TemporaryDirectory() as folder:
        written(folder, *batches)
        assert repr(sorted(read(folder).items())) == repr(sorted(expected.items()))


def test_what_came_of_a_part_is_read_to_the_last_bit_unless_its_line_is_torn(tmp_path):
    ledger, done = make(tmp_path), [[[0.1 + 0.2, -5e-324], None], [[1, "why"]], {"forward_rows": 3}, {}]
    ledger.open()
    ledger.add_done("intrasentence", (0, 2), done)
    ledger.add_done("intrasentence", (2, 3), done)
    ledger.close()
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-5])
    again = make(tmp_path)
    again.read()
    assert repr(again.done["intrasentence"]) == repr({(0, 2): done})
    assert again.damaged == 1
    with pytest.raises(ValueError, match="is the progress of another run"):
        make(tmp_path, weights="b" * 64).read()


@settings(deadline=None)
@given(data=st.data(), batches=st.lists(ROWS.filter(bool), min_size=1, max_size=4))
def test_a_file_that_ends_anywhere_gives_its_whole_lines(data, batches):
    batches = [{100 * i + row: values for row, values in batch.items()} for i, batch in enumerate(batches)]
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, *batches)
        content = path.read_bytes()
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        whole = path.read_bytes().count(b"\n") - 1  # one line is the identity
        expected = {row: values for batch in batches[: max(whole, 0)] for row, values in batch.items()}
        assert read(folder) == expected


@settings(deadline=None)
@given(data=st.data(), batches=st.lists(ROWS.filter(bool), min_size=1, max_size=3))
def test_a_changed_byte_costs_its_line_and_changes_no_value(data, batches):
    batches = [{100 * i + row: values for row, values in batch.items()} for i, batch in enumerate(batches)]
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder, *batches)
        content = bytearray(path.read_bytes())
        place = data.draw(st.integers(0, len(content) - 1))
        line = content[:place].count(b"\n")
        content[place] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        ledger = make(folder)
        found = ledger.read()["intrasentence"]
        assert ledger.damaged >= 1
        for i, batch in enumerate(batches, 1):
            # A damaged end of line takes the next line with it.
            if i not in (line, line + 1):
                assert batch.items() <= found.items()
        everything = {row: values for batch in batches for row, values in batch.items()}
        assert found.items() <= everything.items()


def test_the_files_of_several_processes_make_one_whole(tmp_path):
    written(tmp_path, {0: [1.0]}, {1: [2.0]})
    written(tmp_path, {2: [3.0]})
    assert read(tmp_path) == {0: [1.0], 1: [2.0], 2: [3.0]}


def test_every_config_has_its_own_rows(tmp_path):
    ledger = Ledger(tmp_path, dict.fromkeys(("intrasentence", "intersentence"), IDENTITY))
    ledger.open()
    ledger.add("intersentence", {0: [1.0]})
    assert ledger.read() == {"intrasentence": {}, "intersentence": {0: [1.0]}}


DIFFERENCES = [
    ({"weights": "b" * 64}, f"weights: {'a' * 16} there, {'b' * 16} here"),
    ({"method": "pll"}, "method: likelihood there, pll here"),
    ({"revision": "0123abc"}, "revision: None there, 0123abc here"),
]


@pytest.mark.parametrize(("changes", "words"), DIFFERENCES)
def test_progress_of_another_run_is_refused_with_the_difference_named(tmp_path, changes, words):
    written(tmp_path, {0: [1.0]})
    with pytest.raises(ValueError, match="is the progress of another run") as refusal:
        make(tmp_path, **changes).read()
    assert words in str(refusal.value)
    assert "--restart" in str(refusal.value)


def test_progress_of_a_config_that_is_not_scored_is_refused(tmp_path):
    written(tmp_path, {0: [1.0]}, config="intersentence_de")
    with pytest.raises(ValueError, match="it scores intersentence_de, which this one does not"):
        make(tmp_path).read()


def test_progress_whose_description_is_damaged_is_refused_where_it_is_not_ours(tmp_path):
    path = written(tmp_path, {0: [1.0]})
    path.write_bytes(b"x" + path.read_bytes())
    assert read(tmp_path) == {0: [1.0]}
    with pytest.raises(ValueError, match="its description is damaged"):
        make(tmp_path, method="pll").read()


def test_a_run_that_recorded_nothing_is_in_nobodys_way(tmp_path):
    written(tmp_path)
    assert make(tmp_path, method="pll").read() == {"intrasentence": {}}


def test_progress_set_aside_is_kept_under_another_name(tmp_path):
    folder = tmp_path / "progress"
    assert set_aside(folder) is None
    for name in ("progress-1", "progress-2"):
        written(folder, {0: [1.0]})
        assert set_aside(folder) == tmp_path / name
        assert read(folder) == {}
        assert read(tmp_path / name) == {0: [1.0]}


def test_a_full_disk_stops_the_run_and_keeps_what_there_was(tmp_path, monkeypatch):
    write, room = os.write, 700

    def write_while_there_is_room(file, line):
        nonlocal room
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        done = write(file, line[:room])
        room -= done
        return done

    monkeypatch.setattr(module.os, "write", write_while_there_is_room)
    ledger = make(tmp_path)
    ledger.open()
    kept = {}

    def add_until_it_fails():
        for i in range(100):
            ledger.add("intrasentence", {i: [-float(i)]})
            kept[i] = [-float(i)]

    with pytest.raises(OSError, match="No space left on device: what was computed cannot be recorded, so make room"):
        add_until_it_fails()
    ledger.close()
    assert kept
    again = make(tmp_path)
    assert again.read()["intrasentence"] == kept
    assert again.damaged == 1


@pytest.mark.parametrize("times", [[1e9, 5.0, 1e12, 0.0], [0.0, 0.0, 0.0, 0.0]], ids=["jumps", "stands still"])
def test_no_clock_keeps_a_record_from_the_disk(tmp_path, monkeypatch, times):
    clock = iter(times)
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock, times[-1]))
    monkeypatch.setattr(module.time, "time", lambda: 1 / 0)
    written(tmp_path, {0: [1.0]}, {1: [2.0]}, {2: [3.0]})
    assert read(tmp_path) == {0: [1.0], 1: [2.0], 2: [3.0]}


def test_a_batch_is_in_the_file_as_soon_as_it_is_added(tmp_path):
    code = (
        "import os, sys; from stereoset_scoring.files.ledger import Ledger;"
        f"l = Ledger({str(tmp_path)!r}, {{'intrasentence': {IDENTITY!r}}}); l.open();"
        "l.add('intrasentence', {0: [1.0]}); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert read(tmp_path) == {0: [1.0]}


def test_the_disk_is_waited_for_every_few_seconds(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(module.os, "fsync", lambda file: synced.append(time.monotonic()))
    seconds = iter(range(1000))
    monkeypatch.setattr(module.time, "monotonic", lambda: next(seconds))
    ledger = make(tmp_path)
    ledger.open()
    for i in range(20):
        ledger.add("intrasentence", {i: [0.0]})
    ledger.close()
    assert 20 / 3 <= len(synced) <= 20


def test_the_files_have_the_usual_permissions(tmp_path):
    path = written(tmp_path)
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


def test_nothing_is_left_when_all_is_done_but_what_is_not_ours(tmp_path):
    folder = tmp_path / "progress"
    written(folder, {0: [1.0]})
    make(folder).remove()
    assert not folder.exists()
    written(folder, {0: [1.0]})
    (folder / "notes.txt").touch()
    make(folder).remove()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]
