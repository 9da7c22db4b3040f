"""The lexer and the TextMate grammar colour the examples alike, and as the parser reads them."""

import json
import re
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pygments.token import Comment, Keyword, Name, Number, Operator, String
from tests.drawn import examples

from anabranch.editing import textmate
from anabranch.editing.lexer import WorkbookLexer
from anabranch.language import parser
from anabranch.language.findings import Findings
from anabranch.language.scanner import LineIndex, scan
from anabranch.language.types import TYPE_NAMES

ROOT = Path(__file__).parents[2]
EXAMPLES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "examples").rglob("*.abq"))]

#: What is compared: a class of characters for both token types and scopes. Names and punctuation have none.
TOKEN_TYPES = {Keyword: "keyword", Operator.Word: "keyword", String: "string", Number: "number", Comment: "comment"}
SCOPES = {
    "keyword.operator.anabranch": "",
    "keyword": "keyword",
    "storage.type": "keyword",
    "constant.language": "keyword",
    "string": "string",
    "constant.numeric": "number",
    "comment": "comment",
}


def by_pygments(text):
    """The class of each character, from the lexer."""
    classes = []
    for _, token_type, piece in WorkbookLexer().get_tokens_unprocessed(text):
        found = next((name for above, name in TOKEN_TYPES.items() if token_type in above), "")
        classes += [found] * len(piece)
    return classes


def by_textmate(text, grammar):
    """The class of each character, by the rules of TextMate: line by line, the first match, the first pattern."""
    classes, inside = [], None
    for line in text.splitlines(keepends=True):
        content = line.rstrip("\r\n")
        position = 0
        while position < len(content):
            start, end, scope, opened = _next_match(content, position, grammar, inside)
            outer = inside["name"] if inside else ""
            classes += [_scope_class(outer)] * (start - position) + [_scope_class(scope)] * (end - start)
            position, inside = end, opened
        classes += [_scope_class(inside["name"] if inside else "")] * (len(line) - len(content))
    return classes


def _next_match(content, position, grammar, inside):
    """The span of the next match, its scope, and the rule that is open behind it, if any."""
    patterns = grammar["patterns"] if inside is None else [{"match": inside["end"]}, *inside["patterns"]]
    best = None
    for pattern in patterns:
        match = _compiled(pattern.get("match") or pattern["begin"]).search(content, position)
        if match and (best is None or match.start() < best[0].start()):
            best = match, pattern
            if match.start() == position:
                break
    if best is None:
        return len(content), len(content), "", inside
    match, pattern = best
    if inside is not None:
        return *match.span(), inside["name"], None if pattern is patterns[0] else inside
    return *match.span(), pattern["name"], pattern if "begin" in pattern else None


_compiled = cache(re.compile)


def _scope_class(scope):
    return next((name for prefix, name in SCOPES.items() if scope.startswith(prefix)), "")


def parsed_words(text):
    """The words as the parser reads them: (start, end, is a keyword)."""
    for statement in scan(text, LineIndex(text), Findings()):
        interactive = parser._lark().parse_interactive(start="start")
        for token in statement.tokens:
            terminal = parser._terminal(token, interactive.choices())
            if token.kind in ("word", "own_within", "file_format") and token.text != "_":
                yield token.start, token.end, terminal != "NAME"
            parser._feed(interactive, token)


@pytest.fixture(scope="module")
def grammar():
    return json.loads((ROOT / textmate.PATH).read_text(encoding="utf-8"))


def test_the_textmate_grammar_is_current():
    assert (ROOT / textmate.PATH).read_text(encoding="utf-8") == textmate.as_text(), "run its module again"


def test_both_colour_examples_and_documentation_alike(grammar):
    pages = [path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md")]
    blocks = [block for page in pages for block in re.findall(r"^```sql\n(.*?)^```", page, re.DOTALL | re.MULTILINE)]
    assert len(EXAMPLES) >= 10
    assert len(blocks) >= 50
    colours = set()
    for text in EXAMPLES + blocks:
        classes = by_pygments(text)
        assert classes == by_textmate(text, grammar), text
        colours |= set(classes)
    assert colours == {"keyword", "string", "number", "comment", ""}


def test_words_have_the_colours_that_the_parser_would_give_them():
    for text in EXAMPLES:
        classes = by_pygments(text)
        for start, end, is_keyword in parsed_words(text):
            word, coloured = text[start:end], set(classes[start:end]) == {"keyword"}
            # The type of a column is a name to the parser.
            assert coloured == is_keyword or (coloured and word in TYPE_NAMES), (word, text[start - 40 : end + 40])


@examples(50)
@given(st.lists(st.sampled_from(["AT", "LEAST", "key", *"x1.'`-\n ;(),e+<=_éſ"]), max_size=20).map("".join))
def test_both_colour_any_text_alike(text):
    assert by_pygments(text) == by_textmate(text, textmate.grammar())


def test_a_word_is_a_name_where_no_keyword_can_be():
    def type_of(word, text):
        return next(its for _, its, piece in WorkbookLexer().get_tokens_unprocessed(text) if piece == word)

    assert type_of("time", "x.time < 5") is Name
    assert type_of("value", "KEY (id) VALUE (value DOUBLE)") is Name
    assert type_of("gap", "VALUE (a STRING, gap DOUBLE)") is Name
    assert type_of("at", "PATTERN at(x, 'hall')") is Name.Function
    assert type_of("at", "RELATE at least 2 x") is Keyword
    assert type_of("VALUE", "VALUE -- the place\n(place)") is Keyword
    assert type_of("AND", "x AND y") is Operator.Word
    assert type_of("HOURS", "WITHIN 5 HOURS") is Keyword.Pseudo
    assert type_of("PATTERN", "AS PATTERN at(x)") is Keyword.Declaration


def test_pygments_finds_the_lexer_by_its_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["pygments.lexers"]["anabranch"].partition(":")
    assert getattr(import_module(module), name) is WorkbookLexer
    assert WorkbookLexer.filenames == ["*.abq"]


def test_the_extension_names_the_files_that_it_has():
    manifest = json.loads((ROOT / "editors/package.json").read_text(encoding="utf-8"))
    (language,), (colours,) = manifest["contributes"]["languages"], manifest["contributes"]["grammars"]
    assert language["extensions"] == [".abq"]
    assert colours["scopeName"] == textmate.grammar()["scopeName"]
    for file in (language["configuration"], colours["path"]):
        json.loads((ROOT / "editors" / file).read_text(encoding="utf-8"))
