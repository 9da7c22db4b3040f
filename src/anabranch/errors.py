"""The exceptions of the project, and the findings that they report.

Every error that a user can cause is an `AnabranchError`; its `str` is one line, `file:line:column: message; hint`. A
`WorkbookError` has all findings about a workbook, so that one run of `check` shows them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


def line_starts(text: str) -> list[int]:
    """The offset of each line; lines end as in an editor, unlike `str.splitlines`."""
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


@dataclass(frozen=True, slots=True)
class Span:
    """A range of workbook text; lines and columns are 1-based, `end_column` is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One error in a workbook: its position, the reason and a fix.

    Attributes
    ----------
    code : str
        Stable and machine-readable, such as `unknown-name`.
    message : str
        One line: the reason.
    hint : str
        One line: how to fix it. May be empty.
    span : Span or None
        The position; None if the finding has no position.
    """

    code: str
    message: str
    hint: str = ""
    span: Span | None = None

    def line(self, file: str) -> str:
        """The finding as `file:line:column: message; hint`."""
        position = f"{file}:{self.span.line}:{self.span.column}" if self.span else f"{file}:1:1"
        return f"{position}: {self.message}" + (f"; {self.hint}" if self.hint else "")

    def marked(self, text: str) -> str:
        """The source line with a marker under the position; empty if there is no position."""
        if self.span is None:
            return ""
        lines = _LINE_END.split(text)
        if not 1 <= self.span.line <= len(lines):
            return ""
        source = lines[self.span.line - 1]
        end = self.span.end_column if self.span.end_line == self.span.line else len(source) + 1
        width = max(1, end - self.span.column)
        # A hostile line can be megabytes long, so only the part around the marker is shown.
        start = max(0, self.span.column - 1 - 60)
        excerpt = source[start : start + 120].replace("\t", " ")
        excerpt = "".join(c if c.isprintable() else "?" for c in excerpt)
        return f"  {excerpt}\n  {' ' * (self.span.column - 1 - start)}{'^' * min(width, 60)}"


#: The code of findings about secrets that are written in a workbook.
LITERAL_SECRET = "secret"  # noqa: S105


class AnabranchError(Exception):
    """Base class of all errors that Anabranch raises on purpose."""

    code = "error"


class WorkbookError(AnabranchError):
    """A workbook or a query has errors; `findings` lists all of them."""

    code = "workbook"

    def __init__(self, findings: list[Finding], text: str = "", file: str = "<workbook>") -> None:
        self.findings = findings
        self.text = text
        self.file = file
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line per finding."""
        return [finding.line(self.file) for finding in self.findings]

    def report(self) -> str:
        """Every finding with its marked source line, for a terminal. Lines with a secret are not shown."""
        blocks = []
        spans = [finding.span for finding in self.findings if finding.code == LITERAL_SECRET and finding.span]
        secret_lines = {line for span in spans for line in range(span.line, span.end_line + 1)}
        for finding in self.findings:
            is_secret = finding.span is not None and finding.span.line in secret_lines
            marked = "" if is_secret else finding.marked(self.text)
            blocks.append(finding.line(self.file) + (f"\n{marked}" if marked else ""))
        return "\n".join(blocks)


class NotYetBuilt(WorkbookError):
    """A part of the language that this version can parse but cannot run."""

    code = "not-yet-built"


class DataError(AnabranchError):
    """The data do not fit their declaration: a missing file or column, or an invalid row with --strict."""

    code = "data"


class InputWarning(UserWarning):
    """Most rows of an input were quarantined, or it has no rows."""


class StateError(AnabranchError):
    """Saved state cannot be restored: it has another format, belongs to another query, or is damaged."""

    code = "state"


class WorkerError(AnabranchError):
    """Spark's Python workers cannot run queries: they lack the package, or have another version of it or of Python."""

    code = "worker"


class SparkEnded(AnabranchError):
    """The Java process of Spark has ended: the session cannot be used any more."""

    code = "spark"


class CostlySetting(UserWarning):
    """A setting of the Spark session makes queries slow. The answers are the same."""


class TooManyAnswers(AnabranchError):
    """A query has more answers in one step of a bucket than it may have; the message begins with its name."""

    code = "too-many-answers"


class TooLarge(AnabranchError):
    """An exact answer would exceed the size limits; the message has the size."""

    code = "too-large"
