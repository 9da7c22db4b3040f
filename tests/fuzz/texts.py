"""Texts for the fuzzer: workbooks of the project that are mutated, and queries that the grammar generates."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources

from lark.grammar import NonTerminal, Rule, Symbol

from anabranch.language.scanner import statement_ends
from anabranch.language.tables import build_parser
from tests.docs.pages import ROOT, blocks_of, markdown_files

_PIECE = re.compile(r"\w+|\s+|'[^']*'|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w*")
_DECLARED = re.compile(r"CREATE\s+(?:OR\s+REPLACE\s+)?(STREAM|RELATION|QUERY)\s+(\w+)", re.IGNORECASE)
_CHARACTERS = list("()[]<>+-*/%=!,.;|'`\"\\_ \n\t09aZ&{}@#\x00\x07\ufeff\u200f\u00a0\ud800é中") + [
    "--",
    "''",
    "<>",
    "1e400",
    "٣",
]
_TOKENS = [
    "CREATE", "STREAM", "QUERY", "AS", "PATTERN", "THEN", "WHERE", "AND", "OR", "NOT", "IN", "BETWEEN", "NULL", "TRUE",
    "FROM", "KEY (a)", "VALUE (b)", "TIME t", "MODEL MARKOV", "ERROR -1", "THRESHOLD 2", "PER 5 AT LEAST 2 TIMES",
    "PER EPISODE ABOVE 2 GAP -1", "PER KEYS", "ORDER BY probability DESC LIMIT 0", "WITHIN 5 HOURS", "GROUP BY p",
    "MISS x 0.5", "OCCURS x 0.5", "DELAY x NORMAL(1)", "WITHOUT (x, y)", "SEMANTICS", "99999999999999999999",
    "METHOD SAMPLING", "(", ")", "[1, 2]", "_", "WITHIN(v, v)", "x.y['z']", "+<p | TRUE>",
    "INTERSECTS", "AT LEAST 0", "v*999999", "ABS(1, 2)", "'2026-01-01'", "- -1", "5 DAYS", "OPTIONS (a = 1)",
]  # fmt: skip

#: Where the workbooks of the project are.
_FOLDERS = (ROOT / "examples", ROOT / "tests" / "fixtures", ROOT.parent / "shared" / "cases")

#: Streams and relations for generated queries.
_DECLARATIONS = """
CREATE STREAM c KEY (k STRING) VALUE (v DOUBLE, w STRING) TIME t INTEGER;
CREATE STREAM d KEY (k STRING) VALUE (v DOUBLE) TIME t TIMESTAMP MODEL INDEPENDENT WATERMARK 5 SECONDS;
CREATE STREAM m KEY (k STRING) VALUE (w STRING) TIME t INTEGER MODEL MARKOV;
CREATE STREAM i KEY (k STRING) VALUE (w STRING) TIME t INTEGER ORDER n MODEL INTERVALS HORIZON [0, 100];
CREATE STREAM p KEY (k STRING) VALUE (x DOUBLE, y DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 1 PERIOD 5 SPACE (x, y);
CREATE RELATION r (k STRING, w STRING);
"""
_NAMES = [*"cdmiprkvwtxyabn", "ABS", "SPAN", "DISTANCE", "WITHIN", "probability", "EXPONENTIAL", "UNIFORM", "MAY", "q"]
_VALUES = {
    "NUMBER": ["0", "1", "2", "5", "0.5", "1e-9", "1e300", "9223372036854775807", "1.0", "100"],
    "STRING": ["'a'", "''", "'hall'", "'2026-01-01'", "'x''y'", "'POLYGON((0 0, 1 0, 1 1, 0 0))'"],
    "UNIT": ["SECONDS", "HOURS", "DAYS", "MILLISECONDS"],
    "TYPE_NAME": ["INTEGER", "DOUBLE", "STRING", "TIMESTAMP", "BOOLEAN"],
    "WILDCARD": ["_"],
    "COMPARATOR": ["<", "<=", ">", ">=", "<>", "!="],
    "KLEENE_OPEN": ["<"],
    "KLEENE_CLOSE": [">"],
}


#: The clauses of a statement, by a word that it has.
_CLAUSES = {
    "PATTERN": "pattern_clause",
    "SEQUENCE": "sequence_clause",
    "RELATE": "relate_clause",
    "MONITOR": "monitor_clause",
    "CONSTRAIN": "constrain_clause",
    "QUERY": "combination_clause",
}


def new_text(rng: random.Random) -> str:
    """A workbook: mutated, generated, or with a generated part."""
    way = rng.random()
    if way < 0.15:
        text = f"{_DECLARATIONS}CREATE QUERY q AS {_grammar().text('query', rng, _NAMES)};"
    else:
        text = rng.choice(_workbooks())
        if way < 0.5:
            text = _with_generated_part(text, rng)
        else:
            return mutated(text, rng)
    return mutated(text, rng) if rng.random() < 0.2 else text


# ------------------------------------------------------------ workbooks of the project


@cache
def _workbooks() -> tuple[str, ...]:
    """Every query of the project, with the declarations that it needs, as a workbook of its own."""
    texts = [path.read_text(encoding="utf-8") for folder in _FOLDERS for path in sorted(folder.rglob("*.abq"))]
    for page in markdown_files():
        blocks = blocks_of(page.read_text(encoding="utf-8").splitlines())
        texts.append("".join(block.text for block in blocks if block.language == "sql"))
    return tuple(dict.fromkeys(small for text in texts for small in _single_queries(text)))


def _single_queries(text: str) -> list[str]:
    ends = [0, *statement_ends(text)]
    statements = [text[start:end] for start, end in zip(ends, ends[1:], strict=False)]
    names = [match[2].lower() if (match := _DECLARED.search(statement)) else "" for statement in statements]
    small = []
    for number, statement in enumerate(statements):
        if (match := _DECLARED.search(statement)) is None or match[1].upper() != "QUERY":
            continue
        needed, words = {number}, _words(statement)
        for other in reversed(range(number)):
            if names[other] in words:
                needed.add(other)
                words |= _words(statements[other])
        small.append("".join(statements[index] for index in sorted(needed)))
    return small


def _words(text: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(text)}


# ------------------------------------------------------------ the grammar


class _Grammar:
    """Random texts of the rules of the grammar."""

    #: Beyond this depth, the shortest expansions are chosen.
    DEEP = 9

    def __init__(self) -> None:
        grammar = resources.files("anabranch.language").joinpath("grammar.lark").read_text(encoding="utf-8")
        parser = build_parser(grammar)
        self._rules: dict[str, list[Rule]] = {}
        for rule in parser.rules:
            self._rules.setdefault(rule.origin.name, []).append(rule)
        self._literals = {
            terminal.name: terminal.pattern.value for terminal in parser.terminals if terminal.name not in _VALUES
        }
        self._depths = self._shortest_depths()
        self._shortest = {
            name: [rule for rule in rules if self._depth(rule) == self._depths[name]]
            for name, rules in self._rules.items()
        }

    def text(self, rule: str, rng: random.Random, names: Sequence[str]) -> str:
        """A random text of a rule."""
        words: list[str] = []
        self._expand(NonTerminal(rule), rng, names, words, 0)
        return " ".join(words)

    def _expand(self, symbol: Symbol, rng: random.Random, names: Sequence[str], words: list[str], depth: int) -> None:
        if not isinstance(symbol, NonTerminal):
            if symbol.name == "NAME":
                words.append(rng.choice(names))
            else:
                words.append(rng.choice(_VALUES.get(symbol.name) or [self._literals.get(symbol.name, symbol.name)]))
            return
        rules = self._shortest if depth > self.DEEP else self._rules
        for part in rng.choice(rules[symbol.name]).expansion:
            self._expand(part, rng, names, words, depth + 1)

    def _depth(self, rule: Rule) -> int:
        return 1 + max((self._depths.get(symbol.name, 0) for symbol in rule.expansion), default=0)

    def _shortest_depths(self) -> dict[str, int]:
        """The depth of the shortest expansion of each rule."""
        self._depths = dict.fromkeys(self._rules, 10**6)
        changed = True
        while changed:
            depths = {name: min(map(self._depth, rules)) for name, rules in self._rules.items()}
            changed, self._depths = depths != self._depths, depths
        return self._depths


@cache
def _grammar() -> _Grammar:
    return _Grammar()


def _with_generated_part(text: str, rng: random.Random) -> str:
    """The text with a generated condition or clause, from its own names."""
    # Words in capitals are keywords.
    names = [word for word in _WORD.findall(text) if not word.isupper()] + ["ABS"]
    grammar = _grammar()
    conditions = [match.end() for match in re.finditer(r"\b(?:WHERE|AND|OR|NOT)\b", text, re.IGNORECASE)]
    if conditions and rng.random() < 0.6:
        at = rng.choice(conditions)
        connective = rng.choice(["AND", "OR"])
        return f"{text[:at]} {grammar.text('negation', rng, names)} {connective} {text[at:]}"
    at = rng.choice([end - 1 for end in statement_ends(text)])
    statement = text[: at + 1].rsplit(";", 2)[-2].upper()
    (clause, *_) = [clause for word, clause in _CLAUSES.items() if word in statement] or ["stream_clause"]
    return f"{text[:at]} {grammar.text(clause, rng, names)}{text[at:]}"


# ------------------------------------------------------------ mutations

Mutation = Callable[[random.Random, list[str]], None]


def _delete(rng: random.Random, pieces: list[str]) -> None:
    del pieces[rng.randrange(len(pieces))]


def _duplicate(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    pieces.insert(at, pieces[at])


def _swap(rng: random.Random, pieces: list[str]) -> None:
    a, b = rng.randrange(len(pieces)), rng.randrange(len(pieces))
    pieces[a], pieces[b] = pieces[b], pieces[a]


def _insert_token(rng: random.Random, pieces: list[str]) -> None:
    pieces.insert(rng.randrange(len(pieces)), f" {rng.choice(_TOKENS)} ")


def _insert_character(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    cut = rng.randint(0, len(pieces[at]))
    pieces[at] = pieces[at][:cut] + rng.choice(_CHARACTERS) + pieces[at][cut:]


def _delete_character(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    cut = rng.randrange(len(pieces[at]) or 1)
    pieces[at] = pieces[at][:cut] + pieces[at][cut + 1 :]


def _repeat(rng: random.Random, pieces: list[str]) -> None:
    at = rng.randrange(len(pieces))
    pieces[at : at + 1] = [pieces[at]] * rng.choice([2, 10, 200])


def _replace(rng: random.Random, pieces: list[str]) -> None:
    pieces[rng.randrange(len(pieces))] = pieces[rng.randrange(len(pieces))]


def _change_number(rng: random.Random, pieces: list[str]) -> None:
    numbers = [index for index, piece in enumerate(pieces) if piece.isdecimal() and piece.isascii()]
    if numbers:
        pieces[rng.choice(numbers)] = rng.choice(_VALUES["NUMBER"])


def _change_name(rng: random.Random, pieces: list[str]) -> None:
    """Replace a name by another one of the text: the result can often be parsed."""
    names = [index for index, piece in enumerate(pieces) if _WORD.fullmatch(piece) and not piece.isupper()]
    if names:
        pieces[rng.choice(names)] = pieces[rng.choice(names)]


def _splice(rng: random.Random, pieces: list[str]) -> None:
    """Copy a few pieces of another workbook."""
    others = _PIECE.findall(rng.choice(_workbooks()))
    at = rng.randrange(len(others))
    cut = rng.randrange(len(pieces))
    pieces[cut:cut] = others[at : at + rng.randint(1, 8)]


_MUTATIONS: list[Mutation] = [
    _delete, _duplicate, _swap, _insert_token, _insert_character, _delete_character, _repeat, _replace, _change_number,
    _change_number, _change_name, _change_name, _change_name, _splice,
]  # fmt: skip


def mutated(text: str, rng: random.Random) -> str:
    """The text with one to four changes to its words and characters."""
    pieces = _PIECE.findall(text)
    for _ in range(rng.choice([1, 1, 2, 4])):
        if pieces:
            rng.choice(_MUTATIONS)(rng, pieces)
    return "".join(pieces)
