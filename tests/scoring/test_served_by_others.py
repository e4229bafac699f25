"""Real servers, where there are some: their numbers are those of the checkpoint, as near as their precision is."""

import importlib.util
import os
import subprocess
import sys
import time

import httpx2
import pytest

from stereoset_scoring import load_scorer
from stereoset_scoring.sample import load_sample

HALF = 0.1  # nats, the mean over a sentence in half precision
WITHIN, ACROSS = load_sample("intrasentence")[:5], load_sample("intersentence")[:5]


def given(*names):
    """What some variables of the environment hold; skips where one is missing."""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        pytest.skip(f"{' and '.join(missing)} not set: no real server to ask")
    return [os.environ[name] for name in names]


def assert_near(served, checkpoint, rows):
    for some, others in zip(served.score(rows), load_scorer(checkpoint).score(rows), strict=True):
        assert some == pytest.approx(others, abs=HALF)


def test_a_server_that_runs_somewhere_gives_the_numbers_of_its_checkpoint():
    """As of `vllm serve FOLDER --served-model-name served --no-enable-prefix-caching`."""
    address, checkpoint = given("STEREOSET_SERVER", "STEREOSET_SERVED")
    assert_near(load_scorer("served", server=address, tokenizer=checkpoint), checkpoint, [*WITHIN, *ACROSS])


@pytest.fixture
def llama_cpp(free_port):
    """The address of llama-cpp-python's server, and the checkpoint that its GGUF was made of."""
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed: its server is not tried")
    file, checkpoint = given("STEREOSET_GGUF", "STEREOSET_GGUF_OF")
    port = free_port()
    how = ["--model", file, "--model_alias", "served", "--logits_all", "true", "--port", port]
    process = subprocess.Popen([sys.executable, "-m", "llama_cpp.server", *how])
    try:
        address = f"http://127.0.0.1:{port}/v1"
        wait_for(f"{address}/models", process)
        yield address, checkpoint
    finally:
        process.terminate()
        process.wait(30)


def wait_for(address, process, patience=120):
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return httpx2.get(address)
        except httpx2.TransportError:
            time.sleep(0.5)
    return pytest.fail("the server did not start")


def test_llama_cpp_gives_the_numbers_of_its_checkpoint(llama_cpp):
    """It takes text alone and says nothing of the first token, which `conditional` does not read."""
    address, checkpoint = llama_cpp
    assert_near(load_scorer("served", server=address, tokenizer=checkpoint), checkpoint, ACROSS)
