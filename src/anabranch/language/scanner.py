"""The first step of the path: text to statements of tokens, within limits, each token with its place.

Everything here is one pass of one regular expression without backtracking, so the time is linear in the text
whatever it holds. Whether a word is a keyword is not decided here: that depends on the parser's state.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from anabranch.errors import Span, line_starts
from anabranch.language import limits
from anabranch.language.findings import Findings, shown
from anabranch.language.names import AFTER_GOAL

# The quantifiers of strings and quoted names are possessive: an unterminated one fails at once, at its beginning.
_TOKEN = re.compile(
    r"""
      (?P<space>[ \t\r\n\f]+)
    | (?P<comment>--[^\r\n]*)
    | (?P<word>[^\W\d]\w*)
    | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<string>'(?:[^']|'')*+')
    | (?P<quoted>`(?:[^`\r\n]|``)*+`)
    | (?P<symbol><>|!=|<=|>=|[()\[\],.;=<>+\-*/%|!])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_CLOSER_OF = {"(": ")", "[": "]"}
_COMPARATORS = {"<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}

#: What may stand after the `>` that closes `+<...>`; before anything else a `>` compares.
_AFTER_KLEENE = AFTER_GOAL | {")", ";"}

_HINTS = {
    '"': "strings stand in single quotes, and names in backticks",
    "&": "write AND",
    "{": "conditions stand in parentheses or [ ]",
    "}": "conditions stand in parentheses or [ ]",
    "\\": "a quote inside a string is written twice: ''",
    "\u2018": "strings stand in straight single quotes '...'",
    "\u2019": "strings stand in straight single quotes '...'",
    "\u2212": "write the minus sign of the keyboard: -",
    "\u2264": "write <=",
    "\u2265": "write >=",
    "\u2260": "write <>",
    "\u00a0": "type an ordinary space",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, string or symbol.

    `kind` is `word`, `name` (quoted: never a keyword), `number`, `string`, `comparator`, `kleene_open`,
    `kleene_close` or `symbol`; `value` is what it means, `text` how it was written.
    """

    kind: str
    text: str
    value: str | int | float
    start: int
    end: int


@dataclass(slots=True)
class Statement:
    """The tokens between two semicolons; `sound` says that scanning found nothing wrong in them."""

    tokens: list[Token] = field(default_factory=list)
    sound: bool = True
    end: int = 0


class Places:
    """From offsets in a text to spans."""

    def __init__(self, text: str) -> None:
        self._starts = line_starts(text)

    def span(self, start: int, end: int) -> Span:
        """The span of text[start:end]."""
        return Span(*self._place(start), *self._place(max(start, end)))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def scan(text: str, places: Places, findings: Findings) -> list[Statement]:
    """The statements of `text` that have tokens, none where it has too many; `findings` notes what cannot be read."""
    scanner = _Scanner(text, places, findings)
    statements = list(scanner.statements())
    return [] if scanner.too_long else statements


class _Scanner:
    """The state of one scan."""

    def __init__(self, text: str, places: Places, findings: Findings) -> None:
        self.text = text
        self.places = places
        self.findings = findings
        self.statement = Statement()
        self.too_long = False

    def wrong(self, code: str, message: str, start: int, end: int, hint: str = "") -> None:
        """Note a finding; the statement it is in will not be parsed."""
        self.findings.add(code, message, self.places.span(start, end), hint)
        self.statement.sound = False

    def statements(self) -> Iterator[Statement]:
        """Split at semicolons."""
        tokens = count = 0
        for token in self.tokens():
            self.statement.end = token.start
            tokens += 1
            count += not self.statement.tokens
            for number, most, what in (
                (tokens, limits.MAX_TOKENS, "words"),
                (count, limits.MAX_STATEMENTS, "statements"),
            ):
                if number > most:
                    message = f"the workbook has more than {most:,} {what}"
                    self.wrong("too-long", message, token.start, token.end, "split it into several files")
                    self.too_long = True
                    return
            if token.text == ";" and token.kind == "symbol":
                yield from self.finished()
            else:
                self.statement.tokens.append(token)
        self.statement.end = len(self.text.rstrip())
        yield from self.finished()

    def finished(self) -> Iterator[Statement]:
        """Check and yield the statement that has ended, unless it is empty."""
        statement = self.statement
        if statement.tokens:
            self.check_size(statement.tokens)
            if statement.sound:
                self.check_brackets(statement.tokens)
            statement.tokens = _with_kleene(statement.tokens)
        if statement.tokens or not statement.sound:
            yield statement
        self.statement = Statement()

    # ------------------------------------------------------------ tokens

    def tokens(self) -> Iterator[Token]:
        """Every token of the text, comments and spaces left out."""
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup
            if kind == "space":
                continue
            start, end = match.span()
            if kind == "comment":
                self.check_characters(start, end, _hidden_in_comment, "a comment")
            elif kind == "other":
                if self.unreadable(start):
                    return
            else:
                yield getattr(self, f"scan_{kind}")(match.group(), start, end)

    def scan_word(self, text: str, start: int, end: int) -> Token:
        """A keyword or a name."""
        self.check_name(text, start, end)
        return Token("word", text, text, start, end)

    def scan_quoted(self, text: str, start: int, end: int) -> Token:
        """A name in backticks."""
        name = text[1:-1].replace("``", "`")
        if not name.strip():
            self.wrong("empty-name", "a name in backticks is empty", start, end, "write the name between the backticks")
        self.check_name(name, start, end)
        self.check_characters(start, end, _hidden, "a name")
        return Token("name", text, name, start, end)

    def check_name(self, name: str, start: int, end: int) -> None:
        """Refuse names that are too long to become columns and folders."""
        if len(name) > limits.MAX_NAME:
            message = f"the name {shown(name)} has {len(name):,} characters, and a name has at most {limits.MAX_NAME}"
            self.wrong("name-too-long", message, start, end, "shorten it")

    def scan_string(self, text: str, start: int, end: int) -> Token:
        """A string in single quotes."""
        if len(text) > limits.MAX_STRING:
            message = f"a string has {len(text):,} characters, and at most {limits.MAX_STRING:,} are read"
            self.wrong("string-too-long", message, start, end, "shorten it")
        self.check_characters(start, end, _unwritable, "a string")
        return Token("string", text, text[1:-1].replace("''", "'"), start, end)

    def scan_number(self, text: str, start: int, end: int) -> Token:
        """An integer, or a double where there is a point or an exponent."""
        following = self.text[end : end + 1]
        if following == "_" or following.isalnum():
            hint = "leave a space between a number and its unit; quote a name that starts with a digit in backticks"
            self.wrong("number-runs-on", f"the number {shown(text)} runs into a letter", start, end + 1, hint)
        return Token("number", text, self.number(text, start, end), start, end)

    def number(self, text: str, start: int, end: int) -> int | float:
        """The value of a number, checked for its size."""
        if len(text) > limits.MAX_NUMBER:
            self.wrong(
                "number-too-long", f"the number {shown(text)} has too many digits", start, end, "round it to 17 digits"
            )
            return 0
        if text.isdecimal():
            integer = int(text)
            # -2**63 is an integer too; its minus sign comes later, in the syntax.
            if integer > limits.MAX_INTEGER + 1:
                message = f"the integer {text} does not fit in 64 bits"
                self.wrong("number-too-large", message, start, end, f"write it as a double: {text}.0")
            return integer
        value = float(text)
        if value == float("inf"):
            self.wrong(
                "number-too-large",
                f"the number {text} is too large for a double",
                start,
                end,
                "the largest is about 1.8e308",
            )
        return value

    def scan_symbol(self, text: str, start: int, end: int) -> Token:
        """An operator or a mark."""
        if text in _COMPARATORS:
            return Token("comparator", text, _COMPARATORS[text], start, end)
        return Token("symbol", text, text, start, end)

    # ------------------------------------------------------------ what is wrong

    def unreadable(self, start: int) -> bool:
        """Note a character that begins no token; True where the rest of the text cannot be read."""
        character = self.text[start]
        if character == "'":
            self.wrong("unterminated", "this string is never closed", start, start + 1, "end it with a single quote")
            return True
        if character == "`":
            self.wrong(
                "unterminated",
                "this quoted name is never closed on its line",
                start,
                start + 1,
                "end it with a backtick",
            )
        elif self.statement.sound:
            hint = _HINTS.get(character, "remove it, or put it inside a string")
            self.wrong("odd-character", f"{_described(character)} has no meaning here", start, start + 1, hint)
        return False

    def check_characters(self, start: int, end: int, refused: re.Pattern[str], where: str) -> None:
        """Refuse characters that cannot be shown or written."""
        match = refused.search(self.text, start, end)
        if match:
            message = f"{_described(match.group())} cannot stand in {where}"
            self.wrong("odd-character", message, match.start(), match.end(), "remove it")

    def check_size(self, tokens: list[Token]) -> None:
        """Refuse a statement too long, or a pattern of too many goals."""
        if len(tokens) > limits.MAX_STATEMENT_TOKENS:
            token = tokens[limits.MAX_STATEMENT_TOKENS]
            most = f"at most {limits.MAX_STATEMENT_TOKENS:,} are read"
            message = f"this statement has {len(tokens):,} words and marks, and {most}"
            self.wrong("too-long", message, token.start, token.end, "put long lists into a RELATION")
        if len(tokens) > 4 and tokens[4].text.upper() == "PATTERN":
            thens = [token for token in tokens if token.kind == "word" and token.text.upper() == "THEN"]
            if len(thens) >= limits.MAX_GOALS:
                token = thens[limits.MAX_GOALS - 1]
                message = f"this pattern has {len(thens) + 1:,} goals, and at most {limits.MAX_GOALS} are allowed"
                self.wrong(
                    "too-many",
                    message,
                    token.start,
                    token.end,
                    "split the pattern, and use FROM QUERY to join the parts",
                )

    def check_brackets(self, tokens: list[Token]) -> None:
        """Refuse brackets that do not match, or nest too deeply; counts unary chains as nesting."""
        opened: list[Token] = []
        for token in tokens:
            if token.kind != "symbol":
                continue
            if token.text in _CLOSER_OF:
                opened.append(token)
                if len(opened) > limits.MAX_NESTING:
                    message = f"brackets nest more than {limits.MAX_NESTING} deep"
                    self.wrong("too-deep", message, token.start, token.end, "split the condition with AND")
                    return
            elif token.text in (")", "]"):
                if not opened:
                    self.wrong("unbalanced", f"this {token.text} closes nothing", token.start, token.end, "remove it")
                    return
                opener = opened.pop()
                if _CLOSER_OF[opener.text] != token.text:
                    line = self.places.span(opener.start, opener.end)
                    message = f"this {token.text} does not close the {opener.text} of {line.line}:{line.column}"
                    self.wrong("unbalanced", message, token.start, token.end, f"write {_CLOSER_OF[opener.text]}")
                    return
        if opened:
            opener = opened[-1]
            message = f"this {opener.text} is never closed"
            self.wrong(
                "unterminated",
                message,
                opener.start,
                opener.end,
                f"add {_CLOSER_OF[opener.text]} before the end of the statement",
            )


