"""Reads workbook files."""

from __future__ import annotations

from anabranch.errors import Finding, WorkbookError
from anabranch.language.limits import MAX_TEXT


def read_workbook(path: str) -> str:
    """Return the text of a workbook.

    Raises
    ------
    WorkbookError
        If the file cannot be read, or is not UTF-8 text.
    """
    try:
        with open(path, encoding="utf-8") as file:
            # One character more than is allowed is enough for the parser to reject a large file.
            return file.read(MAX_TEXT + 1)
    except OSError as error:
        raise WorkbookError([Finding("no-workbook", f"cannot be read: {error.strerror}")], "", path) from error
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 text (byte {error.start})"
        raise WorkbookError([Finding("not-text", message, "save it as UTF-8")], "", path) from error
