"""Models behind a server: the numbers of the model itself, or one sentence why not."""

import pytest
import torch
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

from stereoset_report.text import find_notes
from stereoset_scoring import load_scorer
from stereoset_scoring.refusal import MissingHead, Refusal
from stereoset_scoring.sample import load_sample
from stereoset_scoring.served import client
from stereoset_scoring.served.server import Server
from stereoset_scoring.served.trial import how_rounded
from tests.completions import Completions, serving

CHAT = (
    "{% for m in messages %}{{ m.role }}:\n{{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:\n{% endif %}"
)
ROWS = [*load_sample("intrasentence")[:3], *load_sample("intersentence")[:3]]


@pytest.fixture(scope="module")
def tokenizer(sample_model):
    tokenizer = AutoTokenizer.from_pretrained(sample_model)
    tokenizer.chat_template = CHAT
    return tokenizer


@pytest.fixture(scope="module")
def model(tokenizer):
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=2, n_positions=512)
    return GPT2LMHeadModel(config).eval()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(client, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(client, "LONGEST_PAUSE", 0.05)


@pytest.fixture
def serve(model, tokenizer):
    """serve(**how): (a Completions, the address where it answers)."""
    with_all = []

    def begin(**how):
        completions = Completions(model, tokenizer, **how)
        with_all.append(serving(completions))
        return completions, with_all[-1].__enter__()

    yield begin
    for one in with_all:
        one.__exit__(None, None, None)


def scores_of(rows, tokenizer, **how):
    return load_scorer(tokenizer=tokenizer, **how).score(rows)


def assert_equal(found, expected):
    assert [len(some) for some in found] == [len(some) for some in expected]
    for some, others in zip(found, expected, strict=True):
        assert some == pytest.approx(others, abs=1e-5)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (None, {}),
        (None, {"bos": "released"}),
        (None, {"bos": "none", "reduction": "sum"}),
        (None, {"chat": True}),
        ({"intersentence": "joint"}, {}),
        ({"intersentence": "gain"}, {"reduction": "sum"}),
        ("choice", {"wording": "1"}),
    ],
)
def test_scores_are_those_of_the_model(serve, model, tokenizer, method, options):
    _, address = serve()
    rows = ROWS[2:4] if method == "choice" else ROWS
    how = {"method": method, **options}
    found = scores_of(rows, tokenizer, name="tiny", server=address, **how)
    assert_equal(found, scores_of(rows, tokenizer, model=model, **how))


@pytest.mark.parametrize("how", [{}, {"begins": True}])
def test_a_server_that_takes_text_alone_gives_the_same(serve, model, tokenizer, how):
    _, address = serve(takes_ids=False, **how)
    scorer = load_scorer("tiny", server=address, tokenizer=tokenizer)
    assert_equal(scorer.score(ROWS), scores_of(ROWS, tokenizer, model=model))
    assert scorer.source.head("causal").record["asked_by"] == "text"


def test_of_a_server_that_hides_the_first_token_it_is_not_read(serve, model, tokenizer):
    _, address = serve(takes_ids=False, begins=True, lists_beginning=False)
    found = scores_of(ROWS[3:], tokenizer, name="tiny", server=address)
    assert_equal(found, scores_of(ROWS[3:], tokenizer, model=model))
    with pytest.raises(Refusal, match="says nothing of the first token of a text, which is read: choose conditional"):
        scores_of(ROWS[:3], tokenizer, name="tiny", server=address)


@pytest.mark.parametrize("faults", [[429], [500, 503], ["cut"], ["half"], [429, "cut", 502, "half"]])
def test_what_passes_is_waited_for(serve, model, tokenizer, faults):
    completions, address = serve()
    scorer = load_scorer("tiny", server=address, tokenizer=tokenizer)
    job = scorer.plan(ROWS)
    completions.faults += faults
    (batch, *_) = job.batches
    found = scorer.log_probs(batch)
    assert completions.faults == []
    completions.faults = []
    assert found == scorer.log_probs(batch)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("silent", "gives no log-probabilities of the prompt"),
        ("no echo", "gives no log-probabilities of the prompt"),
        ("rounded", "to 3 decimals"),
        ("bfloat16", "to bfloat16"),
        ("remembers", "asked in another order"),
        ("shifted", "is not its probability after those before it"),
    ],
)
@pytest.mark.parametrize("takes_ids", [True, False])
def test_a_server_that_gives_something_else_is_refused(serve, tokenizer, wrong, words, takes_ids):
    completions, address = serve(takes_ids=takes_ids)
    completions.wrong = wrong
    with pytest.raises(Refusal, match=words):
        scores_of(ROWS, tokenizer, name="tiny", server=address)


