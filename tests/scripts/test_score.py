"""The launch script, from the command line to its files: one process, two, part of the data, and what it refuses."""

import json
import math
import re
import sys

import pytest
import torch

from stereoset_cli import arguments

BIAS_TYPES = ["gender", "profession", "race", "religion", "all"]
SEVERAL_BATCHES = ["--max-tokens", "256"]


@pytest.fixture(scope="module")
def launch(repository, warm_python):
    """launch(output, *options): score.py as its users run it, through accelerate or another launcher."""
    accelerate = [sys.executable, "-m", "accelerate.commands.launch", "--num_processes", "1", "--num_machines", "1"]
    accelerate += ["--mixed_precision", "no", "--dynamo_backend", "no", "--cpu"]

    def run(output, *options, launcher=accelerate):
        done = warm_python.run([*launcher, repository / "scripts" / "score.py", *options, "--output-dir", output])
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def sample(launch, tmp_path_factory):
    """The sample, scored by one process: (folder, what was printed)."""
    folder = tmp_path_factory.mktemp("sample")
    return folder, launch(folder, "--sample", *SEVERAL_BATCHES)


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def rows_of(printed):
    """(task, bias type) of the table's lines."""
    tasks = ("intrasentence ", "intersentence ", "overall ")
    return [tuple(line.split()[:2]) for line in printed.splitlines() if line.startswith(tasks)]


def test_the_sample_prints_its_table_by_task_and_bias_type_with_overall_last(sample):
    tasks = ("intrasentence", "intersentence", "overall")
    assert rows_of(sample[1]) == [(task, bias_type) for task in tasks for bias_type in BIAS_TYPES]


def test_a_signature_stands_under_the_table(sample):
    signature = sample[1].splitlines()[-1]
    assert signature.startswith("intrasentence:likelihood|intersentence:conditional|preset:none|split:sample|")


def test_the_sample_model_prefers_what_makes_sense(sample):
    results = read(sample[0], "results.json")["results"]["en"]
    assert all(results[task]["all"]["lms"] > 70 for task in ("intrasentence", "intersentence"))


def test_scores_are_in_the_interchange_layout(sample):
    scores = read(sample[0], "scores.json")
    assert list(scores) == ["intrasentence", "intersentence"]
    assert all(set(entry) == {"id", "score"} for entries in scores.values() for entry in entries)
    assert all(entry["score"] < 0 for entries in scores.values() for entry in entries)


def test_the_record_says_what_was_run_on_what(sample):
    record = read(sample[0], "run.json")
    assert re.fullmatch("[0-9a-f]{64}", record["model"]["heads"]["causal"]["weights_sha256"])
    assert record["model"]["heads"]["causal"]["missing"] == []
    assert record["tasks"]["intersentence"]["method"] == "conditional"
    assert record["tasks"]["intersentence"]["truncated"] == 0
    assert record["partial"] is None
    assert {"torch", "transformers", "stereoset"} <= set(record["versions"])


def test_a_second_run_writes_the_same_scores(sample, tmp_path, score_here):
    folder, _ = sample
    score_here("--sample", "--model", folder / "sample-model", "--output-dir", tmp_path)
    first, second = read(folder, "scores.json"), read(tmp_path, "scores.json")
    for task in first:
        assert [e["id"] for e in first[task]] == [e["id"] for e in second[task]]
        assert [e["score"] for e in first[task]] == pytest.approx([e["score"] for e in second[task]], abs=1e-5)


def test_two_processes_write_the_bytes_of_one(launch, torchrun, sample, tmp_path):
    folder, _ = sample
    launch(tmp_path, "--sample", "--model", folder / "sample-model", *SEVERAL_BATCHES, launcher=torchrun(2))
    one, two = (where / "scores.json" for where in (folder, tmp_path))
    assert one.read_bytes() == two.read_bytes()
    assert [read(where, "run.json")["world_size"] for where in (folder, tmp_path)] == [1, 2]


def test_probabilities_are_the_exponentials_of_the_scores(sample, tmp_path, score_here):
    folder, _ = sample
    score_here("--sample", "--model", folder / "sample-model", "--scale", "probability", "--output-dir", tmp_path)
    logs, probabilities = (read(where, "scores.json")["intrasentence"] for where in (folder, tmp_path))
    for log, probability in zip(logs, probabilities, strict=True):
        assert math.exp(log["score"]) == pytest.approx(probability["score"], rel=1e-4)


def test_the_saved_scores_give_the_table_of_the_run(sample, score_here):
    folder, printed = sample
    again = score_here(folder, script="evaluate_scores.py")
    table = [line for line in printed.splitlines() if line.endswith(" 0")]
    assert rows_of(again) == rows_of(printed)
    assert [line for line in again.splitlines() if line.endswith(" 0")] == table


@pytest.fixture(scope="module")
def part(shared, launch, tmp_path_factory):
    """The first examples of every task and language, scored with the tiny BERT: (folder, what was printed)."""
    folder = tmp_path_factory.mktemp("part")
    options = ["--model", shared / "oracles" / "models" / "bert", "--data-dir", shared / "upstream"]
    options += ["--languages", "en", "de", "es", "fr", "tr", "--limit", "5"]
    return folder, launch(folder, *options, launcher=[sys.executable])


