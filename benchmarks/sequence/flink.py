"""Flink SQL's MATCH_RECOGNIZE over the same CSV file, in a separate Python interpreter.

The environment variable FLINK_PYTHON names a Python that has `apache-flink` (and a suitable Java in JAVA_HOME or on the
path); without it Flink is left out. This file is also the program that runs there, so it imports nothing from this
project. Jobs run one after the other in one JVM; the first one is cold. Rows go to a blackhole sink; a last run, which
is not timed, writes them to count them.
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

INTERPRETER = "FLINK_PYTHON"

#: The patterns and the definitions of their variables: one A, B and C, and the events that may be between them.
PATTERNS = {
    "strict": ("A B C", "A AS A.kind = 'A', B AS B.kind = 'B', C AS C.kind = 'C'"),
    "skip": (
        "A N*? B M*? C",
        "A AS A.kind = 'A', N AS N.kind <> 'B', B AS B.kind = 'B', M AS M.kind <> 'C', C AS C.kind = 'C'",
    ),
    "negated": ("A N*? C", "A AS A.kind = 'A', N AS N.kind <> 'B' AND N.kind <> 'C', C AS C.kind = 'C'"),
}

COLUMNS = "id BIGINT, first_t BIGINT, last_t BIGINT"


def interpreter() -> str | None:
    """Return the Python that has Flink; None if none is named."""
    return os.environ.get(INTERPRETER) or None


def measure(python: str, path: Path, pattern: str, within: int, cores: int, rounds: int) -> tuple[list[float], int]:
    """Return the seconds of each run over a CSV file without a header, and the number of matches."""
    # -P: modules in this folder must not shadow others of the same name.
    command = [python, "-P", __file__, str(path), pattern, str(within), str(cores), str(rounds)]
    process = subprocess.run(command, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"Flink did not run: {process.stderr[-2000:]}")
    result = json.loads(process.stdout.splitlines()[-1])
    return result["seconds"], result["matches"]


def statements(path: str, pattern: str, within: int, written: str) -> Iterator[str]:
    """Yield the source, the two sinks, and the query as a view."""
    yield f"""
        CREATE TABLE events (
          id BIGINT, kind STRING, t BIGINT, ts AS TO_TIMESTAMP_LTZ(t, 3), WATERMARK FOR ts AS ts
        ) WITH ('connector' = 'filesystem', 'path' = 'file://{path}', 'format' = 'csv')"""
    yield f"CREATE TABLE nowhere ({COLUMNS}) WITH ('connector' = 'blackhole')"
    yield (
        f"CREATE TABLE written ({COLUMNS}) "
        f"WITH ('connector' = 'filesystem', 'path' = 'file://{written}', 'format' = 'csv')"
    )
    variables, definitions = PATTERNS[pattern]
    yield f"""
        CREATE VIEW matched AS SELECT id, first_t, last_t FROM events MATCH_RECOGNIZE (
          PARTITION BY id ORDER BY ts
          MEASURES A.t AS first_t, C.t AS last_t
          ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
          PATTERN ({variables}) WITHIN INTERVAL '{within / 1000:g}' SECOND
          DEFINE {definitions})"""


def main(path: str, pattern: str, within: str, cores: str, rounds: str) -> None:
    """Run the pattern in the interpreter that has Flink, and print the result as JSON."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.get_config().set("parallelism.default", cores)
    with tempfile.TemporaryDirectory(prefix="anabranch-flink-") as folder:
        for statement in statements(path, pattern, int(within), folder):
            environment.execute_sql(statement)
        seconds = []
        for _ in range(int(rounds)):
            start = time.perf_counter()
            environment.execute_sql("INSERT INTO nowhere SELECT * FROM matched").wait()
            seconds.append(time.perf_counter() - start)
        environment.execute_sql("INSERT INTO written SELECT * FROM matched").wait()
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        rows = [tuple(map(int, line.split(","))) for path in files for line in path.read_text().splitlines()]
    print(json.dumps({"seconds": seconds, "matches": len(rows), "answers": sums(rows)}))


def sums(rows: list[tuple[int, ...]]) -> list[int]:
    """Return the number of matches, and the sums of their ids, first and last times, and products of id and last time.

    >>> sums([(1, 2, 3), (2, 4, 9)])
    [2, 3, 6, 12, 21]
    """
    columns = [[row[number] for row in rows] for number in range(3)]
    return [len(rows), *map(sum, columns), sum(row[0] * row[2] for row in rows)]


if __name__ == "__main__":
    main(*sys.argv[1:])
