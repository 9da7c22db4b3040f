"""JSON lines that are not plain: nested values, repeated names, arrays of rows, and what Spark allows beyond JSON.

Spark's reader also takes strings in single quotes, and the numbers NaN and Infinity. It reads one value of a line, and
ignores what follows it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn

#: A name or number that is longer is refused, and so is a value within this many others.
_LONGEST_NUMBER, _LONGEST_NAME, _DEEPEST = 1000, 50_000, 1000

_SPACE = re.compile(r"[ \t\r\n]*")
_STRINGS = {
    '"': re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt\']|u[0-9a-fA-F]{4}))*)"'),
    "'": re.compile(r"'((?:[^'\\\x00-\x1f]|\\(?:[\"\\/bfnrt']|u[0-9a-fA-F]{4}))*)'"),
}
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![0-9.eE+-])")
_WORD = re.compile(r"(?:true|false|null|NaN|Infinity|[+-]INF|[+-]Infinity)(?![0-9A-Za-z_$])")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class NotJson(Exception):
    """A text that Spark cannot read as JSON."""


@dataclass(frozen=True, slots=True)
class Value:
    """A value, as it is written; the text of a string without its quotes and escapes.

    `kind` is its first character: a quote, a bracket, `t`, `f`, `n` (null), `0` for integers, `.` for other numbers.
    """

    kind: str
    text: str


Fields = list[tuple[str, Value]]


def read_line(line: str) -> list[Value | Fields]:
    """The first value of a line: the fields of an object, or another value; of an array, its elements."""
    at = _after_space(line, 0)
    if at == len(line):
        return []
    if not line.startswith("[", at):
        return [_element(line, at, 0)[0]]
    elements: list[Value | Fields] = []
    at = _after_space(line, at + 1)
    if line.startswith("]", at):
        return elements
    while True:
        element, at = _element(line, at, 1)
        elements.append(element)
        at, more = _after_member(line, at, "]")
        if not more:
            return elements


def _element(line: str, at: int, depth: int) -> tuple[Value | Fields, int]:
    return _fields(line, at, depth + 1) if line.startswith("{", at) else _value(line, at, depth)


def unescape(text: str) -> str:
    """The text of a string with escapes; half of a surrogate pair becomes a question mark, as in Java."""
    text = _ESCAPE.sub(_character, text)
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    return paired.encode("utf-8", "replace").decode()


def _character(match: re.Match[str]) -> str:
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPES.get(escape, escape)


def _after_space(line: str, at: int) -> int:
    match = _SPACE.match(line, at)
    return at if match is None else match.end()


def _string(line: str, at: int) -> tuple[str, int]:
    pattern = _STRINGS.get(line[at : at + 1])
    match = pattern.match(line, at) if pattern is not None else None
    if match is None:
        _refuse()
    return unescape(match[1]) if "\\" in match[1] else match[1], match.end()


def _fields(line: str, at: int, depth: int) -> tuple[Fields, int]:
    """The fields of an object, and the index after it."""
    found: Fields = []
    at = _after_space(line, at + 1)
    if line.startswith("}", at):
        return found, at + 1
    while True:
        name, at = _string(line, at)
        at = _after_space(line, at)
        if not line.startswith(":", at) or len(name) > _LONGEST_NAME:
            _refuse()
        value, at = _value(line, _after_space(line, at + 1), depth)
        found.append((name, value))
        at, more = _after_member(line, at, "}")
        if not more:
            return found, at


def _after_member(line: str, at: int, closing: str) -> tuple[int, bool]:
    """The index after the comma or bracket that follows a member, and whether it is a comma."""
    at = _after_space(line, at)
    if line.startswith(closing, at):
        return at + 1, False
    if not line.startswith(",", at):
        _refuse()
    return _after_space(line, at + 1), True


def _value(line: str, at: int, depth: int) -> tuple[Value, int]:
    first = line[at : at + 1]
    if depth > _DEEPEST:
        _refuse()
    if first in _STRINGS:
        text, stop = _string(line, at)
        return Value('"', text), stop
    if first == "{":
        stop = _fields(line, at, depth + 1)[1]
        return Value("{", line[at:stop]), stop
    if first == "[":
        stop = _after_elements(line, at, depth + 1)
        return Value("[", line[at:stop]), stop
    word = _WORD.match(line, at)
    if word:
        return Value(first if first in "tfn" else ".", word[0]), word.end()
    number = _NUMBER.match(line, at)
    if number is None or len(number[0]) > _LONGEST_NUMBER:
        _refuse()
    return Value("." if number[1] or number[2] else "0", number[0]), number.end()


def _after_elements(line: str, at: int, depth: int) -> int:
    at = _after_space(line, at + 1)
    if line.startswith("]", at):
        return at + 1
    while True:
        at = _value(line, at, depth)[1]
        at, more = _after_member(line, at, "]")
        if not more:
            return at


def _refuse() -> NoReturn:
    raise NotJson
