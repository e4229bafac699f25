"""What `stereoset fetch --model` brings from the hub: the real code against a server on this machine."""

import hashlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import pytest
from huggingface_hub.utils import filter_repo_objects

from stereoset_scoring.checkpoints.download import IGNORED, weight_files
from stereoset_scoring.sample import load_sample

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FETCH = """
import sys
from stereoset_cli.ending import run
from stereoset_scoring.checkpoints.download import fetch_model
run(lambda: print(fetch_model(sys.argv[1], sys.argv[2] if sys.argv[2:] else None)))
"""
LOAD = """
import sys
from stereoset_scoring import load_scorer
from stereoset_scoring.sample import load_sample
scorer = load_scorer(sys.argv[1], revision=sys.argv[2], device="cpu", dtype="float64")
print(scorer.source.commit, *scorer.score(load_sample("intrasentence")[:1])[0])
"""


class Hub(BaseHTTPRequestHandler):
    """The hub's routes for lists of files and for files; `repositories` is {hub id: {path: bytes}}."""

    repositories, log, spoilt, gated = None, None, None, ()

    def do_HEAD(self):
        self.answer(body=False)

    def do_GET(self):
        self.answer(body=True)

    def answer(self, body):
        path = unquote(self.path.partition("?")[0])
        name = next((one for one in self.repositories if f"/{one}/" in f"{path}/"), None)
        files = self.repositories.get(name, {})
        described = re.fullmatch(rf"/api/models/{name}/(revision|tree)/(main|v1|{COMMIT})", path)
        file = re.fullmatch(rf"/{name}/resolve/(?:main|v1|{COMMIT})/(.+)", path)
        if name is None:
            self.send(404, b"", body, "RepoNotFound")
        elif name in self.gated:
            self.send(403, b"", body, "GatedRepo")
        elif described and described[1] == "revision":
            self.send(200, json.dumps({"id": name, "sha": COMMIT, "siblings": []}).encode(), body)
        elif described:
            self.send(
                200,
                json.dumps(
                    [
                        {"type": "file", "oid": "0", "size": len(content), "path": path}
                        for path, content in files.items()
                    ]
                ).encode(),
                body,
            )
        elif file and file[1] in files:
            if body:
                self.log.append(file[1])
            self.send(200, files[file[1]], body)
        else:
            self.send(404, b"", body, "EntryNotFound" if file else "RevisionNotFound")

    def send(self, status, content, body, error=None):
        self.send_response(status)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Content-Length", str(len(content)))
        if error:
            self.send_header("X-Error-Code", error)
        self.end_headers()
        if body:
            self.wfile.write(self.spoilt.get(content, content))

    def log_message(self, *_):
        pass


