"""Run as a program: commands of `anabranch`, with `then` between two, in one process, so that Spark starts once."""

from __future__ import annotations

import sys
from itertools import groupby

from anabranch.cli.main import main


def run_all(arguments: list[str]) -> None:
    """Run one command after another; the first that fails ends the process with its status."""
    for is_separator, command in groupby(arguments, key="then".__eq__):
        if is_separator:
            continue
        sys.argv = ["anabranch", *command]
        try:
            main()
        except SystemExit as ended:
            if ended.code:
                raise


if __name__ == "__main__":
    run_all(sys.argv[1:])
