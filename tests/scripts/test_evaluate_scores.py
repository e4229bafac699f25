"""The table of saved scores, by its functions and by its command line."""

import json
import os
import re
import subprocess
import sys
import time

import datasets
import pytest

import stereoset_report
from stereoset_metric.compute_score import flat_references
from stereoset_report import saved
from stereoset_scoring.files.predictions import write_predictions
from stereoset_scoring.sample import load_sample

GPT2 = "predictions/stereoset/predictions_gpt2_ModelNSP_GPT2LM.json"
BERT = "predictions/stereoset/predictions_bert-base-cased_BertNextSentence_BertLM.json"
GERMAN = "predictions/multilingual/dbmdz_bert-base-german-cased_BertLM_BertNextSentence_de.json"
TASKS = ("intrasentence", "intersentence")


@pytest.fixture
def run(repository, warm_python):
    """A function that runs the script in a process of its own."""

    def run(*arguments, check=True):
        done = warm_python.run([sys.executable, repository / "scripts" / "evaluate_scores.py", *arguments])
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


def rows(*targets, options=("stereotype", "anti-stereotype", "unrelated")):
    return [
        {
            "target": target,
            "bias_type": "profession" if target == "baker" else "furniture",
            "sentences": [{"id": f"{i}-{label}", "gold_label": label} for label in options],
        }
        for i, target in enumerate(targets)
    ]


PARTS = {
    "intrasentence": (rows("baker", "sofa"), [[2, 1, 0], [1, 2, 0]]),
    "intersentence": (rows("baker"), [[1, 2, 3]]),
}


def test_results_are_by_language_task_and_bias_type():
    results = stereoset_report.make_results(PARTS)
    assert list(results) == ["en"]
    assert list(results["en"]) == ["intrasentence", "intersentence", "overall"]
    assert results["en"]["intrasentence"].keys() == {"profession", "furniture", "all"}
    assert results["en"]["intrasentence"]["profession"]["ss"] == 100
    assert results["en"]["intrasentence"]["all"]["ss"] == 50
    # A term's two tasks merge: baker has won one of two, sofa none.
    assert results["en"]["overall"]["all"] == {
        "ss": 25, "lms": 75, "icat": 37.5, "icat_macro": 25, "count": 3, "ties": 0,
    }  # fmt: skip


def test_there_is_no_overall_without_the_two_tasks():
    report = stereoset_report
    parts = {"intrasentence": PARTS["intrasentence"], "intersentence_de": PARTS["intersentence"]}
    results = report.make_results(parts)
    assert {language: list(tasks) for language, tasks in results.items()} == {
        "en": ["intrasentence"],
        "de": ["intersentence"],
    }
    assert "overall" not in report.render(results, "x")


def test_the_metrics_options_reach_it():
    tied = {"intrasentence": (rows("baker", "baker", "sofa"), [[1, 1, 0], [2, 1, 0], [1, 2, 0]])}
    results = stereoset_report.make_results(tied, average="example", ties="half", confidence_level=0.9)
    assert results["en"]["intrasentence"]["all"]["ss"] == 50
    assert {"ss_low", "icat_macro_high"} <= results["en"]["intrasentence"]["furniture"].keys()


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("intrasentence", ("intrasentence", "en")),
        ("intersentence_tr", ("intersentence", "tr")),
        ("crows_pairs", ("crows_pairs", "en")),
    ],
)
def test_a_config_names_task_and_language(config, expected):
    assert stereoset_report.split_config(config) == expected


def test_the_table_has_a_line_for_each_group_with_overall_last():
    report = stereoset_report
    table = report.render(report.make_results(PARTS), "some model", signature="made:so").splitlines()
    assert table[0] == "some model, en"
    groups = [line.split()[:2] for line in table if line.startswith(("intra", "inter", "overall"))]
    assert groups == [
        ["intrasentence", "furniture"],
        ["intrasentence", "profession"],
        ["intrasentence", "all"],
        ["intersentence", "profession"],
        ["intersentence", "all"],
        ["overall", "furniture"],
        ["overall", "profession"],
        ["overall", "all"],
    ]
    assert table[-1] == "made:so"
    assert table[1].split() == ["task", "bias", "type", "count", "ss", "lms", "icat", "icat_macro", "ties"]
    assert next(line for line in table if line.startswith("overall") and " all " in line).split()[2:] == [
        "3", "25.00", "75.00", "37.50", "25.00", "0",
    ]  # fmt: skip


