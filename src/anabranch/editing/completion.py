"""Completion while a workbook is typed: the words that the grammar allows next, and the declared names and columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.kinds import KINDS
from anabranch.language.names import quoted
from anabranch.language.parser import next_words
from anabranch.language.scanner import pieces, statement_ends

_WORD = re.compile(r"\w*$")


class Candidate(NamedTuple):
    """What can be typed next: its text, what it is (`keyword`, `stream`, `column`, ...), and a remark."""

    text: str
    what: str
    remark: str = ""


def complete(text: str, catalog: Catalog) -> tuple[list[Candidate], int]:
    """Return what the last word of a text can become, in any case, and the length of that word, which may be 0.

    Examples
    --------
    >>> candidates, length = complete("CREATE STR", Catalog())
    >>> [candidate.text for candidate in candidates], length
    (['STREAM'], 3)
    """
    word = _WORD.search(text)
    typed = word.group() if word else ""
    if _is_inside_text(text):
        return [], len(typed)
    candidates: dict[str, Candidate] = {}
    for candidate in _continuations(text[: len(text) - len(typed)], catalog):
        if candidate.text.lower().startswith(typed.lower()):
            candidates.setdefault(candidate.text, candidate)
    return list(candidates.values()), len(typed)


def _is_inside_text(text: str) -> bool:
    """Whether the text ends inside a string, a quoted name or a comment."""
    kind = ""
    for kind, start, _ in pieces(text):
        if kind == "other" and text[start] in "'`":
            return True
    return kind == "comment"


def _continuations(text: str, catalog: Catalog) -> Iterator[Candidate]:
    """What may come after `text`: keywords, then names and columns where a name may come."""
    last = text[max(statement_ends(text), default=0) :]
    statement = "".join(" " if kind == "comment" else last[start:end] for kind, start, end in pieces(last)).lstrip()
    if not statement:
        yield from (Candidate(word, "keyword") for word in ("CREATE", *KINDS))
        return
    if not statement.upper().startswith("CREATE"):
        statement = f"CREATE QUERY q AS {statement}"
    keywords, name = next_words(statement)
    if name and statement.rstrip().endswith("."):
        yield from _columns(catalog)
        return
    yield from (Candidate(word, "keyword") for word in keywords)
    if name:
        yield from (Candidate(quoted(entry.name), *_description(entry)) for entry in catalog.entries.values())
        yield from _columns(catalog)


def _columns(catalog: Catalog) -> Iterator[Candidate]:
    """The columns of all streams and relations, each once, with the names of those that have it."""
    owners: dict[str, list[str]] = {}
    for entry in catalog.entries.values():
        if isinstance(entry, Stream | Relation):
            for column in entry.columns:
                owners.setdefault(quoted(column.name), []).append(entry.name)
    yield from (Candidate(name, "column", f"of {', '.join(names)}") for name, names in owners.items())


def _description(entry: Stream | Relation | Query) -> tuple[str, str]:
    if isinstance(entry, Query):
        return "query", entry.declaration.body.kind
    columns = ", ".join(column.name for column in entry.columns)
    return ("stream", f"{entry.model.value} ({columns})") if isinstance(entry, Stream) else ("relation", f"({columns})")
