"""The memory of a stream and of an archive by the number of rows: it should not grow with them.

Each size runs in a process of its own (`python -m benchmarks.memory`), because a JVM does not return memory. Files have
a million rows each; a stream reads one per micro-batch. The keys and the window stay the same, only time goes on.
`--rows` sets the largest size: `python -m benchmarks whole.memory --rows 100_000_000`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.engines import consume, open_session, run_stream, spark_session
from benchmarks.harness import Options, Record, recorder
from benchmarks.processes import peak_memory
from benchmarks.sequence.workloads import QUERY, Load, QueryShape
from benchmarks.workloads import write_part

STREAM, ARCHIVE = "stream", "archive"

ROWS_PER_FILE, DEFAULT_ROWS = 1_000_000, 10_000_000

PER_KEY = 5
"""Events of a key in a window, on average."""


def memory(options: Options) -> Iterator[Record]:
    """The peak of the resident memory of a SEQUENCE query, over 1, 10, ... million rows, up to --rows."""
    rows_per_file = 10_000 if options.quick else ROWS_PER_FILE
    most = options.rows or (2 * rows_per_file if options.quick else DEFAULT_ROWS)
    sizes = [rows_per_file]
    while sizes[-1] < most:
        sizes.append(min(10 * sizes[-1], most))
    for mode in (STREAM, ARCHIVE):
        name = f"SEQUENCE, {mode}, {rows_per_file:,} rows per file, {Load().keys:,} keys"
        record = recorder("whole.memory", name, options)
        first: dict[str, float] = {}
        for rows in sizes:
            measured = run_apart(mode, rows, rows_per_file, options.seed)
            for role, megabytes in measured["peak"].items():
                ratio = megabytes / first.setdefault(role, megabytes)
                yield record(f"{rows:,} rows: peak of {role}", megabytes, "MB", f"{sizes[0]:,} rows", ratio)
            yield record(f"{rows:,} rows: rate", rows / measured["seconds"], "rows/s")


def run_apart(mode: str, rows: int, rows_per_file: int, seed: int) -> dict:
    """Run one size in a new process; returns the peaks in MB by role, and the seconds of the run."""
    command = [sys.executable, "-m", "benchmarks.memory", mode, str(rows), str(rows_per_file), str(seed)]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed: {process.stderr[-2000:]}")
    return json.loads(process.stdout.splitlines()[-1])


def main(mode: str, rows: str, rows_per_file: str, seed: str) -> None:
    """Run one size, and print its peaks and seconds as JSON."""
    with tempfile.TemporaryDirectory(prefix="anabranch-memory-") as folder:
        query = _write_files(Path(folder), int(rows), int(rows_per_file), int(seed))
        with spark_session() as spark, peak_memory(os.getpid()) as peak:
            session = open_session(spark, query.workbook(f" FROM '{folder}'"))
            start = time.perf_counter()
            if mode == STREAM:
                run_stream(session, QUERY, foreach_batch=lambda answers, number: consume(answers))
            else:
                consume(session.run(QUERY))
            seconds = time.perf_counter() - start
    megabytes = {role: size / 1e6 for role, size in (peak.by_role | {"all processes": peak.total}).items()}
    print(json.dumps({"peak": megabytes, "seconds": seconds}))


def _write_files(folder: Path, rows: int, rows_per_file: int, seed: int) -> QueryShape:
    """Write the rows as files in order of time; returns the query over them."""
    load = Load(events=rows_per_file)
    for number, first in enumerate(range(0, rows, rows_per_file)):
        part = Load(events=min(rows_per_file, rows - first)).table(seed + number)
        times = pa.array(part["t"].to_numpy() + first)
        write_part(part.set_column(part.column_names.index("t"), "t", times), folder, number)
    return QueryShape(3, load.window(PER_KEY))


PARTS = {"memory": memory}


if __name__ == "__main__":
    main(*sys.argv[1:])
