"""What is made of scores afterwards: results, tables, comparisons, every example, the forms of others. No torch."""

from stereoset_report.results import find_alarms, make_results
from stereoset_report.text import fallback_words, find_notes, render, render_difference
from stereoset_scoring.questions.configs import split_config

__all__ = [
    "fallback_words",
    "find_alarms",
    "find_notes",
    "make_results",
    "render",
    "render_difference",
    "split_config",
]
