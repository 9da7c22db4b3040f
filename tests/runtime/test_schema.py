"""Columns that an input does not have: the hint names a similar column, or the separator of the file."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from anabranch.errors import WorkbookError
from anabranch.language.parser import parse
from anabranch.planning.planner import Planner
from anabranch.runtime.sources.schema import CORRUPT, match_columns


@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["Persons", "t"], "did you mean Persons?"),
        (["who", "t"], "it has who, t"),
        (["person;t"], "its header is 'person;t'; write OPTIONS (sep = ';') after the path"),
        (["person|t"], "its header is 'person|t'; write OPTIONS (sep = '|') after the path"),
    ],
)
def test_a_missing_column_has_a_hint(names: list[str], hint: str) -> None:
    planner = Planner()
    planner.declare(parse("CREATE STREAM at KEY (person) VALUE (place) TIME t;"))
    stream = planner.catalog.require_stream("at")
    schema = StructType([StructField(name, StringType()) for name in (*names, CORRUPT)])
    with pytest.raises(WorkbookError) as refused:
        match_columns(stream, stream.keys, schema, "'at.csv'")
    assert str(refused.value) == f"<workbook>:1:1: 'at.csv' has no column person; {hint}"
