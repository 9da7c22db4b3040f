"""CONSTRAIN through Spark, and the same queries as joins of Spark SQL over the same file.

The joins are those that one would write: a copy of the events for each variable with what is asked of it alone, and
conditions on days and on the distance (haversine). Days are a range, which Spark cannot hash; so each query is also
asked *by slots*: time is cut into slots as long as the range, the later of two events is repeated for each slot that it
can meet, and slots are equal. That is the join of someone who knows how Spark works.
"""

from __future__ import annotations

import os
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
from benchmarks.constrain_workloads import STREAM, Link, Measured, Query
from benchmarks.engines import open_session, spark_session
from benchmarks.harness import Record, interleaved

OURS, JOIN, SLOTS = "CONSTRAIN", "join", "join by slots"


def contest(measured: Measured, queries: list[Query], rounds: int, record: Callable[..., Record]) -> Iterator[Record]:
    """Ask the first three queries in all ways, then all together; the numbers of alerts must be the same."""
    with spark_session() as spark, tempfile.TemporaryDirectory(prefix="anabranch-constrain-") as folder:
        path = Path(folder) / "measured.parquet"
        numbered = measured.events.append_column("id", pa.array(np.arange(len(measured))))
        pq.write_table(numbered, path)
        spark.read.parquet(str(path)).createOrReplaceTempView("events")
        stream = STREAM.strip().rstrip(";")
        workbook = measured.workbook(queries, TIGHT).replace(stream, f"{stream} FROM '{path}'")
        session = open_session(spark, workbook)
        for number, query in enumerate(queries[:3], 1):
            ways = {
                OURS: partial(_run, session, f"q{number}"),
                JOIN: partial(_count, spark, join_sql(measured, query)),
                SLOTS: partial(_count, spark, slots_sql(measured, query)),
            }
            yield from _held_against(ways, f"{len(query.configuration.wanted)} variables", rounds, record)
        texts = [slots_sql(measured, query) for query in queries]
        together = {OURS: partial(_run_all, session), SLOTS: partial(_count_all, spark, texts)}
        yield from _held_against(together, f"{len(queries)} queries", 1, record)


def _run(session: Session, name: str) -> int:
    return session.run(name).count()


def _run_all(session: Session) -> int:
    """All queries in one pass."""
    try:
        return sum(answers.count() for answers in session.run_all().values())
    finally:
        session.release()


def _count(spark: SparkSession, sql: str) -> int:
    return int(spark.sql(sql).first()[0])


def _count_all(spark: SparkSession, texts: list[str]) -> int:
    """One after another: Spark SQL has no pass for several joins of this kind."""
    return sum(_count(spark, text) for text in texts)


def _held_against(
    ways: dict[str, Callable[[], int]], what: str, rounds: int, record: Callable[..., Record]
) -> Iterator[Record]:
    """The seconds of all ways after a turn that is not counted, by the clock on the wall."""
    alerts = {name: count() for name, count in ways.items()}
    if len(set(alerts.values())) != 1:
        raise AssertionError(f"the numbers of alerts differ: {alerts}")
    seconds = interleaved(ways, rounds)
    for name, taken in seconds.items():
        yield record(f"{what}: {name}", taken, "s", OURS, taken / seconds[OURS])
    yield record(f"{what}: alerts, the same for all", alerts[OURS], "alerts")
    yield record(f"{what}: load of the machine", os.getloadavg()[0], "processes")


# ------------------------------------------------------------ SQL


def join_sql(measured: Measured, query: Query) -> str:
    """Every condition as it is."""
    tables = [_filtered(measured, query, number) for number in range(len(query.configuration.wanted))]
    conditions = [_between(link) for link in query.configuration.links]
    conditions += [_near(link) for link in query.configuration.links]
    conditions += _different(len(tables))
    return f"SELECT count(*) FROM {', '.join(tables)} WHERE {' AND '.join(conditions)}"


def slots_sql(measured: Measured, query: Query) -> str:
    """Slots of time are equal, and then every condition as it is."""
    text = f"SELECT count(*) FROM {_filtered(measured, query, 0)}"
    for link in query.configuration.links:
        width = link.latest - link.earliest + 1
        least, most = (f"floor((day - ({days})) / {width})" for days in (link.latest, link.earliest))
        slots = f", explode(sequence({least}, {most})) AS slot"
        one, other = _names(link)
        text += f"\nJOIN {_filtered(measured, query, link.second, slots)}"
        text += f" ON floor({one}.day / {width}) = {other}.slot AND {_between(link)} AND {_near(link)}"
    return f"{text}\nWHERE {' AND '.join(_different(len(query.configuration.wanted)))}"


def _filtered(measured: Measured, query: Query, number: int, more: str = "") -> str:
    """The events that can be a variable, under its name."""
    wanted = query.configuration.wanted[number].text("events", query.share, measured.quantile)
    return f"(SELECT id, day, lon, lat{more} FROM events WHERE {wanted}) AS v{number + 1}"


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
    """An event is one variable of an alert, not two."""
    return [f"v{i}.id <> v{j}.id" for j in range(1, variables + 1) for i in range(1, j)]
