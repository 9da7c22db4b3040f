"""Messages for syntax errors: what the parser expected, in the user's terms, and the likely fix."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from anabranch.kinds import KINDS
from anabranch.language.findings import listed, nearest, shown
from anabranch.language.names import SECONDS_OF
from anabranch.language.scanner import Token
from anabranch.language.types import TYPE_NAMES

#: How messages name each terminal; an empty name is left out, a repeated name is listed once.
_TERMINAL_NAMES = {
    "NAME": "a name", "NUMBER": "a number", "STRING": "a string", "WILDCARD": "_", "TYPE_NAME": "a type",
    "TRUE": "", "FALSE": "", "NULL": "", "NOT": "", "MINUS": "",
    "UNIT": "", "EQUAL": "an operator", "COMPARATOR": "an operator", "PLUS": "an operator",
    "STAR": "an operator", "SLASH": "an operator", "PERCENT": "an operator",
    "IN": "", "IS": "", "BETWEEN": "",
    "LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "COMMA": "a comma", "DOT": "a dot", "VBAR": "|", "BANG": "!",
    "KLEENE_OPEN": "<", "KLEENE_CLOSE": ">", "OWN_WITHIN": "", "FILE_FORMAT": "FORMAT", "$END": ";",
    "GROUP": "GROUP BY", "IDLE": "IDLE AFTER", "MAX": "MAX AHEAD", "CLUSTERED": "CLUSTERED BY",
    "INFERRED": "INFERRED FROM", "PREDICTED": "PREDICTED FROM", "AT": "AT LEAST", "CALIBRATED": "CALIBRATED BY",
    "PRECEDED": "PRECEDED BY", "MET": "MET BY", "OVERLAPPED": "OVERLAPPED BY", "STARTED": "STARTED BY",
    "FINISHED": "FINISHED BY", "ENDS": "ENDS AFTER, ENDS BEFORE", "OR": "OR REPLACE",
}  # fmt: skip

#: Operators and words that the grammar also uses in other roles: (symbol, companion) by terminal. If the companion
#: is not expected, the terminal is no operator there, and messages show the symbol.
_SYMBOLS = {
    "EQUAL": ("=", "COMPARATOR"),
    "PLUS": ("+", "MINUS"),
    "STAR": ("*", "SLASH"),
    "NOT": ("NOT", "IS"),
    "NULL": ("NULL", "TRUE"),
    "OR": ("OR", "STREAM"),
    "MAX": ("MAX DELAY", "WATERMARK"),
}

#: Keywords of SQL and other languages, and what to write instead.
_OTHER_LANGUAGES = {
    "SELECT": "a query begins with CREATE QUERY name AS",
    "BEFORE": "the relation is called PRECEDES",
    "AFTER": "the relation is called PRECEDED BY",
    "SEQ": "write SEQUENCE (x, y) or PATTERN x(...) THEN y(...)",
    "HAVING": "use THRESHOLD to keep the probable rows, and WHERE for conditions",
    "LIKE": "compare with =, <> or IN (...), or list the values in a RELATION",
    "LIMIT": "write ORDER BY probability DESC LIMIT n",
}  # fmt: skip

#: Words of a class that a typo is also compared with.
_CLASS_WORDS = {"UNIT": [f"{unit}S" for unit in SECONDS_OF], "TYPE_NAME": list(TYPE_NAMES)}

#: The order in messages: what continues the expression, then clauses, then punctuation.
_ORDER = [
    "a name", "a number", "a string", "_", "a type", "CREATE", "THEN", "AS", "AND", "OR", "an operator",
    "FROM", "WHERE", "GROUP BY",
]  # fmt: skip
_LAST = ["(", "[", "<", "|", "a comma", "a dot", ")", "]", ">", "+", ";"]


def syntax_error(expected: Collection[str], accepted: Sequence[Token], found: Token | None) -> tuple[str, str]:
    """Return the message and the hint for a statement that the grammar rejects.

    Parameters
    ----------
    expected : collection of str
        The terminals that the parser would have accepted.
    accepted : sequence of Token
        The tokens before the error.
    found : Token or None
        The unexpected token; None if the statement ends too early.
    """
    expectation = f"expected {listed(_names(expected))}"
    if found is None:
        return f"unexpected end of statement: {expectation}", ""
    return f"{expectation}, found {_found_text(found)}", _suggest_fix(expected, accepted, found)


def is_misspelt_kind(accepted: Sequence[Token]) -> bool:
    """Whether the last accepted token was meant as the keyword of a query, but was taken as the name of one."""
    words = [token.text.upper() for token in accepted]
    if not words or words[-2:-1] not in ([], ["AS"]) or words[-1] in ("CREATE", *KINDS):
        return False
    return accepted[-1].kind == "word" and (
        words[-1] in _OTHER_LANGUAGES or nearest(words[-1], KINDS, cutoff=0.65) is not None
    )


def _names(expected: Collection[str]) -> list[str]:
    names = {_name(terminal, expected) for terminal in expected} - {""}
    ranks = {name: rank for rank, name in enumerate([*_ORDER, "", *_LAST])}
    return sorted(names, key=lambda name: (ranks.get(name, len(_ORDER)), name))


def _name(terminal: str, expected: Collection[str]) -> str:
    if terminal in _SYMBOLS:
        symbol, companion = _SYMBOLS[terminal]
        if companion not in expected:
            return symbol
    return _TERMINAL_NAMES.get(terminal, terminal)


def _found_text(token: Token) -> str:
    if token.kind == "string":
        return f"the string {shown(str(token.value))}"
    return shown(token.text)


def _suggest_fix(expected: Collection[str], accepted: Sequence[Token], found: Token) -> str:
    """The likeliest fix; the most certain rules come first."""
    previous = accepted[-1].text.upper() if accepted else ""
    if found.text.upper() == "THEN" and set(expected) <= {"OR", "LSQB"}:
        return "sequences nest to the left only: write (a THEN b) THEN c"
    if found.text.upper() == "CREATE" and accepted:
        return "end the previous statement with ;"
    if found.text == "=" and previous == "=":
        return "write a single ="
    if found.text == "/" and "SLASH" not in expected:
        return "comments start with --"
    if found.text == "<>" and previous == "+":
        return "write + alone, or +<variables | condition>"
    if set(expected) <= {"PROBABILITY", "DESC", "LIMIT"}:
        return _OTHER_LANGUAGES["LIMIT"]
    if found.kind != "word":
        return ""
    candidates = [terminal for terminal in expected if terminal.isalpha() and terminal not in _TERMINAL_NAMES]
    candidates += [name.split()[0] for name in _names(expected) if name[0].isupper()]
    candidates += [word for terminal in expected for word in _CLASS_WORDS.get(terminal, ())]
    near = nearest(found.text, candidates, cutoff=0.65)
    if previous == "FINISHES" and found.text.upper() in ("BEFORE", "AFTER"):
        return f"the relation is called ENDS {found.text.upper()}"
    if near:
        return f"did you mean {near}?"
    if found.text.upper() in _OTHER_LANGUAGES:
        return _OTHER_LANGUAGES[found.text.upper()]
    if "STRING" in expected and "NAME" not in expected:
        return "put strings, such as paths, in single quotes"
    return ""
