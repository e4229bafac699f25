"""A server on this machine that speaks the hub's routes for a data set and a Space, each a folder."""

import hashlib
import json
import re
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote

COMMIT = "0123456789abcdef0123456789abcdef01234567"
NAME = "someone/stereoset"


def entry(folder, path):
    """A file or folder as the hub lists it."""
    common = {"path": path.relative_to(folder).as_posix(), "oid": "0" * 40}
    return {"type": "directory", **common} if path.is_dir() else {"type": "file", "size": path.stat().st_size, **common}


def handler(repositories, log):
    """A handler of requests for repositories, {"datasets" or "spaces": folder}."""

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.answer()

        def do_GET(self):
            self.answer()

        def do_POST(self):
            self.asked = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer()

        def answer(self):
            log.append(f"{self.command} {self.path}")
            path = unquote(self.path.partition("?")[0])
            found = re.fullmatch(rf"(/api)?/(datasets|spaces)/{NAME}(?:/(.*))?", path)
            if not found or found[2] not in repositories:
                return self.send(404, b"", "RepoNotFound")
            folder, rest = repositories[found[2]], found[3] or ""
            if found[1]:
                return self.describe(folder, rest)
            path = folder / rest.partition("/")[2].partition("/")[2]
            if not rest.startswith("resolve/") or not path.is_file():
                return self.send(404, b"", "EntryNotFound")
            return self.send(200, path.read_bytes())

        def describe(self, folder, rest):
            kind, _, place = rest.partition("/")
            entries = [entry(folder, path) for path in sorted(folder.rglob("*"))]
            if kind in ("", "revision"):
                siblings = [{"rfilename": one["path"]} for one in entries if one["type"] == "file"]
                return self.json({"id": NAME, "sha": COMMIT, "siblings": siblings, "private": False, "tags": []})
            if kind == "paths-info":
                wanted = re.findall(r'"([^"]+)"|paths=([^&]+)', unquote(self.asked.decode()))
                names = {one or other for one, other in wanted}
                return self.json([one for one in entries if one["path"] in names])
            if kind == "tree":
                parent = place.partition("/")[2]
                return self.json([one for one in entries if one["path"].rpartition("/")[0] == parent])
            return self.send(404, b"", "EntryNotFound")

        def json(self, content):
            self.send(200, json.dumps(content).encode(), kind="application/json")

        def send(self, status, content, error=None, kind="application/octet-stream"):
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Content-Type", kind)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            if error:
                self.send_header("X-Error-Code", error)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Hub


@contextmanager
def serving(**repositories):
    """(address, log) of a server of `datasets=FOLDER` and `spaces=FOLDER`, both named NAME."""
    log = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(repositories, log))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", log
    server.shutdown()
    server.server_close()
