"""Examples left out by flag or agreement, tables with and without them, and CSVs of CrowS-Pairs' own code."""

import json

import pytest

from stereoset_report.results import make_results
from stereoset_report.selection import Selection, check_pairs, effect, read_own_flags
from stereoset_scoring.refusal import Refusal

TURKISH = "predictions/multilingual/dbmdz_bert-base-turkish-cased_BertLM_BertNextSentence_tr.json"
# Pairs whose sent_more has the higher score, of 1,463; as the data's curators counted.
DUTCH = {"bertje": (802, 54.82), "robbert": (802, 54.82), "bert": (899, 61.45), "camembert": (853, 58.30)}


@pytest.mark.parametrize("model", DUTCH)
def test_a_csv_of_crows_pairs_own_code_carries_its_pairs(score_here, shared, model):
    path = shared / "predictions" / "dutch" / f"results_{model}.csv"
    count, percent = DUTCH[model]
    numbers = json.loads(score_here(path, "--json", script="evaluate_scores.py"))["results"]["en"]["crows_pairs"]["all"]
    assert numbers["count"] == 1463
    assert round(numbers["ss"] * 14.63) == count
    assert round(numbers["ss"], 2) == percent
    printed = score_here(path, "--language", "it", script="evaluate_scores.py")  # of any language
    assert printed.startswith(f"results_{model}, it")
    assert f"{percent:.2f}" in printed


HEADER = "id,sent_more,sent_less,sent_more_score,sent_less_score,score,stereo_antistereo,bias_type\n"
LINE = "0,One.,Two.,-1,-2,1,stereo,age\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("a,b\n1,2\n", "has no column sent_more"),
        ("", "has no column sent_more"),
        (HEADER, "holds no pairs"),
        (HEADER + LINE + LINE, "numbers two pairs alike"),
        (HEADER + LINE.replace("-2", "nan"), "line 2 has the sent_less_score 'nan': give a number"),
        (HEADER + LINE.replace("stereo,", "both,"), "line 2 has the stereo_antistereo 'both'"),
        (HEADER + "0,One.,Two.\n", "line 2 has more or fewer cells"),
    ],
)
def test_a_csv_that_is_laid_out_otherwise_is_refused_by_its_line(score_here, tmp_path, content, words):
    (tmp_path / "x.csv").write_text(content, encoding="utf-8")
    with pytest.raises(SystemExit, match=words):
        score_here(tmp_path / "x.csv", script="evaluate_scores.py")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "mac_roman"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_tables_are_read_however_they_were_saved(score_here, tmp_path, encoding, delimiter):
    lines = (HEADER + LINE.replace("One", "Één")).replace(",", delimiter)
    (tmp_path / "x.csv").write_bytes(lines.encode(encoding))
    report = json.loads(score_here(tmp_path / "x.csv", "--json", script="evaluate_scores.py"))
    assert report["results"]["en"]["crows_pairs"]["all"]["ss"] == 100


