"""`anabranch rows`: the rows of an inferred stream as a table, as lines and as files."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.inference.test_stream import building, inferred_rows
from tests.runtime.test_inferred import READINGS, session_with_model
from tests.runtime.test_rows import bind_readings


def test_the_command_shows_and_writes_rows(spark: SparkSession, tmp_path: Path, anabranch: Command) -> None:
    readings = bind_readings(session_with_model(spark, "MLE", tmp_path), tmp_path)
    book, source = tmp_path / "q.abq", f"readings={readings}"
    expected = inferred_rows(READINGS, "MLE", building())
    shown = anabranch("rows", book, "at", "--input", source, "--limit", "3", "--output", "-")
    assert (shown.status, len(shown.out.splitlines())) == (0, 4)
    assert shown.out.splitlines()[0] == "t,tag,room"
    assert f"at: {len(expected)} rows" in shown.err
    assert anabranch("rows", book, "at", "--input", source, "--output", tmp_path / "out").status == 0
    assert pq.read_table(tmp_path / "out" / "at").num_rows == len(expected)
    table = anabranch("rows", book, "AT", "--input", source, "--limit", "2")
    assert f"and {len(expected) - 2} more" in table.out
    unknown = anabranch("rows", book, "nobody")
    assert unknown.status == 2
    assert "there is no stream nobody; the workbook has: readings, at, given" in unknown.first