def test_a_partial_table_is_stamped():
    report = stereoset_report
    table = report.render(report.make_results(PARTS), "some model", partial="first 2 examples of each task")
    assert table.splitlines()[0] == "some model, en  PARTIAL: first 2 examples of each task"


def test_an_lms_near_chance_is_shouted():
    report = stereoset_report
    table = report.render(report.make_results(PARTS), "some model")
    assert "WARNING" in table
    assert "0.0 on intersentence (en)" in table
    assert "on intrasentence (en)" not in table
    good = report.render(report.make_results({"intrasentence": PARTS["intrasentence"]}), "some model")
    assert "WARNING" not in good


def test_pairs_are_a_block_of_their_own_with_ss_only():
    report = stereoset_report
    pairs = (rows("", "", options=("stereotype", "anti-stereotype")), [[2, 1], [1, 2]])
    results = report.make_results({**PARTS, "crows_pairs": pairs})
    line = next(line for line in report.render(results, "x").splitlines() if line.startswith("crows_pairs"))
    assert line.split() == ["crows_pairs", "furniture", "2", "50.00", "-", "-", "-", "0"]
    assert results["en"]["overall"]["all"]["count"] == 3


def test_a_published_file_becomes_the_published_table(run, shared, upstream):
    output = json.loads(run(shared / GPT2, "--data-dir", upstream, "--json").stdout)
    english = output["results"]["en"]
    # Nadeem et al. 2021, arXiv 2004.09456, Table 7, GPT-2
    for task, expected in zip(TASKS, ((61.93, 91.11, 69.37), (52.28, 76.26, 72.79)), strict=True):
        found = tuple(english[task]["all"][name] for name in ("ss", "lms", "icat"))
        assert found == pytest.approx(expected, abs=0.005)
    assert output["signature"] == "average:target|ties:strict|n:4229|version:1.0.0"
    assert output["alarms"] == []
    text = run(shared / GPT2, "--data-dir", upstream).stdout
    assert re.search(r"^overall +all +4229 ", text, re.M)
    assert text.rstrip().endswith(output["signature"])


def test_a_published_translation_is_told_its_language(run, shared, upstream):
    arguments = (shared / GERMAN, "--language", "de", "--average", "example", "--data-dir", upstream, "--json")
    output = json.loads(run(*arguments).stdout)
    german = output["results"]["de"]
    assert output["alarms"] == []
    # Öztürk et al. 2023, Table 2, BERT, de
    assert german["intrasentence"]["all"]["count"] == 2103
    assert german["intrasentence"]["all"]["lms"] == pytest.approx(71.8, abs=0.005)
    refused = run(shared / GERMAN, "--data-dir", upstream, check=False)  # as if English: three examples too few
    assert refused.returncode != 0
    assert "9 of 6318 options have no score" in refused.stderr


def test_two_models_are_compared(run, shared, upstream):
    arguments = (shared / GPT2, "--compare", shared / BERT, "--data-dir", upstream)
    lines = run(*arguments).stdout.splitlines()
    first, second = (
        path.rpartition("/")[2].removesuffix(".json") for path in (GPT2, BERT)
    )  # tables say labels, not paths
    assert f"{first} minus {second}, percentage points, 95% intervals" in lines
    assert sum(line.startswith(("intrasentence        ", "intersentence        ")) for line in lines) == 6
    differences = json.loads(run(*arguments, "--json").stdout)["differences"]
    assert differences["intrasentence"]["ss"] == pytest.approx(61.93 - 58.68, abs=0.011)
    assert differences["intrasentence"]["ss_low"] < differences["intrasentence"]["ss"]


