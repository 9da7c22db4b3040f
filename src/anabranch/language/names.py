"""Reserved words of the language, and how a name is quoted."""

from __future__ import annotations

import re

from anabranch.language.types import TYPE_NAMES

#: Time units, in seconds.
SECONDS_OF = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400}

#: The terminal of words that belong to a class of words, used where the grammar expects that class.
WORD_CLASSES = {
    "_": "WILDCARD",
    **{word: "UNIT" for unit in SECONDS_OF for word in (unit, f"{unit}S")},
    **dict.fromkeys(TYPE_NAMES, "TYPE_NAME"),
}

#: Words that are never names inside a condition or a term.
RESERVED = {"TRUE", "FALSE", "NULL", "NOT", "_"}

#: Words that follow a complete goal, so a `>` before them closes `+<...>`.
AFTER_GOAL = {
    "THEN", "WHERE", "GROUP", "PER", "ORDER", "THRESHOLD", "CALIBRATED", "ACCURACY", "CONFIDENCE", "SEED", "METHOD",
    "WITHIN",
}  # fmt: skip

#: How the names of implied statements end: the query of a WITH, and the answers of INTERVALS FROM QUERY.
LOCAL_QUERY, ANSWERS = " (query)", " (answers)"

_PLAIN = re.compile(r"[^\W\d]\w*")


def quoted(name: str) -> str:
    """The name as it is written in a workbook: in backticks unless it is a plain word."""
    # A type AS before another name would be the word of an alias.
    if _PLAIN.fullmatch(name) and name.upper() not in RESERVED | AFTER_GOAL | {"AS"}:
        return name
    return "`" + name.replace("`", "``") + "`"
