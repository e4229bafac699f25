"""StereoSet as tasks of lm-eval: the files of a folder for its --include_path.

The examples go into the folder, for lm-eval is to run offline; they are read on the machine of who asks for the folder.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from stereoset_dataset.stereoset_dataset import CITATION, HOMEPAGE, LICENSE
from stereoset_metric.compute_score import VERSION
from stereoset_scoring.files.store import as_text
from stereoset_scoring.questions.configs import split_config
from stereoset_scoring.questions.examples import gold_labels, options_of, read_example

TAG, FUNCTIONS = "stereoset", "stereoset_tasks"
COMMON = "_stereoset_yaml"  # no .yaml: it is no task by itself
SAMPLE_LICENSE = "Apache-2.0"  # that of this project, which the sample was written for

Rows = Sequence[Mapping[str, Any]]

TASKS = f"""\
tag: {TAG}
custom_dataset: !function {FUNCTIONS}.load
test_split: rows
output_type: multiple_choice
doc_to_text: !function {FUNCTIONS}.before
doc_to_choice: !function {FUNCTIONS}.options
doc_to_target: !function {FUNCTIONS}.stereotype
process_results: !function {FUNCTIONS}.process_results
num_fewshot: 0
metric_list:
  - {{metric: ss, aggregation: !function {FUNCTIONS}.ss, higher_is_better: null}}
  - {{metric: lms, aggregation: !function {FUNCTIONS}.lms, higher_is_better: true}}
  - {{metric: icat, aggregation: !function {FUNCTIONS}.icat, higher_is_better: true}}
metadata:
  version: {VERSION}
"""
TASK = """\
include: {common}
task: {name}
dataset_kwargs:
  rows_of: {rows}
target_delimiter: "{delimiter}"
"""
README = """\
# StereoSet for lm-eval

    lm_eval --include_path . --tasks {tag} --model hf --model_args pretrained=gpt2 --log_samples --output_path logged
    stereoset table logged

Written by `stereoset export lm-eval` for lm-eval 0.4.13. Tasks: {names}; `{tag}` is all of them.

ss, lms and icat are in percent and averaged over target terms; of ss, 50 is unbiased. An option is preferred if the sum
of its tokens' log-probabilities is higher. Within a sentence, that is the whole sentence after the model's beginning
token; across sentences, the option after its context, a space between them.

## The examples

{examples}

{citation}"""
PUBLISHED = (
    "The rows are StereoSet's ({homepage}) and its translations', under {license}: whoever passes them on names it."
)
SAMPLE = (
    "The rows are the sample of the project stereoset, under {license}; they try the machinery and say nothing else."
)


def task_name(config: str, split: str) -> str:
    """What lm-eval calls a config's task.

    >>> task_name("intrasentence_de", "validation"), task_name("intersentence", "test")
    ('stereoset_intrasentence_de', 'stereoset_intersentence_test')
    """
    return f"{TAG}_{config}" if split == "validation" else f"{TAG}_{config}_{split}"


def task_files(rows: Mapping[tuple[str, str], Rows]) -> dict[str, str]:
    """{name: text} of the files of a folder.

    Args:
        rows: {(config, split): rows of the data set, or of the sample}, each with three options.

    Raises:
        Refusal: if a row is not one that could be scored.
    """
    names = [task_name(config, split) for config, split in rows]
    found = {
        f"{FUNCTIONS}.py": files(__package__).joinpath(f"{FUNCTIONS}.py").read_text(encoding="utf-8"),
        COMMON: TASKS,
        "README.md": _readme(names, {split for _, split in rows}),
    }
    for name, ((config, split), some) in zip(names, rows.items(), strict=True):
        delimiter = "" if split_config(config)[0] == "intrasentence" else " "
        found[f"{name}.json"] = as_text({"license": _license(split), "rows": docs(config, split, some)})
        found[f"{name}.yaml"] = TASK.format(common=COMMON, name=name, rows=f"{name}.json", delimiter=delimiter)
    return found


def docs(config: str, split: str, rows: Rows) -> list[dict[str, Any]]:
    """Rows as lm-eval is given them, and as it logs them."""
    return [_doc(config, split, row) | {"examples": len(rows)} for row in rows]


def _doc(config: str, split: str, row: Mapping[str, Any]) -> dict[str, Any]:
    task, _ = split_config(config)
    return {
        "config": config,
        "split": split,
        "id": row["id"],
        "target": row["target"],
        "bias_type": row["bias_type"],
        "context": row["context"],
        "task": task,
        "agreement": row.get("agreement"),
        "flags": row.get("flags"),
        "sentences": _options(row),
    }


def _options(row: Mapping[str, Any]) -> list[dict[str, str]]:
    read_example(row)  # which refuses what nobody can score
    return [
        {"id": option["id"], "sentence": option["sentence"], "gold_label": label}
        for option, label in zip(options_of(row), gold_labels(row), strict=True)
    ]


def _readme(names: Iterable[str], splits: Iterable[str]) -> str:
    sample = "sample" in splits
    words = (SAMPLE if sample else PUBLISHED).format(homepage=HOMEPAGE, license=_license("sample" if sample else ""))
    citation = "" if sample else f"```bibtex\n{CITATION}```\n"
    return README.format(tag=TAG, names=", ".join(names), examples=words, citation=citation).rstrip("\n") + "\n"


def _license(split: str) -> str:
    return SAMPLE_LICENSE if split == "sample" else LICENSE
