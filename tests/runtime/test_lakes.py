"""Tables of Delta Lake and Iceberg without a connector in Spark: batch inputs through their Python packages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ANSWERS, ROWS, SCHEMA, collect, query, same, stream, table

from anabranch import Session
from anabranch.errors import WorkbookError


def session_on(spark: SparkSession, source: str) -> Session:
    session = Session(spark)
    session.execute(stream("at", source) + query())
    return session


def refusal(session: Session) -> str:
    with pytest.raises(WorkbookError) as refused:
        session.run("coffee")
    (line,) = str(refused.value).splitlines()
    return line


def test_a_delta_table_and_its_versions(spark: SparkSession, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    folder = str(tmp_path / "lake")
    with_more = table().append_column("more", pa.array(["x"] * len(ROWS)))
    deltalake.write_deltalake(folder, with_more.slice(0, 2), partition_by=["place"])
    deltalake.write_deltalake(folder, with_more.slice(2), mode="append")
    assert same(collect(session_on(spark, f"'{folder}' FORMAT delta").run("coffee")), ANSWERS)
    first = session_on(spark, f"'{folder}' FORMAT delta OPTIONS (versionAsOf = 0)")
    assert same(collect(first.run("coffee")), {(2, "ann"): 0.4})
    deltalake.DeltaTable(folder).delete("person = 'ann'")
    rest = {key: p for key, p in ANSWERS.items() if key[1] != "ann"}
    assert same(collect(session_on(spark, f"'{folder}' FORMAT delta").run("coffee")), rest)


def iceberg_table(folder: Path) -> Any:
    """An empty table in the folder `lake`; its catalog does no more than to write metadata files."""
    from pyiceberg.catalog import MetastoreCatalog
    from pyiceberg.table import CommitTableResponse

    class Folders(MetastoreCatalog):
        def write(self, staged: Any) -> Any:
            self._write_metadata(staged.metadata, staged.io, staged.metadata_location)
            return staged

        def commit_table(self, table: Any, requirements: Any, updates: Any) -> CommitTableResponse:
            staged = self.write(self._update_and_stage_table(table, table.name(), requirements, updates))
            return CommitTableResponse(metadata=staged.metadata, metadata_location=staged.metadata_location)

    Folders.__abstractmethods__ = frozenset()
    catalog = Folders("test")
    return catalog.write(catalog._create_staged_table(("lake", "at"), SCHEMA, f"file://{folder}/lake"))


def test_an_iceberg_table_and_its_snapshots(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("pyiceberg")
    written = iceberg_table(tmp_path)
    written.append(table().slice(0, 2))
    first = written.current_snapshot()
    assert first is not None
    written.append(table().slice(2))
    folder = tmp_path / "lake"
    assert same(collect(session_on(spark, f"'{folder}' FORMAT iceberg").run("coffee")), ANSWERS)
    source = f"'{folder}' FORMAT iceberg OPTIONS (`snapshot-id` = {first.snapshot_id})"
    assert same(collect(session_on(spark, source).run("coffee")), {(2, "ann"): 0.4})


@pytest.mark.parametrize("name", ["delta", "iceberg"])
def test_a_folder_that_is_no_table_is_one_line(spark: SparkSession, tmp_path: Path, name: str) -> None:
    pytest.importorskip({"delta": "deltalake", "iceberg": "pyiceberg"}[name])
    assert f"'{tmp_path}' cannot be read: " in refusal(session_on(spark, f"'{tmp_path}' FORMAT {name}"))
    assert "there is no file" in refusal(session_on(spark, f"'{tmp_path}/none' FORMAT {name}"))


def test_a_stream_needs_the_connector_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    session = session_on(spark, f"'{tmp_path}' FORMAT delta")
    with pytest.raises(WorkbookError, match="Spark has no connector for delta, which a stream needs; add --packages"):
        session.start("coffee", str(tmp_path / "checkpoint"), str(tmp_path / "out"))


def test_without_the_package_one_line_says_how_to_install_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    message = refusal(session_on(spark, f"'{tmp_path}' FORMAT delta"))
    assert "install the package with: pip install 'anabranch[lake]', or add --packages" in message
