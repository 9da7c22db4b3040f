"""Splits workbook text into statements of tokens, within limits; each token has its position.

The scanner is one pass of one regular expression without backtracking, so its time is linear in the length of any
text. It does not decide whether a word is a keyword: that depends on the state of the parser.
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
from anabranch.language.names import AFTER_GOAL, WORD_CLASSES

# The quantifiers of strings and quoted names are possessive, so an unterminated one fails immediately at its start.
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

#: What may follow the `>` that closes `+<...>`; before anything else, `>` is a comparison.
_AFTER_KLEENE = AFTER_GOAL | {")", ";"}

_HINTS = {
    '"': "put strings in single quotes, and names in backticks",
    "&": "write AND",
    "{": "use parentheses or [ ] around conditions",
    "}": "use parentheses or [ ] around conditions",
    "\\": "to put a quote inside a string, write it twice: ''",
    "\u2018": "put strings in straight single quotes '...'",
    "\u2019": "put strings in straight single quotes '...'",
    "\u2212": "write an ASCII minus: -",
    "\u2264": "write <=",
    "\u2265": "write >=",
    "\u2260": "write <>",
    "\u00a0": "write an ordinary space",
}


@dataclass(frozen=True, slots=True)
class Token:
    """One word, number, string or symbol.

    `kind` is `word`, `name` (quoted: never a keyword), `number`, `string`, `comparator`, `kleene_open`,
    `kleene_close`, `own_within`, `file_format` or `symbol`; `text` is the token as written, `value` is its meaning.
    """

    kind: str
    text: str
    value: str | int | float
    start: int
    end: int


@dataclass(slots=True)
class Statement:
    """The tokens between two semicolons; `is_valid` is False if scanning found an error in them."""

    tokens: list[Token] = field(default_factory=list)
    is_valid: bool = True
    end: int = 0


class LineIndex:
    """Converts offsets in a text to spans of lines and columns."""

    def __init__(self, text: str) -> None:
        self._starts = line_starts(text)

    def span(self, start: int, end: int) -> Span:
        """The span of text[start:end]."""
        return Span(*self._position(start), *self._position(max(start, end)))

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1


def scan(text: str, lines: LineIndex, findings: Findings) -> list[Statement]:
    """Return the statements of `text` that have tokens; none if the text is too long. Errors go to `findings`."""
    scanner = _Scanner(text, lines, findings)
    statements = list(scanner.statements())
    return [] if scanner.too_long else statements


def pieces(text: str) -> Iterator[tuple[str, int, int]]:
    """Every piece of a text, also blanks and comments, as its kind, start and end; for editors.

    The kinds are the groups of the scanner's regular expression; `other` is a character that begins no token.

    Examples
    --------
    >>> list(pieces("x -- y"))
    [('word', 0, 1), ('space', 1, 2), ('comment', 2, 6)]
    """
    for match in _TOKEN.finditer(text):
        yield str(match.lastgroup), *match.span()


def statement_ends(text: str) -> list[int]:
    """The offset after each semicolon that ends a statement: not of those in strings, quoted names and comments.

    Examples
    --------
    >>> statement_ends("a 'x;y' ; b -- c;")
    [9]
    """
    ends = []
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "other" and match.group() == "'":
            break  # the string is not closed: the rest of the text is inside of it
        if match.lastgroup == "symbol" and match.group() == ";":
            ends.append(match.end())
    return ends


class _Scanner:
    """The state of one scan."""

    def __init__(self, text: str, lines: LineIndex, findings: Findings) -> None:
        self.text = text
        self.lines = lines
        self.findings = findings
        self.statement = Statement()
        self.too_long = False

    def report(self, code: str, message: str, start: int, end: int, hint: str = "") -> None:
        """Add a finding; the current statement will not be parsed."""
        self.findings.add(code, message, self.lines.span(start, end), hint)
        self.statement.is_valid = False

    def statements(self) -> Iterator[Statement]:
        """Split the tokens at semicolons."""
        n_tokens = n_statements = 0
        for token in self.tokens():
            self.statement.end = token.start
            n_tokens += 1
            n_statements += not self.statement.tokens
            for number, most, what in (
                (n_tokens, limits.MAX_TOKENS, "tokens"),
                (n_statements, limits.MAX_STATEMENTS, "statements"),
            ):
                if number > most:
                    message = f"the workbook has more than {most:,} {what}"
                    self.report("too-long", message, token.start, token.end, "split it into several files")
                    self.too_long = True
                    return
            if token.text == ";" and token.kind == "symbol":
                yield from self.finished()
            else:
                self.statement.tokens.append(token)
        self.statement.end = len(self.text.rstrip())
        yield from self.finished()

    def finished(self) -> Iterator[Statement]:
        """Check and yield the current statement unless it is empty, and begin a new one."""
        statement = self.statement
        if statement.tokens:
            self.check_size(statement.tokens)
            if statement.is_valid:
                self.check_brackets(statement.tokens)
            statement.tokens = _with_file_formats(_with_windows(_with_kleene(statement.tokens)))
        if statement.tokens or not statement.is_valid:
            yield statement
        self.statement = Statement()

    # ------------------------------------------------------------ tokens

    def tokens(self) -> Iterator[Token]:
        """Every token of the text, without comments and whitespace."""
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup
            if kind == "space":
                continue
            start, end = match.span()
            if kind == "comment":
                self.check_characters(start, end, _hidden_in_comment, "a comment")
            elif kind == "other":
                if self.check_unexpected(start):
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
            self.report("empty-name", "empty name in backticks", start, end, "write the name between the backticks")
        self.check_name(name, start, end)
        self.check_characters(start, end, _hidden, "a name")
        return Token("name", text, name, start, end)

    def check_name(self, name: str, start: int, end: int) -> None:
        """Report names that are too long for columns and folders."""
        size = len(name.encode(errors="surrogatepass"))
        if size > limits.MAX_NAME:
            message = f"the name {shown(name)} has {size:,} bytes (at most {limits.MAX_NAME} are allowed)"
            self.report("name-too-long", message, start, end, "shorten it")

    def scan_string(self, text: str, start: int, end: int) -> Token:
        """A string in single quotes."""
        if len(text) > limits.MAX_STRING:
            message = f"this string has {len(text):,} characters (at most {limits.MAX_STRING:,} are allowed)"
            self.report("string-too-long", message, start, end, "shorten it")
        self.check_characters(start, end, _unwritable, "a string")
        return Token("string", text, text[1:-1].replace("''", "'"), start, end)

    def scan_number(self, text: str, start: int, end: int) -> Token:
        """An integer, or a double if there is a decimal point or an exponent."""
        following = self.text[end : end + 1]
        if following == "_" or following.isalnum():
            message = f"a letter directly follows the number {shown(text)}"
            hint = "put a space before a unit, or quote a name that starts with a digit in backticks"
            self.report("number-runs-on", message, start, end + 1, hint)
        return Token("number", text, self.number(text, start, end), start, end)

    def number(self, text: str, start: int, end: int) -> int | float:
        """The value of a number; report numbers that are too long or too large."""
        if len(text) > limits.MAX_NUMBER:
            message = f"the number {shown(text)} has too many digits"
            self.report("number-too-long", message, start, end, "round it to 17 digits")
            return 0
        if text.isdecimal():
            integer = int(text)
            # -2**63 is allowed too; the parser sees its minus sign later.
            if integer > limits.MAX_INTEGER + 1:
                message = f"the integer {text} does not fit in 64 bits"
                self.report("number-too-large", message, start, end, f"write it as a double: {text}.0")
            return integer
        value = float(text)
        if value == float("inf"):
            message = f"the number {text} is too large for a double"
            self.report("number-too-large", message, start, end, "the largest is about 1.8e308")
        return value

    def scan_symbol(self, text: str, start: int, end: int) -> Token:
        """An operator or punctuation."""
        if text in _COMPARATORS:
            return Token("comparator", text, _COMPARATORS[text], start, end)
        return Token("symbol", text, text, start, end)

    # ------------------------------------------------------------ errors

    def check_unexpected(self, start: int) -> bool:
        """Report a character that begins no token; return True if the rest of the text cannot be scanned."""
        character = self.text[start]
        if character == "'":
            self.report("unterminated", "this string is never closed", start, start + 1, "close it with a single quote")
            return True
        if character == "`":
            message = "this quoted name is not closed on its line"
            self.report("unterminated", message, start, start + 1, "close it with a backtick")
        elif self.statement.is_valid:
            hint = _HINTS.get(character, "remove it, or put it inside a string")
            self.report("odd-character", f"unexpected {_described(character)}", start, start + 1, hint)
        return False

    def check_characters(self, start: int, end: int, forbidden: re.Pattern[str], where: str) -> None:
        """Report characters that cannot be displayed or written."""
        match = forbidden.search(self.text, start, end)
        if match:
            message = f"{_described(match.group())} is not allowed in {where}"
            self.report("odd-character", message, match.start(), match.end(), "remove it")

    def check_size(self, tokens: list[Token]) -> None:
        """Report a statement that is too long, or a pattern with too many goals."""
        if len(tokens) > limits.MAX_STATEMENT_TOKENS:
            token = tokens[limits.MAX_STATEMENT_TOKENS]
            message = f"this statement has {len(tokens):,} tokens (at most {limits.MAX_STATEMENT_TOKENS:,} are allowed)"
            self.report("too-long", message, token.start, token.end, "put long lists into a RELATION")
        if len(tokens) > 4 and tokens[4].text.upper() == "PATTERN":
            thens = [token for token in tokens if token.kind == "word" and token.text.upper() == "THEN"]
            if len(thens) >= limits.MAX_GOALS:
                token = thens[limits.MAX_GOALS - 1]
                message = f"this pattern has {len(thens) + 1:,} goals (at most {limits.MAX_GOALS} are allowed)"
                hint = "split the pattern into several queries, and join them with FROM QUERY"
                self.report("too-many", message, token.start, token.end, hint)

    def check_brackets(self, tokens: list[Token]) -> None:
        """Report brackets that do not match or are nested too deeply."""
        opened: list[Token] = []
        for token in tokens:
            if token.kind != "symbol":
                continue
            if token.text in _CLOSER_OF:
                opened.append(token)
                if len(opened) > limits.MAX_NESTING:
                    message = f"brackets are nested more than {limits.MAX_NESTING} deep"
                    self.report("too-deep", message, token.start, token.end, "split the condition with AND")
                    return
            elif token.text in (")", "]"):
                if not opened:
                    message = f"this {token.text} has no opening bracket"
                    self.report("unbalanced", message, token.start, token.end, "remove it")
                    return
                opener = opened.pop()
                if _CLOSER_OF[opener.text] != token.text:
                    span = self.lines.span(opener.start, opener.end)
                    message = f"this {token.text} does not match the {opener.text} at {span.line}:{span.column}"
                    self.report("unbalanced", message, token.start, token.end, f"write {_CLOSER_OF[opener.text]}")
                    return
        if opened:
            opener = opened[-1]
            hint = f"add {_CLOSER_OF[opener.text]} before the end of the statement"
            self.report("unterminated", f"this {opener.text} is never closed", opener.start, opener.end, hint)


# Lone surrogates cannot be written as UTF-8, and NUL ends a string in the libraries below Spark.
_unwritable = re.compile("[\x00\ud800-\udfff]")
# In names, invisible characters are forbidden too: control characters, and marks that reorder or join letters.
_BIDI = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_hidden = re.compile(f"[\x00-\x1f\x7f-\x9f\u200b-\u200d\u2028\u2029\u2060\ufeff{_BIDI}\ud800-\udfff]")
# A comment may have tabs and emoji, but nothing that makes a reader see a different text than the parser.
_hidden_in_comment = re.compile(f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029{_BIDI}\ud800-\udfff]")


def _described(character: str) -> str:
    """A character in a form that a message can show."""
    if character.isprintable() and character.isascii():
        return f"character {character}"
    name = unicodedata.name(character, "")
    return f"character U+{ord(character):04X}" + (f" ({name.lower()})" if name else "")


def _with_kleene(tokens: list[Token]) -> list[Token]:
    """Replace the angle brackets of `+<...>`, which are scanned as comparisons, by tokens of their own.

    No operand starts with `<`, so `<` after `+` is an opening bracket. A `>` at the same depth is the closing bracket
    if the next token can follow a goal. The LALR grammar cannot decide this: it needs one more token of lookahead.
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


