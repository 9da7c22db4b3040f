"""Patterns of written times: the letters of FORMAT, as in Spark (`yyyy/MM/dd HH:mm:ss`), become regular expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

#: How times without a FORMAT are written: ISO 8601, with or without clock time, fraction and offset.
ISO = "yyyy-MM-dd['T'][ ][HH:mm[:ss[.SSSSSSSSS]]][XXX]"

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_LONG_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_SHORT_MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
_DAYS = "Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?"
_OFFSET = r"Z|[+-]\d{2}(?::?\d{2})?"

#: The field of each letter, and the regular expression for one letter and for two.
_NUMBERS = {
    "d": ("day", r"\d{1,2}", r"\d{2}"),
    "H": ("hour", r"\d{1,2}", r"\d{2}"),
    "h": ("hour12", r"\d{1,2}", r"\d{2}"),
    "m": ("minute", r"\d{1,2}", r"\d{2}"),
    "s": ("second", r"\d{1,2}", r"\d{2}"),
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
_REQUIRED = ("year", "month", "day")


@dataclass(frozen=True, slots=True)
class TimePattern:
    """A regular expression with one named group per field of a time."""

    expression: str
    fields: tuple[str, ...]


@cache
def time_pattern(text: str) -> TimePattern:
    """The pattern of a FORMAT; raises ValueError with the reason if it cannot be used.

    Examples
    --------
    >>> time_pattern("dd.MM.yy").fields
    ('day', 'month', 'year2')
    >>> time_pattern("HH:mm")
    Traceback (most recent call last):
    ValueError: FORMAT 'HH:mm' has no year
    """
    expression, fields, depth = "", [], 0
    for token in _TOKEN.finditer(text):
        symbol = token.group()
        if symbol in ("[", "]"):
            depth += 1 if symbol == "[" else -1
            expression += "(?:" if symbol == "[" else ")?"
        elif token.group(1) is not None:
            expression += re.escape(token.group(1).replace("''", "'") or "'")
        elif token.group(2):
            field, part = _field(symbol, text)
            if field in fields:
                raise ValueError(f"FORMAT '{text}' has the {field.rstrip('12')} twice")
            expression += f"(?P<{field}>{part})" if field else f"(?:{part})"
            fields += [field] if field else []
        else:
            expression += re.escape(symbol)
        if depth < 0:
            break
    if depth:
        raise ValueError(f"the brackets of FORMAT '{text}' do not match")
    for needed in _REQUIRED:
        if not any(field.startswith(needed) for field in fields):
            raise ValueError(f"FORMAT '{text}' has no {needed}")
    if ("hour12" in fields) != ("half" in fields):
        raise ValueError(f"FORMAT '{text}' has one of h and a without the other")
    return TimePattern(rf"\A(?i:{expression})\z", tuple(fields))


def _field(letters: str, text: str) -> tuple[str, str]:
    """The field that letters stand for ('' if it is not used), and its regular expression."""
    letter, count = letters[0], len(letters)
    if letter in _NUMBERS and count <= 2:
        field, short, long = _NUMBERS[letter]
        return field, short if count == 1 else long
    if letter in "yu" and count in (1, 2, 4):
        return ("year2", r"\d{2}") if count == 2 else ("year", r"\d{1,4}" if count == 1 else r"\d{4}")
    if letter == "M" and count <= 4:
        names = {3: _SHORT_MONTHS, 4: _LONG_MONTHS}
        return ("month_name", names[count]) if count > 2 else ("month", r"\d{1,2}" if count == 1 else r"\d{2}")
    if letter == "S" and count <= 9:
        return "fraction", rf"\d{{1,{count}}}"
    if letter == "a" and count == 1:
        return "half", "AM|PM"
    if letter in "XxZ" and count <= 3:
        return "offset", _OFFSET
    if letter == "E" and count <= 4:
        return "", _DAYS
    raise ValueError(f"FORMAT '{text}' has '{letters}', which is not known")
