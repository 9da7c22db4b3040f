"""`anabranch check`: is the workbook right? No Spark is started, no data are read."""

from __future__ import annotations

from anabranch.catalog import Catalog
from anabranch.cli.common import Workbook, say
from anabranch.errors import WorkbookError
from anabranch.families import objections
from anabranch.language.binder import declare
from anabranch.language.parser import parse
from anabranch.language.reading import read_workbook


def command(workbook: Workbook) -> None:
    """Parse, bind and analyse a workbook; say everything that is wrong with it."""
    text = read_workbook(workbook)
    parsed = parse(text, workbook)
    catalog = Catalog()
    findings = declare(parsed, catalog)
    findings += objections(catalog.queries(), catalog)
    if findings:
        raise WorkbookError(findings, text, workbook)
    told = f"{len(parsed.statements)} statements, {len(catalog.queries())} queries"
    say(f"{workbook}: {told}; nothing wrong was found")
