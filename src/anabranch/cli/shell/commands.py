"""The dot commands of the shell."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from rich.table import Table
from rich.text import Text

from anabranch.catalog import Query, Relation, Stream
from anabranch.cli.messages import say
from anabranch.errors import AnabranchError
from anabranch.language.findings import did_you_mean
from anabranch.language.reading import read_workbook

if TYPE_CHECKING:
    from anabranch.cli.shell.shell import Shell


class Command(NamedTuple):
    """A dot command: how it is written, what it does, and the function that does it, with its argument."""

    name: str
    usage: str
    help: str
    run: Callable[[Shell, str], None]


class Leave(Exception):
    """Raised to leave the shell."""


def run_command(shell: Shell, text: str) -> None:
    """Run the command in a line."""
    name, _, argument = text.strip().partition(" ")
    command = next((command for command in COMMANDS if command.name == name.lower()), None)
    if command is None:
        hint = did_you_mean(name, [command.name for command in COMMANDS]) or "see .help"
        raise AnabranchError(f"there is no command {name}; {hint}")
    command.run(shell, argument.strip())


def _help(shell: Shell, argument: str) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_row("CREATE ...;", "declare a stream, a relation or a query")
    table.add_row("PATTERN ...;", "run a query of any kind; it gets the name query1, query2, ...")
    for command in COMMANDS:
        table.add_row(Text(f"{command.name} {command.usage}"), command.help)
    shell.console.print(table)


def _tables(shell: Shell, argument: str) -> None:
    entries = shell.session.catalog.entries.values()
    if not entries:
        say("nothing is declared yet; type a CREATE statement, or .read FILE")
        return
    table = Table.grid(padding=(0, 2))
    for entry in entries:
        table.add_row(*map(Text, (entry.name, *_description(entry))))
    shell.console.print(table)


def _description(entry: Stream | Relation | Query) -> tuple[str, str]:
    if isinstance(entry, Query):
        return "query", entry.declaration.body.kind
    what = f"{entry.model.value} stream" if isinstance(entry, Stream) else "relation"
    return what, ", ".join(column.name for column in entry.columns)


def _explain(shell: Shell, argument: str) -> None:
    if not argument:
        raise AnabranchError(f"which query? declared are: {_query_names(shell)}")
    shell.console.print(str(shell.session.explain(argument)), soft_wrap=True, markup=False, highlight=False)


def _run(shell: Shell, argument: str) -> None:
    names = argument.split() or shell.session.catalog.names((Query,))
    if not names:
        raise AnabranchError("no query is declared yet; type one, or .read FILE")
    shell.run_queries([shell.session.catalog.require_query(name) for name in names])


def _read(shell: Shell, argument: str) -> None:
    if not argument:
        raise AnabranchError("which file? write .read FILE")
    path = os.path.expanduser(argument)
    shell.execute(read_workbook(path), path, or_replace=True)


def _quit(shell: Shell, argument: str) -> None:
    raise Leave


def _query_names(shell: Shell) -> str:
    return ", ".join(shell.session.catalog.names((Query,))) or "none"


COMMANDS = (
    Command(".run", "[NAME ...]", "run declared queries; all of them without a name", _run),
    Command(".explain", "NAME", "show the class, the plan and the cost of a query", _explain),
    Command(".tables", "", "list the declared streams, relations and queries", _tables),
    Command(".read", "FILE", "declare and run the statements of a file, again if it has changed", _read),
    Command(".help", "", "show this list", _help),
    Command(".quit", "", "leave the shell, as Ctrl-D does", _quit),
)
