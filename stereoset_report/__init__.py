"""What is made of scores afterwards: results, tables, the papers' tables. No torch."""

from stereoset_report.results import find_alarms, make_results, split_config
from stereoset_report.text import fallback_words, find_notes, render, render_difference

__all__ = [
    "fallback_words",
    "find_alarms",
    "find_notes",
    "make_results",
    "render",
    "render_difference",
    "split_config",
]
