"""Every method with its options and its source, as a page of Markdown.

stereoset methods > stereoset_scoring/METHODS.md
"""

import argparse

from stereoset_cli.ending import run
from stereoset_scoring.methods.registry import methods_table

TITLE = "# What can be asked of a model"
LEGEND = """\
Scores are natural logarithms (nats), and larger means likelier, unless a line says otherwise. A star marks the usual
default of a task; of several, the first that fits how the model was trained. The kind of a model is read from its
configuration. Options are given as `--option average=log`, or by a preset; "pairs" are those of CrowS-Pairs, or the
stereotype and the anti-stereotype of every intrasentence example."""


def page() -> str:
    """The page."""
    return "\n\n".join([TITLE, LEGEND, methods_table()])


def main() -> None:
    """The page, printed."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(page())


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