@pytest.fixture
def hub():
    """The Hub's class, on which a test puts repositories, with its address."""
    kind = type("OneHub", (Hub,), {"repositories": {}, "log": [], "spoilt": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
    Thread(target=server.serve_forever, daemon=True).start()
    kind.address = f"http://127.0.0.1:{server.server_port}"
    yield kind
    server.shutdown()
    server.server_close()


@pytest.fixture
def python(hub, tmp_path, warm_python):
    """Run a Python of its own: the libraries read the hub's address when they are imported."""

    def run(*words, **settings):
        env = {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.address, "HF_HUB_OFFLINE": "0"}
        env = warm_python.environment | env | {"no_proxy": "127.0.0.1", "HF_HUB_DISABLE_XET": "1"} | settings
        return warm_python.run([sys.executable, *words], cwd=tmp_path, env=env)

    return run


@pytest.fixture
def fetched(python):
    """fetched(name, …): the names of the files in the cache after a fetch that succeeds."""

    def run(*words):
        done = python("-c", FETCH, *words)
        assert done.returncode == 0, done.stderr[-2000:]
        snapshot = Path(done.stdout.splitlines()[-1])
        assert snapshot.name == COMMIT
        return {path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()}

    return run


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


WASTE = dict.fromkeys(
    [
        "tf_model.h5",
        "flax_model.msgpack",
        "rust_model.ot",
        "onnx/model.onnx",
        "model.fp16.safetensors",
        "photo.png",
        "consolidated.safetensors",
        "consolidated.00.pth",
        "optimizer.bin",
        "model-q4.gguf",
        "checkpoint-1/config.json",
    ],
    b"waste",
)


@pytest.mark.parametrize(
    ("weights", "taken"),
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (["pytorch_model.bin"], ["pytorch_model.bin"]),
        (["model.safetensors", "adapter_model.bin"], ["model.safetensors", "adapter_model.bin"]),
        (["adapter_model.bin", "adapter_model.safetensors"], ["adapter_model.safetensors"]),
        (["model.gguf", "model.fp16.safetensors", "optimizer.pt"], []),
    ],
)
def test_of_several_formats_one_is_taken(tmp_path, weights, taken):
    assert weight_files([*weights, *WASTE], tmp_path) == taken


@pytest.mark.parametrize(
    "name",
    ["config.json", "tokenizer.json", "vocab.txt", "merges.txt", "spiece.model", "source.spm", "bpe.codes",
     "qwen.tiktoken", "chat_template.jinja", "modeling_own.py", "model.safetensors.index.json", "prophetnet.tokenizer"],
)  # fmt: skip
def test_whatever_a_tokenizer_may_need_is_taken(name):
    assert [*filter_repo_objects([name, *WASTE], ignore_patterns=IGNORED)] == [name]


def test_a_model_is_scored_without_the_hub_after_a_fetch(hub, python, folder, scorer_of):
    hub.repositories["someone/tiny-bert"] = files_of(folder("bert")) | WASTE
    done = python("-m", "stereoset_cli", "fetch", "--model", "someone/tiny-bert", "--revision", "v1")
    assert done.returncode == 0, done.stderr[-2000:]
    assert f"model: someone/tiny-bert, commit {COMMIT}" in done.stdout
    assert set(hub.log) == set(files_of(folder("bert"))) - {"README.md"}
    asked = len(hub.log)
    done = python("-c", LOAD, "someone/tiny-bert", "v1", HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr[-2000:]
    commit, *scores = done.stdout.split()
    assert commit == COMMIT
    (expected,) = scorer_of("bert").score(load_sample("intrasentence")[:1])
    assert [float(score) for score in scores] == pytest.approx(expected, abs=1e-12)
    assert len(hub.log) == asked


def test_what_is_there_is_not_fetched_again(hub, fetched, folder):
    hub.repositories["someone/tiny-bert"] = files_of(folder("bert"))
    fetched("someone/tiny-bert")
    hub.log.clear()
    fetched("someone/tiny-bert")
    assert hub.log == []


def test_weights_in_parts_are_those_that_the_index_names(hub, fetched, folder):
    index = json.dumps({"weight_map": {"a": "part one.bin", "b": "part[2].bin", "c": "part one.bin"}}).encode()
    files = files_of(folder("bert")) | {"pytorch_model.bin.index.json": index}
    del files["model.safetensors"]
    parts = {"part one.bin": b"1", "part[2].bin": b"2"}
    hub.repositories["someone/parts"] = files | parts | {"part2.bin": b"waste"}
    assert fetched("someone/parts") == {*files, *parts}


def test_an_adapter_brings_its_base(hub, python, folder):
    adapter = {
        "adapter_config.json": json.dumps({"base_model_name_or_path": "someone/base", "revision": "v1"}).encode(),
        "adapter_model.safetensors": b"weights",
    }
    hub.repositories |= {"someone/adapter": adapter, "someone/base": files_of(folder("gpt2"))}
    done = python("-m", "stereoset_cli", "fetch", "--model", "someone/adapter")
    assert done.returncode == 0, done.stderr[-2000:]
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == [
        "model: someone/adapter",
        "model: someone/base",
    ]
    assert {"adapter_model.safetensors", "model.safetensors"} <= set(hub.log)


def test_weights_that_were_damaged_on_their_way_are_not_kept(hub, python, fetched, folder):
    files = hub.repositories["someone/tiny-bert"] = files_of(folder("bert"))
    weights = files["model.safetensors"]
    hub.spoilt[weights] = weights[:-1] + bytes([weights[-1] ^ 1])
    done = python("-c", FETCH, "someone/tiny-bert")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "model.safetensors of someone/tiny-bert was damaged on its way and is removed: fetch it again."
    )
    hub.spoilt.clear()
    hub.log.clear()
    fetched("someone/tiny-bert")
    assert hub.log == ["model.safetensors"]


def test_each_model_is_fetched_for_itself(hub, python, folder):
    hub.repositories["someone/tiny-bert"] = files_of(folder("bert"))
    done = python("-m", "stereoset_cli", "fetch", "--model", "someone/else", "someone/tiny-bert", folder("gpt2"))
    assert done.returncode == 1
    assert f"model: someone/tiny-bert, commit {COMMIT}" in done.stdout
    assert f"model: {folder('gpt2')} is a folder of this machine" in done.stdout
    assert done.stderr.splitlines()[-2:] == [
        "stereoset fetch: someone/else is not on the hub, or is private: check the name, or log in (hf auth login).",
        "stereoset fetch: 1 of 3 missing; the same command fetches only those.",
    ]


@pytest.mark.parametrize(
    ("words", "settings", "said"),
    [
        (["someone/closed"], {}, "someone/closed is for those who accepted its terms"),
        (["someone/words", "v9"], {}, "someone/words has no revision 'v9': give a branch"),
        (["someone/words"], {}, "someone/words has none of model.safetensors, "),
        (["a b"], {}, "'a b' is no name on the hub"),
        (["someone/words"], {"HF_HUB_OFFLINE": "1"}, "someone/words is not fetched, for HF_HUB_OFFLINE is set"),
        (["someone/words"], {"HF_ENDPOINT": "http://127.0.0.1:9"}, "someone/words cannot be fetched ("),
        (["someone/torn"], {}, "has no weight_map from weights to files"),
        (["someone/html"], {}, "model.safetensors.index.json holds no JSON object"),
    ],
)
def test_what_cannot_be_fetched_is_told_in_a_sentence(hub, python, words, settings, said):
    hub.repositories |= {"someone/words": {"config.json": b"{}", "model.gguf": b"1"}, "someone/closed": {}}
    hub.repositories["someone/torn"] = {"model.safetensors.index.json": b"{}"}
    hub.repositories["someone/html"] = {"model.safetensors.index.json": b"<html>"}
    hub.gated = ("someone/closed",)
    done = python("-c", FETCH, *words, **settings)
    assert done.returncode == 1
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("-c: "))
    assert said in line
    assert "Traceback" not in done.stderr
