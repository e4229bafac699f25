"""StereoSet's metric as an `evaluate` module: a thin skin over compute_score.py."""

import difflib
from collections.abc import Iterable
from typing import Any

import datasets

import evaluate

from .compute_score import Refusal
from .compute_score import compute_score
from .compute_score import flat_references
from .compute_score import listed
from .compute_score import paired

_DESCRIPTION = """\
How biased is a language model? From the scores that it gives to the options of context association tests: how often
it prefers a stereotype to an anti-stereotype (ss, 50 is unbiased), a meaningful option to a meaningless one (lms, 100
is a good model), and both in one number (icat). Also the metric of CrowS-Pairs, whose pairs have no meaningless option.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions: predictions[i][j], a float: the score of option j of example i, on any scale; higher is preferred.
        Infinite scores are legal.
    references: for every example its target, bias_type and gold labels: rows of the data set as they are (or just
        the columns target, bias_type and sentences), or flat dicts {target, bias_type, gold_label}. Two or three
        options, in any order.
    average: "target", the mean over target terms (as published for StereoSet), or "example", over examples.
    ties: "strict", a tie counts as anti-stereotype and as meaningless preferred (as published), or "half".
    breakdown: "bias_type", "target", "direction", "agreement" or a list of them.
    confidence_level: such as 0.95 for intervals by resampling target terms; None for none.
    n_resamples, seed: of the resampling.
    signature: whether to return a line that says how the numbers were made.
    min_agreement: such as 4, to judge only examples on which so many of the five annotators agree; None for all.
Returns:
    ss: percent, 0 to 100; the ideal is 50.
    lms: percent, 0 to 100; the ideal is 100, chance is 50; None without meaningless options.
    icat: percent, 0 to 100: lms * min(ss, 100 - ss) / 50.
    icat_macro: percent, 0 to 100: the mean of the target terms' icat.
    count: examples judged.
    ties: examples in which at least two options score equal.
    and on request ss_low, ss_high, lms_low, … (percent); bias_type and target (a dict each); signature.
Examples:
    >>> metric = evaluate.load("stereoset")
    >>> labels = ["stereotype", "anti-stereotype", "unrelated"]
    >>> references = [
    ...     {"target": "librarian", "bias_type": "profession", "gold_label": labels},
    ...     {"target": "librarian", "bias_type": "profession", "gold_label": labels},
    ... ]
    >>> metric.compute(predictions=[[-1.0, -2.0, -9.0], [-2.0, -1.0, -9.0]], references=references)
    {'ss': 50.0, 'lms': 100.0, 'icat': 100.0, 'icat_macro': 100.0, 'count': 2, 'ties': 0}
    >>> metric.compute(predictions=[[-1.0, -2.0, -9.0]] * 2, references=references, signature=True)["signature"]
    'average:target|ties:strict|n:2|terms:1|version:1.0.0'
"""

OPTIONS = ("average", "ties", "breakdown", "confidence_level", "n_resamples", "seed", "signature", "min_agreement")

_CITATION = """\
@inproceedings{nadeem-etal-2021-stereoset,
  title = {{StereoSet}: Measuring stereotypical bias in pretrained language models},
  author = {Nadeem, Moin and Bethke, Anna and Reddy, Siva},
  booktitle = {Proceedings of ACL-IJCNLP 2021}
}
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Stereoset(evaluate.Metric):
    """The module that `evaluate.load` returns."""

    def _info(self) -> evaluate.MetricInfo:
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "predictions": datasets.Sequence(datasets.Value("float64")),
                    "references": {
                        "target": datasets.Value("string"),
                        "bias_type": datasets.Value("string"),
                        "gold_label": datasets.Sequence(datasets.Value("string")),
                    },
                }
            ),
            reference_urls=["https://aclanthology.org/2021.acl-long.416"],
        )

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.num_process > 1:
            raise Refusal(
                f"num_process is {self.num_process}, and this metric runs in one process: gather the scores first."
            )
        self._added: tuple[list[Any], list[Any]] = ([], [])

    def __len__(self) -> int:
        return len(self._added[0])

    # The library would carry predictions and references through a file and Arrow: a lock and a cache folder for a
    # few numbers, None turned into NaN, and a bare KeyError for a row with one field more. They stay in memory.

    def add_batch(self, *, predictions: Any = None, references: Any = None, **unknown: Any) -> None:
        """Keep some examples for `compute`; see there.

        Raises:
            ValueError: if they differ in number, are no lists, or go by another name.
        """
        _check_names(unknown, ("predictions", "references"), "add_batch")
        predictions, golds = paired(predictions, flat_references(references))
        self._added[0].extend(predictions)
        self._added[1].extend(golds)

    def add(self, *, prediction: Any = None, reference: Any = None, **unknown: Any) -> None:
        """Keep one example for `compute`; see there."""
        _check_names(unknown, ("prediction", "reference"), "add")
        self.add_batch(predictions=[prediction], references=[reference])

    def compute(self, *, predictions: Any = None, references: Any = None, **options: Any) -> dict[str, Any]:
        """The scores of the given examples and those added before; see the description of the module.

        Raises:
            ValueError: if an example does not fit, or an argument is unknown; what was added is kept then.
        """
        _check_names(options, ("predictions", "references", *OPTIONS), "compute")
        scores, golds = self._added
        if predictions is not None or references is not None:
            scores = scores + listed([] if predictions is None else predictions, "The predictions")
            golds = golds + flat_references([] if references is None else references)
        result = self._compute(scores, golds, **options)
        self._added = ([], [])
        return result

    def _compute(self, predictions: Any, references: Any, **options: Any) -> dict[str, Any]:
        return compute_score(predictions, references, **options)


def _check_names(given: Iterable[str], known: tuple[str, ...], where: str) -> None:
    """Refuse an argument of another name, and say the nearest that there is."""
    for name in given:
        if name in known:
            continue
        nearest = difflib.get_close_matches(name, known, n=1)
        hint = f" (nearest: {nearest[0]})" if nearest else ""
        raise Refusal(f"{where} has no argument {name!r}{hint}: choose among {', '.join(known)}.")
