"""Loading by hub id: the real loading code against a server on this machine that speaks the hub's routes for files."""

import hashlib
import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LOAD = """
import json, sys
from stereoset_scoring import load_scorer

name, revision, rows = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
scorer = load_scorer(name, revision=None if revision == "none" else revision, device="cpu", dtype="float64")
print(json.dumps({"commit": scorer.source.commit, "scores": scorer.score(rows)}))
"""
ROWS = [
    {
        "id": "e",
        "context": "The gardener was BLANK.",
        "sentences": [
            {"id": str(i), "sentence": f"The gardener was {word}."} for i, word in enumerate(("kind", "loud"))
        ],
    }
]


@pytest.fixture(scope="module")
def hub(folder):
    """A server of two repositories on the branches main and v1, "someone/tiny-bert" and, without the files of its
    tokenizer, "someone/no-tokenizer": (its address, its log)."""
    log = []

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer(body=False)

        def do_GET(self):
            self.answer(body=True)

        def answer(self, body):
            log.append(self.path)
            path = self.path.partition("?")[0]
            repository = re.search(r"/(someone/(?:tiny-bert|no-tokenizer))", path)
            file = re.fullmatch(rf"/someone/[\w-]+/resolve/(?:main|v1|{COMMIT})/([\w.]+)", path)
            hidden = repository and "no-tokenizer" in path and file and "token" in file[1]
            if repository and path == f"/api/models/{repository[1]}":
                self.send(200, json.dumps({"id": repository[1], "sha": COMMIT, "siblings": []}).encode(), body)
            elif repository and file and not hidden and (folder("bert") / file[1]).is_file():
                self.send(200, (folder("bert") / file[1]).read_bytes(), body)
            else:
                self.send(404, b"", body, error="EntryNotFound" if repository else "RepoNotFound")

        def send(self, status, content, body, error=None):
            self.send_response(status)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("Content-Length", str(len(content)))
            if error:
                self.send_header("X-Error-Code", error)
            self.end_headers()
            if body:
                self.wfile.write(content)

        def log_message(self, *arguments):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", log
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def load(warm_python, tmp_path_factory):
    """Load and score in a process of its own: the libraries read the hub's address when they are imported."""
    home = tmp_path_factory.mktemp("home")

    def run(name, revision="none", **settings):
        env = warm_python.environment | {"HF_HOME": str(home), "HF_HUB_OFFLINE": "0", "no_proxy": "127.0.0.1"}
        words = [sys.executable, "-c", LOAD, name, revision, json.dumps(ROWS)]
        return warm_python.run(words, cwd=home, env=env | settings)

    return run


def test_a_model_of_the_hub_is_downloaded_scored_and_its_commit_told_and_then_without_the_hub(hub, load, scorer_of):
    address, log = hub
    done = load("someone/tiny-bert", revision="v1", HF_ENDPOINT=address)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["commit"] == COMMIT
    assert found["scores"] == [pytest.approx(one, abs=1e-12) for one in scorer_of("bert").score(ROWS)]
    asked = len(log)
    done = load("someone/tiny-bert", revision="v1", HF_ENDPOINT=address, HF_HUB_OFFLINE="1")
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == found
    assert len(log) == asked


def test_an_unknown_name_is_refused_with_the_mend(hub, load):
    address, _ = hub
    done = load("someone/else", HF_ENDPOINT=address)
    assert done.returncode != 0
    assert "someone/else is neither a folder with a model nor within reach on the hub" in done.stderr


def test_a_model_of_the_hub_without_its_tokenizers_files_is_refused(hub, load):
    address, _ = hub
    done = load("someone/no-tokenizer", HF_ENDPOINT=address)
    assert done.returncode != 0
    said = done.stderr.strip().splitlines()[-1]
    assert "The tokenizer 'someone/no-tokenizer' has no vocabulary" in said
    assert "put vocab.txt or tokenizer.json beside its config.json" in said