def test_scores_of_different_tasks_are_not_compared(run, tmp_path, sample_run):
    other = tmp_path / "other"
    other.mkdir()
    content = json.loads((sample_run / "scores.json").read_text())
    (other / "run.json").write_text((sample_run / "run.json").read_text())
    (other / "scores.json").write_text(json.dumps({"intersentence": content["intersentence"]}))
    (sample_run / "scores.json").write_text(json.dumps({"intrasentence": content["intrasentence"]}))
    refused = run(sample_run, "--compare", other, check=False)
    assert refused.returncode != 0
    assert "compare scores of the same task and language" in refused.stderr


@pytest.fixture
def sample_run(tmp_path):
    """The folder of a run over the built-in sample, by a model that likes long ids of options."""
    folder = tmp_path / "run"
    folder.mkdir()
    write_sample(folder, load_sample)
    return folder


def write_sample(folder, load, limit=None):
    partial = f"first {limit} examples of each task" if limit else None
    scores = {
        task: {option["id"]: float(i) for row in load(task)[:limit] for i, option in enumerate(row["sentences"])}
        for task in TASKS
    }
    write_predictions(folder / "scores.json", scores, partial)
    (folder / "run.json").write_text(json.dumps({"split": "sample"}))


def test_a_run_folder_says_itself_what_was_scored(run, sample_run):
    english = json.loads(run(sample_run, "--json").stdout)["results"]["en"]
    count = {task: len(flat_references(load_sample(task))) for task in TASKS}
    assert {task: english[task]["all"]["count"] for task in TASKS} == count
    assert english["overall"]["all"]["count"] == sum(count.values())


def test_a_partial_run_stays_partial(run, tmp_path):
    write_sample(tmp_path, load_sample, limit=4)
    text = run(tmp_path).stdout
    assert text.startswith(f"{tmp_path.name}, en  PARTIAL: first 4 examples of each task")
    assert "partial:first 4 examples of each task" in text.splitlines()[-1]
    assert json.loads(run(tmp_path, "--json").stdout)["results"]["en"]["overall"]["all"]["count"] == 8


@pytest.mark.parametrize(
    ("score", "kinds"),
    [
        (lambda label: 0.0, {"low lms", "ties"}),
        (lambda label: float(label == "unrelated"), {"turned round", "ties"}),
        (lambda label: ["unrelated", "anti-stereotype", "stereotype"].index(label), set()),
    ],
)
def test_scores_that_say_nothing_raise_alarms(score_here, tmp_path, score, kinds):
    rows = {task: load_sample(task) for task in TASKS}
    scores = {task: {o["id"]: score(o["gold_label"]) for row in rows[task] for o in row["sentences"]} for task in TASKS}
    write_predictions(tmp_path / "scores.json", scores)
    (tmp_path / "run.json").write_text(json.dumps({"split": "sample"}))
    output = json.loads(score_here(tmp_path, "--json", script="evaluate_scores.py"))
    assert {alarm["alarm"] for alarm in output["alarms"]} == kinds
    lines = [line for line in score_here(tmp_path, script="evaluate_scores.py").splitlines() if "WARNING" in line]
    assert len(lines) == len(kinds)


def test_what_the_record_of_a_run_knows_is_said_again():
    record = {
        "model": {"name": "some-chat", "chat_template": True},
        "tasks": {
            "intrasentence": {"method": "likelihood", "equal_options": 2, "unknown_tokens": 5, "text_tokens": 50},
            "intersentence": {"method": "conditional", "fallback": "it holds no head", "truncated": 1},
        },
        "unscored": {"crows_pairs": "There is none.", "intrasentence_pairs": "There is none."},
    }
    report = stereoset_report
    alarms = report.find_alarms(report.make_results(PARTS), PARTS, record)
    found = [(alarm["alarm"], alarm["of"]) for alarm in alarms]
    assert found[:2] == [("equal options", "intrasentence (en)"), ("unknown tokens", "intrasentence (en)")]
    assert found[-1] == ("chat template", "some-chat")
    assert report.find_notes(record) == [
        "NOTE: intersentence: scored by conditional, not by the usual default, for it holds no head.",
        "NOTE: 1 of intersentence: longer than the model, and so scored with the end of their context.",
        "NOT SCORED: crows_pairs, intrasentence_pairs: There is none.",
    ]
    assert report.find_notes({}) == []