def test_every_task_and_language_of_the_real_data_is_scored(part):
    folder, printed = part
    scores = read(folder, "scores.json")
    tasks = ("intrasentence", "intersentence")
    assert set(scores) - {"partial"} == {
        f"{task}{language}" for task in tasks for language in ("", "_de", "_es", "_fr", "_tr")
    }
    assert [line.split(",")[1].split()[0] for line in printed.splitlines() if "PARTIAL" in line] == [
        "en",
        "de",
        "es",
        "fr",
        "tr",
    ]


def test_both_heads_are_printed_with_fingerprint_and_loading_report(part):
    _, printed = part
    assert re.search(r"masked: BertForMaskedLM, float32, weights [0-9a-f]{16}, 0 missing, 4 unexpected", printed)
    assert re.search(r"next_sentence: BertForNextSentencePrediction, float32, weights [0-9a-f]{16}, 0 missing", printed)


@pytest.mark.parametrize("name", ["scores.json", "results.json", "run.json"])
def test_a_limited_run_is_stamped_partial_in_every_file(part, name):
    assert read(part[0], name)["partial"] == "first 5 examples of each task"


def test_a_limited_run_is_stamped_partial_in_table_and_signature(part, score_here, shared):
    folder, printed = part
    assert "PARTIAL: first 5 examples of each task" in printed
    assert "|partial:first 5 examples of each task|" in printed
    assert "PARTIAL" in score_here(folder, "--data-dir", shared / "upstream", script="evaluate_scores.py")


def test_a_score_near_chance_is_shouted(part):
    assert "WARNING: lms near chance (50)" in part[1]


REFUSALS = [
    (["--method", "pseudonym"], "Method 'pseudonym' is not defined for a causal model: choose one of"),
    (["--method", "joint"], "Method 'joint' is not defined for a causal model on intrasentence"),
    (["--method", "intersentence=pseudonym"], "not defined for a causal model on intersentence"),
    (["--method", "overall=joint"], "neither a name nor TASK=NAME"),
    (["--dtype", "float12"], "There is no dtype 'float12'"),
    (["--model", "no/such-model"], "no/such-model is neither a folder with a model nor within reach"),
]


@pytest.mark.parametrize(("options", "words"), REFUSALS)
def test_what_cannot_be_done_is_refused_in_a_sentence(score_here, sample, tmp_path, options, words):
    with pytest.raises(SystemExit, match=re.escape(words)):
        score_here("--sample", "--model", sample[0] / "sample-model", *options, "--output-dir", tmp_path)


@pytest.mark.parametrize("options", [[], ["--sample", "--languages", "de"], ["--sample", "--limit", "0"]])
def test_a_command_line_that_makes_no_sense_is_refused(score_here, tmp_path, options):
    with pytest.raises(SystemExit) as refusal:
        score_here(*options, "--output-dir", tmp_path)
    assert refusal.value.code == 2


def test_options_are_read_by_the_types_that_the_methods_declare():
    words = ["bos_text=7", "decimals=3", "end=true", "follows=0", "join=none", "average=log", "bos=none", "prefix=12"]
    assert arguments.options([*words, "nonesuch=5"]) == {
        "bos_text": "7",
        "decimals": 3,
        "end": True,
        "follows": 0,
        "join": "none",
        "average": "log",
        "bos": "none",
        "prefix": "12",
        "nonesuch": "5",
    }
    assert arguments.options(["bos_text=none", "decimals=none"]) == {"bos_text": None, "decimals": None}


def test_run_says_how_the_model_was_loaded(score_here, shared, tmp_path):
    model, place = shared / "oracles" / "models" / "gpt2", ["--device-map", "auto", "--attention", "eager"]
    score_here("--sample", "--model", model, *place, "--limit", "2", "--output-dir", tmp_path)
    record = json.loads((tmp_path / "run.json").read_text())
    head = record["model"]["heads"]["causal"]
    assert (head["attention"], head["compiled"], head["quantization"]) == ("eager", False, None)
    assert head["devices"] == ["cpu"] or torch.cuda.is_available()
    assert record["float32_matmul_precision"] == torch.get_float32_matmul_precision()
    released = {"origin": "bos", "text": "<|endoftext|>", "bos": "released"}
    assert record["beginnings"] == {"intrasentence": released, "intersentence": released}


@pytest.mark.parametrize("text", ["{", "[1]", "{}", "nowhere.json"])
def test_quantization_that_names_no_method_is_refused(score_here, tmp_path, capsys, text):
    with pytest.raises(SystemExit):
        score_here("--sample", "--quantization", text, "--output-dir", tmp_path)
    assert "--quantization" in capsys.readouterr().err


def test_quantization_is_a_json_object_or_a_file_with_one(tmp_path):
    text = '{"quant_method": "bitsandbytes", "load_in_4bit": true}'
    (tmp_path / "config.json").write_text(text)
    read = arguments.read_quantization
    assert read(text) == read(str(tmp_path / "config.json")) == {"quant_method": "bitsandbytes", "load_in_4bit": True}
