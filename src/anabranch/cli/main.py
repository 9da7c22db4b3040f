"""`anabranch`: the command line. Every error becomes one line and an exit status."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import Annotated, Any, NoReturn

import typer

from anabranch.cli.commands import LazyGroup
from anabranch.cli.messages import FAILED, WRONG, RunFailed, say
from anabranch.errors import AnabranchError, WorkbookError
from anabranch.patches import python_interrupts, spark_servers

# Typer has a Click of its own, and exports only the last of these classes.
UsageError: type[Any] = typer.BadParameter.__mro__[2]

#: The exit status after Ctrl-C, by convention and by Typer.
_INTERRUPTED = 128 + signal.SIGINT

app = typer.Typer(
    name="anabranch",
    cls=LazyGroup,
    help="Event queries over uncertain streams: every answer carries the probability that it is true.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"anabranch {version('anabranch')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True),
]


@app.callback()
def _options(version: Version = False) -> None:
    """Options of `anabranch` itself, before the name of a command."""


def main() -> None:
    """Run a command.

    Exit status: 0 done, 1 the run failed, 2 the workbook or the arguments are wrong, 130 stopped by Ctrl-C, 143 stopped
    by SIGTERM.
    """
    # If the connection to Java is lost, Py4J logs a traceback on the root logger, and the servers of PySpark print one;
    # the error is raised anyway.
    logging.getLogger().addHandler(logging.NullHandler())
    spark_servers.install()
    terminated = threading.Event()

    def terminate(number: int, frame: object) -> NoReturn:
        terminated.set()
        raise KeyboardInterrupt

    # SIGTERM, by which systems stop a process, is handled as Ctrl-C. Only the main thread may set a handler.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, terminate)
    status = _status(terminated)
    python_interrupts.forget()
    sys.exit(128 + signal.SIGTERM if status == _INTERRUPTED and terminated.is_set() else status)


def _status(terminated: threading.Event) -> int:
    """The exit status of the command; `terminated` is set by SIGTERM."""
    try:
        status = app(prog_name="anabranch", standalone_mode=False) or 0
        if status == _INTERRUPTED:
            say("anabranch: stopped")
        return status
    except typer.Exit as error:
        return error.exit_code
    except (typer.Abort, KeyboardInterrupt):
        say("anabranch: stopped")
        return _INTERRUPTED
    except WorkbookError as error:
        say(error.report())
        return WRONG
    except RunFailed as error:
        return _failed(str(error), terminated)
    except AnabranchError as error:
        return _failed(f"anabranch: {error}", terminated)
    except UsageError as error:
        # Without arguments, the message of a command is its help text.
        message = error.format_message().rstrip(".")
        say(message if "\n" in message else f"anabranch: {message}; see anabranch --help")
        return WRONG
    except Exception as error:
        # Any other error, such as a full disk or a folder without write permission, is one line too.
        from anabranch.runtime.failures import translate

        return _failed(f"anabranch: {translate(error)}", terminated)


def _failed(message: str, terminated: threading.Event) -> int:
    """Report a failure. After SIGTERM, it is that of a JVM that was stopped, too, or of a call that was given up."""
    if terminated.is_set():
        say("anabranch: stopped")
        return _INTERRUPTED
    say(message)
    return FAILED