def test_pairs_are_read_from_their_only_split(upstream):
    assert len(saved.load_rows("crows_pairs", "validation", upstream)) == 1508


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "holds no scores"),
        ('{"sentences": [{"id": "a", "score": 1}]}', "'sentences'"),
        (None, "No such file"),
    ],
)
def test_refusals_are_one_line_without_a_traceback(run, tmp_path, content, message):
    path = tmp_path / "predictions.json"
    if content is not None:
        path.write_text(content)
    refused = run(path, check=False)
    assert refused.returncode != 0
    assert message in refused.stderr
    assert "Traceback" not in refused.stderr


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ("[]", "is no record of a run"),
        ("null", "is no record of a run"),
        ("3", "is no record of a run"),
        ("{", "is not sound JSON"),
        ('{"model": []}', "is no record of a run"),
        ('{"split": ["sample"]}', "names the split ['sample']: there are validation, test, sample"),
        ('{"split": "\\u001b[2J"}', "names the split '\\x1b[2J'"),
        ('{"split": "sample", "model": {"family": 3}}', "names the model's family 3"),
    ],
)
def test_a_record_that_is_none_is_refused_with_the_file(sample_run, record, message):
    (sample_run / "run.json").write_text(record)
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        saved.read_saved(sample_run)
    assert str(refusal.value).startswith(str(sample_run / "run.json"))


def test_scores_that_do_not_fit_are_refused_with_their_file(sample_run):
    write_predictions(sample_run / "scores.json", {"intrasentence": {"a": 1.0}})
    with pytest.raises(ValueError, match="options have no score") as refusal:
        saved.read_saved(sample_run)
    assert str(refusal.value).startswith(f"{sample_run / 'scores.json'}, 'intrasentence': ")


def test_the_command_line_speaks_of_its_options(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")  # where nothing is prepared
    with pytest.raises(OSError, match="leave out --data-dir to download it") as refusal:
        saved.load_rows("crows_pairs", "validation", str(tmp_path / "empty"))
    assert "data_dir" not in str(refusal.value)


@pytest.mark.parametrize("level", ["95", "0", "nan", "-1", "x"])
def test_a_confidence_level_is_a_share(score_here, capsys, level):
    with pytest.raises(SystemExit):
        score_here("x.json", "--confidence-level", level, script="evaluate_scores.py")
    assert "argument --confidence-level: " in capsys.readouterr().err


def test_a_stamp_cannot_command_the_terminal(score_here, sample_run):
    content = json.loads((sample_run / "scores.json").read_text())
    (sample_run / "scores.json").write_text(json.dumps({**content, "partial": "\x1b[2Jfirst 3"}))
    shown = score_here(sample_run, script="evaluate_scores.py")
    assert r"PARTIAL: \x1b[2Jfirst 3" in shown
    assert "\x1b" not in shown


def test_the_script_imports_no_torch(repository, sample_run):
    code = (
        "import runpy, sys\n"
        f"sys.argv = ['evaluate_scores.py', {str(sample_run)!r}]\n"
        f"runpy.run_path({str(repository / 'scripts' / 'evaluate_scores.py')!r}, run_name='__main__')\n"
        "sys.exit(', '.join({'torch', 'transformers', 'accelerate'} & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": str(repository)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert result.stderr.strip() == ""
    assert "overall" in result.stdout


@pytest.mark.skipif(sys.gettrace() is not None, reason="who counts lines takes time, too")
def test_reading_aligning_and_weighing_a_full_file_takes_less_than_a_second(shared, upstream):
    script, report = saved, stereoset_report
    rows = {task: script.load_rows(task, "validation", upstream) for task in TASKS}
    start = time.process_time()
    scores, _ = script.read_predictions(shared / GPT2)
    parts = {task: script.align(scores[task], rows[task]) for task in TASKS}
    report.render(report.make_results(parts), "gpt2")
    assert sum(map(len, scores.values())) == 12_687
    assert time.process_time() - start < 1
