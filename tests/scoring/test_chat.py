"""Chat templates: choice, and likelihood in a chat, each against its definition; one text at a time."""

from itertools import permutations
from math import exp, log

import pytest
import torch
from tokenizers import AddedToken
from transformers import GPT2Config, GPT2LMHeadModel

from stereoset_report.alarms import few_letters, one_place
from stereoset_report.results import find_alarms, make_results
from stereoset_report.text import find_notes
from stereoset_scoring import load_scorer
from stereoset_scoring.methods.choice import observed
from stereoset_scoring.methods.wordings import WORDINGS

CLOSE = 1e-10  # float64, in nats
TEMPLATES = {
    # name: (the template, what stands before the answer to a user, the template's special tokens)
    "chatml": (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}",
        "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
        ["<|im_start|>", "<|im_end|>"],
    ),
    "llama3": (
        "<|begin_of_text|>{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n"
        "{{ m.content | trim }}<|eot_id|>{% endfor %}"
        "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}",
        "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n",
        ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    ),
    "gemma": (
        "{{ '<bos>' }}{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
        "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n"
        "{{ m.content | trim }}<end_of_turn>\n{% endfor %}"
        "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}",
        "<bos><start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n",
        ["<bos>", "<start_of_turn>", "<end_of_turn>"],
    ),
    "mistral": (
        "<s>{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('roles must alternate') }}{% endif %}"
        "{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}</s>{% endif %}{% endfor %}",
        "<s>[INST] {} [/INST] ",
        ["<s>", "</s>", "[INST]", "[/INST]"],
    ),
    "qwen": (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
        "{{ m.content.split('</think>')[-1].lstrip('\n') }}{% else %}{{ m.content }}{% endif %}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n"
        "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}{% endif %}",
        "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
        ["<|im_start|>", "<|im_end|>", "<think>", "</think>"],
    ),
}
INTRA = ("The gardener was BLANK.", ["The gardener was kind.", "The gardener was quiet.", "The gardener was long."])
INTER = ("A gardener met us", ["He was kind.", "She reads.", "Trees are tall."])
EXAMPLES = {"intrasentence": INTRA, "intersentence": INTER}


@pytest.fixture(scope="module")
def chat_model(tokenizer_of):
    """chat_model(template): a tiny causal model in float64 and its tokenizer, with that template."""

    def make(name, base="gpt2"):
        tokenizer = type(tokenizer_of(base)).from_pretrained(tokenizer_of(base).name_or_path)
        tokenizer.chat_template, _, special = TEMPLATES[name]
        tokenizer.add_tokens([AddedToken(token, special=True) for token in special], special_tokens=True)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            sizes = {"n_positions": 1024, "n_embd": 32, "n_layer": 2, "n_head": 4, "initializer_range": 0.3}
            model = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **sizes)).double().eval()
        return model, tokenizer

    return make


def letters_after(model, tokenizer, text):
    """[ln P of "A", of "B", of "C"] as the next token after a text; the space at its end belongs to the letter."""
    found = []
    for letter in "ABC":
        ids = tokenizer.encode(text + letter, add_special_tokens=False)
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0, -2]
        found.append(logits.log_softmax(-1)[ids[-1]].item())
    return found


def expected_choice(model, tokenizer, before, context, sentences, wordings, readings=None):
    """The mean ln of each option's letter's share, over all wordings and orders."""
    scores = [[] for _ in sentences]
    for wording in wordings:
        for order in permutations(range(len(sentences))):
            lines = "\n".join(f"{letter}. {sentences[i]}" for letter, i in zip("ABC", order, strict=False))
            question = wording.alone if "BLANK" in context else f"{context}\n\n{wording.after}"
            asked = f"{question}\n\n{lines}\n\n{wording.answer}"
            found = letters_after(model, tokenizer, before.format(asked))[: len(sentences)]
            if readings is not None:
                readings.append(found)
            total = log(sum(map(exp, found)))
            for place, i in enumerate(order):
                scores[i].append(found[place] - total)
    return [sum(some) / len(some) for some in scores]


