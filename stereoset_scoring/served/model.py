"""A model behind a server, as a source of heads."""

import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from stereoset_scoring.questions.tokenizer_files import load_tokenizer
from stereoset_scoring.questions.tokens import Tokenizer
from stereoset_scoring.refusal import MissingHead, Refusal
from stereoset_scoring.served.client import Client
from stereoset_scoring.served.engine import ServedEngine
from stereoset_scoring.served.server import Server

OF_A_START = ("created", "permission", "permissions", "object")  # what of an answer to /models says nothing of a model
LENGTHS = ("max_model_len", "context_length", "max_context_length")  # as servers call the longest text in that answer


class ServedModel:
    """A causal language model behind a server, with a tokenizer of the hub or of a folder.

    Args:
        name: what the model is called there.
        server: where it is.
        tokenizer: hub id or folder, or a hub tokenizer; None for the model's name.
        revision: of the tokenizer, on the hub.
        trust_remote_code: whether code that comes with the tokenizer may run.

    Raises:
        Refusal: if it serves no such model, or the tokenizer cannot be loaded.
        ConnectionError: if the server does not answer.
    """

    family = "causal"
    device = "server"
    revision: str | None = None
    commit: str | None = None
    base: str | None = None
    next_sentence_head: str | None = None
    trained = None
    config = None

    def __init__(
        self,
        name: str,
        server: Server,
        tokenizer: Any = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ):
        self.name, self.server = name, server
        where = {"revision": revision, "trust_remote_code": trust_remote_code}
        spoken = name if tokenizer is None else tokenizer
        self.tokenizer = load_tokenizer(spoken, **where) if isinstance(spoken, str | Path) else Tokenizer(spoken)
        self._client = Client(server)
        self._said = self._find()

    def _find(self) -> Mapping[str, Any]:
        """What the server says of the model."""
        models = self._client.models()
        if models is None:
            return {}
        found = next((one for one in models if one.get("id") == self.name), None)
        if found is None:
            names = ", ".join(str(one.get("id")) for one in models) or "nothing"
            raise Refusal(f"{self.server.url} serves no {self.name}: give --model one of what it serves ({names}).")
        return {name: value for name, value in found.items() if name not in OF_A_START}

    @cached_property
    def _head(self) -> "ServedHead":
        return ServedHead(ServedEngine(self._client, self.name, self.tokenizer), self.server, self._said)

    def head(self, name: str) -> "ServedHead":
        """The head "causal".

        Raises:
            MissingHead: if another one is asked for.
        """
        if name != "causal":
            raise MissingHead(f"A served model has no {name.replace('_', '-')} head: choose another method.")
        return self._head


class ServedHead:
    """The one head of a served model.

    Attributes:
        engine: what asks it.
    """

    longest_decoder = None

    def __init__(self, engine: ServedEngine, server: Server, said: Mapping[str, Any]):
        self.engine, self._server, self._said = engine, server, said
        self._tokenizer = _sha256(engine.tokenizer)  # as it is before it is used

    @property
    def longest_input(self) -> int | None:
        """How many tokens are read at most, but for the one that is read of and the one that is written after it."""
        longest = next((self._said[name] for name in LENGTHS if isinstance(self._said.get(name), int)), None)
        return None if longest is None else longest - 2

    @property
    def record(self) -> dict[str, Any]:
        """What was asked, and how, as a record says it; its weights are what the server says, and the tokenizer."""
        found = self.engine.found
        identity = {"name": self.engine.name, "said": self._said, "tokenizer": self._tokenizer}
        return {
            "architecture": "served",
            "dtype": "served",
            "weights_sha256": hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest(),
            "configuration": identity,
            "trained_head": None,
            "code_sha256": None,
            "attention": None,
            "compiled": False,
            "devices": [],
            "quantization": None,
            "packed_matrices": 0,
            "server": self._server.url,
            "asked_by": found and found.asked_by,
            "order_spread": found and found.spread,
            "shared_prefixes": False,
            "sharing": None,
            "missing": [],
            "unexpected": [],
        }


def _sha256(tokenizer: Tokenizer) -> str:
    """sha256, as hex, over what a tokenizer makes of a text."""
    hub = tokenizer.hub
    fast = getattr(hub, "is_fast", False)
    content = hub.backend_tokenizer.to_str() if fast else json.dumps(hub.get_vocab(), sort_keys=True)
    said = [content, hub.special_tokens_map, getattr(hub, "chat_template", None)]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()
