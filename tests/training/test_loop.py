"""Training a head: it learns, resumes exactly, and leaves a folder that is scored."""

import json
import random
from dataclasses import replace

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from stereoset_scoring import load_scorer
from stereoset_scoring.training.corpus import Pairs, hold_out
from stereoset_scoring.training.loop import Settings, Training, new_model

TOPICS = 16
SETTINGS = Settings(
    epochs=1000, max_steps=300, batch_size=64, pairs_at_once=64, learning_rate=1e-3, head_learning_rate=1e-3, warm_up=20
)
SHORT = Settings(
    epochs=1000, max_steps=7, batch_size=10, pairs_at_once=4, learning_rate=1e-3, head_learning_rate=1e-2, max_length=16
)


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Tensors this small gain nothing from more, and wait where the machine is busy."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def documents():
    """Documents of a few topics, each with a word of its own: so two sentences tell whether they belong together."""
    draw = random.Random(0)
    return [
        [f"it {draw.choice(['is', 'was', 'seems'])} topic{d % TOPICS} topic{d % TOPICS} ." for _ in range(6)]
        for d in range(10 * TOPICS)
    ]


@pytest.fixture(scope="module")
def checkpoint(documents, tmp_path_factory):
    """A tiny untrained BERT without a pooler, as masked checkpoints are."""
    folder = tmp_path_factory.mktemp("checkpoint")
    words = sorted({word for document in documents for sentence in document for word in sentence.split()})
    vocabulary = {word: n for n, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.Lowercase(), pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", vocabulary["[CLS]"]), ("[SEP]", vocabulary["[SEP]"])],
    )
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=64,
        initializer_range=0.2,  # larger than usual, and it learns in seconds
    )
    BertForMaskedLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def start(documents, checkpoint):
    """A function that sets a training up, as a process of its own would."""

    def training(folder, settings=SHORT, **options):
        for state in (AcceleratorState, GradientState, PartialState):
            state._reset_state()
        model, tokenizer, fresh = new_model(checkpoint, seed=settings.seed)
        learnt, held_out = hold_out(documents, 0.1, seed=0)
        accelerator = Accelerator(cpu=True)
        return Training(
            model, tokenizer, Pairs(learnt), Pairs(held_out), accelerator, folder, settings, fresh, **options
        )

    return training


def without_dropout(training):
    for module in training.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return training


@pytest.mark.thorough
def test_a_tiny_model_learns_which_sentences_belong_together(start, tmp_path):
    history = without_dropout(start(tmp_path, SETTINGS, measure_every=100)).run()
    assert [measured["step"] for measured in history] == [100, 200, 300]
    best = max(history, key=lambda measured: (measured["accuracy"], -measured["loss"]))
    assert best["accuracy"] > 0.9
    record = json.loads((tmp_path / "training.json").read_text())
    assert (record["history"], record["best"]) == (history, best)
    # Asked as any checkpoint is, the head prefers the option of the context's own topic.
    about = {topic: f"it is topic{topic} topic{topic} ." for topic in (3, 5, 7)}
    sentences = [{"id": f"o{topic}", "sentence": sentence} for topic, sentence in about.items()]
    rows = [{"id": f"e{topic}", "context": context, "sentences": sentences} for topic, context in about.items()]
    scores = load_scorer(tmp_path / "best", device="cpu").score(rows)
    assert [max(range(3), key=of_row.__getitem__) for of_row in scores] == [0, 1, 2]


class Interruption(Exception):
    pass


def interrupt_at(step):
    def report(measured):
        if measured["step"] == step:
            raise Interruption

    return report


def test_a_resumed_run_ends_with_the_bytes_of_an_undisturbed_one(start, tmp_path):
    undisturbed = start(tmp_path / "undisturbed", measure_every=2).run()
    with pytest.raises(Interruption):
        start(tmp_path / "resumed", measure_every=2, report=interrupt_at(4)).run()
    torch.rand(1)  # what a process did before does not matter
    resumed = start(tmp_path / "resumed", measure_every=2, resume=True)
    assert resumed.progress.step == 2
    assert resumed.run() == undisturbed
    for name in ("best", "last"):
        weights = (tmp_path / run / name / "model.safetensors" for run in ("undisturbed", "resumed"))
        assert len({path.read_bytes() for path in weights}) == 1


def test_without_a_checkpoint_a_resumed_run_begins_anew(start, tmp_path):
    start(tmp_path)
    assert start(tmp_path, resume=True).progress.step == 0


def test_one_checkpoint_is_kept(start, tmp_path):
    start(tmp_path, measure_every=3).run()
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000007"]


def test_a_folder_with_a_run_is_not_overwritten(start, tmp_path):
    start(tmp_path)
    with pytest.raises(ValueError, match="holds a run already: go on with --resume"):
        start(tmp_path)


def test_a_run_is_not_resumed_with_other_settings(start, tmp_path):
    start(tmp_path)
    with pytest.raises(ValueError, match="was started with warm_up=500, seed=0: resume it with the same"):
        start(tmp_path, replace(SHORT, seed=1, warm_up=3), resume=True)


def test_how_many_pairs_are_read_at_once_does_not_change_what_is_learnt(start, tmp_path):
    losses = [
        without_dropout(start(tmp_path / str(at_once), replace(SHORT, pairs_at_once=at_once), measure_every=1)).run()
        for at_once in (10, 3)
    ]
    for whole, in_parts in zip(*losses, strict=True):
        assert whole == pytest.approx(in_parts, rel=1e-3)


def test_a_pooler_that_the_checkpoint_lacks_learns_at_the_rate_of_the_head(start, tmp_path):
    training = start(tmp_path)
    assert training.full_rates == [1e-3, 1e-2]
    assert len(training.optimizer.param_groups[1]["params"]) == 6 + 2  # the head's and the pooler's


def test_the_rates_rise_in_a_line_and_fall_in_a_line():
    settings = Settings(warm_up=2)
    assert [settings.share_of_rate(step, 20) for step in (0, 1, 2, 11, 19)] == [0.5, 1.0, 1.0, 0.5, 1 / 18]
    assert settings.share_of_rate(0, 5) == 1.0


def test_the_defaults_are_the_papers():
    settings = Settings()
    assert (settings.batch_size, settings.max_length, settings.epochs, settings.warm_up) == (80, 256, 10, 500)
    assert (settings.learning_rate, settings.head_learning_rate) == (5e-6, 1e-3)


def test_every_epoch_reads_every_pair_once(start, tmp_path):
    training = start(tmp_path, replace(SHORT, epochs=2, max_steps=None))
    indices = [index for batch in training._plan() for index in batch]
    n = len(training.pairs)
    assert sorted(indices[:n]) == sorted(indices[n : 2 * n]) == list(range(n))
    assert indices[:n] != indices[n : 2 * n]