def _with_windows(tokens: list[Token]) -> list[Token]:
    """Replace the WITHIN behind a constraint, `x < 5 WITHIN 3 AND ...`, by a token of its own.

    Behind its duration the condition goes on or a bracket is closed, but not behind that of the clause WITHIN. The LALR
    grammar cannot decide this, because it cannot look that far ahead.
    """
    result = list(tokens)
    for index, token in enumerate(tokens):
        if token.kind == "word" and token.text.upper() == "WITHIN":
            after = index + 1
            after += after < len(tokens) and tokens[after].text == "-"
            after += after < len(tokens) and tokens[after].kind == "number"
            after += after < len(tokens) and WORD_CLASSES.get(tokens[after].text.upper()) == "UNIT"
            if after > index + 1 and after < len(tokens) and tokens[after].text.upper() in ("AND", "OR", ")"):
                result[index] = Token("own_within", token.text, token.value, token.start, token.end)
    return result


def _with_file_formats(tokens: list[Token]) -> list[Token]:
    """Replace the FORMAT between an address and a word, `FROM 'lake/' FORMAT parquet`, by a token of its own.

    The clause FORMAT, which may also follow an address, has a string. The LALR grammar cannot look that far ahead.
    """
    result = list(tokens)
    for index, token in enumerate(tokens[1:-1], 1):
        if token.kind == "word" and token.text.upper() == "FORMAT":
            before, after = tokens[index - 1], tokens[index + 1]
            if before.kind == "string" and after.kind in ("word", "name"):
                result[index] = Token("file_format", token.text, token.value, token.start, token.end)
    return result
