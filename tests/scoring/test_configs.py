"""Names of configs: one list of tasks and languages for the whole house."""

import pytest

from stereoset_dataset import Stereoset
from stereoset_report.paper_tables import STUDY
from stereoset_scoring.methods.registry import METHODS
from stereoset_scoring.questions.configs import (
    CONTEXT_TASKS,
    LANGUAGES,
    LANGUAGES_OF,
    STEREOSET,
    TASKS,
    asked_as,
    config_name,
    split_config,
)
from stereoset_scoring.questions.examples import read_example

NAMED = [(task, language) for task, languages in LANGUAGES_OF.items() for language in languages]


@pytest.mark.parametrize(
    ("config", "task", "language", "asked"),
    [
        ("intrasentence", "intrasentence", "en", "intrasentence"),
        ("intersentence_tr", "intersentence", "tr", "intersentence"),
        ("intrasentence_pt", "intrasentence", "pt", "intrasentence"),
        ("intrasentence_pairs", "intrasentence_pairs", "en", "pairs"),
        ("crows_pairs", "crows_pairs", "en", "pairs"),
        ("crows_pairs_nl", "crows_pairs", "nl", "pairs"),
        ("crows_pairs_it", "crows_pairs", "it", "pairs"),
        ("crows_pairs_en_revised", "crows_pairs_en_revised", "en", "pairs"),
        ("crows_pairs_gender_en", "crows_pairs_gender", "en", "pairs"),
        ("crows_pairs_gender_zh", "crows_pairs_gender", "zh", "pairs"),
        ("somebody_elses", "somebody_elses", "en", "somebody_elses"),
    ],
)
def test_a_config_names_its_task_its_language_and_what_methods_call_it(config, task, language, asked):
    assert split_config(config) == (task, language)
    assert asked_as(config) == asked


@pytest.mark.parametrize(("task", "language"), [*NAMED, *((task, "it") for task in CONTEXT_TASKS)])
def test_a_task_and_its_language_come_back_from_the_name_that_they_make(task, language):
    assert split_config(config_name(task, language)) == (task, language)


def test_the_data_set_has_a_config_for_every_task_in_every_language():
    ours = {config_name(task, language) for task, language in NAMED}
    assert ours - {"intrasentence_pairs"} == set(Stereoset.builder_configs)
    assert set(LANGUAGES) == {config.language for config in Stereoset.builder_configs.values()}


def test_methods_answer_every_task_under_the_name_that_an_example_has():
    assert {task for _, task in METHODS} == {asked_as(task) for task in TASKS}
    options = [{"id": letter, "sentence": letter} for letter in "ab"]
    contexts = {"intrasentence": "A BLANK.", "intersentence": "A chair.", "pairs": ""}
    tasks = [read_example({"id": "x", "context": text, "sentences": options}).task for text in contexts.values()]
    assert tasks == list(contexts)


def test_the_papers_tables_print_every_language():
    assert set(STUDY) == set(STEREOSET)
