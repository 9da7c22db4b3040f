"""Parquet files whose folders hold a column."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anabranch.errors import DataError
from anabranch.files.parquet import ParquetReader
from anabranch.language.types import Type
from tests.files.stage import process_files
from tests.local import local_job

WORKBOOK = """
CREATE STREAM at KEY (person STRING) VALUE (place {place}) TIME t INTEGER;
CREATE QUERY twice AS PATTERN at(x, _) THEN at(x, _) GROUP BY x;
"""
ROWS = pa.table({"t": pa.array([1, 2], pa.int64()), "person": ["ann", "bob"]})


def write(folder: Path, *names: str) -> list[dict[str, str]]:
    """Write the same file to folders of these names; returns the tasks that read them."""
    for name in names:
        (folder / name).mkdir(parents=True)
        pq.write_table(ROWS, folder / name / "rows.parquet")
    return [{"path": f"file:{folder}/{name}/rows.parquet"} for name in names]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Type.STRING, ["place=hall", "place=a%2Fb", "PLACE=a=b"]),
        (Type.INTEGER, ["place=1", "place=-2"]),
        (Type.DOUBLE, ["place=1.5"]),
        (Type.DATE, ["place=2026-01-31"]),
    ],
)
def test_values_in_the_names_of_folders(kind: Type, names: list[str], tmp_path: Path) -> None:
    job = local_job(WORKBOOK.format(place=kind.value), "twice", live=True)
    reader = ParquetReader({"t": Type.INTEGER, "person": Type.STRING, "place": kind}, frozenset({"place"}))
    counts, rejected = process_files(job, reader, write(tmp_path, *names))
    assert (counts.read, counts.used, rejected) == (2 * len(names), 2 * len(names), [])
    tables = [table for task in write(tmp_path / "more", *names) for table, _ in reader.tables(task, job.layouts[0])]
    places = [str(place) for table in tables for place in table["place"].unique().to_pylist()]
    assert places == [name.split("=", 1)[1].replace("%2F", "/") for name in names]


def test_a_file_in_another_folder_is_quarantined(tmp_path: Path) -> None:
    job = local_job(WORKBOOK.format(place="INTEGER"), "twice", live=True)
    reader = ParquetReader({"t": Type.INTEGER, "person": Type.STRING, "place": Type.INTEGER}, frozenset({"place"}))
    tasks = write(tmp_path, "place=1", "place=one", "other", "place=__HIVE_DEFAULT_PARTITION__")
    counts, rejected = process_files(job, reader, tasks)
    assert (counts.read, counts.quarantined) == (6, 2)
    reasons = {json.loads(row["row"])["file"]: row["reason"] for row in rejected}
    assert reasons == {
        tasks[1]["path"]: "the file is in the folder place=one, which is no INTEGER",
        tasks[2]["path"]: "the file is in no folder place=..., which has the column place",
    }
    with pytest.raises(DataError, match=r"rows\.parquet is in the folder place=one"):
        process_files(job, reader, tasks, live=False)
