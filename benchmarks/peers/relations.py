"""CONSTRAIN and RELATE without uncertainty, which joins can express: events near each other, and intervals."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.constrain.analysis import TIGHT
from anabranch.simulate import traffic
from benchmarks.constrain.data import Measurements, part_of
from benchmarks.constrain.figures import VERBOSITY, measurements
from benchmarks.constrain.joins import join_sql, slots_sql
from benchmarks.constrain.queries import STREAM, Query, Shape, workbook
from benchmarks.constrain.tuning import selective
from benchmarks.harness import Options, Record
from benchmarks.peers import contestants
from benchmarks.peers.running import compare
from benchmarks.relate.spark import with_types

SHARE = 0.25
"""Of the events, in whole days: a plain join compares all pairs that pass the filters."""

AT_LEAST = 7
"""Segments that must intersect, as in the query of `anabranch simulate traffic`."""

INTERVALS = f"""
    WITH following AS (
      SELECT pair, side, seq, t AS start, lead(t) OVER (PARTITION BY pair, side ORDER BY seq) AS finish FROM events),
    segments AS (SELECT * FROM following WHERE seq % 2 = 1)
    SELECT count(*), sum(pair) FROM (
      SELECT a.pair FROM segments a JOIN segments b
        ON a.pair = b.pair AND a.side < b.side AND a.start < b.finish AND b.start < a.finish
      GROUP BY a.pair HAVING count(DISTINCT a.seq) >= {AT_LEAST})
    """


def pairs(options: Options) -> Iterator[Record]:
    """Two and three events near each other in space and time."""
    data = Measurements(part_of(measurements(options).events, 1.0 if options.quick else SHARE))
    with tempfile.TemporaryDirectory(prefix="anabranch-peers-") as folder:
        path = Path(folder) / "measured.parquet"
        pq.write_table(data.events.append_column("id", pa.array(np.arange(len(data)))), path)
        for variables in (2, 3):
            (query,) = selective(data, 1, options.seed, VERBOSITY, Shape(variables=variables))
            yield from _near(data, query, variables, path, options)


def _near(data: Measurements, query: Query, variables: int, path: Path, options: Options) -> Iterator[Record]:
    names = [f"v{number + 1}" for number in range(variables)]
    sums = ["count(*)", *(f"sum({name}.{column})" for name in names for column in ("day", "lon", "lat"))]
    join, slots = (make(data, query).replace("count(*)", ", ".join(sums), 1) for make in (join_sql, slots_sql))
    stream = STREAM.strip().rstrip(";")
    text = workbook(data, [query], TIGHT).replace(stream, f"{stream} FROM '{path}'")
    request = contestants.request_of(options, task="pairs", path=str(path))
    yield from compare(
        "pairs",
        f"{variables} events near each other; {len(data):,} events, Parquet",
        [
            contestants.anabranch(request | {"workbook": text, "query": "q1", "columns": sums}),
            contestants.spark_sql("Spark SQL, join", request | {"sql": join}),
            contestants.spark_sql("Spark SQL, join by slots of time", request | {"sql": slots}),
            contestants.duckdb("DuckDB, join", request | {"sql": join}),
        ],
        options,
    )


def intervals(options: Options) -> Iterator[Record]:
    """Pairs of intervals of which at least seven segments intersect, without lost events."""
    size = traffic.Options(data="poisson", loss=0.0, pairs=100 if options.quick else 15_000)
    simulated = traffic.simulate(size, options.seed)
    with tempfile.TemporaryDirectory(prefix="anabranch-peers-") as folder:
        traffic.write(simulated, Path(folder))
        path = Path(folder) / "congestion.parquet"
        text = with_types(simulated.workbook).replace("FROM '", f"FROM '{folder}/")
        request = contestants.request_of(options, task="intervals", path=str(path), at_least=AT_LEAST)
        ours = request | {"workbook": text, "query": "shared", "columns": ["count(*)", "sum(a.pair)"]}
        sql = request | {"sql": INTERVALS}
        yield from compare(
            "intervals",
            f"at least {AT_LEAST} segments intersect; {size.pairs:,} pairs of {size.segments} segments, Parquet",
            [
                contestants.anabranch(ours),
                contestants.spark_sql("Spark SQL, join", sql),
                contestants.duckdb("DuckDB, join", sql),
                contestants.polars(request),
            ],
            options,
        )
