"""The files of a finished run join or are refused."""

import errno
import json
import os

import pytest

from stereoset_scoring.files.finished import FILES, read_record, set_files_aside, write_finished
from stereoset_scoring.files.ledger import Ledger, check_place
from stereoset_scoring.refusal import Refusal


@pytest.fixture
def run(tmp_path):
    """run(name): the folder of a finished run, whose files differ from any other's."""

    def make(name):
        folder = tmp_path / name
        folder.mkdir()
        write_finished(folder, {"intrasentence": [name]}, {"results": name}, {"model": {"name": name}})
        return folder

    return make


def test_files_that_were_written_together_join(run):
    assert read_record(run("one"))["model"] == {"name": "one"}


@pytest.mark.parametrize("names", [FILES[:1], FILES[1:2], FILES[2:], FILES[:2], FILES[1:]])
def test_files_of_two_runs_side_by_side_are_refused(run, names):
    one, other = run("one"), run("other")
    for name in names:
        (other / name).replace(one / name)
    with pytest.raises(Refusal, match=r"is not the file that run\.json beside it was written with"):
        read_record(one)


@pytest.mark.parametrize("name", FILES[:2])
def test_a_file_that_is_missing_is_named(run, name):
    folder = run("one")
    (folder / name).unlink()
    with pytest.raises(Refusal, match=f"lacks {name}"):
        read_record(folder)


@pytest.mark.parametrize("record", ["[]", "null", "3"])
def test_junk_in_place_of_a_record_is_refused(tmp_path, record):
    (tmp_path / "run.json").write_text(record)
    with pytest.raises(Refusal, match="is no record of a run"):
        read_record(tmp_path)


def test_a_record_of_an_earlier_version_names_no_sums_and_is_read(tmp_path):
    (tmp_path / "run.json").write_text("{}")
    assert read_record(tmp_path) == {}


def test_files_set_aside_join_as_before(run):
    folder = run("one")
    assert set_files_aside(folder) == folder / "run-1"
    assert read_record(folder / "run-1")["model"] == {"name": "one"}
    assert [path.name for path in folder.iterdir()] == ["run-1"]
    assert set_files_aside(folder) is None


def test_a_disk_that_is_full_leaves_the_old_files_as_they_were(run, monkeypatch):
    folder, left = run("one"), iter(range(2))
    before = {name: (folder / name).read_bytes() for name in FILES}

    def sync(handle):
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OSError, match="No space left"):
        write_finished(folder, {}, {}, {})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_progress_in_place_of_a_link_or_a_file_is_refused(tmp_path):
    place = tmp_path / "progress"
    check_place(place)
    place.mkdir()
    check_place(place)
    (tmp_path / "link").symlink_to(place)
    with pytest.raises(Refusal, match="link is a link where a run keeps its progress"):
        check_place(tmp_path / "link")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(Refusal, match="dangling is a link"):
        check_place(tmp_path / "dangling")
    (tmp_path / "file").touch()
    with pytest.raises(Refusal, match="file is a file"):
        check_place(tmp_path / "file")


OWN = {
    "notes.jsonl": '{"my": "notes"}\n',
    "notes.txt": "",
    f"{'ab' * 16}.jsonl": '{"my": "notes"}\n',
    f"{'cd' * 16}.jsonl": '{"one line": "and no end"}',
}


def test_a_run_removes_only_what_runs_have_written(tmp_path):
    folder = tmp_path / "progress"
    folder.mkdir()
    for name, content in OWN.items():
        (folder / name).write_text(content)
    ledger = Ledger(folder, {"intrasentence": {"weights": "a"}})
    assert ledger.read() == {"intrasentence": {}}
    ledger.open()
    ledger.add("intrasentence", {0: [1.0]})
    ledger.remove()
    assert {path.name: path.read_text() for path in folder.iterdir()} == OWN


def test_what_was_torn_at_its_first_line_is_removed(tmp_path):
    folder = tmp_path / "progress"
    for length in (0, 5, 16, 30):
        ledger = Ledger(folder, {"intrasentence": {"weights": "a"}})
        ledger.open()
        (path,) = folder.iterdir()
        path.write_bytes(path.read_bytes()[:length])
        ledger.remove()
        assert not folder.exists()


def test_the_text_of_a_file_is_json(run):
    assert json.loads((run("ä") / "scores.json").read_text(encoding="utf-8")) == {"intrasentence": ["ä"]}