def test_what_half_precision_moves_is_recorded(serve, tokenizer):
    completions, address = serve()
    completions.wrong = "unsteady"
    scorer = load_scorer("tiny", server=address, tokenizer=tokenizer)
    scorer.plan(ROWS)
    record = {"model": {"heads": {"causal": scorer.source.head("causal").record}}}
    assert find_notes(record) == [
        f"NOTE: {address}: log-probabilities move by up to 0.01 nats when asked in another order."
    ]


@pytest.mark.parametrize("takes_ids", [True, False])
def test_another_models_tokenizer_is_refused(serve, tokenizer, takes_ids):
    _, address = serve(takes_ids=takes_ids)
    other = tokenizer.train_new_from_iterator(["kith and kin are quiet"], 300, show_progress=False)
    with pytest.raises(Refusal, match="tokens than the tokenizer"):
        scores_of(ROWS, other, name="tiny", server=address)


def test_a_dead_server_ends_a_run_at_once_and_says_so(serve, tokenizer):
    completions, address = serve()
    scorer = load_scorer("tiny", server=Server(address, retries=2), tokenizer=tokenizer)
    job = scorer.plan(ROWS)
    completions.left = 3
    with pytest.raises(ConnectionError, match="does not answer"):
        scorer.log_probs(job.batches[0])
    assert completions.left > -40  # nobody goes on asking row by row


def test_no_more_requests_are_under_way_than_is_said(serve, tokenizer):
    completions, address = serve()
    scores_of(ROWS, tokenizer, name="tiny", server=Server(address, concurrency=3))
    assert 1 < completions.largest <= 3


def test_the_key_is_shown_to_the_server_and_to_nobody_else(serve, tokenizer, monkeypatch):
    _, address = serve(key="secret-7")
    monkeypatch.setenv("OPENAI_API_KEY", "secret-8")
    with pytest.raises(Refusal, match="does not accept the key") as refusal:
        scores_of(ROWS, tokenizer, name="tiny", server=address)
    assert "secret" not in str(refusal.value)
    monkeypatch.setenv("OPENAI_API_KEY", "secret-7")
    scorer = load_scorer("tiny", server=address, tokenizer=tokenizer)
    assert len(scorer.score(ROWS)) == len(ROWS)
    assert "secret" not in str(scorer.source.head("causal").record)


@pytest.mark.parametrize("address", ["localhost:8000", "ftp://a/v1", "http://me:secret@a/v1", "http://a/v1?key=secret"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(Refusal) as refusal:
        Server(address)
    assert "secret" not in str(refusal.value)


def test_what_is_not_served_is_refused(serve, tokenizer):
    _, address = serve()
    with pytest.raises(Refusal, match=r"serves no other: .*\(tiny\)"):
        load_scorer("other", server=address, tokenizer=tokenizer)
    with pytest.raises(MissingHead):
        load_scorer("tiny", server=address, tokenizer=tokenizer).source.head("masked")
    with pytest.raises(Refusal, match="as its server was started"):
        load_scorer("tiny", server=address, tokenizer=tokenizer, dtype="float64")


def test_what_a_served_model_is_does_not_change_with_its_address(serve, tokenizer):
    records = []
    for _ in range(2):
        _, address = serve()
        records.append(load_scorer("tiny", server=address, tokenizer=tokenizer).source.head("causal").record)
    assert records[0]["server"] != records[1]["server"]
    assert records[0]["weights_sha256"] == records[1]["weights_sha256"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([-0.123] * 9, "3 decimals"),
        ([-1.0, -2.0] * 5, "0 decimals"),
        ([-0.1234567] * 9, None),
        ([-0.5] * 3, None),
    ],
)
def test_rounding_is_told_from_chance(values, words):
    assert how_rounded(values) == words
