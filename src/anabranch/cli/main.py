"""`anabranch`: puts the commands together, and turns every error into one line and an exit status."""

from __future__ import annotations

import sys
from typing import Any

import typer

from anabranch.cli import check, demo, explain, fit, run, simulate, stream
from anabranch.cli.common import FAILED, WRONG, RunFailed, say
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.runtime.failures import translate

# Typer brings a Click of its own, and names only the last of these classes.
UsageError: type[Any] = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="anabranch",
    help="Event queries over uncertain streams: every answer carries the probability that it is true.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for module in (run, stream, explain, check, simulate, demo):
    app.command(name=module.__name__.rpartition(".")[2])(module.command)
app.add_typer(fit.app, name="fit")


def main() -> None:
    """Run a command: 0 done, 1 the run failed, 2 the workbook or the arguments are wrong."""
    sys.exit(_status())


def _status() -> int:
    try:
        return app(prog_name="anabranch", standalone_mode=False) or 0
    except typer.Exit as error:
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        say("anabranch: stopped")
        return FAILED
    except WorkbookError as error:
        say(error.report())
        return WRONG
    except RunFailed as error:
        say(str(error))
        return FAILED
    except AnabranchError as error:
        say(f"anabranch: {error}")
        return FAILED
    except UsageError as error:
        # A command without its arguments has its help for a message, which needs no more words.
        told = error.format_message().rstrip(".")
        say(told if "\n" in told else f"anabranch: {told}; anabranch --help lists what there is")
        return WRONG
    except Exception as error:
        # Whatever else can happen, a full disk or a folder that may not be written among it, is one line too.
        say(f"anabranch: {translate(error)}")
        return FAILED
