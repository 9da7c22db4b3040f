"""Completion in the shell: the words that the grammar allows next, and the declared names and columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.cli.shell.commands import COMMANDS
from anabranch.cli.shell.statements import is_command
from anabranch.kinds import KINDS
from anabranch.language.names import quoted
from anabranch.language.parser import next_words
from anabranch.language.scanner import statement_ends

_WORD = re.compile(r"\w*$")


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
        word = _WORD.search(text)
        typed = word.group() if word else ""
        candidates = continuations(text[: len(text) - len(typed)], self._catalog)
        yield from _matching(candidates, typed)

    def _of_command(self, text: str, event: CompleteEvent) -> Iterator[Completion]:
        name, space, argument = text.partition(" ")
        if not space:
            yield from _matching((command.name for command in COMMANDS), name)
        elif name == ".read":
            yield from self._paths.get_completions(Document(argument), event)
        elif any(command.name == name and "NAME" in command.usage for command in COMMANDS):
            yield from _matching(self._catalog.names((Query,)), argument.rpartition(" ")[2])


def continuations(text: str, catalog: Catalog) -> list[str]:
    """The words that may come after `text`: keywords, then names and columns where a name may come."""
    statement = text[max(statement_ends(text), default=0) :].lstrip()
    if not statement:
        return ["CREATE", *KINDS]
    if not statement.upper().startswith("CREATE"):
        statement = f"CREATE QUERY q AS {statement}"
    keywords, name = next_words(statement)
    if not name:
        return keywords
    columns = _columns(catalog)
    return columns if statement.rstrip().endswith(".") else [*keywords, *map(quoted, catalog.names()), *columns]


def _columns(catalog: Catalog) -> list[str]:
    declared = [entry for entry in catalog.entries.values() if isinstance(entry, Stream | Relation)]
    return list(dict.fromkeys(quoted(column.name) for entry in declared for column in entry.columns))


def _matching(candidates: Iterable[str], typed: str) -> Iterator[Completion]:
    """The candidates that begin with what is typed, in any case."""
    for candidate in dict.fromkeys(candidates):
        if candidate.lower().startswith(typed.lower()):
            yield Completion(candidate, start_position=-len(typed))
