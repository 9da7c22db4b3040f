"""Checks that the workbook of a scenario can be run."""

from __future__ import annotations

import re
from pathlib import Path

from anabranch.binding.binder import declare
from anabranch.catalog import Catalog
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner


def check_workbook(workbook: Path, queries: list[str]) -> list[str]:
    """Check that a workbook is valid, has these queries and that its files exist; return the names of its files."""
    text = workbook.read_text(encoding="utf-8")
    catalog = Catalog()
    assert declare(parse(text, workbook.name), catalog) == []
    assert Planner(catalog).objections(catalog.queries()) == []
    assert [query.name for query in catalog.queries()] == queries
    files = re.findall(r"FROM '([^']+)'", text)
    assert all((workbook.parent / name).is_file() for name in files)
    return files
