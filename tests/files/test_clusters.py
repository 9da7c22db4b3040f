"""Tasks of clustered files: each row is in one task, with all rows of its key."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anabranch.files.clusters import clustered_tasks, in_two_files, tasks_of_files, value_hashes
from anabranch.files.parquet import ParquetReader
from anabranch.transport.layout import Layout
from tests.local import local_job

WORKBOOK = """
CREATE STREAM at KEY (person {type}) TIME t INTEGER;
CREATE QUERY twice AS PATTERN at(x) THEN at(x) GROUP BY x;
"""
#: A letter that is after all others in UTF-8, one that sorts differently in UTF-16, and texts that begin alike.
NAMES = ["", "a", "aa", "ab", "ann", "bob", "ｆ", "😀", "z"]
keys = st.one_of(st.lists(st.sampled_from(NAMES), min_size=1), st.lists(st.integers(-3, 3), min_size=1))


def layout_of(kind: str) -> Layout:
    return local_job(WORKBOOK.format(type=kind), "twice").layouts[0]


def rows_of(tasks: list[pa.Table], layout: Layout) -> list[list[tuple[Any, int]]]:
    """The key and the time of each row of each task."""
    reader = ParquetReader({})
    read = [[table for task in tasks_of.to_pylist() for table, _ in reader.tables(task, layout)] for tasks_of in tasks]
    return [
        [(row["person"], row["t"]) for table in tables for row in table.to_pylist()] for tables in read
    ]  # fmt: skip


def write(path: Path, names: list[Any], row_group_size: int) -> str:
    pq.write_table(pa.table({"person": names, "t": range(len(names))}), path, row_group_size=row_group_size)
    return str(path)


@given(keys, st.booleans(), st.integers(1, 5), st.integers(2, 4), st.integers(1, 3))
def test_each_row_is_in_the_task_of_its_key(
    names: list[Any], in_order: bool, group_size: int, n_tasks: int, n_files: int
) -> None:
    names = sorted(names) if in_order else names
    with TemporaryDirectory() as folder:
        parts = [names[len(names) * i // n_files : len(names) * (i + 1) // n_files] for i in range(n_files)]
        paths = [write(Path(folder, f"{i}.parquet"), part, group_size) for i, part in enumerate(parts) if part]
        tasks = clustered_tasks(paths, "person", n_tasks)
        if tasks is None:
            return
        read = rows_of(tasks, layout_of("STRING" if isinstance(names[0], str) else "INTEGER"))
    assert 2 <= len(tasks) <= n_tasks
    assert Counter(row for rows in read for row in rows) == Counter(
        (name, t) for part in parts for t, name in enumerate(part)
    )
    owners = {(name, number) for number, rows in enumerate(read) for name, _ in rows}
    assert len(owners) == len(set(names)), "all rows of a key are in one task"


def test_sorted_files_are_clustered_and_others_are_not(tmp_path: Path) -> None:
    # A key has 10 rows and a row group 25, so that keys are in two row groups.
    names = [f"person-{number:02}" for number in range(40) for _ in range(10)]
    tasks = clustered_tasks([write(tmp_path / "a.parquet", names, 25)], "person", 4)
    assert tasks is not None
    sizes = [len(rows) for rows in rows_of(tasks, layout_of("STRING"))]
    assert sum(sizes) == len(names) and len(sizes) == 4 and max(sizes) <= 130
    by_time = [names[(number * 10) % 400 + number // 40] for number in range(400)]
    assert clustered_tasks([write(tmp_path / "b.parquet", by_time, 25)], "person", 4) is None


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a", None, "b", "c"]),
        pa.array([1.5, 2.5, 3.5, 4.5]),
        pa.array([b"a", b"b", b"c", b"d"]),
        pa.array([None, None, None, None], pa.string()),
    ],
)
def test_statistics_that_do_not_decide(column: pa.Array, tmp_path: Path) -> None:
    pq.write_table(pa.table({"person": column, "t": [1, 2, 3, 4]}), tmp_path / "a.parquet", row_group_size=1)
    assert clustered_tasks([str(tmp_path / "a.parquet")], "person", 2) is None
    assert clustered_tasks([str(tmp_path / "a.parquet")], "place", 2) is None


def test_a_damaged_file_is_not_clustered(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert clustered_tasks([str(tmp_path / "a.parquet")], "person", 2) is None


def test_files_are_distributed_by_their_sizes(tmp_path: Path) -> None:
    for name, size in (("a", 10), ("b", 10), ("c", 1000), ("d", 20), ("e", 0)):
        (tmp_path / name).write_bytes(b"x" * size)
    tasks = tasks_of_files([str(tmp_path / name) for name in "abcde"], 3)
    assert [[Path(path).name for path in task["path"].to_pylist()] for task in tasks] == [["a", "b"], ["c", "d", "e"]]


def test_values_in_two_files() -> None:
    first, second, third = (
        value_hashes(pa.table({"person": pa.array(names).dictionary_encode()}), ["person"])
        for names in (["ann", "bob", "ann", None], ["cy", None], ["dan", "", "bob"])
    )
    assert len(first) == 2
    assert in_two_files([first, second]) is None
    assert in_two_files([]) is None
    assert in_two_files([second, first, third]) == (1, 2)
    pair = value_hashes(pa.table({"a": [1, 1, 2], "b": ["x", "y", "x"]}), ["a", "b"])
    assert len(np.unique(pair)) == 3
