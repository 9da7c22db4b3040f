"""What the text of a workbook declares, and what is wrong with it; without Spark, and without reading its data."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from anabranch.catalog import Query
from anabranch.errors import Finding, Span, WorkbookError, line_starts
from anabranch.kinds import KINDS
from anabranch.language.parser import parse
from anabranch.language.scanner import pieces, statement_ends
from anabranch.language.unparse import unparse
from anabranch.planning.planner import Planner

#: How often statements with errors are left out: a stream that is left out leaves queries without their stream.
_MOST_ROUNDS = 5

_NOT_LINE_END = re.compile(r"[^\r\n]")


def declare_text(text: str, file: str = "<workbook>") -> tuple[Planner, int]:
    """The declarations of a workbook and the number of its statements.

    Raises
    ------
    WorkbookError
        With all findings of the parser, or else all of the binder.
    """
    planner, parsed = Planner(), parse(text, file)
    findings = planner.declare(parsed)
    if findings:
        raise WorkbookError(findings, text, file)
    return planner, len(parsed.written)


def check_text(text: str, file: str) -> tuple[Planner, int]:
    """As `declare_text`, and raises for everything else that a run would find before it reads data."""
    planner, n_statements = declare_text(text, file)
    findings = planner.objections(planner.catalog.queries())
    findings = findings or _file_findings(planner, os.path.dirname(os.path.abspath(file)))
    if findings:
        raise WorkbookError(findings, text, file)
    return planner, n_statements


def _file_findings(planner: Planner, folder: str) -> list[Finding]:
    """Report the files besides the data, such as models, that a run could not use."""
    declared = planner.with_read(planner.catalog.queries())
    queries = [planner.prepare(query) for query in declared if planner.names_files(query)]
    if not queries:
        return []
    # Loads arrays, so only where a query needs them.
    from anabranch.planning.files import file_findings

    return file_findings(queries, planner.catalog, lambda name: folder)


def declare_valid(text: str) -> Planner:
    """The declarations of the statements without errors, for a text that is being typed."""
    for _ in range(_MOST_ROUNDS):
        try:
            return declare_text(text)[0]
        except WorkbookError as error:
            text = _without(text, error.findings)
    return Planner()


def _without(text: str, findings: Iterable[Finding]) -> str:
    """The text with blanks in place of the statements that have a finding, so that positions stay the same."""
    starts = line_starts(text)
    offsets = [_offset(finding.span, starts) for finding in findings if finding.span]
    kept, start = [], 0
    for end in [*statement_ends(text), len(text)]:
        statement = text[start:end]
        # At the end of the text, the parser misses what comes next.
        has_finding = any(start <= offset < end or offset == end == len(text) for offset in offsets)
        kept.append(_NOT_LINE_END.sub(" ", statement) if has_finding else statement)
        start = end
    return "".join(kept)


def _offset(span: Span, starts: list[int]) -> int:
    """The offset at which a span begins, given the offset of each line."""
    return starts[span.line - 1] + span.column - 1


def describe(text: str, offset: int) -> str:
    """What the name at an offset is: the plan of a query, or the declaration of a stream or relation; else empty.

    The keyword of a query, such as PATTERN, stands for its query.
    """
    planner = declare_valid(text)
    word = _word_at(text, offset)
    entry = planner.catalog.get(word)
    if entry is None and word.upper() in KINDS:
        starts = line_starts(text)
        before = [query for query in planner.catalog.queries() if _offset(query.declaration.span, starts) <= offset]
        entry = before[-1] if before else None
    if entry is None:
        return ""
    return str(planner.prepare(entry).plan) if isinstance(entry, Query) else unparse(entry.declaration)


def _word_at(text: str, offset: int) -> str:
    """The word or the quoted name at an offset; empty if there is none."""
    for kind, start, end in pieces(text):
        if start <= offset < end or (end == offset and kind == "word"):
            word = text[start:end]
            return word[1:-1].replace("``", "`") if kind == "quoted" else word if kind == "word" else ""
    return ""
