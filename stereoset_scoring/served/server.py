"""Where a model is served, and how patiently it is asked."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from stereoset_scoring.refusal import Refusal

KEY = "OPENAI_API_KEY"  # of the environment


@dataclass(frozen=True)
class Server:
    """A server that speaks the OpenAI completions protocol.

    Attributes:
        url: its address, up to what stands before /completions, such as http://localhost:8000/v1.
        concurrency: how many requests are under way at once.
        timeout: after how many seconds without a word an attempt counts as lost.
        retries: how often a request is repeated where the server is busy, fails or is gone for a moment.

    Raises:
        Refusal: if that is no address, or no number of requests.
    """

    url: str
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 6

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Refusal(f"{self.url!r} is no server's address: give one such as http://localhost:8000/v1.")
        if parts.username or parts.password or parts.query:
            raise Refusal(f"An address is written to files, and holds no key: set {KEY} in the environment instead.")
        if self.concurrency < 1 or self.timeout <= 0 or self.retries < 0:
            raise Refusal("Give a server one request at a time or more, and some seconds for each.")
        object.__setattr__(self, "url", self.url.rstrip("/"))
