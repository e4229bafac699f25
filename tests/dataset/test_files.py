"""Where the upstream files come from: a mirror or the network, and what happens when they are not the right ones."""

import functools
import http.server
import threading

import datasets
import pytest

from stereoset_dataset import Stereoset
from stereoset_dataset.stereoset_dataset import VERSION
from stereoset_dataset.upstream import CROWS_PAIRS, TEST, TRANSLATIONS, VALIDATION, git_blob_sum

REAL_FILES = [VALIDATION, CROWS_PAIRS, *TRANSLATIONS.values()]


@pytest.mark.parametrize("file", REAL_FILES, ids=lambda file: file.path)
def test_the_pinned_sums_are_those_of_the_real_files(upstream, file):
    path = upstream / file.location
    file.check(path.read_bytes(), path)


def test_git_s_sum_is_computed_as_git_does(upstream):
    # git's tree of moinnadeem/StereoSet names data/dev.json by it.
    assert git_blob_sum((upstream / VALIDATION.location).read_bytes()).startswith("637b1e3d")
    assert git_blob_sum(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"  # git's well-known empty blob


@pytest.mark.parametrize("file", [*REAL_FILES, TEST], ids=lambda file: file.path)
def test_every_file_is_pinned_to_a_whole_commit_and_some_sum(file):
    assert len(file.commit) == 40
    assert file.sha256 or file.git_blob
    assert file.url == f"https://raw.githubusercontent.com/{file.repository}/{file.commit}/{file.path}"


def test_other_bytes_are_refused_with_both_sums_and_the_mend(mild, load):
    expected = mild.sources["validation"].sha256
    mild.path("validation").write_bytes(b"{}")
    with pytest.raises(ValueError, match="replace it by https://raw") as error:
        load(data_dir=mild.mirror)
    message = str(error.value)
    assert str(mild.path("validation")) in message
    assert expected in message
    assert "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" in message  # sha256sum of {}
    assert mild.path("validation").exists(), "a mirror's files are not ours to remove"


def test_a_file_that_the_mirror_lacks_is_named_with_its_place(mild, load):
    mild.path("validation").unlink()
    with pytest.raises(FileNotFoundError) as error:
        load(data_dir=mild.mirror)
    assert str(error.value).startswith(f"{mild.path('validation')} is absent: put https://raw.githubusercontent.com/")


def test_a_mirror_may_be_named_relative_to_where_one_stands(mild, load, monkeypatch):
    monkeypatch.chdir(mild.mirror.parent)
    builder = Stereoset(config_name="intrasentence", data_dir="mirror")
    monkeypatch.chdir("/")
    assert builder.mirror == mild.mirror
    monkeypatch.chdir(mild.mirror)
    assert len(load(split="validation", data_dir=".")) == 2


def test_a_mirror_may_have_spaces_in_its_path(mild, load):
    roomy = mild.mirror.rename(mild.mirror.with_name("a mirror of mine"))
    assert len(load(split="validation", data_dir=roomy)) == 2


def test_the_cache_is_the_same_wherever_the_files_come_from(tmp_path):
    folders = {
        Stereoset(config_name="intrasentence", hash="code", cache_dir=tmp_path, data_dir=data_dir).cache_dir
        for data_dir in (None, "mirror", tmp_path)
    }
    assert folders == {str(tmp_path / "stereoset_dataset" / "intrasentence" / VERSION / "code")}


@pytest.fixture
def network(mild, monkeypatch):
    """The mild upstream served on this machine: the list of paths asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(mild.mirror)))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setattr("stereoset_dataset.upstream.BASE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    yield asked
    server.shutdown()
    server.server_close()


def test_without_a_mirror_the_files_are_downloaded(mild, load, network):
    assert set(load()) == {"validation", "test"}
    assert set(network) == {f"/{file.location}" for file in mild.sources.values()}


def test_validation_alone_downloads_one_file(mild, load, network):
    load(split="validation")
    assert set(network) == {f"/{mild.sources['validation'].location}"}


def test_a_file_is_downloaded_once_for_both_tasks(mild, load, network):
    load("intrasentence", "validation")
    network.clear()
    assert len(load("intersentence", "validation")) == 2
    assert network == []


def test_a_download_that_is_not_the_pinned_file_is_refused_and_tried_again_next_time(mild, load, network):
    right = mild.path("validation").read_bytes()
    mild.path("validation").write_bytes(b"<html>Please log in to the wireless network</html>")
    with pytest.raises(ValueError, match=r"is pinned for data/dev\.json of moinnadeem/StereoSet"):
        load()
    mild.path("validation").write_bytes(right)
    assert len(load(split="validation")) == 2


def test_a_test_set_that_the_network_lacks_leaves_validation(mild, load, network, caplog):
    mild.path("test").unlink()
    assert list(load()) == ["validation"]
    assert "test.json cannot be downloaded" in caplog.text
    with pytest.raises(
        ConnectionError, match=r"test\.json cannot be downloaded .*: connect this machine, or pass data_dir="
    ):
        load(split="test")


def test_offline_the_refusal_says_what_a_mirror_would_have_to_hold(mild, load):
    with pytest.raises(ConnectionError, match=f"pass data_dir=, a folder that holds {VALIDATION.location}"):
        load()
