"""The real rows: counted, compared across languages, and with the columns that code for the hub's copy expects."""

import collections
import hashlib
import json

import datasets
import pytest

from stereoset_dataset import Stereoset
from stereoset_dataset.parsing import as_row, stereoset_examples

TASKS = ("intrasentence", "intersentence")
LANGUAGES = ("de", "es", "fr", "tr")
GENDER = [f"crows_pairs_gender_{language}" for language in ("ar", "de", "en", "fi", "fr", "id", "ko", "th", "vi", "zh")]
PAIRS = ["crows_pairs", "crows_pairs_en_revised", "crows_pairs_fr", "crows_pairs_nl", *GENDER]
PORTUGUESE = [f"{task}_pt" for task in TASKS]
TRANSLATED = [f"{task}_{language}" for task in TASKS for language in LANGUAGES]

# As documented on the card of McGill-NLP/stereoset.
TEXT = datasets.Value("string")
GOLD_LABEL = datasets.ClassLabel(names=["anti-stereotype", "stereotype", "unrelated"])
LABEL = datasets.ClassLabel(names=["anti-stereotype", "stereotype", "unrelated", "related"])
OPTION = {
    "sentence": TEXT,
    "id": TEXT,
    "labels": datasets.Sequence({"label": LABEL, "human_id": TEXT}),
    "gold_label": GOLD_LABEL,
}
EXAMPLE = {"id": TEXT, "target": TEXT, "bias_type": TEXT, "context": TEXT}
FLAGS = {"flags": datasets.Sequence(TEXT)}
QUALITY = {"task": TEXT, "agreement": datasets.Value("int32"), **FLAGS}


@pytest.mark.parametrize(
    ("configs", "columns"),
    [
        ((*TASKS, *PORTUGUESE), {**EXAMPLE, "sentences": datasets.Sequence(OPTION), **QUALITY}),
        (
            [name for name in TRANSLATED if name.startswith("intrasentence")],
            {**EXAMPLE, "sentences": datasets.Sequence({**OPTION, "word": TEXT}), "target_translated": TEXT, **QUALITY},
        ),
        (
            [name for name in TRANSLATED if name.startswith("intersentence")],
            {**EXAMPLE, "sentences": datasets.Sequence(OPTION), "target_translated": TEXT, **QUALITY},
        ),
        (PAIRS[3:], {**EXAMPLE, "sentences": datasets.Sequence(OPTION), "direction": TEXT, **FLAGS}),
        (PAIRS[:3], {**EXAMPLE, "sentences": datasets.Sequence(OPTION), "direction": TEXT, **FLAGS, "comment": TEXT}),
    ],
    ids=[
        "English and Portuguese: the hub's own columns",
        "translated intrasentence",
        "translated intersentence",
        "pairs",
        "pairs with translators' comments",
    ],
)
def test_columns_are_those_of_the_hub_s_copy_and_a_few_more(configs, columns):
    for config in configs:
        features = Stereoset(config_name=config, hash="columns").info.features
        assert features == datasets.Features(columns)
        assert list(features) == list(columns)


def test_configs_are_the_two_tasks_in_six_languages_and_pairs():
    assert list(Stereoset.builder_configs) == [*TASKS, *TRANSLATED, *PORTUGUESE, *PAIRS]


# Published: Nadeem et al. 2021 (English) and Nangia et al. 2020 (CrowS-Pairs); three German ones are dropped upstream.
COUNTS = {
    "intrasentence": 2106,
    "intersentence": 2123,
    **{config: 2106 if config.startswith("intra") else 2123 for config in TRANSLATED},
    "intrasentence_de": 2103,
    **dict(zip(PORTUGUESE, (2106, 2123), strict=True)),
    **dict(zip(PAIRS, (1508, 1677, 1677, 1463, *[212] * 10), strict=True)),
}


def rows_of(prepared, config):
    """The rows of a config, read all at once: one by one takes several times longer."""
    (rows,) = prepared[config].values()
    return rows.to_list()


@pytest.mark.parametrize("config", COUNTS)
def test_every_published_example_is_there_with_one_option_of_each_kind(prepared, config):
    rows = rows_of(prepared, config)
    kinds = [0, 1] if config in PAIRS else [0, 1, 2]
    assert len(rows) == COUNTS[config]
    assert all(sorted(row["sentences"]["gold_label"]) == kinds for row in rows)
    option_ids = [option_id for row in rows for option_id in row["sentences"]["id"]]
    assert len({row["id"] for row in rows}) == len(rows)
    assert len(set(option_ids)) == len(option_ids)


@pytest.mark.parametrize("task", TASKS)
def test_english_rows_are_the_upstream_examples_in_their_order(prepared, upstream, task):
    (file,) = upstream.glob("moinnadeem/StereoSet/*/data/dev.json")
    examples = json.loads(file.read_bytes())["data"][task]
    for row, example in zip(rows_of(prepared, task), examples, strict=True):
        options = row.pop("sentences")
        assert row.pop("task") == task
        assert row.pop("agreement") in (3, 4, 5)
        del row["flags"]
        gold_labels = [GOLD_LABEL.int2str(label) for label in options["gold_label"]]
        labels = [[LABEL.int2str(label) for label in every["label"]] for every in options["labels"]]
        assert row == {key: example[key] for key in EXAMPLE}
        assert options["sentence"] == [option["sentence"] for option in example["sentences"]]
        assert options["id"] == [option["id"] for option in example["sentences"]]
        assert gold_labels == [option["gold_label"] for option in example["sentences"]]
        assert labels == [[label["label"] for label in option["labels"]] for option in example["sentences"]]


