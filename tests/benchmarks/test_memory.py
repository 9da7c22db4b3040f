"""The benchmark of memory, on few rows: each size is a process with a Spark of its own."""

from __future__ import annotations

from benchmarks.harness import Options
from benchmarks.memory import STREAM, _write_files, run_apart


def test_the_files_continue_in_time(tmp_path) -> None:
    import pyarrow.parquet as pq

    _write_files(tmp_path, 25, 10, seed=3)
    tables = [pq.read_table(path) for path in sorted(tmp_path.iterdir())]
    assert [table.num_rows for table in tables] == [10, 10, 5]
    assert [t for table in tables for t in table["t"].to_pylist()] == list(range(25))


def test_a_size_runs_in_a_process_of_its_own() -> None:
    measured = run_apart(STREAM, 4_000, 2_000, Options().seed)
    assert measured["seconds"] > 0
    assert measured["peak"]["JVM"] > 50
    assert measured["peak"]["all processes"] >= measured["peak"]["JVM"]
