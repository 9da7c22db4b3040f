"""What the parser would have accepted, in words a user knows, and what the user probably meant."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from anabranch.language.findings import listed, nearest, shown
from anabranch.language.names import SECONDS_OF
from anabranch.language.scanner import Token
from anabranch.language.types import TYPE_NAMES

#: Terminals as they are listed to a user; those with the same words are listed once, those with none are left out.
_WORDS = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "WILDCARD": "_", "TYPE_NAME": "a type",
    "TRUE": "", "FALSE": "", "NULL": "", "NOT": "", "MINUS": "",
    "UNIT": "", "EQUAL": "an operator", "COMPARATOR": "an operator", "PLUS": "an operator",
    "STAR": "an operator", "SLASH": "an operator", "PERCENT": "an operator",
    "IN": "", "IS": "", "BETWEEN": "",
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "COMMA": "a comma", "DOT": "a dot", "VBAR": "|", "BANG": "!",
    "KLEENE_OPEN": "<", "KLEENE_CLOSE": ">", "$END": ";",
    "GROUP": "GROUP BY", "MAX": "MAX DELAY", "INFERRED": "INFERRED FROM",
    "PREDICTED": "PREDICTED FROM", "AT": "AT LEAST",
    "PRECEDED": "PRECEDED BY", "MET": "MET BY", "OVERLAPPED": "OVERLAPPED BY", "STARTED": "STARTED BY",
    "FINISHED": "FINISHED BY", "ENDS": "ENDS AFTER",
}  # fmt: skip

#: Operators that the grammar also uses as marks: where their fellow is not expected, they are listed as they are.
_MARKS = {
    "EQUAL": ("=", "COMPARATOR"),
    "PLUS": ("+", "MINUS"),
    "STAR": ("*", "SLASH"),
    "NOT": ("NOT", "IS"),
    "NULL": ("NULL", "TRUE"),
}

#: Words of other languages, and what ours has in their place.
_ELSEWHERE = {
    "SELECT": "a query begins with CREATE QUERY name AS",
    "BEFORE": "the relation is called PRECEDES",
    "AFTER": "the relation is called PRECEDED BY",
    "SEQ": "write SEQUENCE (x, y) or PATTERN x(...) THEN y(...)",
    "HAVING": "THRESHOLD keeps the probable rows, WHERE selects",
    "LIKE": "compare with =, <> or IN (...), or put the values into a RELATION",
    "LIMIT": "an answer has no order to cut; use THRESHOLD",
}  # fmt: skip

#: Classes of words that a typo is also compared with.
_CLASS_WORDS = {"UNIT": [f"{unit}S" for unit in SECONDS_OF], "TYPE_NAME": list(TYPE_NAMES)}

#: The order of listing: what carries on first, then the clauses, then the marks.
_ORDER = [
    "a name", "a number", "a string", "_", "a type", "CREATE", "THEN", "AS", "AND", "OR", "an operator",
    "FROM", "WHERE", "GROUP BY",
]  # fmt: skip
_LAST = ["(", "[", "<", "|", "a comma", "a dot", ")", "]", ">", "+", ";"]


def complaint(expected: Collection[str], before: Sequence[Token], found: Token | None) -> tuple[str, str]:
    """The message and the hint for a statement that the grammar refuses.

    Parameters
    ----------
    expected : collection of str
        The terminals that would have been accepted.
    before : sequence of Token
        The tokens that were.
    found : Token or None
        The token that was not; None where the statement ends too early.
    """
    wanted = f"expected {listed(_in_words(expected))}"
    if found is None:
        return f"the statement ends too early: {wanted}", ""
    return f"{wanted}, and found {_as_found(found)}", _mend(expected, before, found)


def _in_words(expected: Collection[str]) -> list[str]:
    words = {_in_word(terminal, expected) for terminal in expected} - {""}
    ranks = {word: rank for rank, word in enumerate([*_ORDER, "", *_LAST])}
    return sorted(words, key=lambda word: (ranks.get(word, len(_ORDER)), word))


def _in_word(terminal: str, expected: Collection[str]) -> str:
    if terminal in _MARKS:
        mark, fellow = _MARKS[terminal]
        if fellow not in expected:
            return mark
    return _WORDS.get(terminal, terminal)


def _as_found(token: Token) -> str:
    if token.kind == "string":
        return f"the string {shown(str(token.value))}"
    return shown(token.text)


def _mend(expected: Collection[str], before: Sequence[Token], found: Token) -> str:
    """The likeliest correction, in the order of how sure it is."""
    previous = before[-1].text.upper() if before else ""
    if found.text == "(" and previous == "THEN":
        return "sequences nest to the left only: write (a THEN b) THEN c"
    if found.text.upper() == "CREATE" and before:
        return "end the statement before it with ;"
    if found.text == "=" and previous == "=":
        return "write a single ="
    if found.text == "/" and "SLASH" not in expected:
        return "comments start with --"
    if found.text == "<>" and previous == "+":
        return "write + alone, or +<variables | condition>"
    if found.kind != "word":
        return ""
    candidates = [terminal for terminal in expected if terminal.isalpha() and terminal not in _WORDS]
    candidates += [word.split()[0] for word in _in_words(expected) if word[0].isupper()]
    candidates += [word for terminal in expected for word in _CLASS_WORDS.get(terminal, ())]
    near = nearest(found.text, candidates, cutoff=0.65)
    if near:
        return f"did you mean {near}?"
    if found.text.upper() in _ELSEWHERE:
        return _ELSEWHERE[found.text.upper()]
    if "STRING" in expected and "NAME" not in expected:
        return "strings, such as paths, stand in single quotes"
    return ""
