"""Sequences and negation without lost events: A, then B, then C of one key, in a file of events.

`next` and `negated` ask for the next match of each A in less than the window, as MATCH_RECOGNIZE of Flink does; for
Anabranch that is EMIT NEXT. `matches` asks for every choice of A, B and C.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from anabranch.runtime.java import find_java
from benchmarks.harness import Options, Record
from benchmarks.peers import contestants
from benchmarks.peers.environments import python_with
from benchmarks.peers.running import Contestant, compare
from benchmarks.sequence import flink
from benchmarks.sequence.speed import PER_KEY
from benchmarks.sequence.workloads import QUERY, Load, QueryShape, write_csv

SUMS = "count(*), sum(id), sum(first_t), sum(last_t), sum(id * last_t)"
COLUMNS = ["count(*)", "sum(c0.id)", "sum(t_start)", "sum(t)", "sum(c0.id * t)"]
"""The same sums of the answers of Anabranch."""

SCHEMA = "id BIGINT, kind STRING, t BIGINT"

_LATER = "OVER (PARTITION BY id ORDER BY t DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"

#: By windows: the next event of a kind is the last one that is not NULL in the descending order.
WINDOWS = {
    "next": f"""
        WITH with_c AS (SELECT *, last_value(CASE WHEN kind = 'C' THEN t END) IGNORE NULLS {_LATER} AS c FROM events),
        with_b AS (SELECT *, last_value(CASE WHEN kind = 'B' THEN c END) IGNORE NULLS {_LATER} AS last_t FROM with_c)
        SELECT {SUMS} FROM (SELECT id, t AS first_t, last_t FROM with_b WHERE kind = 'A' AND last_t - t < {{within}})
        """,
    "negated": f"""
        WITH following AS (
          SELECT *, last_value(CASE WHEN kind = 'B' THEN t END) IGNORE NULLS {_LATER} AS b,
            last_value(CASE WHEN kind = 'C' THEN t END) IGNORE NULLS {_LATER} AS last_t FROM events)
        SELECT {SUMS} FROM (
          SELECT id, t AS first_t, last_t FROM following
          WHERE kind = 'A' AND last_t - t < {{within}} AND (b IS NULL OR last_t < b))
        """,
}

#: By joins of each event with the next one, which DuckDB has.
ASOF = {
    "next": f"""
        SELECT {SUMS} FROM (
          SELECT a.id, a.t AS first_t, c.t AS last_t
          FROM (SELECT * FROM events WHERE kind = 'A') a
          ASOF JOIN (SELECT * FROM events WHERE kind = 'B') b ON a.id = b.id AND a.t < b.t
          ASOF JOIN (SELECT * FROM events WHERE kind = 'C') c ON b.id = c.id AND b.t < c.t
          WHERE c.t - a.t < {{within}})
        """,
    "negated": f"""
        SELECT {SUMS} FROM (
          SELECT a.id, a.t AS first_t, c.t AS last_t
          FROM (SELECT * FROM events WHERE kind = 'A') a
          ASOF JOIN (SELECT * FROM events WHERE kind = 'C') c ON a.id = c.id AND a.t < c.t
          ASOF LEFT JOIN (SELECT * FROM events WHERE kind = 'B') b ON a.id = b.id AND a.t < b.t
          WHERE c.t - a.t < {{within}} AND (b.t IS NULL OR c.t < b.t))
        """,
}

JOIN = f"""
    SELECT {SUMS} FROM (
      SELECT a.id, a.t AS first_t, c.t AS last_t
      FROM (SELECT * FROM events WHERE kind = 'A') a
      JOIN (SELECT * FROM events WHERE kind = 'B') b ON a.id = b.id AND b.t > a.t AND b.t <= a.t + {{within}}
      JOIN (SELECT * FROM events WHERE kind = 'C') c ON a.id = c.id AND c.t > b.t AND c.t <= a.t + {{within}})
    """


def next_match(options: Options) -> Iterator[Record]:
    """For each A the next B, and the next C after it."""
    yield from _next("next", "skip", "(A, B, C)", options)


def negated(options: Options) -> Iterator[Record]:
    """For each A the next C, if there is no B before it."""
    yield from _next("negated", "negated", "(A, !B, C)", options)


def emit_next(query: QueryShape, source: str = "") -> str:
    """Return the workbook of a query that keeps the next match of each first event."""
    window = f"WITHIN {query.within}"
    return query.workbook(source).replace(f"{window};", f"{window} EMIT NEXT;")


def _next(task: str, pattern: str, shown: str, options: Options) -> Iterator[Record]:
    load = _load(options)
    # MATCH_RECOGNIZE excludes the end of the window, SEQUENCE includes it; times are integers.
    within = load.window(PER_KEY)
    query = QueryShape(3, within - 1, negative=task == "negated")
    with tempfile.TemporaryDirectory(prefix="anabranch-peers-") as folder:
        path = _write(load, Path(folder), options.seed)
        request = contestants.request_of(options, task=task, path=str(path), within=within, schema=SCHEMA)
        workbook = emit_next(query, f" FROM '{path}'")
        windows, asof = WINDOWS[task].format(within=within), ASOF[task].format(within=within)
        yield from compare(
            task,
            f"{shown}, the next match of each A; {load}, CSV",
            [
                contestants.anabranch(request | {"workbook": workbook, "query": QUERY, "columns": COLUMNS}),
                contestants.spark_sql("Spark SQL, windows", request | {"sql": windows}),
                _flink(pattern, Path(folder) / "rows.csv", within, request),
                contestants.duckdb("DuckDB, ASOF joins", request | {"sql": asof}),
                contestants.duckdb("DuckDB, windows", request | {"sql": _in_brackets(windows)}),
                contestants.polars(request),
                contestants.pandas_loop(request),
            ],
            options,
        )


def matches(options: Options) -> Iterator[Record]:
    """Every A, B and C in order."""
    load = _load(options)
    query = QueryShape(3, load.window(PER_KEY))
    with tempfile.TemporaryDirectory(prefix="anabranch-peers-") as folder:
        path = _write(load, Path(folder), options.seed)
        request = contestants.request_of(options, task="matches", path=str(path), within=query.within, schema=SCHEMA)
        join = JOIN.format(within=query.within)
        workbook = query.workbook(f" FROM '{path}'")
        yield from compare(
            "matches",
            f"(A, B, C), every match; {load}, CSV",
            [
                contestants.anabranch(request | {"workbook": workbook, "query": QUERY, "columns": COLUMNS}),
                contestants.spark_sql("Spark SQL, joins", request | {"sql": join}),
                contestants.duckdb("DuckDB, joins", request | {"sql": join}),
                contestants.polars(request),
                contestants.pandas_loop(request),
            ],
            options,
        )


def _load(options: Options) -> Load:
    return Load(events=5_000, keys=20) if options.quick else Load()


def _write(load: Load, folder: Path, seed: int) -> Path:
    """Write the events with a header, and without one for Flink."""
    table = load.table(seed)
    write_csv(table, folder / "rows.csv", header=False)
    write_csv(table, folder / "events.csv")
    return folder / "events.csv"


def _in_brackets(sql: str) -> str:
    """Return windows in the dialect of DuckDB, where IGNORE NULLS is in the brackets of the function."""
    return sql.replace("END) IGNORE NULLS", "END IGNORE NULLS)")


def _flink(pattern: str, path: Path, within: int, request: contestants.Request) -> Contestant | None:
    python = flink.interpreter() or python_with("apache-flink")
    if python is None:
        return None
    arguments = (str(path), pattern, str(within), str(request["cores"]), str(1 + int(str(request["rounds"]))))
    return Contestant("Flink SQL, MATCH_RECOGNIZE", [str(python), "-P", flink.__file__, *arguments], None, _java())


def _java() -> dict[str, str]:
    """Return the Java of Spark for Flink, unless JAVA_HOME names another."""
    return {} if os.environ.get("JAVA_HOME") else {"JAVA_HOME": str(find_java().home)}
