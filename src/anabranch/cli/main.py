"""`anabranch`: puts the commands together, and turns every error into one line and an exit status."""

from __future__ import annotations

import sys

import click
import typer

from anabranch.cli import check, demo, explain, run, simulate, stream
from anabranch.cli.common import FAILED, WRONG, say
from anabranch.errors import AnabranchError, WorkbookError

app = typer.Typer(
    name="anabranch",
    help="Event queries over uncertain streams: every answer carries the probability that it is true.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for module in (run, stream, explain, check, simulate, demo):
    app.command(name=module.__name__.rpartition(".")[2])(module.command)


def main() -> None:
    """Run a command: 0 done, 1 the run failed, 2 the workbook or the arguments are wrong."""
    sys.exit(_status())


def _status() -> int:
    try:
        return app(standalone_mode=False) or 0
    except click.exceptions.NoArgsIsHelpError as error:
        say(error.format_message())
        return WRONG
    except click.ClickException as error:
        say(f"anabranch: {error.format_message()}; anabranch --help lists what there is")
        return WRONG
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        say("anabranch: stopped")
        return FAILED
    except WorkbookError as error:
        say(error.report())
        return WRONG
    except AnabranchError as error:
        say(f"anabranch: {error}")
        return FAILED
