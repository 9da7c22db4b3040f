"""Executes what is typed into the shell; an error is printed, and the shell goes on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from anabranch.catalog import Query, Relation, Stream
from anabranch.cli.background import Background, Cancelled
from anabranch.cli.messages import say
from anabranch.cli.run import TABLE, run_queries
from anabranch.cli.shell.commands import Leave, run_command
from anabranch.cli.shell.statements import Part, is_command, is_complete, parts_of
from anabranch.cli.summary import RunSummary
from anabranch.errors import WorkbookError

if TYPE_CHECKING:
    from anabranch.session import Session

#: The file name in messages about what is typed.
TYPED = "<shell>"


class Shell:
    """A session with a console.

    Attributes
    ----------
    n_errors : how many errors were printed
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.console = Console()
        self.background = Background(session)
        self.n_errors = 0
        #: Texts that begin with a line of ours, which names the query behind it.
        self._named: set[str] = set()

    def handle(self, text: str, file: str = TYPED) -> bool:
        """Execute a dot command or statements; returns False to leave the shell."""
        try:
            if is_command(text):
                run_command(self, text)
            else:
                self.execute(text, file)
        except Leave:
            return False
        except Exception as error:
            self._report(error)
        return True

    def handle_lines(self, lines: Iterable[str], file: str) -> None:
        """Execute input that does not come from a terminal.

        CREATE statements are declared when a query or a command follows, or the input ends; so they can use each other
        in any order, as in a file.
        """
        text, n_lines = "", 0
        for number, line in enumerate(lines, 1):
            if is_command(line) and is_complete(text):
                if not (self.handle(_below(n_lines, text), file) and self.handle(line, file)):
                    return
                text, n_lines = "", number
                continue
            text += line
            if ";" in line and is_complete(text) and parts_of(text)[-1].is_query:
                self.handle(_below(n_lines, text), file)
                text, n_lines = "", number
        self.handle(_below(n_lines, text), file)

    def execute(self, text: str, file: str, or_replace: bool = False) -> None:
        """Declare the CREATE statements of a text, and run its queries; after an error, the next one follows."""
        for part in parts_of(text):
            try:
                if part.is_query:
                    self._run_unnamed(part, file)
                else:
                    self._declare(part, file, or_replace)
            except Cancelled:
                raise
            except Exception as error:
                self._report(error)

    def run_queries(self, queries: Sequence[Query]) -> None:
        """Run declared queries, those that share a pass together, and print their answers."""
        for group in self.session.groups(queries):
            self.background.run(partial(run_queries, self.session, group, TABLE, False, RunSummary("<shell>")))

    def _declare(self, part: Part, file: str, or_replace: bool) -> None:
        before = dict(self.session.catalog.entries)
        self.session.execute(part.text, file, or_replace)
        entries = self.session.catalog.entries
        declared = [entry for name, entry in entries.items() if entry is not before.get(name)]
        say(f"declared {', '.join(f'{_what(entry)} {entry.name}' for entry in declared)}")

    def _run_unnamed(self, part: Part, file: str) -> None:
        """Declare a query under a new name, and run it."""
        number = 1
        while self.session.catalog.get(f"query{number}") is not None:
            number += 1
        text = f"CREATE QUERY query{number} AS\n{part.text}"
        self._named.add(text)
        self.session.execute(text, file)
        self.run_queries([self.session.catalog.require_query(f"query{number}")])

    def _report(self, error: Exception) -> None:
        """Print an error, one line for each finding."""
        from anabranch.runtime.failures import translate

        self.n_errors += 1
        if isinstance(error, WorkbookError):
            if error.text in self._named:
                error = _one_line_up(error)
            for line in error.lines():
                say(line)
        else:
            say(f"anabranch: {translate(error)}")


def _what(entry: Stream | Relation | Query) -> str:
    return type(entry).__name__.lower()


def _below(n_lines: int, text: str) -> str:
    """The text with the positions that it has below this many lines."""
    return "\n" * n_lines + text if text else ""


def _one_line_up(error: WorkbookError) -> WorkbookError:
    """The error without the line that names the query."""
    findings = [
        replace(finding, span=finding.span and replace(finding.span, line=max(finding.span.line - 1, 1)))
        for finding in error.findings
    ]
    return WorkbookError(findings, error.text.partition("\n")[2], error.file)
