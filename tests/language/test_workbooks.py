"""The workbooks of the fixtures and of the shared cases parse and bind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog
from anabranch.language.parser import parse

FIXTURES = sorted((Path(__file__).parents[1] / "fixtures" / "workbooks").glob("*.abq"))

#: The folder of the shared cases: next to the repository, unless the environment variable names another.
CASES = Path(os.environ.get("ANABRANCH_CASES", Path(__file__).parents[3] / "shared" / "cases"))
KINDS = ["constrain", "monitor", "pattern", "pattern_stream", "relate", "sequence"]


def check(workbook: Path) -> None:
    catalog = Catalog()
    assert declare(parse(workbook.read_text(encoding="utf-8"), str(workbook)), catalog) == []
    assert catalog.queries()
    for query in catalog.queries():
        bound = bind(query, catalog)
        assert bound.name == query.name
        assert all(catalog.stream(stream.name) == stream for stream in bound.streams)


@pytest.mark.parametrize("workbook", FIXTURES, ids=lambda path: path.stem)
def test_fixtures_bind(workbook: Path) -> None:
    check(workbook)


@pytest.mark.skipif(not CASES.is_dir(), reason="the shared cases are not here")
@pytest.mark.parametrize("kind", KINDS)
def test_cases_bind(kind: str) -> None:
    check(CASES / kind / "workbook.abq")
