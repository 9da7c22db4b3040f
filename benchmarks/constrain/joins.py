"""CONSTRAIN through Spark, and the same queries as joins of Spark SQL over the same file.

The plain join has a copy of the events for each variable, filtered by its own conditions, and conditions on days and
on the distance (haversine). Days are a range, which Spark cannot hash. So each query also runs as a join *by slots*:
time is split into slots as long as the range, the later of two events is repeated for each slot that it can match, and
slots are joined by equality. That is how an experienced Spark user would write it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from anabranch.constrain.analysis import TIGHT
from anabranch.constrain.geometry import RADIUS
from anabranch.session import Session
from benchmarks.constrain.data import Measurements
from benchmarks.constrain.queries import STREAM, Link, Query, query_names, workbook
from benchmarks.engines import open_session, spark_session
from benchmarks.harness import Record, Recorder, interleaved, load_records

CONSTRAIN, JOIN, SLOTS = "CONSTRAIN", "join", "join by slots"


def compare(measurements: Measurements, queries: list[Query], rounds: int, record: Recorder) -> Iterator[Record]:
    """Run the first three queries in all ways, then all together; the numbers of alerts must be the same."""
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="anabranch-constrain-") as folder:
        path = Path(folder) / "measured.parquet"
        numbered = measurements.events.append_column("id", pa.array(np.arange(len(measurements))))
        pq.write_table(numbered, path)
        spark.read.parquet(str(path)).createOrReplaceTempView("events")
        stream = STREAM.strip().rstrip(";")
        text = workbook(measurements, queries, TIGHT).replace(stream, f"{stream} FROM '{path}'")
        session = open_session(spark, text)
        for name, query in zip(query_names(queries[:3]), queries, strict=False):
            counts = {
                CONSTRAIN: partial(_run, session, name),
                JOIN: partial(_count, spark, join_sql(measurements, query)),
                SLOTS: partial(_count, spark, slots_sql(measurements, query)),
            }
            yield from _records(counts, f"{len(query.configuration.ranges)} variables", rounds, record)
        texts = [slots_sql(measurements, query) for query in queries]
        together = {CONSTRAIN: partial(_run_all, session), SLOTS: partial(_count_all, spark, texts)}
        yield from _records(together, f"{len(queries)} queries", 1, record)


def _run(session: Session, name: str) -> int:
    return session.run(name).count()


def _run_all(session: Session) -> int:
    """Run all queries in one pass."""
    try:
        return sum(answers.count() for answers in session.run_all().values())
    finally:
        session.release()


def _count(spark: SparkSession, sql: str) -> int:
    return int(spark.sql(sql).first()[0])


def _count_all(spark: SparkSession, texts: list[str]) -> int:
    """Run one join after the other: Spark SQL cannot share a pass between them."""
    return sum(_count(spark, text) for text in texts)


def _records(counts: dict[str, Callable[[], int]], prefix: str, rounds: int, record: Recorder) -> Iterator[Record]:
    """Yield the wall-clock seconds of each way to count alerts, after a warm-up that compares the numbers."""
    alerts = {name: count() for name, count in counts.items()}
    if len(set(alerts.values())) != 1:
        raise AssertionError(f"the numbers of alerts differ: {alerts}")
    seconds = interleaved(counts, rounds)
    for name, median_seconds in seconds.items():
        yield record(f"{prefix}: {name}", median_seconds, "s", CONSTRAIN, median_seconds / seconds[CONSTRAIN])
    yield record(f"{prefix}: alerts, the same for all", alerts[CONSTRAIN], "alerts")
    yield from load_records(partial(_prefixed, record, prefix))


def _prefixed(record: Recorder, prefix: str, metric: str, value: float, unit: str) -> Record:
    return record(f"{prefix}: {metric}", value, unit)


# ------------------------------------------------------------ SQL


def join_sql(measurements: Measurements, query: Query) -> str:
    """Return the plain join of a query."""
    tables = [_filtered(measurements, query, number) for number in range(len(query.configuration.ranges))]
    conditions = [_between(link) for link in query.configuration.links]
    conditions += [_near(link) for link in query.configuration.links]
    conditions += _different(len(tables))
    return f"SELECT count(*) FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"


def slots_sql(measurements: Measurements, query: Query) -> str:
    """Return the join by slots of a query."""
    text = f"SELECT count(*) FROM {_filtered(measurements, query, 0)}"
    for link in query.configuration.links:
        width = link.latest - link.earliest + 1
        least, most = (f"floor((day - ({days})) / {width})" for days in (link.latest, link.earliest))
        slots = f", explode(sequence({least}, {most})) AS slot"
        one, other = _names(link)
        text += f"\nJOIN {_filtered(measurements, query, link.second, slots)}"
        text += f" ON floor({one}.day / {width}) = {other}.slot AND {_between(link)} AND {_near(link)}"
    return f"{text}\nWHERE {' AND '.join(_different(len(query.configuration.ranges)))}"


def _filtered(measurements: Measurements, query: Query, number: int, columns: str = "") -> str:
    """Return the subquery of the events that can be a variable."""
    condition = query.configuration.ranges[number].text("events", query.share, measurements.quantile)
    return f"(SELECT id, day, lon, lat{columns} FROM events WHERE {condition}) AS v{number + 1}"


def _names(link: Link) -> tuple[str, str]:
    return f"v{link.first + 1}", f"v{link.second + 1}"


def _between(link: Link) -> str:
    one, other = _names(link)
    return f"{other}.day BETWEEN {one}.day + ({link.earliest}) AND {one}.day + ({link.latest})"


def _near(link: Link) -> str:
    one, other = _names(link)
    north = f"pow(sin(radians({one}.lat - {other}.lat) / 2), 2)"
    east = f"pow(sin(radians({one}.lon - {other}.lon) / 2), 2)"
    square = f"{north} + cos(radians({one}.lat)) * cos(radians({other}.lat)) * {east}"
    return f"2 * {RADIUS!r} * asin(sqrt(least(1.0, {square}))) <= {link.metres}"


def _different(variables: int) -> list[str]:
    """Return the conditions that no event is two variables of an alert."""
    return [f"v{i}.id <> v{j}.id" for j in range(1, variables + 1) for i in range(1, j)]
