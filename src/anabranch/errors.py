"""The one exception tree: every error has a code, a place in the text where there is one, and a mend.

Everything a user can cause ends in an `AnabranchError`; its `str` is one line, `file:line:column: what is wrong; what
would be right`. A `WorkbookError` holds every finding of a workbook, so that one run of `check` shows them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LINE_END = re.compile(r"\r\n|\r|\n")


def line_starts(text: str) -> list[int]:
    """The offset at which each line begins; lines end as in an editor, unlike `str.splitlines`."""
    return [0, *(match.end() for match in _LINE_END.finditer(text))]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of workbook text; lines and columns are 1-based, `end_column` is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a workbook, where, and what would be right.

    Attributes
    ----------
    code : str
        Stable and machine-readable, such as `unknown-name`.
    message : str
        One line: what is wrong.
    hint : str
        One line: what would be right. May be empty.
    span : Span or None
        The place, None where the finding is about no one place.
    """

    code: str
    message: str
    hint: str = ""
    span: Span | None = None

    def line(self, file: str) -> str:
        """The finding as `file:line:column: message; hint`."""
        place = f"{file}:{self.span.line}:{self.span.column}" if self.span else f"{file}:1:1"
        return f"{place}: {self.message}" + (f"; {self.hint}" if self.hint else "")

    def marked(self, text: str) -> str:
        """The source line with a marker under the place; empty where there is no place."""
        if self.span is None:
            return ""
        lines = _LINE_END.split(text)
        if not 1 <= self.span.line <= len(lines):
            return ""
        source = lines[self.span.line - 1]
        end = self.span.end_column if self.span.end_line == self.span.line else len(source) + 1
        width = max(1, end - self.span.column)
        # A hostile line can be megabytes long: show the part around the marker.
        start = max(0, self.span.column - 1 - 60)
        shown = source[start : start + 120].replace("\t", " ")
        shown = "".join(c if c.isprintable() else "?" for c in shown)
        return f"  {shown}\n  {' ' * (self.span.column - 1 - start)}{'^' * min(width, 60)}"


class AnabranchError(Exception):
    """The root of everything Anabranch raises on purpose."""

    code = "error"


class WorkbookError(AnabranchError):
    """A workbook, or a query in it, is wrong; `findings` lists everything that was found."""

    code = "workbook"

    def __init__(self, findings: list[Finding], text: str = "", file: str = "<workbook>") -> None:
        self.findings = findings
        self.text = text
        self.file = file
        super().__init__("\n".join(self.lines()))

    def lines(self) -> list[str]:
        """One line a finding."""
        return [finding.line(self.file) for finding in self.findings]

    def report(self) -> str:
        """Every finding with its marked source line, the way a terminal shows it."""
        blocks = []
        for finding in self.findings:
            marked = finding.marked(self.text)
            blocks.append(finding.line(self.file) + (f"\n{marked}" if marked else ""))
        return "\n".join(blocks)


class NotYetBuilt(WorkbookError):
    """A part of the language that is understood, but cannot be run by this version."""

    code = "not-yet-built"


class DataError(AnabranchError):
    """The data do not fit what the workbook says of them (missing file or column, bad rows under strict)."""

    code = "data"


class StateError(AnabranchError):
    """Saved state cannot be opened: another format, another query, or damaged."""

    code = "state"


class TooLarge(AnabranchError):
    """An exact answer would need more than the limits allow; the message has the size."""

    code = "too-large"
