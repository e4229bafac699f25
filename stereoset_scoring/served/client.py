"""Requests to a server: repeated where what hinders them passes, counted, and the key kept out of all that is said."""

import os
import ssl
import time
from collections import Counter
from collections.abc import Mapping
from functools import cache
from random import SystemRandom
from threading import Lock
from typing import Any, NamedTuple

import httpx2

from stereoset_scoring.refusal import Refusal, in_short
from stereoset_scoring.served.server import KEY, Server

BUSY = (408, 409, 425, 429)  # statuses that pass, as all from 500 on may
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 30.0  # seconds


class NotTaken(Refusal):
    """A server refuses a request as it is."""


class Trouble(NamedTuple):
    """What hinders an answer and may pass: in words, and the seconds for which a server asks to be left alone."""

    words: str
    wait: float = 0.0


class Client:
    """What asks a server; may be shared by threads.

    Args:
        server: which one.

    Attributes:
        costs: {"requests": that were answered, "tokens": that the server counts for them}.
    """

    def __init__(self, server: Server):
        self.server = server
        self.costs: Counter[str] = Counter()
        self._key = os.environ.get(KEY, "").strip()
        self._lock = Lock()
        self._http = httpx2.Client(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=server.timeout,
            verify=_certificates(),
            limits=httpx2.Limits(max_connections=server.concurrency),
        )

    def models(self) -> list[Mapping[str, Any]] | None:
        """What the server says that it serves; None where it does not say.

        Raises:
            ConnectionError: if it does not answer.
        """
        try:
            found = self._answer("GET", "/models", None, retries=1)
        except NotTaken:
            return None
        models = found.get("data")
        return [one for one in models if isinstance(one, Mapping)] if isinstance(models, list) else None

    def complete(self, body: Mapping[str, Any], retries: int | None = None) -> Mapping[str, Any]:
        """The server's answer to a request for a completion.

        Args:
            body: of the request.
            retries: how often it is repeated; None for as often as usual.

        Raises:
            NotTaken: if the server refuses it.
            ConnectionError: if the server does not answer, or goes on failing.
        """
        answer = self._answer("POST", "/completions", body, self.server.retries if retries is None else retries)
        usage = answer.get("usage")
        with self._lock:
            self.costs["requests"] += 1
            self.costs["tokens"] += usage.get("total_tokens") or 0 if isinstance(usage, Mapping) else 0
        return answer

    def _answer(self, method: str, path: str, body: Any, retries: int) -> Mapping[str, Any]:
        trouble = None
        for attempt in range(retries + 1):
            if trouble is not None:
                time.sleep(max(trouble.wait, _pause(attempt)))
            found = self._attempt(method, path, body)
            if not isinstance(found, Trouble):
                return found
            trouble = found
        words = self._without_key(trouble.words if trouble else "")
        raise ConnectionError(
            f"{self.server.url} does not answer ({words}; asked {retries + 1} times): "
            "once it does, the same command goes on."
        )

    def _attempt(self, method: str, path: str, body: Any) -> "Mapping[str, Any] | Trouble":
        """The answer, or what hinders it and may pass.

        Raises:
            Refusal: if what hinders it does not pass.
        """
        try:
            response = self._http.request(method, self.server.url + path, json=body)
        except httpx2.RequestError as error:  # not reached, cut off or out of time
            return Trouble(in_short(error))
        status, said = response.status_code, self._without_key(in_short(ValueError(response.text)))
        if response.is_success:
            return _object(response)
        if status in BUSY or status >= 500:
            return Trouble(f"HTTP {status}: {said}", _asked_to_wait(response))
        if status in (401, 403):
            raise Refusal(f"{self.server.url} does not accept the key (HTTP {status}): set {KEY} in the environment.")
        raise NotTaken(f"{self.server.url} does not take what it is asked (HTTP {status}: {said}).")

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "…") if self._key else text


@cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust: read once, for that takes as long as several answers."""
    return httpx2.create_ssl_context()


def _object(response: httpx2.Response) -> Mapping[str, Any] | Trouble:
    """The object in an answer; a Trouble where it was cut off, or is something else."""
    try:
        found = response.json()
    except ValueError:
        found = None
    return found if isinstance(found, Mapping) else Trouble("the answer is no JSON object")


def _pause(attempt: int) -> float:
    """Seconds before an attempt, each time about twice as many; not for all who wait alike."""
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1)) * SystemRandom().uniform(0.75, 1.25)


def _asked_to_wait(response: httpx2.Response) -> float:
    """The seconds for which a server asks to be left alone, within reason."""
    asked = response.headers.get("Retry-After", "")
    return min(float(asked), 2 * LONGEST_PAUSE) if asked.isdigit() else 0.0