# Lone surrogates cannot be written as UTF-8, and NUL ends a string in the libraries below Spark.
_unwritable = re.compile("[\x00\ud800-\udfff]")
# In names also what cannot be seen: control characters, and marks that reorder or join letters.
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_hidden = re.compile(f"[\x00-\x1f\x7f-\x9f\u200b-\u200d\u2028\u2029\u2060\ufeff{_BIDI}\ud800-\udfff]")
# A comment may hold tabs and emoji, but nothing that makes a reader see other text than the parser does.
_hidden_in_comment = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029{_BIDI}\ud800-\udfff]")


def _described(character: str) -> str:
    """A character as a message can show it."""
    if character.isprintable() and character.isascii():
        return f"the character {character}"
    name = unicodedata.name(character, "")
    return f"the character U+{ord(character):04X}" + (f" ({name.lower()})" if name else "")


def _with_kleene(tokens: list[Token]) -> list[Token]:
    """The tokens with the brackets of `+<...>` told apart from comparisons.

    No operand starts with `<`, so `<` after `+` opens. A `>` at the same depth closes where a goal can end,
    which the next token shows; one token of lookahead is what an LALR grammar cannot give for this.
    """
    result = list(tokens)
    depth, opened_at = 0, -1
    for index, token in enumerate(tokens):
        if token.kind == "symbol":
            depth += (token.text in _CLOSER_OF) - (token.text in (")", "]"))
        elif token.kind == "comparator" and token.text == "<" and index and tokens[index - 1].text == "+":
            result[index] = Token("kleene_open", "<", "<", token.start, token.end)
            opened_at = depth
        elif token.kind == "comparator" and token.text == ">" and opened_at == depth:
            following = tokens[index + 1].text.upper() if index + 1 < len(tokens) else ";"
            if following in _AFTER_KLEENE:
                result[index] = Token("kleene_close", ">", ">", token.start, token.end)
                opened_at = -1
    return result
