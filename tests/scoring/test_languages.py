"""The real rows of five languages: every method's batches against one row at a time, with the oracles' tiny models."""

import functools

import pytest
import torch

from stereoset_dataset import load_stereoset
from stereoset_scoring import load_scorer
from stereoset_scoring.planning.units import unit_of
from stereoset_scoring.questions.examples import as_pair
from stereoset_scoring.scorer import Scorer
from tests.crossing import crossed, thorough

LANGUAGES = ("en", "de", "es", "fr", "tr")
COUNT, CHECKED = 8, 4
CLOSE = 1e-4  # float32, in nats


METHODS = [
    # model, task, method, options
    *(("bert", "intrasentence", name, {}) for name in ("likelihood", "pseudo_likelihood", "word_l2r")),
    thorough("bert", "intrasentence", "aula", {}),
    thorough("bert", "intrasentence", "likelihood", {"text": "pasted"}),
    ("bert", "intersentence", "next_sentence", {}),
    thorough("bert", "intersentence", "pseudo_likelihood", {}),
    ("roberta", "intrasentence", "likelihood", {}),
    ("roberta", "intrasentence", "likelihood", {"preset": "stereoset"}),
    ("albert", "intrasentence", "likelihood", {}),
    ("xlnet", "intrasentence", "likelihood", {"passage": "It was calm.", "reading": "query"}),
    ("xlnet", "intrasentence", "likelihood", {"passage": "It was calm.", "text": "pasted"}),
    ("gpt2", "intrasentence", "likelihood", {"reduction": "mean_per_byte"}),
    *(("gpt2", "intersentence", name, {}) for name in ("conditional", "joint", "conditional_share")),
    ("gpt2", "intersentence", "gain", {"reduction": "sum"}),
    *(thorough("gpt2", "intersentence", name, {"reduction": "sum"}) for name in ("joint_gain", "ratio")),
    ("t5", "intrasentence", "likelihood", {}),
    thorough("t5", "intrasentence", "likelihood", {"preset": "multilingual"}),
    thorough("mt5", "intrasentence", "likelihood", {}),
    ("mt5", "intrasentence", "likelihood", {"preset": "multilingual"}),
    *(("t5", "intersentence", name, {}) for name in ("conditional", "next_sentence")),
]


@pytest.fixture(scope="module")
def first_rows(upstream):
    """first_rows(task, language): the first rows of the real data."""

    @functools.cache
    def read(task, language):
        name = task if language == "en" else f"{task}_{language}"
        rows = load_stereoset(name, split="validation", data_dir=upstream)
        return rows.select(range(0, 10 * COUNT, 10)).to_list()

    return read


@pytest.fixture(scope="module")
def scorer(shared):
    """scorer(model, method, options): a scorer of an oracle's model, each loaded once."""

    @functools.cache
    def source(name):
        return load_scorer(shared / "oracles" / "models" / name, dtype="float32", device="cpu").source

    def make(name, method, options):
        options = dict(options)
        return Scorer(source(name), method, options.pop("preset", None), options)

    return make


def alone(scorer, rows):
    """Scores with one row of the model at a time."""
    job = scorer.plan(rows)
    return job.scores({i: scorer.log_probs([unit_of([one])])[0] for i, one in enumerate(job.rows)})


def assert_batches_do_not_matter(scorer, rows):
    scores = scorer.score(rows)
    assert [len(one) for one in scores] == [len(one["sentences"]["id"]) for one in rows]
    assert torch.tensor(scores).isfinite().all()
    assert scores[:CHECKED] == [pytest.approx(one, abs=CLOSE, rel=1e-5) for one in alone(scorer, rows[:CHECKED])]


@pytest.mark.parametrize(("model", "task", "method", "options", "language"), crossed(METHODS, LANGUAGES), ids=str)
def test_real_rows_are_scored_alike_in_batches_and_alone(scorer, first_rows, model, task, method, options, language):
    assert_batches_do_not_matter(scorer(model, method, options), first_rows(task, language))


@pytest.mark.parametrize(
    ("options", "model"), crossed([{"preset": "bias-bench"}, {}], ["bert", "roberta", "gpt2"]), ids=str
)
def test_real_pairs_are_scored_alike_in_batches_and_alone(scorer, upstream, model, options):
    rows = load_stereoset("crows_pairs", split="test", data_dir=upstream).select(range(COUNT)).to_list()
    assert_batches_do_not_matter(scorer(model, None, options), rows)


@pytest.mark.parametrize("language", LANGUAGES)
def test_examples_of_every_language_make_pairs(scorer, first_rows, language):
    pairs = list(map(as_pair, first_rows("intrasentence", language)))
    scores = scorer("bert", None, {}).score(pairs)
    assert torch.tensor(scores).shape == (COUNT, 2)