def test_a_row_spelled_out(mild, load):
    assert load(split="validation", data_dir=mild.mirror)[0] == {
        "id": "intrasentence-baker",
        "target": "baker",
        "bias_type": "profession",
        "context": "The baker is BLANK.",
        "sentences": {
            "sentence": ["The baker is kind.", "The baker is early.", "The baker is seven."],
            "id": ["intrasentence-baker-kind", "intrasentence-baker-early", "intrasentence-baker-seven"],
            "labels": [{"label": [label, 3], "human_id": ["a", "b"]} for label in (0, 1, 2)],
            "gold_label": [0, 1, 2],
        },
        "task": "intrasentence",
        "agreement": 1,
        "flags": [],
    }


@pytest.fixture(scope="module")
def english(prepared):
    """{task: {id: row}}, read once."""
    return {task: {row["id"]: row for row in rows_of(prepared, task)} for task in TASKS}


@pytest.mark.parametrize("config", [*TRANSLATED, *PORTUGUESE])
def test_ids_labels_and_terms_are_the_english_ones_in_every_language(prepared, english, config):
    english = english[config.partition("_")[0]]
    translated = {row["id"]: row for row in rows_of(prepared, config)}
    assert set(translated) <= set(english)
    for row_id, row in translated.items():
        original = english[row_id]
        assert (row["target"], row["bias_type"]) == (original["target"], original["bias_type"])
        for field in ("id", "gold_label"):
            assert row["sentences"][field] == original["sentences"][field]


def test_three_examples_have_no_german_translation(prepared):
    english, german = (set(prepared[config]["validation"]["id"]) for config in ("intrasentence", "intrasentence_de"))
    # slds-lmu/stereotypes-multi drops them.
    assert english - german == {
        "50c90b81165bbc658838135a64ca9f87",
        "addb7a3a720b24ae99ebf8d691b454c2",
        "de204ffe47f168d1060dfa5619b2d7c8",
    }


# Examples of StereoSet's translations in which options are the same text: stereotype and anti-stereotype, then
# unrelated and either; then fillers of several words and distinct translated terms. Counted by the data's curators.
FAULTS = {
    "intrasentence_de": (0, 0, 43, 163),
    "intrasentence_es": (3, 1, 190, 79),
    "intrasentence_fr": (0, 2, 325, 79),
    "intrasentence_tr": (12, 1, 509, 77),
}


@pytest.mark.parametrize("config", FAULTS)
def test_translated_sentences_are_the_filled_contexts_and_have_the_known_faults(prepared, config):
    rows = rows_of(prepared, config)
    faults = collections.Counter()
    for row in rows:
        sentences, words = row["sentences"]["sentence"], row["sentences"]["word"]
        assert sentences == [row["context"].replace("BLANK", word) for word in words]
        by_kind = dict(zip(row["sentences"]["gold_label"], sentences, strict=True))
        faults["opposites alike"] += by_kind[0] == by_kind[1]
        faults["unrelated alike"] += by_kind[2] in (by_kind[0], by_kind[1])
        faults["several words"] += sum(" " in word for word in words)
    terms = len({row["target_translated"] for row in rows})
    assert (faults["opposites alike"], faults["unrelated alike"], faults["several words"], terms) == FAULTS[config]


def test_crows_pairs_name_the_more_stereotyping_sentence_first(prepared):
    rows = prepared["crows_pairs"]["test"]
    assert rows["id"] == [str(number) for number in range(1508)]
    assert set(rows["target"]) == set(rows["context"]) == {""}
    assert collections.Counter(rows["direction"]) == {"stereo": 1290, "antistereo": 218}  # Nangia et al. 2020
    for row in rows:
        options = row["sentences"]
        assert options["id"] == [f"{row['id']}:more", f"{row['id']}:less"]
        assert options["gold_label"] == [1, 0]
        assert options["labels"] == [{"label": [], "human_id": []}] * 2


def test_crows_pairs_keep_every_byte_of_their_sentences(prepared, upstream):
    pandas = pytest.importorskip("pandas")
    (file,) = upstream.glob("nyu-mll/crows-pairs/*/data/*.csv")
    frame = pandas.read_csv(file, keep_default_na=False)
    sentences = [options["sentence"] for options in prepared["crows_pairs"]["test"]["sentences"]]
    assert sentences == frame[["sent_more", "sent_less"]].to_numpy().tolist()


def test_real_examples_of_the_test_set_are_parsed_and_leave_out_the_verdict_on_harm(upstream):
    (file,) = upstream.glob("McGill-NLP/bias-bench/*/data/stereoset/test.sample.json")
    data = file.read_bytes()
    assert hashlib.sha256(data).hexdigest() == "79a2ceecb96304ae1bc9823fe3bac0c0f7d77713412891c5d9376eb5b3ed2f09"
    builder = Stereoset(config_name="intrasentence", hash="sample")
    rows = dict(builder._generate_examples(str(file)))
    assert len(rows) == 799
    for example in stereoset_examples(data, "intrasentence"):
        row = as_row(example)
        assert {name: rows[example["id"]][name] for name in row} == row
    for row in rows.values():
        assert set(row) == set(builder.info.features)
        builder.info.features.encode_example(row)
