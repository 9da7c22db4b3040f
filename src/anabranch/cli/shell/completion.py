"""Completion in the shell: dot commands with their arguments, and statements as in an editor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from anabranch.catalog import Catalog, Query
from anabranch.cli.shell.commands import COMMANDS
from anabranch.cli.shell.statements import is_command
from anabranch.editing.completion import complete


class ShellCompleter(Completer):
    """Completes dot commands with their arguments, keywords, names and columns."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """The completions at the cursor."""
        text = document.text_before_cursor
        if is_command(text):
            yield from self._of_command(text.lstrip(), event)
            return
        candidates, length = complete(text, self._catalog)
        for candidate in candidates:
            yield Completion(candidate.text, start_position=-length)

    def _of_command(self, text: str, event: CompleteEvent) -> Iterator[Completion]:
        name, space, argument = text.partition(" ")
        if not space:
            yield from _matching((command.name for command in COMMANDS), name)
        elif name == ".read":
            yield from self._paths.get_completions(Document(argument), event)
        elif any(command.name == name and "NAME" in command.usage for command in COMMANDS):
            yield from _matching(self._catalog.names((Query,)), argument.rpartition(" ")[2])


def _matching(candidates: Iterable[str], typed: str) -> Iterator[Completion]:
    """The candidates that begin with what is typed, in any case."""
    for candidate in dict.fromkeys(candidates):
        if candidate.lower().startswith(typed.lower()):
            yield Completion(candidate, start_position=-len(typed))
