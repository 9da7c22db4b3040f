"""`run` and `stream` with queries that declare their targets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.command import Command
from tests.runtime.office import ANSWERS, answers_of, query, same, stream, write_parquet, written


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A workbook with a query for --output, and one with a folder."""
    write_parquet(tmp_path / "in" / "1.parquet")
    workbook = tmp_path / "office.abq"
    declared = query("there").replace(" AS ", " TO 'there/' FORMAT json AS ")
    workbook.write_text(stream("at", "'in/*.parquet'") + query("here") + declared)
    return workbook


def _there(office: Path) -> dict[tuple, float]:
    files = sorted((office.parent / "there").glob("*.json"))
    return answers_of([json.loads(line) for file in files for line in file.read_text().splitlines()])


def test_run_writes_to_the_declared_target(anabranch: Command, spark: SparkSession, office: Path) -> None:
    summary = office.parent / "summary.json"
    done = anabranch("run", office, "--output", office.parent / "out", "--summary", summary)
    assert done.status == 0
    assert same(_there(office), ANSWERS)
    assert same(written(office.parent / "out" / "here"), ANSWERS)
    assert not (office.parent / "out" / "there").exists()
    outputs = {entry["query"]: entry["output"] for entry in json.loads(summary.read_text())["queries"]}
    assert outputs == {"here": str(office.parent / "out" / "here"), "there": "'there/' FORMAT json"}
    assert anabranch("run", office, "--query", "there", "--limit", "1").status == 0
    assert len(_there(office)) == 1


def test_stream_writes_to_the_declared_target(anabranch: Command, spark: SparkSession, office: Path) -> None:
    options = ("--once", "--checkpoint", office.parent / "checkpoint")
    refused = anabranch("stream", office, *options)
    assert refused.status == 2
    assert "here needs --output DIR, or a target (TO) in the workbook" in refused.err
    assert anabranch("stream", office, *options, "--query", "there").status == 0
    assert same(_there(office), ANSWERS)
    assert anabranch("stream", office, *options, "--query", "here", "--output", office.parent / "out").status == 0
    assert same(written(office.parent / "out" / "here"), ANSWERS)


def test_rows_of_a_stream_without_output_are_quarantined_in_its_checkpoint(
    anabranch: Command, spark: SparkSession, office: Path
) -> None:
    write_parquet(office.parent / "in" / "2.parquet", [(None, "hall", 9, 1.0)])
    assert anabranch("stream", office, "--once", "--checkpoint", office.parent / "cp", "--query", "there").status == 0
    assert list((office.parent / "cp" / "there" / "_quarantine" / "there").glob("*.json"))
