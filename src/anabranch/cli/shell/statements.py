"""Splits what is typed into parts: workbooks of CREATE statements, and queries without a name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from anabranch.language.findings import Findings
from anabranch.language.scanner import LineIndex, scan, statement_ends

_NOT_LINE_END = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class Part:
    """Declarations, or one query without a name.

    `text` has the positions of the whole input: blanks stand for what comes before.
    """

    text: str
    is_query: bool


def is_complete(text: str) -> bool:
    """Whether nothing more has to be typed: a dot command, or statements that end with a semicolon.

    Examples
    --------
    >>> [is_complete(text) for text in ("", ".tables", "CREATE STREAM", "CREATE STREAM a;", "PATTERN a('x;")]
    [True, True, False, True, False]
    """
    return is_command(text) or not _first_word(text[max(statement_ends(text), default=0) :])


def is_command(text: str) -> bool:
    """Whether the text is a dot command."""
    return text.lstrip().startswith(".")


def parts_of(text: str) -> list[Part]:
    """Split text at its semicolons; CREATE statements in a row stay together, because they may use each other.

    The last statement needs no semicolon.
    """
    parts: list[Part] = []
    start = 0
    for end in [*statement_ends(text), len(text)]:
        word = _first_word(text[start:end])
        is_query = word.upper() != "CREATE"
        if word and parts and not is_query and not parts[-1].is_query:
            before = parts.pop().text
            parts.append(Part(before + text[len(before) : end], is_query))
        elif word:
            parts.append(Part(_NOT_LINE_END.sub(" ", text[:start]) + text[start:end], is_query))
        start = end
    return parts


def _first_word(text: str) -> str:
    """The first token; empty if there are only blanks and comments, or the first string is not closed."""
    statements = scan(text, LineIndex(text), Findings())
    if not statements:
        return ""
    return statements[0].tokens[0].text if statements[0].tokens else text.strip()
