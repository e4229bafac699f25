"""A mirror is filled from a server laid out as it is: each file whole and verified, or not there."""

import errno
import os
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from stereoset_cli import fetch
from stereoset_dataset import Stereoset
from stereoset_dataset.mirror import fetch_file


class Server(SimpleHTTPRequestHandler):
    """Serves a folder, and breaks its answers off so many bytes before their end."""

    asked, short = (), 0

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def copyfile(self, source, outputfile):
        content = source.read()
        outputfile.write(content[: len(content) - self.short])

    def log_message(self, *_):
        pass


@contextmanager
def serving(folder):
    """A folder on a server: (its address, a class to spoil its answers by, with `asked` and `short`)."""
    kind = type("OneServer", (Server,), {"asked": []})
    running = ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=folder))
    Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", kind
    running.shutdown()
    running.server_close()


@pytest.fixture
def server(mild):
    """The mild files on a server."""
    with serving(mild.mirror) as server:
        yield server


@pytest.fixture
def fetch_here(server, monkeypatch, capsys):
    """fetch_here(*options): the command with that server; (exit status, what it printed, and what as errors)."""

    def run(*options):
        monkeypatch.setattr(sys, "argv", ["stereoset fetch", *map(str, options), "--data-server", server[0]])
        return fetch.main(), *capsys.readouterr()

    return run


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_mirror_is_filled_and_read(mild, load, server, fetch_here, tmp_path):
    status, printed, _ = fetch_here("--data-dir", tmp_path / "new", "--configs", "intrasentence", "intersentence")
    assert status == 0
    assert printed.count("data:") == 2
    assert files_of(tmp_path / "new") == files_of(mild.mirror)
    assert load(data_dir=tmp_path / "new")["test"].num_rows == 1
    assert len(server[1].asked) == 2


def test_what_is_there_is_not_fetched_again(mild, server, fetch_here, tmp_path):
    options = ("--data-dir", tmp_path / "new", "--configs", "intrasentence")
    fetch_here(*options)
    (tmp_path / "new" / mild.sources["test"].location).unlink()
    server[1].asked.clear()
    status, printed, _ = fetch_here(*options)
    assert status == 0
    assert server[1].asked == [f"/{mild.sources['test'].location}"]
    assert printed.count("was there") == 1
    assert files_of(tmp_path / "new") == files_of(mild.mirror)


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_damaged_file_of_the_mirror_is_replaced(mild, fetch_here, tmp_path, split):
    damaged = tmp_path / "new" / mild.sources[split].location
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(mild.path(split).read_bytes()[:-1])
    assert fetch_here("--data-dir", tmp_path / "new", "--configs", "intrasentence")[0] == 0
    assert files_of(tmp_path / "new") == files_of(mild.mirror)


@pytest.mark.parametrize(
    ("split", "content"),
    [("validation", b"<html>Please log in.</html>"), ("test", b"<html>Please log in.</html>"), ("validation", b"")],
)
def test_other_bytes_are_refused_and_nothing_of_them_is_kept(mild, fetch_here, tmp_path, split, content):
    mild.path(split).write_bytes(content)
    status, _, said = fetch_here("--data-dir", tmp_path / "new", "--configs", "intrasentence")
    assert status == 1
    assert f"{mild.sources[split].location} answers with other bytes than those of" in said
    # Beside a validation set that cannot be had, no test set can be judged.
    assert [*files_of(tmp_path / "new")] == ([mild.sources["validation"].location] if split == "test" else [])


def test_the_rest_is_fetched_where_a_file_cannot_be_had(mild, fetch_here, tmp_path):
    mild.path("test").unlink()
    status, printed, said = fetch_here("--data-dir", tmp_path / "new", "--configs", "intrasentence", "crows_pairs")
    assert status == 1
    assert printed.count("data:") == 1
    assert (
        said.count("cannot be downloaded (HTTP Error 404: File not found): check the network") == 3
    )  # a pair's comments, too
    assert said.endswith("stereoset fetch: 3 of 4 missing; the same command fetches only those.\n")


def test_an_answer_that_breaks_off_leaves_nothing(mild, server, fetch_here, tmp_path):
    server[1].short = 10
    status, _, said = fetch_here("--data-dir", tmp_path / "new", "--configs", "intersentence")
    assert status == 1
    assert "cannot be downloaded (IncompleteRead(" in said
    assert files_of(tmp_path / "new") == {}


def test_a_server_out_of_reach_is_named(mild, free_port, tmp_path):
    with pytest.raises(ConnectionError, match=r"^http://127\.0\.0\.1:\d+/moinnadeem/.* cannot be downloaded \("):
        fetch_file(mild.sources["validation"], tmp_path, f"http://127.0.0.1:{free_port()}")


def test_a_full_disk_leaves_no_torn_file(mild, server, monkeypatch, tmp_path):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot take .*dev\.json \(No space left on device\): make room there"):
        fetch_file(mild.sources["validation"], tmp_path / "new", server[0])
    assert files_of(tmp_path / "new") == {}


def test_the_real_files_pass_their_checks(upstream, tmp_path, monkeypatch, capsys):
    # All but the English test set, which no one has handed on.
    configs = [name for name, config in Stereoset.builder_configs.items() if len(config.sources) == 1]
    options = ["--data-dir", str(tmp_path), "--configs", *configs]
    with serving(upstream) as (address, _):
        monkeypatch.setattr(sys, "argv", ["stereoset fetch", *options, "--data-server", f"{address}/"])
        assert fetch.main() == 0
    fetched = files_of(tmp_path)
    named = {file.location for name in configs for file in Stereoset.builder_configs[name].files}
    assert capsys.readouterr().out.count("data:") == len(named)
    assert fetched.keys() == named
    assert all((upstream / name).read_bytes() == data for name, data in fetched.items())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ([], "give a --data-dir for the data files, a --model, or both"),
        (["--configs", "intrasentence"], "give a --data-dir"),
        (["--model", "a", "b", "--revision", "v1"], "--revision is of one --model"),
        (["--data-dir", "m", "--revision", "v1"], "--revision is of one --model"),
        (["--data-dir", "m", "--configs", "intrasentence_xx"], "invalid choice: 'intrasentence_xx'"),
        (["--data-dir", "m", "--data-server", "file:///etc"], "begins with https://"),
    ],
)
def test_what_makes_no_sense_is_refused(monkeypatch, capsys, options, said):
    monkeypatch.setattr(sys, "argv", ["stereoset fetch", *options])
    with pytest.raises(SystemExit):
        fetch.main()
    assert said in capsys.readouterr().err
