"""Golden files of messages: the findings about each workbook in tests/fixtures/errors.

After a change of messages, `python -m tests.language.golden_errors` regenerates the files; review the diff before you
commit it.
"""

from __future__ import annotations

from pathlib import Path

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.errors import WorkbookError
from anabranch.language.parser import parse

FOLDER = Path(__file__).parents[1] / "fixtures" / "errors"
WORKBOOKS = sorted(FOLDER.glob("*.abq"))


def messages(workbook: Path) -> str:
    """Every finding about a workbook with its code, one per line."""
    text = workbook.read_text(encoding="utf-8")
    try:
        findings = declare(parse(text, workbook.name), Catalog())
    except WorkbookError as error:
        findings = error.findings
    return "".join(f"[{finding.code}] {finding.line(workbook.name)}\n" for finding in findings)


if __name__ == "__main__":
    for path in WORKBOOKS:
        path.with_suffix(".txt").write_text(messages(path), encoding="utf-8")
