"""The papers' tables, from the published scores of real models, against the published tables."""

import csv
import io
import json
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from stereoset_report.correlation import spearman

# Published name -> released prediction file (moinnadeem/StereoSet@ead7d08).
STEREOSET = {
    "SENTIMENTLM": "SentimentModel",
    "BERT-base": "bert-base-cased_BertNextSentence_BertLM",
    "BERT-large": "bert-large-cased_BertNextSentence_BertLM",
    "GPT2": "gpt2_ModelNSP_GPT2LM",
    "GPT2-medium": "gpt2-medium_ModelNSP_GPT2LM",
    "GPT2-large": "gpt2-large_ModelNSP_GPT2LM",
    "XLNET-base": "xlnet-base-cased_ModelNSP_XLNetLM",
    "ROBERTA-large": "roberta-large_ModelNSP_RoBERTaLM",
    "ENSEMBLE": "EnsembleModel_",
}
# Published name and language -> released prediction file (slds-lmu/stereotypes-multi@883f005).
MULTILINGUAL = {
    "GPT-2:fr": "asi_gpt-fr-cased-small_GPT2LM_GPT2LM_d_fr",
    "mBERT:en": "bert-base-multilingual-cased_BertLM_BertNextSentence_en",
    "BERT:de": "dbmdz_bert-base-german-cased_BertLM_BertNextSentence_de",
    "BERT:tr": "dbmdz_bert-base-turkish-cased_BertLM_BertNextSentence_tr",
    "T5:es": "flax-community_spanish-t5-small_T5LM_ModelNSP_es",
    "mT5:tr": "google_mt5-base_mT5LM_ModelNSP_tr",
    "GPT-2": "gpt2_GPT2LM_GPT2LM_d_en",
}


@pytest.fixture(scope="module")
def reproduce(repository, upstream):
    """Run the script on some words of its command line; what it prints."""

    def run(*words):
        printed = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(printed):
            patch.setattr(sys, "argv", ["reproduce.py", *map(str, words), "--data-dir", str(upstream)])
            runpy.run_path(str(repository / "scripts" / "reproduce.py"), run_name="__main__")
        return printed.getvalue()

    return run


@pytest.fixture(scope="module")
def stereoset(shared):
    """NAME=PATH of the nine released files."""
    folder = shared / "predictions" / "stereoset"
    return [f"{name}={folder}/predictions_{file}.json" for name, file in STEREOSET.items()]


@pytest.fixture(scope="module")
def multilingual(shared):
    """NAME:LANGUAGE=PATH of the seven released files."""
    return [f"{name}={shared}/predictions/multilingual/{file}.json" for name, file in MULTILINGUAL.items()]


@pytest.fixture(scope="module")
def stereoset_tables(reproduce, stereoset, shared):
    """Tables 4, 6 and 7, as text, of all nine, with the published cells."""
    published = f"validation={shared}/tables/stereoset_dev_by_domain.json"
    return reproduce(*stereoset, "--tables", "4", "6", "7", "--published", published).split("\n\n\n")


@pytest.fixture(scope="module")
def multilingual_tables(reproduce, multilingual, shared):
    """All tables by language, as text, of all seven, with the published cells."""
    tables = [*(f"multilingual-{number}" for number in (2, 3, 4, 5, 8, 9)), "languages", "architectures"]
    return reproduce(*multilingual, "--tables", *tables, "--published", shared / "tables" / "multilingual.json")


def rows_of(printed, name):
    """The numbers of the rows of a terminal table that begin with a name."""
    lines = (line for line in printed.splitlines() if line.startswith(f"{name} "))
    return [[float(number) for number in re.findall(r"-?\d+\.\d+", line)] for line in lines]


def test_all_cells_of_table_7_agree_with_the_published_ones(stereoset_tables):
    assert "270 of 270 agree to ±0.005" in stereoset_tables[2]


def test_table_6_is_the_overall_row_of_table_7_by_task(stereoset_tables):
    assert "54 of 54 agree to ±0.005" in stereoset_tables[1]


def test_all_cells_of_the_multilingual_tables_agree_with_the_published_ones(multilingual_tables):
    found = re.findall(r"(\d+) of (\d+) agree", multilingual_tables)
    assert found == [("21", "21")] * 3 + [("28", "28")] * 3 + [("63", "63")] * 2


@pytest.fixture
def paper(shared):
    """The text of arXiv 2004.09456v1."""
    (path,) = (shared / "seeds").glob("001_*.txt")
    return path.read_text(encoding="utf-8")


def table_4(paper, split):
    """{model in lower case: [lms, ss, icat]} of the paper's Table 4, to one decimal, without hypothetical models."""
    lines = paper.partition(f"\n{split} set\n")[2].splitlines()[3:14]
    return {line.split()[0].lower(): list(map(float, line.split()[1:])) for line in lines}


# The released file of the sentiment baseline is of another model than the paper's row.
def test_table_4_agrees_with_the_paper(stereoset_tables, paper):
    published = table_4(paper, "Development")
    for name in STEREOSET.keys() - {"SENTIMENTLM"}:
        (numbers,) = rows_of(stereoset_tables[0], name)
        assert numbers == pytest.approx(published[name.lower()], abs=0.05001), name


# The ACL version, §7: 0.87. It is the test set's, over the pretrained models, without baseline and ensemble.
def test_the_correlation_is_the_papers(paper):
    rows = [row for name, row in table_4(paper, "Test").items() if name not in ("sentimentlm", "ensemble")]
    lms, ss, _ = zip(*rows, strict=True)
    assert len(rows) == 9
    assert round(spearman(lms, ss), 2) == 0.87


