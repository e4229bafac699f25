"""stereoset: how biased is a language model?

stereoset score --model bert-base-cased --output-dir runs/bert
stereoset table runs/bert
stereoset COMMAND --help
"""

import sys
from importlib import import_module

from stereoset_cli.ending import run
from stereoset_scoring import __version__

COMMANDS = {
    # name: (module, what it does)
    "score": ("stereoset_cli.score", "score a model on StereoSet or CrowS-Pairs, and print its table"),
    "table": ("stereoset_cli.table", "the table of saved scores, or of anybody's prediction file"),
    "compare": ("stereoset_cli.compare", "models beside each other: intervals, differences, tests"),
    "items": ("stereoset_cli.items", "every example with its scores and margins, flips, and target terms"),
    "export": (
        "stereoset_cli.export",
        "results in the forms of others; folders of data set and metric for the hub, tasks for lm-eval",
    ),
    "report": ("stereoset_cli.report", "a page about runs: numbers, figures, items, offline in one file"),
    "reproduce": ("stereoset_cli.reproduce", "the tables of the papers, from runs and prediction files"),
    "train-head": ("stereoset_cli.train_head", "train a next-sentence head"),
    "fetch": ("stereoset_cli.fetch", "bring data and models to a machine with internet, for one without"),
    "install": ("stereoset_cli.install", "have data and metric under their names on this machine, also offline"),
    "methods": ("stereoset_cli.methods", "every method with its options and its source"),
}


def main() -> None:
    """The command."""
    run(choose)


def choose() -> None:
    """Run the command that the first word names, with the words that follow."""
    name, *words = sys.argv[1:] or ["--help"]
    if name in ("-h", "--help"):
        print(usage())
        return
    if name == "--version":
        print(f"stereoset {__version__}")
        return
    if name not in COMMANDS:
        sys.exit(f"stereoset: there is no command {name!r}: choose one of {', '.join(COMMANDS)}.")
    sys.argv = [f"stereoset {name}", *words]
    if name == "score":
        from stereoset_scoring.processes import interruption

        interruption.begin()  # before the imports, which take seconds
    import_module(COMMANDS[name][0]).door()


def usage() -> str:
    """What there is to choose from."""
    return "\n".join([__doc__, *(f"  {name:<12} {what}" for name, (_, what) in COMMANDS.items())])
