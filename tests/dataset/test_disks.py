"""A cache that cannot be written to: read-only and complete it is used, full or incomplete it is refused in a line."""

import errno
import os
import resource
import stat
import subprocess
import sys

import datasets
import pytest

LOAD = """\
import resource, sys, dataclasses, stereoset_dataset as s
sources = s.Stereoset.builder_configs['intrasentence'].sources
counts = {'intrasentence': 1, 'intersentence': 1}
sources['validation'] = dataclasses.replace(sources['validation'], sha256=sys.argv[1])
sources['test'] = dataclasses.replace(sources['test'], git_blob=sys.argv[2], examples=counts)
limits = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[5]), limits[1]))
try:
    said = s.load_stereoset('intrasentence', sys.argv[4], data_dir=sys.argv[3])['target'][:]
except (OSError, ValueError) as error:
    said = f"{type(error).__name__} {error}"
resource.setrlimit(resource.RLIMIT_FSIZE, limits)  # for this goes to a file, too
print(said)
"""


@pytest.fixture
def load_elsewhere(mild, warm_python):
    """Load a split in a process of its own, whose HF_HOME is the given folder; what it prints.

    A file may have so many bytes at most.
    """

    def load(home, split="validation", largest=resource.RLIM_INFINITY):
        sums = [mild.sources["validation"].sha256, mild.sources["test"].git_blob]
        words = [sys.executable, "-c", LOAD, *sums, mild.mirror, split, largest]
        done = warm_python.run(words, env=warm_python.environment | {"HF_HOME": str(home)})
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return load


@pytest.fixture
def read_only():
    """Make a folder and all in it read-only, for root too, until the end of the test."""
    mounted, locked = [], []

    def make(folder):
        if os.geteuid():
            locked.extend(path for path in (folder, *folder.rglob("*")) if path.is_dir())
            for path in locked:
                path.chmod(stat.S_IRUSR | stat.S_IXUSR)
            return
        for options in ("bind", "bind,remount,ro"):
            if subprocess.run(["mount", "-o", options, folder, folder], check=False, capture_output=True).returncode:
                pytest.skip("root may write anywhere, and mounts nothing here")
            mounted.append(folder) if options == "bind" else None

    yield make
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
    for path in locked:
        path.chmod(stat.S_IRWXU)


def files_below(folder):
    return sorted(str(path) for path in folder.rglob("*"))


def test_prepared_rows_are_read_from_a_cache_that_is_read_only(load_elsewhere, read_only, tmp_path):
    home = tmp_path / "home"
    expected = load_elsewhere(home)
    assert expected == "['baker', 'tailor']"
    read_only(home)
    assert load_elsewhere(home) == expected


def test_rows_that_a_read_only_cache_lacks_are_refused_with_the_folder(load_elsewhere, read_only, tmp_path):
    home = tmp_path / "home"
    load_elsewhere(home)
    read_only(home)
    refused = load_elsewhere(home, "test")
    assert refused.startswith(f"OSError {home / 'datasets'} cannot take the rows of intrasentence (")
    assert refused.endswith("on a disk with room.")
    assert "\n" not in refused


def test_reading_prepared_rows_writes_nothing(mild, load, tmp_path):
    load(data_dir=mild.mirror)
    before = files_below(tmp_path)
    for lock in (tmp_path / "cache").rglob("*.lock"):
        lock.unlink()
    unlocked = files_below(tmp_path)
    assert set(load(data_dir=mild.mirror)) == {"validation", "test"}
    assert files_below(tmp_path) == unlocked != before


def test_a_disk_that_fills_up_is_named_in_a_line_and_leaves_nothing(load_elsewhere, tmp_path):
    home = tmp_path / "home"
    refused = load_elsewhere(home, largest=1)  # as if the disk were full
    assert refused.startswith(f"OSError {home / 'datasets'} cannot take the rows of intrasentence (")
    assert "\n" not in refused
    assert load_elsewhere(home) == "['baker', 'tailor']"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_whatever_a_disk_refuses_while_rows_are_written_is_one_sentence(mild, load, tmp_path, monkeypatch, number):
    def fail(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(datasets.arrow_writer.ArrowWriter, "write", fail)
    monkeypatch.setattr(datasets.arrow_writer.ArrowWriter, "write_row", fail)
    with pytest.raises(OSError, match=os.strerror(number)) as refused:
        load(data_dir=mild.mirror)
    assert str(refused.value).startswith(f"{tmp_path / 'cache'} cannot take the rows of intrasentence (")


def test_a_mirror_s_file_that_may_not_be_read_is_not_taken_for_a_full_cache(mild, load, monkeypatch):
    path = str(mild.path("validation"))

    def fail(name):
        raise PermissionError(errno.EACCES, "Permission denied", name)

    monkeypatch.setattr("stereoset_dataset.stereoset_dataset._read", fail)
    with pytest.raises(PermissionError, match=path):
        load(data_dir=mild.mirror)