def test_a_table_with_and_one_without_and_how_small_the_difference_is(score_here, shared, tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("id,flag\n0a0ad8a0d5b1cb0ff1d6d4b4b1d4a2b5,odd\n", encoding="utf-8")
    words = [shared / TURKISH, "--language", "tr", "--data-dir", shared / "upstream", "--breakdown", "agreement"]
    printed = score_here(*words, "--without", "forced_tie", script="evaluate_scores.py")
    assert "PARTIAL: without forced_tie" in printed
    assert "Left out: 12 of 2106 in intrasentence (tr), 0 of 2123 in intersentence (tr)" in printed
    assert "The effect is small: every figure lies within the 95% interval" in printed
    assert printed.count("agreement 5") == 6
    with pytest.raises(SystemExit, match="1 of 1 ids with flags of your own are of no example here"):
        score_here(*words, "--without", "odd", "--flags", own, script="evaluate_scores.py")
    with pytest.raises(SystemExit, match=r"'forced_ties' is no flag \(nearest: forced_tie\)"):
        score_here(*words, "--without", "forced_ties", script="evaluate_scores.py")
    chosen = json.loads(score_here(*words, "--min-agreement", "5", "--json", script="evaluate_scores.py"))["selected"]
    assert chosen["which"] == "agreement of 5 or more"
    assert chosen["results"]["tr"]["intersentence"]["all"]["count"] == 620
    assert chosen["differences"]["tr"]["intersentence"].keys() == {"ss", "lms", "icat"}


def row(name, *flags, agreement=4, labels=("stereotype", "anti-stereotype")):
    options = [{"id": f"{name}{label}", "sentence": label, "gold_label": label} for label in labels]
    return {
        "id": name, "target": name, "bias_type": "age", "context": "", "sentences": options, "agreement": agreement,
        "flags": list(flags),
    }  # fmt: skip


def test_examples_are_kept_by_flag_own_flag_and_agreement():
    data = {"crows_pairs": [row("a"), row("b", "forced_tie"), row("c", agreement=3), row("d")]}
    kept = Selection(["forced_tie", "odd"], 4, {"d": {"odd"}}).rows(data)
    assert [one["id"] for one in kept["crows_pairs"]] == ["a"]
    with pytest.raises(Refusal, match="No example of crows_pairs is left"):
        Selection([], 5).rows(data)
    with pytest.raises(Refusal, match="'a' has no annotators' labels"):
        Selection([], 5).rows({"crows_pairs": [row("a", agreement=None)]})


def test_pairs_in_which_nothing_can_be_preferred_are_refused_by_name():
    rows = [row("a"), row("b", "forced_tie"), row("c", "options_equal", "empty_sentence")]
    with pytest.raises(
        Refusal, match=r"'b' \(forced_tie\), 'c' \(empty_sentence\): .*--without empty_sentence forced_tie"
    ):
        check_pairs({"crows_pairs_fr": rows})
    check_pairs({"crows_pairs_fr": rows[:1], "intrasentence_es": rows})


def test_a_large_effect_is_said_to_be_one():
    some = [row(str(i), *(["forced_tie"] if i % 2 else [])) for i in range(40)]
    scores = [[-2, -1] if i % 2 else [-1, -2] for i in range(40)]
    parts = {"crows_pairs": (some, scores)}
    kept = Selection(["forced_tie"]).parts(parts)
    assert make_results(kept)["en"]["crows_pairs"]["all"]["ss"] == 100
    assert effect(parts, kept, 0.95)[1].startswith("The effect is not small: beyond the 95% interval")


@pytest.mark.parametrize("content", ["id;flag\na;b\n", "id,flag\n", "id,flag\na,\n", ""])
def test_flags_of_one_s_own_come_as_a_csv(tmp_path, content):
    (tmp_path / "flags.csv").write_text(content, encoding="utf-8")
    with pytest.raises(Refusal, match="give a CSV with the columns id and flag"):
        read_own_flags(tmp_path / "flags.csv")


def test_flags_are_read_by_id(tmp_path):
    (tmp_path / "flags.csv").write_text("id,flag\na,odd\na,old\nb,odd\n", encoding="utf-8-sig")
    assert read_own_flags(tmp_path / "flags.csv") == {"a": {"odd", "old"}, "b": {"odd"}}


def test_french_pairs_are_refused_by_name_and_scored_without_them(score_here, shared, upstream, tmp_path):
    words = [
        "--model",
        shared / "oracles" / "models" / "bert",
        "--tasks",
        "crows_pairs",
        "--languages",
        "fr",
        "--data-dir",
        upstream,
    ]
    with pytest.raises(SystemExit, match=r"'129' \(empty_sentence\).*'59' \(forced_tie\)|'59'.*'129'"):
        score_here(*words, "--output-dir", tmp_path / "a")
    flags = ["--without", "empty_sentence", "forced_tie", "--limit", "3"]
    printed = score_here(*words, *flags, "--output-dir", tmp_path / "a")
    assert "4 of 1677 examples left out" in printed
    record = json.loads((tmp_path / "a" / "run.json").read_text(encoding="utf-8"))
    assert record["partial"] == "first 3 examples of each task, without empty_sentence forced_tie"
    assert "crows_pairs" in score_here(tmp_path / "a", "--data-dir", upstream, script="evaluate_scores.py")


def test_portuguese_examples_without_an_attribute_are_left_out_and_counted(score_here, shared, upstream, tmp_path):
    words = [
        "--model",
        shared / "oracles" / "models" / "bert",
        "--tasks",
        "intrasentence",
        "--languages",
        "pt",
        "--data-dir",
        upstream,
    ]
    flags = ["--without", *(["blank_glued", "blank_twice", "options_equal"]), "--limit", "60"]
    for _ in range(2):  # computed, then found finished
        printed = score_here(*words, *flags, "--output-dir", tmp_path)
        assert "of intrasentence_pt left out" in printed
        assert "method that reads whole sentences" in printed
    left_out = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["left_out"]["intrasentence_pt"]
    assert 0 < len(left_out) < 10


def test_what_is_in_no_language_asked_for_is_refused(score_here, tmp_path, capsys):
    with pytest.raises(SystemExit):
        score_here("--model", "x", "--tasks", "crows_pairs", "--languages", "zh", "--output-dir", tmp_path)
    assert "there is no crows_pairs in zh: it is in en, fr, nl" in capsys.readouterr().err


def test_all_published_portuguese_figures_are_reproduced(score_here, shared):
    folder = shared / "predictions" / "portuguese"
    models = [f"{name}:pt={folder}/predictions_{name}.json" for name in ("bertimbau_base", "tucano_1b1")]
    options = ["--tables", "portuguese", "--published", shared / "tables" / "portuguese.json"]
    printed = score_here(*models, *options, "--data-dir", shared / "upstream", script="reproduce.py")
    assert "66 of 66 agree to ±0.005" in printed


def test_tables_over_common_examples_leave_out_what_a_language_lacks(score_here, shared):
    folder = shared / "predictions" / "multilingual"
    german = f"BERT:de={folder}/dbmdz_bert-base-german-cased_BertLM_BertNextSentence_de.json"
    options = ["--tables", "multilingual-2", "--common", "--data-dir", shared / "upstream"]
    printed = score_here(german, f"BERT:tr={shared / TURKISH}", *options, script="reproduce.py")
    assert "PARTIAL: BERT, 2103 of 2106 of intrasentence_tr in common" in printed
    with pytest.raises(SystemExit):
        score_here(german, *options, "--published", "x.json", script="reproduce.py")
