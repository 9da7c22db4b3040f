"""Hostile texts: each is refused quickly, with positioned findings and no other error."""

from __future__ import annotations

import time

import pytest

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import Finding, WorkbookError
from anabranch.language import limits
from anabranch.language.parser import parse
from tests.untraced import untraced

STREAM = "CREATE STREAM s KEY (k) VALUE (v) TIME t; "
QUERY = STREAM + "CREATE QUERY q AS PATTERN s(x, y) WHERE "

#: Seconds of CPU time. The texts take at most half of it; continuous integration is slow.
TIME_LIMIT = 5.0

REFUSED = {
    "megabytes of parentheses": ("(" * 2_000_000, "too-long"),
    "parentheses": ("CREATE " + "(" * 9_000, "too-deep"),
    "brackets": ("CREATE " + "([" * 4_000, "too-deep"),
    "words without end": ("( " * 130_000, "too-long"),
    "goals": ("CREATE QUERY q AS PATTERN " + " THEN ".join(["s(x, y)"] * 1_000), "too-many"),
    "ten thousand goals": ("CREATE QUERY q AS PATTERN " + " THEN ".join(["s(x)"] * 10_000), "too-long"),
    "a hundred thousand ANDs": (QUERY + " AND ".join("x" * 100_000), "too-long"),
    "forty thousand ANDs": (QUERY + " AND ".join("x" * 19_000), "too-long"),
    "nots": (QUERY + "NOT " * 5_000 + "x", "too-deep"),
    "minuses": (QUERY + "- " * 5_000 + "1 = 1", "too-deep"),
    "a long sum": (QUERY + "+".join("x" * 4_000) + " = 1", "too-deep"),
    "nested conditions": (QUERY + "(x OR x AND NOT x = " * 60 + "x" + ")" * 60, "too-deep"),
    "lists in lists": (QUERY + "(" * 50 + "x" + " IN (TRUE, FALSE))" * 50, "type-mismatch"),
    "a list times a sum": (QUERY + f"{'+'.join('x' * 90)} IN ({','.join('1' * 2_000)})", "too-long"),
    "lone surrogates": ("\ud800" * 1_000, "odd-character"),
    "a surrogate in a string": (QUERY + "x = '\udfff'", "odd-character"),
    "a surrogate in a name": ("CREATE RELATION `\ud800` (x)", "odd-character"),
    "a surrogate in a comment": ("-- \ud800", "odd-character"),
    "NUL": ("\x00" * 100_000, "odd-character"),
    "NUL in a string": (QUERY + "x = '\x00'", "odd-character"),
    "control characters": ("CREATE\x07RELATION r (x)", "odd-character"),
    "right to left": ("CREATE RELATION \u200fr (x)", "odd-character"),
    "hidden comment": ("CREATE RELATION r (x) -- \u202e", "odd-character"),
    "a mark inside": ("CREATE RELATION r\ufeff (x)", "odd-character"),
    "an invisible name": ("CREATE RELATION `a\u200bb` (x)", "odd-character"),
    "quotes": ("'" * 200_001, "unterminated"),
    "backticks": ("`" * 200_001, "name-too-long"),
    "semicolons": (";" * 250_000, "too-long"),
    "statements": ("a;" * 100_000, "too-long"),
    "wrong statements": ("CREATE;" * 1_000, "syntax"),
    "a long number": (QUERY + "x = " + "9" * 200_000, "number-too-long"),
    "a large number": (QUERY + "x = 1e400", "number-too-large"),
    "a large integer": (QUERY + "x = 9223372036854775808", "number-too-large"),
    "a large exponent": (QUERY + "x = 1e" + "9" * 30, "number-too-large"),
    "dots": ("." * 200_000, "too-long"),
    "unfoldings": ("CREATE QUERY q AS PATTERN s(x)" + "+<" * 4_000, "syntax"),
    "a long string": (QUERY + "x = '" + "a" * 200_000 + "'", "string-too-long"),
    "a long name": ("CREATE RELATION " + "a" * 200_000 + " (x)", "name-too-long"),
    "a name with too many bytes": ("CREATE RELATION " + "ä" * 65 + " (x)", "name-too-long"),
    "a long list of columns": (f"CREATE RELATION r ({','.join('x' * 4_900)})", "name-twice"),
    "one name again and again": ("CREATE RELATION r (x);" * 1_900, "declared-twice"),
    "many unknown names": (
        "".join(f"CREATE STREAM s{i} KEY (k) TIME t;" for i in range(900))
        + "".join(f"CREATE QUERY q{i} AS PATTERN zs{i}(x) WHERE w{i} = 1;" for i in range(900)),
        "unknown-stream",
    ),
    "a long circle": (
        "".join(f"CREATE STREAM s{i} KEY (k) TIME t FROM QUERY q{i};" for i in range(900))
        + "".join(f"CREATE QUERY q{i} AS PATTERN s{(i + 1) % 900}(x);" for i in range(900)),
        "cycle",
    ),
    "a folder elsewhere": (STREAM + "CREATE QUERY `../../etc` AS PATTERN s(x, y)", "not-a-folder"),
}  # fmt: skip

ACCEPTED = {
    "a leading byte order mark": "\ufeff" + STREAM,
    "many conjuncts": QUERY + " AND ".join(["x = 1"] * 2_000),
    "a long list": QUERY + f"x IN ({','.join('1' * 4_000)})",
    "all the brackets there may be": QUERY + "(" * 63 + "x = 1" + ")" * 63,
    "all the goals there may be": STREAM + "CREATE QUERY q AS PATTERN " + " THEN ".join(["s(x, y)"] * limits.MAX_GOALS),
    "a long sum": QUERY + "+".join("x" * 90) + " = 1",
    "line ends": "\n" * 250_000,
    "a long comment": "--" + "x" * 250_000,
    "odd characters in strings": QUERY + "x = '\u202e\u2028\t\n\x07 ;--`'",
}


@untraced
def received(text: str) -> list[Finding]:
    """The findings about a text. Not traced: coverage multiplies the time that is measured."""
    try:
        return declare(parse(text), Catalog())
    except WorkbookError as error:
        assert error.report()
        return error.findings


@pytest.mark.parametrize(("text", "code"), REFUSED.values(), ids=REFUSED.keys())
def test_hostile_texts_are_refused_quickly(text: str, code: str) -> None:
    start = time.process_time()
    findings = received(text)
    assert time.process_time() - start < TIME_LIMIT
    assert code in {finding.code for finding in findings}
    assert len(findings) <= limits.MAX_FINDINGS
    assert all(finding.span and len(finding.line("w")) < 1_000 for finding in findings)


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_large_valid_texts_are_accepted_quickly(text: str) -> None:
    start = time.process_time()
    assert received(text) == []
    assert time.process_time() - start < TIME_LIMIT
