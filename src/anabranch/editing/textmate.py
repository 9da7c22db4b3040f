"""Colours of workbooks in editors: writes the TextMate grammar that VS Code, Sublime Text, GitHub and others read.

The words come from the tables of the grammar. After a change of the grammar, write the file again::

    python -m anabranch.editing.textmate
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from anabranch.editing.vocabulary import Word, WordClass, words

#: Where the repository has the file.
PATH = "editors/anabranch.tmLanguage.json"

SCOPES = {
    WordClass.KIND: "keyword.declaration.kind.anabranch",
    WordClass.KEYWORD: "keyword.other.anabranch",
    WordClass.OPERATOR: "keyword.operator.word.anabranch",
    WordClass.LITERAL: "constant.language.anabranch",
    WordClass.TYPE: "storage.type.anabranch",
    WordClass.UNIT: "keyword.other.unit.anabranch",
}


def grammar() -> dict[str, Any]:
    """The TextMate grammar as data for JSON. The expressions are those of the scanner, for one line at a time."""
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Anabranch",
        "scopeName": "source.anabranch",
        "fileTypes": ["abq"],
        "patterns": [
            {"name": "comment.line.double-dash.anabranch", "match": "--.*$"},
            {
                "name": "string.quoted.single.anabranch",
                "begin": "'",
                "end": "'(?!')",
                "patterns": [{"name": "constant.character.escape.anabranch", "match": "''"}],
            },
            {"name": "variable.other.quoted.anabranch", "match": "`(?:[^`]|``)*`"},
            *_word_patterns(),
            {"name": "entity.name.function.anabranch", "match": r"\b[^\W\d]\w*(?=[ \t]*\()"},
            {"name": "variable.other.anabranch", "match": r"\b[^\W\d]\w*"},
            {
                "name": "constant.numeric.anabranch",
                "match": r"(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?",
            },
            {"name": "keyword.operator.anabranch", "match": r"<>|!=|<=|>=|[=<>+\-*/%|!]"},
            {"name": "punctuation.anabranch", "match": r"[()\[\],.;]"},
        ],
    }


def _word_patterns() -> list[dict[str, str]]:
    """A pattern for the words of each class that the same can be next to."""
    alike: dict[Word, list[str]] = {}
    for name, word in sorted(words().items()):
        alike.setdefault(word, []).append(name)
    return [
        {"name": SCOPES[word.word_class], "match": rf"{word.behind}\b(?i:{'|'.join(names)})\b{word.ahead}"}
        for word, names in alike.items()
    ]


def as_text() -> str:
    """The grammar as JSON."""
    return json.dumps(grammar(), indent=2) + "\n"


def main() -> None:
    """Write the grammar to a file; by default to that of the repository in the current folder."""
    Path(*(sys.argv[1:2] or [PATH])).write_text(as_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
