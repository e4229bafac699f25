"""Every method with its options and its source, as a Markdown table."""

import argparse

from stereoset_cli.ending import run
from stereoset_scoring.methods.registry import methods_table


def main() -> None:
    """The table."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print(methods_table())


def door() -> None:
    """The command."""
    run(main)


if __name__ == "__main__":
    door()