@pytest.fixture(scope="module")
def table_5(reproduce, stereoset):
    return reproduce(stereoset[-1], "--tables", "5")


# Terms of the development set, to one decimal.
@pytest.mark.parametrize(
    "term", ["mother", "grandfather", "software developer", "producer", "African", "Crimean", "Bible", "Muslim"]
)
def test_table_5_holds_the_terms_that_the_paper_names(table_5, paper, term):
    published = re.search(rf"^{term} ([\d.]+) ([\d.]+) ([\d.]+)$", paper, re.MULTILINE)
    (line,) = re.findall(rf"t: {term} +([\d.]+) +([\d.]+) +([\d.]+)", table_5)
    assert list(map(float, line)) == pytest.approx(list(map(float, published.groups())), abs=0.05001)


def test_lms_and_ss_correlate_over_the_language_models_alone(stereoset_tables):
    assert "over 7 models: 0.86 (without SENTIMENTLM, ENSEMBLE)" in stereoset_tables[0]


def test_a_cell_that_differs_from_the_published_one_is_marked(reproduce, stereoset, tmp_path):
    published = tmp_path / "published.json"
    published.write_text('{"gpt2": {"overall": {"intrasentence": {"lms": 91.11, "ss": 61.94, "icat": null}}}}')
    printed = reproduce(stereoset[3], "--tables", "6", "--published", f"validation={published}")
    assert "91.11 [91.11]  61.93 [61.94]!" in printed
    assert "1 of 2 agree" in printed


def test_by_default_all_tables_are_printed_that_the_scores_fill(reproduce, stereoset, multilingual):
    titles = re.findall("^(?:StereoSet|Multilingual study), Table ([0-9])", reproduce(stereoset[0]), re.MULTILINE)
    assert titles == ["4", "5", "6", "7"]
    printed = reproduce(multilingual[0])
    assert re.findall(r"^(\w+).*, Table|^(\w+), averaged", printed, re.M) == [("Multilingual", "")] * 6 + [
        ("", "Languages"),
        ("", "Architectures"),
    ]


def test_languages_stand_in_blocks_closed_by_their_mean(multilingual_tables):
    block = multilingual_tables.partition("\ntr, development set\n")[2].partition("\n\n")[0].splitlines()
    numbers = [re.sub(r"\[.*?\]", "", line).split()[1:] for line in block]
    bert, mt5, mean = ([float(number) for number in row] for row in numbers)
    assert mean == pytest.approx([(a + b) / 2 for a, b in zip(bert, mt5, strict=True)], abs=0.0101)


def test_architectures_stand_in_blocks_of_their_languages(multilingual_tables):
    block = multilingual_tables.partition("\nBERT, development set\n")[2].partition("\n\n")[0]
    assert [line.split()[0] for line in block.splitlines()] == ["de", "tr", "mean"]


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["scores.json"], "'scores.json' is not NAME=PATH"),
        (["A:xx=scores.json"], "names the language 'xx': choose one of en, "),
        (["A=missing.json"], "missing.json"),
        (["{gpt2}", "{gpt2}"], "GPT2 has two sets of scores for intersentence"),
        (["{gpt2}", "--tables", "8"], "The scores given cannot fill 8"),
        (["{gpt2}", "--published", "{dev}"], "does not say: give it as validation=FILE or test=FILE"),
        (["{gpt2}", "--published", "validation={list}"], "is in neither layout of published numbers"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(reproduce, stereoset, shared, tmp_path, words, refusal):
    (tmp_path / "list.json").write_text("[1]")
    places = {
        "gpt2": stereoset[3],
        "dev": shared / "tables" / "stereoset_dev_by_domain.json",
        "list": tmp_path / "list.json",
    }
    with pytest.raises(SystemExit, match=re.escape(refusal)):
        reproduce(*(word.format(**places) for word in words))


def test_no_torch_is_needed(repository, upstream, stereoset):
    script = repository / "scripts" / "reproduce.py"
    code = f"""
import runpy, sys
sys.argv = ["reproduce.py", {stereoset[0]!r}, "--data-dir", {str(upstream)!r}, "--tables", "4"]
runpy.run_path({str(script)!r}, run_name="__main__")
sys.exit(bool({{"torch", "transformers", "accelerate"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=repository, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_intervals_stand_beside_the_numbers(reproduce, stereoset, shared):
    words = (stereoset[3], "--tables", "7", "--confidence-level", "0.95")
    published = f"validation={shared}/tables/stereoset_dev_by_domain.json"
    printed = reproduce(*words, "--published", published)
    assert "61.93 (59.64, 64.34) [61.93]" in printed  # as `stereoset table --confidence-level 0.95` has it
    assert "30 of 30 agree to ±0.005" in printed
    (row,) = [
        row for row in csv.DictReader(io.StringIO(reproduce(*words, "--format", "csv"))) if row["Domain"] == "overall"
    ]
    found = [round(float(row[f"Intrasentence_ss{part}"]), 2) for part in ("", "_low", "_high")]
    assert found == [61.93, 59.64, 64.34]


def test_columns_that_no_model_fills_are_left_out(reproduce, stereoset, tmp_path):
    path = tmp_path / "intrasentence.json"
    scores = json.loads(Path(stereoset[3].partition("=")[2]).read_text())
    path.write_text(json.dumps({"intrasentence": scores["intrasentence"]}))
    printed = reproduce(f"GPT2={path}", "--tables", "7")
    assert "Intrasentence" in printed
    assert "Intersentence" not in printed