@pytest.mark.parametrize("task", EXAMPLES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_choice_is_the_mean_log_share_of_the_letter_over_all_orders(chat_model, row, name, task):
    model, tokenizer = chat_model(name)
    expected = expected_choice(model, tokenizer, TEMPLATES[name][1], *EXAMPLES[task], WORDINGS["en"][:1])
    scorer = load_scorer(model=model, tokenizer=tokenizer, method="choice", wording="1")
    assert scorer.score([row(*EXAMPLES[task])]) == [pytest.approx(expected, abs=CLOSE)]


@pytest.mark.parametrize(("language", "wording", "chosen"), [("de", "2", slice(1, 2)), ("tr", "all", slice(0, 3))])
def test_choice_asks_in_each_wording_and_language(chat_model, row, language, wording, chosen):
    model, tokenizer = chat_model("chatml")
    expected = expected_choice(model, tokenizer, TEMPLATES["chatml"][1], *INTER, WORDINGS[language][chosen])
    scorer = load_scorer(model=model, tokenizer=tokenizer, method="choice", wording=wording, language=language)
    assert scorer.score([row(*INTER)]) == [pytest.approx(expected, abs=CLOSE)]


def test_two_options_have_two_orders_and_two_letters(chat_model, row):
    model, tokenizer = chat_model("chatml")
    some = (INTRA[0], INTRA[1][:2])
    expected = expected_choice(model, tokenizer, TEMPLATES["chatml"][1], *some, WORDINGS["en"])
    scorer = load_scorer(model=model, tokenizer=tokenizer, method="choice")
    assert scorer.score([row(*some)]) == [pytest.approx(expected, abs=CLOSE)]
    assert len(scorer.plan([row(*some)]).rows) == 2 * 3


def test_the_order_of_the_options_does_not_count(chat_model, row):
    model, tokenizer = chat_model("llama3")
    scorer = load_scorer(model=model, tokenizer=tokenizer, method="choice")
    (scores,), (turned,) = (scorer.score([row(INTRA[0], some)]) for some in (INTRA[1], INTRA[1][::-1]))
    assert turned[::-1] == pytest.approx(scores, abs=CLOSE)


def test_what_is_observed_is_the_mean_over_examples(chat_model, row):
    model, tokenizer = chat_model("chatml")
    scorer = load_scorer(model=model, tokenizer=tokenizer, method="choice")
    other = ("It was BLANK.", ["It was calm.", "It was tall.", "It was a."])
    job = scorer.plan([row(*INTRA, id="a"), row(*other, id="b")])
    values = {i: of_row for batch in job.batches for i, of_row in read(scorer, batch)}
    readings = []
    for context, sentences in (INTRA, other):
        expected_choice(model, tokenizer, TEMPLATES["chatml"][1], context, sentences, WORDINGS["en"], readings)
    found = {name: sum(some) / len(some) for name, some in job.observed(values).items()}
    assert found["letters"] == pytest.approx(sum(sum(map(exp, some)) for some in readings) / len(readings))
    for k, letter in enumerate("ABC"):
        assert found[f"place {letter}"] == pytest.approx(sum(max(some) == some[k] for some in readings) / len(readings))
    assert job.equal_options == 0


def read(scorer, batch):
    """[(index of a row, its values), …] of a batch."""
    with scorer.evaluating(["causal"]):
        return zip((i for unit in batch for i in unit.indices), scorer.log_probs(batch), strict=True)


def test_agreement_and_spread_are_those_of_the_wordings_scores():
    orders = [(0, 1), (1, 0)]
    first, second = [[-1.0, -2.0], [-2.0, -1.0]], [[-2.0, -1.0], [-1.0, -2.0]]  # option 0; option 1
    assert observed([*first, *first], orders)["agreement"] == 1
    assert observed([*first, *first], orders)["spread"] == 0
    assert observed([*first, *second], orders)["agreement"] == 0
    assert observed([*first, *second], orders)["spread"] == pytest.approx(1)
    assert observed(first, orders) == {"letters": pytest.approx(exp(-1) + exp(-2)), "place A": 0.5, "place B": 0.5}


@pytest.mark.parametrize("reduction", ["mean", "sum", "mean_per_byte"])
@pytest.mark.parametrize("task", EXAMPLES)
@pytest.mark.parametrize("name", TEMPLATES)
def test_in_a_chat_the_assistants_own_tokens_are_read(chat_model, row, name, task, reduction):
    model, tokenizer = chat_model(name)
    context, sentences = EXAMPLES[task]
    user = "Write a sentence." if task == "intrasentence" else context
    before, expected = TEMPLATES[name][1].format(user), []
    for sentence in sentences:
        encoding = tokenizer(before + sentence, add_special_tokens=False, return_offsets_mapping=True)
        ids = encoding["input_ids"]
        own = [i for i, (_, end) in enumerate(encoding["offset_mapping"]) if end > len(before)]
        with torch.no_grad():
            found = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        values = [found[i - 1, ids[i]].item() for i in own]
        expected.append(sum(values) / {"mean": len(values), "sum": 1, "mean_per_byte": len(sentence)}[reduction])
    scorer = load_scorer(model=model, tokenizer=tokenizer, chat=True, reduction=reduction)
    assert scorer.score([row(context, sentences)]) == [pytest.approx(expected, abs=CLOSE)]


@pytest.mark.parametrize(
    ("template", "options", "words"),
    [
        (None, {"method": "choice"}, "has no chat template: choose likelihood"),
        (None, {"chat": True}, "has no chat template"),
        ("{{ raise_exception('users never speak') }}", {"method": "choice"}, "users never speak"),
        ("{{ messages | map(attribute='content') | join(' ') | upper }}", {"chat": True}, "cannot be told"),
        (TEMPLATES["chatml"][0], {"chat": True, "bos": "context"}, "leave bos and bos_text out"),
    ],
)
def test_what_a_template_cannot_write_is_refused(chat_model, row, template, options, words):
    model, tokenizer = chat_model("chatml")
    tokenizer.chat_template = template
    with pytest.raises(ValueError, match=words):
        load_scorer(model=model, tokenizer=tokenizer, **options).score([row(*INTRA)])


@pytest.mark.parametrize(
    ("seen", "letters", "place"),
    [
        ({}, False, False),
        ({"letters": 0.49, "place A": 0.4, "place B": 0.6}, True, False),
        ({"letters": 0.5, "place A": 0.05, "place B": 0.95}, False, True),
    ],
)
def test_alarms_say_that_a_choice_means_little(seen, letters, place):
    assert bool(few_letters("it", seen)) is letters
    assert bool(one_place("it", seen)) is place


@pytest.mark.parametrize(
    ("task", "unused"),
    [
        ({"method": "likelihood", "options": {}}, True),
        ({"method": "likelihood", "options": {"chat": True}}, False),
        ({"method": "choice", "options": {}, "observed": {"letters": 0.9, "place A": 0.5, "place B": 0.5}}, False),
    ],
)
def test_a_table_says_whether_the_template_was_used_and_that_a_choice_is_one(task, unused, row):
    rows = [row(*INTRA) | {"target": "gardener", "bias_type": "profession"}]
    for option, label in zip(rows[0]["sentences"], ("stereotype", "anti-stereotype", "unrelated"), strict=True):
        option["gold_label"] = label
    parts = {"intrasentence": (rows, [[-1.0, -2.0, -3.0]])}
    record = {"model": {"name": "it", "chat_template": True}, "tasks": {"intrasentence": task}}
    kinds = [alarm["alarm"] for alarm in find_alarms(make_results(parts), parts, record)]
    assert ("chat template" in kinds) is unused
    assert any("asked by choice" in note for note in find_notes(record)) is (task["method"] == "choice")
