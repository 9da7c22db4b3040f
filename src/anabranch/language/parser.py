"""Parses workbook text into a syntax tree.

The scanner splits the text into statements, and each statement is parsed separately, so that each reports its own
error. A word is passed to the LALR parser as a keyword if the state of the parser accepts that keyword, else as a name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from threading import Lock
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import Shift
from lark.parsers.lalr_interactive_parser import InteractiveParser

from anabranch.errors import Span, WorkbookError
from anabranch.language import limits, nodes, scanner
from anabranch.language.build import builder
from anabranch.language.findings import Findings
from anabranch.language.names import WORD_CLASSES
from anabranch.language.syntax_errors import is_misspelt_kind, syntax_error
from anabranch.language.tables import load_parser

#: A state of the parser: the action for each terminal and rule, and where it leads.
_Row = Mapping[str, tuple[Any, Any]]


def parse(text: str, file: str = "<workbook>", bare: bool = False) -> nodes.Workbook:
    """Parse a workbook.

    Parameters
    ----------
    text : str
        The workbook; a byte order mark at the beginning is ignored.
    file : str
        The file name in messages.
    bare : bool
        Also accept queries without `CREATE QUERY name AS`; they are called BARE_QUERY.

    Raises
    ------
    WorkbookError
        With a finding for every statement that cannot be parsed.

    Examples
    --------
    >>> parse("CREATE RELATION hall (location) FROM 'hall.csv';").statements[0].name
    'hall'
    """
    text = text.removeprefix("\ufeff")
    findings = Findings()
    if len(text) > limits.MAX_TEXT:
        message = f"the workbook has {len(text):,} characters (at most {limits.MAX_TEXT:,} are allowed)"
        findings.add("too-long", message, Span(1, 1, 1, 2), "split it into several files")
        raise WorkbookError(findings.in_order(), text[: limits.MAX_TEXT], file)
    lines = scanner.LineIndex(text)
    statement_builder = builder()(lines, findings)
    statements: list[nodes.Statement] = []
    for statement in scanner.scan(text, lines, findings):
        if not statement.is_valid or findings.full:
            continue
        first = statement.tokens[0].start
        key = (text[first : statement.end], lines.span(first, first), bare)
        built = _recent.get(key)
        if built is None:
            tree = _parse_statement(statement, bare, lines, findings)
            last = None if tree is None else statement_builder.build(tree)
            if last is None:
                continue
            built = (*statement_builder.implied, last)
            _recent.add(key, built)
        statements += built
    if findings:
        raise WorkbookError(findings.in_order(), text, file)
    return nodes.Workbook(tuple(statements), span=lines.span(0, len(text)))


class _Recent:
    """The statements that were parsed last, with those that they imply, by their text and position.

    An editor and the page parse the whole workbook after each change, and most of its statements are as before.
    """

    #: Together at most about 50 MB.
    _MOST, _LONGEST = 1_000, 2_000

    def __init__(self) -> None:
        self._built: dict[tuple[str, Span, bool], tuple[nodes.Statement, ...]] = {}
        self._lock = Lock()

    def get(self, key: tuple[str, Span, bool]) -> tuple[nodes.Statement, ...] | None:
        """What was built; None if it was not, or long ago."""
        with self._lock:
            built = self._built.pop(key, None)
            if built is not None:
                self._built[key] = built  # now the last one to be dropped
            return built

    def add(self, key: tuple[str, Span, bool], built: tuple[nodes.Statement, ...]) -> None:
        """Keep what was built without findings, and drop what was not used for the longest time."""
        if len(key[0]) <= self._LONGEST:
            with self._lock:
                self._built[key] = built
                if len(self._built) > self._MOST:
                    del self._built[next(iter(self._built))]


_recent = _Recent()


def next_words(text: str) -> tuple[list[str], bool]:
    """Return the keywords that can follow an unfinished statement, in order, and whether a name can.

    Both are empty if the statement has an error.

    Examples
    --------
    >>> next_words("CREATE OR REPLACE")
    (['QUERY', 'RELATION', 'STREAM'], False)
    """
    statements = scanner.scan(text, scanner.LineIndex(text), Findings())
    parser = _lark().parse_interactive(start="start")
    try:
        for token in statements[-1].tokens if statements else ():
            _feed(parser, token)
    except UnexpectedToken:
        return [], False
    expected: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    words = {word for word, terminal in (_symbols() | WORD_CLASSES).items() if terminal in expected}
    return sorted(word for word in words if word.isalpha()), "NAME" in expected


@cache
def followers() -> Mapping[str, frozenset[str]]:
    """The texts and terminals that can follow each keyword and symbol, by its text; `$END` ends a statement.

    Examples
    --------
    >>> sorted(followers()["AT"])
    ['LEAST', 'MOST']
    """
    states: dict[int, dict[str, tuple[object, int]]] = _lark().parser.parser._parse_table.states
    after: dict[str, set[str]] = {}
    for row in states.values():
        for terminal, (action, target) in row.items():
            if action is Shift:
                after.setdefault(terminal, set()).update(states[target])
    texts = {terminal: text for text, terminal in _symbols().items()}
    return {
        text: frozenset(
            texts.get(follower, follower)
            for name in (terminal, _BY_CONTEXT.get(text, terminal))
            for follower in after[name]
            if follower.isupper()
        )
        for text, terminal in _symbols().items()
    }


#: The other terminals of words whose role the scanner finds out.
_BY_CONTEXT = {"WITHIN": "OWN_WITHIN", "FORMAT": "FILE_FORMAT"}


@cache
def _lark() -> Lark:
    return load_parser()


@cache
def _symbols() -> dict[str, str]:
    """The terminal of each keyword and symbol of the grammar, by its text."""
    return {t.pattern.value: t.name for t in _lark().terminals if isinstance(t.pattern, PatternStr)}


def _parse_statement(
    statement: scanner.Statement, bare: bool, lines: scanner.LineIndex, findings: Findings
) -> Tree[Token] | None:
    """Return the parse tree of one statement; None, with a finding, if the grammar rejects it."""
    start = "bare_query" if bare and statement.tokens[0].text.upper() != "CREATE" else "start"
    parser = _lark().parse_interactive(start=start)
    n_accepted = 0
    try:
        for token in statement.tokens:
            _feed(parser, token)
            n_accepted += 1
        tree: Tree[Token] = parser.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedToken:
        if is_misspelt_kind(statement.tokens[:n_accepted]):
            n_accepted -= 1
        found = statement.tokens[n_accepted] if n_accepted < len(statement.tokens) else None
        first, last = (found.start, found.end) if found else (statement.tokens[-1].end, statement.end)
        expected = _expected(statement.tokens[:n_accepted], start)
        message, hint = syntax_error(expected, statement.tokens[:n_accepted], found)
        findings.add("syntax", message, lines.span(first, last), hint)
        return None
    return tree


def _feed(parser: InteractiveParser, token: scanner.Token) -> None:
    """Pass a token to the parser, as the terminal that its state expects."""
    kind = _terminal(token, parser.choices())  # type: ignore[no-untyped-call]
    parser.feed_token(Token(kind, token.value, start_pos=token.start, end_pos=token.end))


_TERMINAL_OF_KIND = {
    "name": "NAME", "number": "NUMBER", "string": "STRING", "comparator": "COMPARATOR",
    "kleene_open": "KLEENE_OPEN", "kleene_close": "KLEENE_CLOSE", "own_within": "OWN_WITHIN",
    "file_format": "FILE_FORMAT",
}  # fmt: skip


def _terminal(token: scanner.Token, row: Collection[str]) -> str:
    """The terminal that a token is in a state of the parser, which has a row of the table."""
    if token.kind == "word":
        word = token.text.upper()
        candidates = (_symbols().get(word), WORD_CLASSES.get(word))
        kind = next((terminal for terminal in candidates if terminal in row), None) or "NAME"
    elif token.kind == "symbol":
        kind = _symbols()[token.text]
    else:
        kind = _TERMINAL_OF_KIND[token.kind]
    return kind


def _expected(accepted: Sequence[scanner.Token], start: str) -> set[str]:
    """The terminals that can follow the accepted tokens.

    The parser itself cannot be asked after an error, because it may have reduced before. These steps are the same
    without values.
    """
    table = _lark().parser.parser._parse_table
    end, stack = table.end_states[start], [table.start_states[start]]
    for token in accepted:
        _step(table.states, stack, _terminal(token, table.states[stack[-1]]), end)
    row = table.states[stack[-1]]
    return {name for name in row if name.isupper() and _step(table.states, list(stack), name, end)}


def _step(states: Mapping[int, _Row], stack: list[int], terminal: str, end: int) -> bool:
    """Take a terminal: reduce, and shift it. Returns whether the parser accepts it."""
    while stack[-1] != end and (step := states[stack[-1]].get(terminal)) is not None:
        action, target = step
        if action is Shift:
            stack.append(target)
            return True
        del stack[len(stack) - len(target.expansion) :]
        stack.append(states[stack[-1]][target.origin.name][1])
    return stack[-1] == end
