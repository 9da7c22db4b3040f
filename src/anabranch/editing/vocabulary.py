"""The words of the language by the colour that editors give them, from the tables of the grammar.

Every word can also be a name: only the parser knows where a keyword may come. An editor sees a line at a time. It takes
a word as a keyword if the grammar allows what is next to it on its line. So `at` is a keyword in `AT LEAST 2`, and a
name in `at(x, 'hall')`, `(x, at DOUBLE)` and `STREAM at`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from enum import Enum
from functools import cache
from typing import NamedTuple

from anabranch.kinds import KINDS
from anabranch.language.names import WORD_CLASSES
from anabranch.language.parser import followers


class WordClass(Enum):
    """What a word of the language is to a reader."""

    KIND = "kind"
    KEYWORD = "keyword"
    OPERATOR = "operator"
    LITERAL = "literal"
    TYPE = "type"
    UNIT = "unit"


class Word(NamedTuple):
    """The class of a word, and regular expressions for what is behind and ahead of it where it is no name."""

    word_class: WordClass
    behind: str
    ahead: str


_OPERATORS = ("AND", "OR", "NOT", "IN", "IS", "BETWEEN")
_LITERALS = ("TRUE", "FALSE", "NULL")
_CLASS_OF = {
    **dict.fromkeys(KINDS, WordClass.KIND),
    **dict.fromkeys(_OPERATORS, WordClass.OPERATOR),
    **dict.fromkeys(_LITERALS, WordClass.LITERAL),
}
_CLASS_OF_TERMINAL = {"TYPE_NAME": WordClass.TYPE, "UNIT": WordClass.UNIT}

#: How what a terminal stands for begins; other followers are words or symbols.
_BEGINNINGS = {
    "NAME": r"[^\W\d]|`",
    "NUMBER": r"\.?[0-9]",
    "STRING": "'",
    "COMPARATOR": "[<>!]",
    "KLEENE_OPEN": "<",
    "KLEENE_CLOSE": ">",
    "OWN_WITHIN": r"WITHIN\b",
    "FILE_FORMAT": r"FORMAT\b",
    "WILDCARD": r"_\b",
    "$END": ";",
    **{
        terminal: rf"(?:{'|'.join(word for word, its in WORD_CLASSES.items() if its == terminal)})\b"
        for terminal in _CLASS_OF_TERMINAL
    },
}

#: What may always follow: the end of the line, or a comment.
_LINE_END = r"$|--"

#: A word next to a dot is a name; and so are most words at the beginning of a list.
_NO_DOT = r"(?<!\.)"
_NO_LIST = r"(?<![.(,])(?<![(,] )"


@cache
def words() -> Mapping[str, Word]:
    """Every word of the language, in upper case."""
    # The grammar takes types as names in most places, so their followers are not known; a bracket is none of them.
    classes = {
        word: Word(_CLASS_OF_TERMINAL[terminal], _NO_LIST, r"(?!\.|[ \t]*\()")
        for word, terminal in WORD_CLASSES.items()
        if terminal in _CLASS_OF_TERMINAL
    }
    in_lists = followers()["("] | followers()[","]
    # One blank each, because the width of what is looked for behind a word is fixed.
    before_names = [word for word, after in sorted(followers().items()) if word.isalpha() and after == {"NAME"}]
    no_name = "".join(f"(?<!{word} )" for word in before_names)
    return classes | {
        word: Word(
            _CLASS_OF.get(word, WordClass.KEYWORD),
            (_NO_DOT if word in in_lists else _NO_LIST) + no_name,
            _ahead(after),
        )
        for word, after in followers().items()
        if word.isalpha()
    }


def _ahead(after: Collection[str]) -> str:
    """A regular expression for the texts and terminals that can follow a word."""
    # A name may be any word, so the other words need not be listed.
    listed = [text for text in sorted(after) if text in _BEGINNINGS or not (text.isalpha() and "NAME" in after)]
    beginnings = (_BEGINNINGS.get(text) or (rf"{text}\b" if text.isalpha() else re.escape(text)) for text in listed)
    return rf"(?!\.)(?=[ \t\r]*(?:{_LINE_END}|(?i:{'|'.join(beginnings)})))"
