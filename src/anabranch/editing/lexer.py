"""Colours of workbooks in documentation, notebooks and terminals: a lexer for Pygments.

It splits text with the scanner of the language, so both see the same strings, numbers and comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import Lexer
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
    _TokenType,
)

from anabranch.editing.vocabulary import WordClass, words
from anabranch.language.scanner import pieces

_OF_WORD = {
    WordClass.KIND: Keyword.Declaration,
    WordClass.KEYWORD: Keyword,
    WordClass.OPERATOR: Operator.Word,
    WordClass.LITERAL: Keyword.Constant,
    WordClass.TYPE: Keyword.Type,
    WordClass.UNIT: Keyword.Pseudo,
}
_OF_PIECE = {
    "space": Whitespace,
    "comment": Comment.Single,
    "number": Number,
    "string": String.Single,
    "quoted": Name.Variable,
    "other": Error,
}
_PUNCTUATION = "()[],.;"


class WorkbookLexer(Lexer):
    """A lexer for workbooks and queries."""

    name = "Anabranch"
    url = "https://github.com/anabranch/anabranch"
    aliases: ClassVar[list[str]] = ["anabranch", "abq"]
    filenames: ClassVar[list[str]] = ["*.abq"]
    mimetypes: ClassVar[list[str]] = ["text/x-anabranch"]

    def __init__(self, **options: Any) -> None:
        # Positions must be those of the text.
        super().__init__(**{"stripnl": False, "ensurenl": False, **options})

    def get_tokens_unprocessed(self, text: str) -> Iterator[tuple[int, _TokenType, str]]:
        """Every piece of the text with its index and its token type."""
        for kind, start, end in pieces(text):
            if kind == "other" and text[start] == "'":
                yield start, String.Single, text[start:]  # never closed: the rest of the text is inside of it
                return
            yield start, _token_type(kind, text, start, end), text[start:end]


def _token_type(kind: str, text: str, start: int, end: int) -> _TokenType:
    if kind == "symbol":
        return Punctuation if text[start:end] in _PUNCTUATION else Operator
    return _word_type(text, start, end) if kind == "word" else _OF_PIECE[kind]


def _word_type(text: str, start: int, end: int) -> _TokenType:
    """The type of a word; a name before a bracket is that of a stream or a function."""
    word = words().get(text[start:end].upper())
    if word is not None and _matches(word.behind, text, start) and _matches(word.ahead, text, end):
        return _OF_WORD[word.word_class]
    return Name.Function if text[end:].lstrip(" \t").startswith("(") else Name


def _matches(expression: str, text: str, index: int) -> bool:
    return re.compile(expression, re.MULTILINE).match(text, index) is not None
