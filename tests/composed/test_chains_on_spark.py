"""Chains of queries on Spark: answers of every kind with a time are a stream, and the numbers are those in process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.composed.test_composed import certain, run, workbook_of
from tests.runtime.office import write_parquet

from anabranch import Session
from anabranch.errors import AnabranchError
from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.stream_log import folders_with_log, last_entry

STREAMS = """
CREATE STREAM cars KEY (car STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 5 PERIOD 9;
CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;
CREATE QUERY near AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 8 AND a.car < b.car SEMANTICS MAY;
CREATE QUERY moved AS
  SEQUENCE (x, y, z) FROM reads WHERE x.reader = 'a' AND y.reader = 'b' AND z.reader = 'c' AND x.tag = y.tag
  AND y.tag = z.tag MISS y 0.5 DELAY y UNIFORM(0, 10);
CREATE QUERY pair AS CONSTRAIN u, v FROM reads WHERE u.reader = 'a' AND v.reader = 'b' AND v.t - u.t IN [1, 3];
CREATE STREAM met FROM QUERY near;
CREATE STREAM first KEY (a.car AS car) VALUE (b.car AS other) TIME valid_from FROM QUERY near WHERE probability < 0.8;
CREATE STREAM moves VALUE (t_start) FROM QUERY moved;
CREATE STREAM pairs KEY (u.tag, v.tag) FROM QUERY pair;
CREATE QUERY met_twice AS PATTERN met(x, y) GROUP BY x, y;
CREATE QUERY met_others AS PATTERN first(x, y) GROUP BY x, y;
CREATE QUERY moved_from AS PATTERN moves(x, z, since) GROUP BY x, z, since;
CREATE QUERY after AS
  SEQUENCE (p, m) FROM pairs AS p, moves AS m WHERE p.`u.tag` = m.`x.tag` AND m.t_start >= 0;
CREATE QUERY local AS WITH went AS (PATTERN moves(x, z, _) GROUP BY x, z) PATTERN went(x, z) GROUP BY x, z;
CREATE STREAM meetings KEY (a.car AS one, b.car AS two) TIME valid_from
  INTERVALS FROM QUERY near WHILE probability >= 0.5 SILENCE 20 HORIZON [0, 100];
CREATE QUERY together AS RELATE SOME m PRECEDES SOME n FROM meetings AS m, meetings AS n WHERE m.one = n.one;
"""
CARS = [("p", 0.0, 0.0), ("q", 4.0, 0.0), ("r", 10.0, 0.0), ("q", 4.0, 20.0)]
READS = [("j", "a", 0), ("j", "b", 2), ("j", "c", 5), ("k", "b", 1)]


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Session:
    session = Session(spark)
    session.execute(STREAMS)
    session.bind("cars", [{"car": car, "x": x, "t": t, "x_rate": 0.0} for car, x, t in CARS])
    session.bind("reads", [{"tag": tag, "reader": reader, "t": t} for tag, reader, t in READS])
    return session


def answers(session: Session, name: str) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in session.run(name).collect()]


def test_answers_of_a_monitor_are_events_of_their_pair(session: Session) -> None:
    found = {(row["x"], row["y"]): row["probability"] for row in answers(session, "met_twice")}
    expected = {(row["a"]["car"], row["b"]["car"]): row["probability"] for row in answers(session, "near")}
    assert found == pytest.approx(expected)
    assert len(found) > 1


def test_an_event_is_the_most_probable_answer_of_its_key_and_time(session: Session) -> None:
    """p may be near q and near r at 0: these are not alternatives of p, and WHERE selects before."""
    near = {(row["a"]["car"], row["b"]["car"]): row["probability"] for row in answers(session, "near")}
    assert near["p", "r"] < near["q", "r"] < 0.8 < near["p", "q"]
    found = {(row["x"], row["y"]): row["probability"] for row in answers(session, "met_others")}
    assert found == pytest.approx({("p", "r"): near["p", "r"], ("q", "r"): near["q", "r"]})


def test_answers_of_sequences_and_constraints_are_events(session: Session) -> None:
    # The match with the lost reading has the same keys and time, and is less probable.
    moved = sorted(row["probability"] for row in answers(session, "moved"))
    assert moved == [0.25, 1.0]
    (row,) = answers(session, "moved_from")
    assert (row["t"], row["x"], row["since"], row["probability"], row["method"]) == (5, "j", 0, 1.0, "exact")
    after = [(row["p"]["v.tag"], row["p"]["t"], row["m"]["t"], row["probability"]) for row in answers(session, "after")]
    assert sorted(after) == [("j", 2, 5, 1.0), ("k", 1, 5, 1.0)]


def test_a_query_of_with_and_segments_of_answers(session: Session) -> None:
    (row,) = answers(session, "local")
    assert (row["t"], row["x"], row["probability"]) == (5, "j", 1.0)
    assert "went (query)" not in session.run_all(["local"])
    assert all(query.name != "went (query)" for query in session.catalog.queries())
    assert session.ask("WITH b AS (PATTERN reads(x, 'b') GROUP BY x) PATTERN b(x) GROUP BY x").count() == 2
    # p and q are near from 0 on, and q and r from 0 and from 20 on.
    found = {(row["m"]["two"], row["n"]["two"]) for row in answers(session, "together")}
    assert found <= {("q", "r"), ("r", "q")}


def test_bounds_on_spark_are_those_in_process(spark: SparkSession) -> None:
    rows = certain(("j", "a", 1, 0.5), ("j", "b", 2, 0.5), ("j", "b", 3, 0.5), ("k", "a", 1, 0.5), ("k", "b", 3, 0.5))
    one = "PATTERN r(x, 'a') THEN r(x, 'b') GROUP BY x"
    for outer in (
        "PATTERN first(x) THEN r(x, 'b') GROUP BY x",
        "SEQUENCE (u, v) FROM first AS u, first AS v WHERE u.t > 0 AND v.t > 0",
        "CONSTRAIN u, v FROM first AS u, r AS v WHERE u.t - v.t IN [0, 1] THRESHOLD 0.05",
    ):
        workbook = workbook_of(one, one, outer)
        session = Session(spark)
        session.execute(workbook)
        session.bind("r", rows["r"])
        got, want = answers(session, "q"), run(workbook, "q", rows)
        assert want
        assert sorted(map(str, got)) == sorted(map(str, want))


def test_a_pattern_over_answers_of_a_pattern_streams(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"k": "ann", "v": v, "t": t, "p": 0.5} for t, v in enumerate("abab", start=1)]
    source = tmp_path / "in"
    for number, part in enumerate((rows[:1], rows[1:3], rows[3:])):
        write_parquet(source / f"{number}.parquet", pa.Table.from_pylist(part))
    session = Session(spark)
    session.execute(
        "CREATE STREAM at KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;"
        "CREATE QUERY one AS PATTERN at(x, 'a') THEN at(x, 'b') GROUP BY x; CREATE STREAM trips FROM QUERY one;"
        "CREATE QUERY twice AS PATTERN trips(p) THEN trips(p) GROUP BY p;"
    )
    session.bind("at", str(source))
    checkpoint, output = str(tmp_path / "checkpoint"), str(tmp_path / "out")
    for trigger in range(2):
        if trigger:
            session.end_input(checkpoint)
        query = session.start("twice", checkpoint, output, trigger={"availableNow": True}, max_files=1, buckets=2)
        query.awaitTermination()
    streamed = [row.asDict() for row in spark.read.parquet(output).collect()]
    assert streamed == answers(session, "twice")
    assert [(row["t"], row["p"], row["probability"]) for row in streamed] == [(4, "ann", 0.0625)]


def test_the_lineage_of_answers_is_a_column_on_request(session: Session) -> None:
    for row in session.run("after", lineage=True).collect():
        assert {tuple(origin) for origin in row.lineage} == {("reads", "j", None, 5)}
    lineages = [row.lineage for row in session.run("near", lineage=True).collect()]
    assert {tuple(origin) for origin in lineages[0]} <= {("cars", car, None, None) for car in "pqr"}
    session.execute("CREATE OR REPLACE QUERY daily AS PATTERN reads(x, 'a') GROUP BY x PER 5;")
    with pytest.raises(AnabranchError, match="daily has PER, so its rows have no lineage"):
        session.run("daily", lineage=True)


LIVE = """
CREATE STREAM cars KEY (car STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 5 PERIOD 9;
CREATE STREAM reads KEY (tag STRING) VALUE (reader STRING) TIME t DOUBLE;
CREATE QUERY near AS
  MONITOR a, b FROM cars AS a, cars AS b WHERE ABS(a.x - b.x) <= 8 AND a.car < b.car SEMANTICS MAY;
CREATE STREAM first KEY (a.car AS car) VALUE (b.car AS other) TIME valid_from FROM QUERY near WHERE probability < 0.8;
CREATE QUERY passed AS SEQUENCE (f, r) FROM first AS f, reads AS r WHERE r.reader = f.other WITHIN 30;
CREATE STREAM passes KEY (r.tag AS tag) VALUE (f.car AS car) MODEL CERTAIN FROM QUERY passed;
CREATE QUERY last AS PATTERN passes(x, c) THEN reads(x, 'end') GROUP BY x, c;
CREATE STREAM stretches KEY (a.car AS one) TIME valid_from
  INTERVALS FROM QUERY near WHILE probability >= 0.1 SILENCE 20 HORIZON [0, 100];
CREATE QUERY related AS RELATE SOME m PRECEDES SOME n FROM stretches AS m, stretches AS n WHERE m.one <> n.one;
"""


def test_a_chain_streams_and_its_answers_are_those_of_a_run(spark: SparkSession, tmp_path: Path) -> None:
    """MONITOR, SEQUENCE with another stream, then PATTERN with another stream; and segments of answers."""
    reads = [("j", "r", 1.0), ("m", "q", 2.0), ("j", "end", 12.0), ("k", "r", 25.0), ("k", "end", 40.0)]
    later = [("s", 100.0, 40.0), ("u", 104.0, 40.0), ("q", 50.0, 99.0)]
    rows = {
        "cars": [{"car": car, "x": x, "t": t, "x_rate": 0.0} for car, x, t in (*CARS, *later)],
        "reads": [{"tag": tag, "reader": reader, "t": t} for tag, reader, t in (*reads, ("l", "r", 99.0))],
    }
    session = Session(spark)
    session.execute(LIVE)
    for name, part in rows.items():
        (tmp_path / name).mkdir()
        for number, row in enumerate(part):
            pq.write_table(pa.Table.from_pylist([row]), tmp_path / name / f"{number}.parquet")
        session.bind(name, str(tmp_path / name))
    for name, buckets in (("last", 2), ("related", 1)):
        checkpoint, output = str(tmp_path / f"checkpoint-{name}"), str(tmp_path / "out" / name)
        # The answers until the last row but one are known before the input ends.
        for trigger in range(2):
            if trigger:
                session.end_input(checkpoint)
            query = session.start(name, checkpoint, output, trigger={"availableNow": True}, buckets=buckets)
            query.awaitTermination()
            files = sorted((tmp_path / "out" / name).glob("*.parquet"))
            streamed = sorted(str(row) for file in files for row in pq.read_table(file).to_pylist())
            assert trigger or name == "related" or streamed
        expected = sorted(map(str, session.run(name).toArrow().to_pylist()))
        assert [text.replace(", 'status': 'final'", "") for text in streamed] == expected
        assert expected
    logged = [last_entry(folder) for folder in folders_with_log(LocalFolder(tmp_path / "checkpoint-last"))]
    assert [entry.stream for entry in logged] == ["near", "passed", "last"]
    assert session.counts("last").late == 0


def test_a_query_that_is_refused_is_reported_for_the_query_that_reads_it(session: Session) -> None:
    session.execute(
        "CREATE OR REPLACE STREAM far KEY (tag) VALUE (v) TIME t SPACE (x, y);"
        "CREATE OR REPLACE QUERY never AS CONSTRAIN u, v FROM far WHERE v.t - u.t IN [1, 2] AND u.t - v.t IN [1, 2];"
        "CREATE OR REPLACE STREAM nothing FROM QUERY never;"
        "CREATE OR REPLACE QUERY reads_never AS PATTERN nothing(x, y) GROUP BY x;"
    )
    (finding,) = session.objections([session.catalog.require_query("reads_never")])
    assert "never" in finding.message or "contradict" in finding.message


def test_lineage_has_a_type_without_rows_to_depend_on_and_takes_any_name(spark: SparkSession) -> None:
    at = pa.table({"k": ["ann"], "v": ["a"], "t": [1], "p": [0.5]})
    for model, lineage, time in (("", [], "double"), ("MODEL INDEPENDENT", [("o'at", "ann", None, 1)], "bigint")):
        session = Session(spark)
        session.execute(f"CREATE STREAM `o'at` KEY (k STRING) VALUE (v STRING) TIME t INTEGER {model};")
        session.execute("CREATE QUERY there AS PATTERN `o'at`(x, 'a') THEN `o'at`(x, 'a') GROUP BY x;")
        session.bind("o'at", pa.concat_tables([at, at.set_column(2, "t", [[2]])]))
        answers = session.run("there", lineage=True)
        origin = f"struct<stream:string,key:string,since:{time},until:{time}>"
        assert answers.schema["lineage"].dataType.simpleString() == f"array<{origin}>"
        (answer,) = answers.collect()
        assert [tuple(origin) for origin in answer.lineage] == [(*start, 2) for *start, _ in lineage]
