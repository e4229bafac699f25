"""A server on this machine that speaks the OpenAI completions protocol over a tiny model, and fails as it is told."""

import json
import time
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import torch


class Completions:
    """What a server answers.

    Args:
        model, tokenizer: what it serves.
        name: under which name.
        takes_ids: whether prompts may be token ids.
        begins: whether it puts the beginning of sequence before every text.
        lists_beginning: whether it lists that token.
        key: what it wants to be shown; None for nothing.

    Attributes:
        faults: what to do with the next requests for a completion, by name, one each.
        wrong: how all its answers are wrong: "silent", "no echo", "rounded", "bfloat16", "remembers", "shifted" or
            "unsteady"; None where they are right.
        left: how many requests it still answers before it is dead; None for all.
        seen: how often each prompt was asked.
    """

    def __init__(self, model, tokenizer, takes_ids=True, begins=False, lists_beginning=True, key=None, name="tiny"):
        self.model, self.tokenizer, self.takes_ids = model.eval(), tokenizer, takes_ids
        self.begins, self.lists_beginning, self.key, self.name = begins, lists_beginning, key, name
        self.faults, self.wrong, self.left, self.seen = [], None, None, Counter()
        self.largest = self.running = 0
        self.lock = Lock()

    def complete(self, body):
        """The answer to a request."""
        prompt = body["prompt"]
        added = 0
        if isinstance(prompt, str):
            ids = self.tokenizer.encode(prompt, add_special_tokens=False)
            if self.begins:
                ids, added = [self.tokenizer.bos_token_id, *ids], 1
        else:
            ids = prompt
        with self.lock:
            self.seen[tuple(ids)] += 1
            again = self.seen[tuple(ids)] > 1
        with torch.no_grad():
            logits = self.model(torch.tensor([ids])).logits[0].double().log_softmax(-1)  # (T, V)
        written = int(logits[-1].argmax())
        logits = torch.cat([logits, logits[-1:]])
        whole = [*ids, written]
        place = (lambda i: i) if self.wrong == "shifted" else (lambda i: i - 1)
        values = [None] + [self.said(logits[place(i)][whole[i]].item()) for i in range(1, len(whole))]
        tops = [None] + [self.top(logits[place(i)]) for i in range(1, len(whole))]
        tokens = [self.tokenizer.decode([one], clean_up_tokenization_spaces=False) for one in whole]
        starts = [len(self.tokenizer.decode(whole[:i], clean_up_tokenization_spaces=False)) for i in range(len(whole))]
        if self.wrong == "remembers" and again:
            values = [value and value * 3 for value in values]
        if self.wrong == "unsteady" and again:
            values = [value and value - 0.01 for value in values]
        first = added if added and not self.lists_beginning else 0
        if first:
            values[first] = None
        if self.wrong == "no echo":
            first = len(ids)
        said = {"token_logprobs": values[first:], "tokens": tokens[first:], "text_offset": starts[first:]}
        said["top_logprobs"] = tops[first:]
        return {
            "choices": [{"text": "", "logprobs": None if self.wrong == "silent" else said}],
            "usage": {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(ids) + 1},
        }

    def said(self, value):
        """A number as it is told."""
        if self.wrong == "rounded":
            return round(value, 3)
        return torch.tensor(value).bfloat16().item() if self.wrong == "bfloat16" else value

    def top(self, log_probs):
        """The likeliest token, as a mapping."""
        value, token = log_probs.max(-1)
        return {self.tokenizer.decode([int(token)]): self.said(value.item())}


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        """Nothing is printed."""

    def do_GET(self):
        ours = self.server.completions
        longest = ours.model.config.n_positions
        self._send(200, {"data": [{"id": ours.name, "created": time.time(), "max_model_len": longest}]})

    def do_POST(self):
        ours = self.server.completions
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with ours.lock:
            fault = ours.faults.pop(0) if ours.faults else None
            ours.running += 1
            ours.largest = max(ours.largest, ours.running)
            if ours.left is not None:
                ours.left -= 1
                fault = "dead" if ours.left < 0 else fault
        try:
            answer = self._answer(ours, body, fault)
        finally:
            with ours.lock:  # before the answer is out, after which its reader may already ask again
                ours.running -= 1
        if answer is None:
            self.close_connection = True
            self.connection.close()
        else:
            self._send(*answer, cut=fault == "half")

    def _answer(self, ours, body, fault):
        """(status, content, headers); None where there is none."""
        if ours.key and self.headers.get("Authorization") != f"Bearer {ours.key}":
            return 401, {"error": f"wrong key {self.headers.get('Authorization')}"}, ()
        if fault in ("cut", "dead"):
            return None
        if fault and fault != "half":
            return fault, {"error": "for a moment"}, {"Retry-After": "0"}
        if fault != "half" and isinstance(body["prompt"], list) and not ours.takes_ids:
            return 422, {"error": "prompt: text is wanted"}, ()
        return 200, ours.complete(body), ()

    def _send(self, status, content, headers=(), cut=False):
        text = json.dumps(content).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text[: len(text) // 2] if cut else text)
        if cut:
            self.close_connection = True


@contextmanager
def serving(completions, port=0):
    """The address of a server that answers as a Completions says."""
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    server.completions = completions
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()
