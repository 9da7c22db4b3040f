"""Workbook text to its syntax tree.

The scanner splits the text into statements; each is parsed by itself, so that each reports its own error. A word
is fed to the LALR parser as a keyword only where the parser's state accepts that keyword, and as a name elsewhere.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken
from lark.lexer import PatternStr
from lark.parsers.lalr_interactive_parser import InteractiveParser

from anabranch.errors import Span, WorkbookError
from anabranch.language import limits, nodes, scanner
from anabranch.language.build import builder
from anabranch.language.expected import complaint
from anabranch.language.findings import Findings
from anabranch.language.names import WORD_CLASSES


def parse(text: str, file: str = "<workbook>") -> nodes.Workbook:
    """The statements of a workbook.

    Parameters
    ----------
    text : str
        The workbook; a byte order mark at its beginning is passed over.
    file : str
        The name that messages begin with.

    Raises
    ------
    WorkbookError
        With a finding for every statement that cannot be read.

    Examples
    --------
    >>> parse("CREATE RELATION hall (location) FROM 'hall.csv';").statements[0].name
    'hall'
    """
    text = text.removeprefix("\ufeff")
    findings = Findings()
    if len(text) > limits.MAX_TEXT:
        message = f"the workbook has {len(text):,} characters, and at most {limits.MAX_TEXT:,} are read"
        findings.add("too-long", message, Span(1, 1, 1, 2), "split it into several files")
        raise WorkbookError(findings.in_order(), text[: limits.MAX_TEXT], file)
    places = scanner.Places(text)
    statement_builder = builder()(places, findings)
    statements = []
    for statement in scanner.scan(text, places, findings):
        tree = _parse_statement(statement, places, findings) if statement.sound and not findings.full else None
        built = statement_builder.build(tree) if tree is not None else None
        if built is not None:
            statements.append(built)
    if findings:
        raise WorkbookError(findings.in_order(), text, file)
    return nodes.Workbook(tuple(statements), span=places.span(0, len(text)))


@cache
def _lark() -> Lark:
    grammar = resources.files("anabranch.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", propagate_positions=True)


@cache
def _symbols() -> dict[str, str]:
    """The terminal of each keyword and symbol of the grammar, by its text."""
    return {t.pattern.value: t.name for t in _lark().terminals if isinstance(t.pattern, PatternStr)}


def _parse_statement(statement: scanner.Statement, places: scanner.Places, findings: Findings) -> Tree[Token] | None:
    """The parse tree of one statement, None (and a finding) where it is not of the language."""
    parser = _lark().parse_interactive()
    fed = 0
    try:
        for token in statement.tokens:
            parser.feed_token(_terminal(token, parser))
            fed += 1
        tree: Tree[Token] = parser.feed_eof()  # type: ignore[no-untyped-call]
    except UnexpectedToken:
        # The parser may have reduced before it refused, so what it would have accepted is asked of a fresh one.
        again = _lark().parse_interactive()
        for token in statement.tokens[:fed]:
            again.feed_token(_terminal(token, again))
        found = statement.tokens[fed] if fed < len(statement.tokens) else None
        start, end = (found.start, found.end) if found else (statement.tokens[-1].end, statement.end)
        expected: set[str] = again.accepts()  # type: ignore[no-untyped-call]
        message, hint = complaint(expected, statement.tokens[:fed], found)
        findings.add("syntax", message, places.span(start, end), hint)
        return None
    return tree


_TERMINAL_OF_KIND = {
    "name": "NAME", "number": "NUMBER", "string": "STRING", "comparator": "COMPARATOR",
    "kleene_open": "KLEENE_OPEN", "kleene_close": "KLEENE_CLOSE",
}  # fmt: skip


def _terminal(token: scanner.Token, parser: InteractiveParser) -> Token:
    """The token as the terminal that the parser's state wants it to be."""
    if token.kind == "word":
        choices = parser.choices()  # type: ignore[no-untyped-call]
        word = token.text.upper()
        readings = (_symbols().get(word), WORD_CLASSES.get(word))
        kind = next((reading for reading in readings if reading in choices), None) or "NAME"
    elif token.kind == "symbol":
        kind = _symbols()[token.text]
    else:
        kind = _TERMINAL_OF_KIND[token.kind]
    return Token(kind, token.value, start_pos=token.start, end_pos=token.end)
