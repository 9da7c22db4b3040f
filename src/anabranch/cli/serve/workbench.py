"""The workbook on the page: its text, what is wrong with it, how it is completed, and what its queries will do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anabranch.cli.serve.confinement import foreign_inputs
from anabranch.editing.completion import complete
from anabranch.editing.workbooks import check_text, declare_valid
from anabranch.errors import AnabranchError, Finding, WorkbookError
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook
from anabranch.planning.planner import Planner

_EMPTY = "-- Write a workbook here, or open an example.\n"


@dataclass(frozen=True, slots=True)
class Opened:
    """The workbook that is shown.

    Attributes
    ----------
    title : shown above the editor
    text : when it was opened, or saved last
    file : the path with which errors begin, and to which paths in the workbook are relative
    can_be_saved : whether it is a file of the user
    """

    title: str
    text: str
    file: Path
    can_be_saved: bool = False

    @property
    def folder(self) -> Path:
        """The folder that inputs are in."""
        return self.file.parent

    @staticmethod
    def of_file(path: Path) -> Opened:
        """A workbook file of the user."""
        return Opened(path.name, read_workbook(str(path)), path.absolute(), can_be_saved=True)

    @staticmethod
    def empty() -> Opened:
        """A new workbook in the current folder."""
        return Opened("New workbook", _EMPTY, Path.cwd() / "workbook.abq")

    def saved(self, text: str) -> Opened:
        """Write another text to the file; refuses if someone else has changed it."""
        if not self.can_be_saved:
            raise AnabranchError("this workbook is not a file; copy its text into one")
        if read_workbook(str(self.file)) != self.text:
            raise AnabranchError(
                f"{self.file.name} has changed on disk since it was opened; copy your text, and reload"
            )
        self.file.write_text(text, encoding="utf-8", newline="")
        return replace(self, text=text)

    def document(self) -> dict[str, Any]:
        """The workbook as data for JSON."""
        return {"title": self.title, "text": self.text, "can_be_saved": self.can_be_saved}


def require_valid(text: str, opened: Opened) -> Planner:
    """The declarations of a text.

    Raises
    ------
    WorkbookError
        With everything that a run would find before it reads data, and inputs that the page does not read.
    """
    file = str(opened.file)
    foreign = foreign_inputs(parse(text, file), opened.folder)
    if foreign:
        raise WorkbookError(foreign, text, file)
    return check_text(text, file)[0]


def checked(text: str, opened: Opened) -> dict[str, Any]:
    """What is wrong with a text; if nothing is, its queries with their plans."""
    try:
        planner = require_valid(text, opened)
    except WorkbookError as error:
        return {"findings": [_finding(finding) for finding in error.findings], "queries": []}
    queries = [
        {
            "name": query.name,
            "kind": query.declaration.body.kind,
            "line": query.declaration.span.line,
            "plan": str(planner.prepare(query).plan),
        }
        for query in planner.catalog.queries()
    ]
    return {"findings": [], "queries": queries}


def completions(text: str, position: int) -> dict[str, Any]:
    """What the word at a position can become; `start` is where it begins."""
    candidates, length = complete(text[:position], declare_valid(text).catalog)
    return {"start": position - length, "words": [candidate._asdict() for candidate in candidates]}


def _finding(finding: Finding) -> dict[str, Any]:
    """A finding as data for JSON; one without a position is about the first line."""
    span = finding.span
    position = {} if span is None else {name: getattr(span, name) for name in span.__slots__}
    first = {"line": 1, "column": 1, "end_line": 1, "end_column": 1}
    return {"message": finding.message, "hint": finding.hint, **first, **position}
