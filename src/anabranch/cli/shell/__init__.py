"""`anabranch shell`: a prompt on one warm Spark session; statements are declared or run as they are typed."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stderr
from typing import Annotated

import typer

from anabranch.cli import options
from anabranch.cli.common import open_workbook, spark_settings
from anabranch.cli.messages import FAILED

Workbook = Annotated[
    str | None, typer.Argument(metavar="[WORKBOOK]", help="File with CREATE statements (*.abq) to start with.")
]


def command(
    workbook: Workbook = None,
    input: options.Inputs = None,
    master: options.Master = None,
    conf: options.Conf = None,
    packages: options.Packages = None,
    archive: options.Archive = None,
    verbose: options.Verbose = False,
) -> None:
    """Type queries and see their answers; without a terminal, execute standard input."""
    from anabranch.cli.shell.prompt import run_prompt
    from anabranch.cli.shell.shell import Shell

    session = open_workbook(workbook, input, master, verbose, settings=spark_settings(conf, packages, archive))
    # While Spark starts in the background, file descriptor 2 is redirected; messages need a descriptor of their own.
    with os.fdopen(os.dup(2), "w") as messages, redirect_stderr(messages):
        shell = Shell(session)
        if sys.stdin.isatty():
            run_prompt(shell)
            return
        shell.handle_lines(sys.stdin, "<stdin>")
    if shell.n_errors:
        raise typer.Exit(FAILED)
