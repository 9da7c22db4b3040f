"""WHERE, AS, computed columns, FORMAT, ZONE and JOIN of a stream, from every source, in batch and streaming."""

from __future__ import annotations

import json
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.inference.test_stream import building, inferring_job, random_readings, workbook_text
from tests.pattern.local import LocalRun
from tests.runtime.office import ANSWERS, ROWS, answers_of, collect, query, same, write_csv, write_parquet, written
from tests.runtime.streams import finish
from tests.runtime.test_sources import refusal, run_all, workbook

from anabranch import Session
from anabranch.errors import DataError, InputWarning, StateError, WorkbookError
from anabranch.inference.model import write_hmm

#: The rows of the office as another system writes them: badges, numbers of rooms, percentages, local times, and rows
#: that are not wanted, cannot be computed, or are at a time that does not exist.
BADGES = [("ann", 1), ("bob", 2), ("007", 3)]
PLACES = [(10, "hall"), (20, "coffee")]
START = datetime.fromisoformat("2026-03-28 12:00")
NUMBERS = {"hall": 10, "coffee": 20}
OTHERS = [
    (9, 10, START, 50.0, 2),  # no partner
    (1, 10, START, 50.0, 7),  # excluded by WHERE
    (1, 10, START, 50.0, 0),  # no probability: a division by zero
    (1, 10, datetime.fromisoformat("2026-03-29 02:30"), 50.0, 2),  # clocks were set forward over this time
]
WIDE = [
    *((dict(BADGES)[person], NUMBERS[place], START + timedelta(days=t), p * 200, 2) for person, place, t, p in ROWS),
    *OTHERS,
]
NAMES = ["badge", "room", "stamp", "weight", "scale"]
EXPECTED = {
    (datetime(2026, 3, 28, 11, tzinfo=UTC) + timedelta(days=t, hours=-1), person): p
    for (t, person), p in ANSWERS.items()
}

RELATIONS = """
CREATE RELATION badges (badge INTEGER, name STRING);
CREATE RELATION places (room INTEGER, place STRING);
"""


def stream(name: str, source: str, time: str) -> str:
    return f"""
CREATE STREAM {name} KEY (name AS person) VALUE (place) TIME {time} ZONE 'Europe/Zurich'
  MODEL INDEPENDENT PROBABILITY p = weight / scale / 100 {source} JOIN badges USING (badge) JOIN places USING (room)
  WHERE scale < 5;
"""


def table(times: pa.DataType | None = None) -> pa.Table:
    columns = dict(zip(NAMES, zip(*WIDE, strict=True), strict=True))
    return pa.table({name: pa.array(column, times if name == "stamp" else None) for name, column in columns.items()})


def write_sources(folder: Path) -> dict[str, tuple[str, str]]:
    """Write the rows, and return the clauses of the source and of the time for each of them."""
    write_csv(folder / "iso.csv", WIDE, ",".join(NAMES))
    swiss = [(*row[:2], f"{row[2]:%d.%m.%Y %H:%M}", *row[3:]) for row in WIDE]
    write_csv(folder / "swiss.csv", swiss, ",".join(NAMES), sep=";")
    lines = [json.dumps(dict(zip(NAMES, row, strict=True)), default=str) for row in WIDE]
    (folder / "iso.json").write_text("\n".join(lines))
    pq.write_table(table(), folder / "local.parquet")
    pq.write_table(table(pa.timestamp("ms")), folder / "local_ms.parquet")
    text = [row[2] for row in swiss]
    pq.write_table(table().set_column(2, "stamp", pa.array(text)), folder / "text.parquet")
    pattern = "FORMAT 'dd.MM.yyyy HH:mm'"
    return {
        "csv": ("FROM 'iso.csv'", "stamp AS t"),
        "formatted": ("FROM 'swiss.csv' OPTIONS (sep = ';')", f"stamp AS t {pattern}"),
        "json": ("FROM 'iso.json'", "stamp AS t"),
        "parquet": ("FROM 'local.parquet'", "stamp AS t"),
        "milliseconds": ("FROM 'local_ms.parquet'", "stamp AS t"),
        "text": ("FROM 'text.parquet'", f"stamp AS t {pattern}"),
        "spark_table": ("FROM TABLE readings", "stamp AS t"),
        "frame": ("", "stamp AS t"),
        "pandas": ("", "stamp AS t"),
        "arrow": ("", "stamp AS t"),
        "rows": ("", "stamp AS t"),
    }


def bind_relations(session: Session) -> None:
    session.bind("badges", [(badge, name) for name, badge in BADGES])
    session.bind("places", PLACES)


def test_every_source_gives_the_rows_of_its_stream(spark: SparkSession, tmp_path: Path) -> None:
    sources = write_sources(tmp_path)
    text = RELATIONS + "".join(stream(f"s_{name}", *clauses) for name, clauses in sources.items())
    text += "".join(query(name, f"s_{name}") for name in sources)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.read.parquet(str(tmp_path / "local.parquet")).createOrReplaceTempView("readings")
    try:
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        session = Session(spark)
        session.execute_file(workbook(tmp_path, text))
        bind_relations(session)
        session.bind("s_frame", spark.read.parquet(str(tmp_path / "local.parquet")))
        session.bind("s_pandas", pd.DataFrame(WIDE, columns=NAMES))
        session.bind("s_arrow", table())
        session.bind("s_rows", WIDE, NAMES)
        answers = run_all(session, list(sources))
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
        spark.catalog.dropTempView("readings")
    assert {name: found for name, found in answers.items() if not same(found, EXPECTED)} == {}
    counts = session.counts("csv")
    assert (counts.read, counts.used, counts.excluded, counts.quarantined) == (10, 6, 2, 2)
    reasons = {row["reason"] for row in session.quarantine("csv").collect()}
    assert reasons == {
        "p cannot be computed", "stamp does not exist in Europe/Zurich: the clocks were set forward over it",
    }  # fmt: skip
    assert session.counts("parquet") == counts


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_stream_gives_the_answers_of_a_batch(spark: SparkSession, tmp_path: Path, ending: str) -> None:
    parts = [WIDE[:3], WIDE[3:7], WIDE[7:]]
    for number, part in enumerate(parts):
        if ending == "csv":
            write_csv(tmp_path / "in" / f"{number}.csv", part, ",".join(NAMES))
        else:
            columns = list(zip(*part, strict=True))
            write_parquet(tmp_path / "in" / f"{number}.parquet", pa.table(columns, names=NAMES))
    declaration = stream("at", f"FROM '{tmp_path}/in'", "stamp AS t WATERMARK 4 DAYS")
    session = Session(spark)
    session.execute(RELATIONS + declaration + query())
    bind_relations(session)
    checkpoint, output = str(tmp_path / "cp"), str(tmp_path / "out")
    finish(session.start("coffee", checkpoint, output, max_files=1), session, checkpoint)
    assert same(written(tmp_path / "out"), EXPECTED)
    counts = session.counts("coffee")
    assert (counts.read, counts.used, counts.excluded, counts.quarantined) == (10, 6, 2, 2)
    # A changed WHERE or computed column is another stream.
    for old, new in (("scale < 5", "scale < 6"), ("/ 100", "/ 101"), ("'Europe/Zurich'", "'Europe/Paris'")):
        other = Session(spark)
        other.execute(RELATIONS + declaration.replace(old, new) + query())
        bind_relations(other)
        with pytest.raises(StateError, match="was written for streams with other columns, types or clauses"):
            other.start("coffee", checkpoint, output)


READINGS = random_readings(3, keys=6, steps=20)


def test_readings_are_prepared_before_inference(spark: SparkSession, tmp_path: Path) -> None:
    text = workbook_text("at", "FILTER")
    write_hmm(building(), tmp_path / "model")
    run = LocalRun(inferring_job(text, tmp_path))
    run.step({"readings": READINGS}, end=True)
    declared = "CREATE STREAM readings KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER"
    prepared = (
        "CREATE STREAM readings KEY (id STRING AS tag) VALUE (antenna STRING AS reader) TIME t = ms / 1000 WHERE ok"
    )
    assert declared in text
    (tmp_path / "q.abq").write_text(text.replace(declared, prepared))
    rows = [(row["tag"], row["reader"], 1000 * row["t"], True) for row in READINGS]
    rows.insert(3, ("a", "east", 5000, False))
    session = Session(spark)
    session.execute_file(str(tmp_path / "q.abq"))
    session.bind("readings", str(write_csv(tmp_path / "readings.csv", rows, "id,antenna,ms,ok")))
    expected = {(float(t), *rest): p for (t, *rest), p in run.answers().items()}
    assert same(collect(session.run("q")), expected)
    assert session.counts("q").excluded == 1


def test_positions_are_prepared_before_prediction(spark: SparkSession) -> None:
    def answers(declaration: str, rows: list[dict]) -> list:
        session = Session(spark)
        session.execute(f"""
            CREATE STREAM positions {declaration};
            CREATE STREAM cars KEY (car) VALUE (x) TIME t PREDICTED FROM positions ERROR 1 PERIOD 60;
            CREATE QUERY near AS MONITOR a, b FROM cars AS a, cars AS b
              WHERE ABS(a.x - b.x) <= 100 AND a.car < b.car WITHIN 5;
        """)
        session.bind("positions", rows)
        return sorted(map(str, session.run("near").toArrow().to_pylist()))

    places = [(t, car, 40.0 * t * (1 if car == "a" else -1)) for t in range(8) for car in "ab"]
    plain = [{"car": car, "x": x, "t": t} for t, car, x in places]
    wide = [{"id": car, "km": x / 1000, "t": t, "kind": "car"} for t, car, x in places]
    wide.append({"id": "c", "km": 0.0, "t": 1, "kind": "tram"})
    found = answers("KEY (id AS car) VALUE (x = km * 1000) TIME t WHERE kind = 'car'", wide)
    assert found == answers("KEY (car) VALUE (x) TIME t", plain)
    assert found


def test_one_line_for_columns_and_types_that_do_not_fit(spark: SparkSession) -> None:
    def error(declaration: str) -> str:
        session = Session(spark)
        session.execute(f"CREATE RELATION r (k STRING, room STRING); CREATE STREAM at {declaration};" + query())
        session.bind("at", [{"k": "a", "place": "x", "p": 0.5, "t": 1, "room": "y"}])
        session.bind("r", [("a", "b")])
        return refusal(session)

    model = "VALUE (place) MODEL INDEPENDENT"
    assert "the input of at has no column speed" in error(f"KEY (k) {model} TIME t WHERE speed > 3")
    assert "a STRING cannot be compared with an INTEGER" in error(f"KEY (k) {model} TIME t WHERE place > 3")
    assert "ZONE needs times as STRING, TIMESTAMP or DATE, but 't' is an INTEGER" in error(
        f"KEY (k) {model} TIME t ZONE 'UTC'"
    )
    assert "FORMAT needs times as STRING, but 't' is an INTEGER" in error(f"KEY (k) {model} TIME t FORMAT 'yyyy-MM-dd'")
    assert "column 'room' is in r and at; write r.room or at.room" in error(
        f"KEY (k) {model} TIME t JOIN r USING (k) WHERE room = 'y'"
    )


def test_check_data_and_rows_use_the_clauses(spark: SparkSession, tmp_path: Path) -> None:
    sources = write_sources(tmp_path)
    session = Session(spark)
    session.execute_file(workbook(tmp_path, RELATIONS + stream("at", *sources["csv"])))
    bind_relations(session)
    assert session.validate("at").count() == 2
    rows, rejected = session.checked_rows("at")
    assert (rows.num_rows, rejected.num_rows) == (6, 2)
    assert rows.column_names == ["person", "place", "t", "p"]


@pytest.mark.parametrize("grouping", ["GROUP BY x", ""])
def test_a_run_whose_rows_are_all_excluded_is_counted(spark: SparkSession, grouping: str) -> None:
    session = Session(spark)
    session.execute("CREATE STREAM at KEY (k) VALUE (place) TIME t WHERE t > 5;" + query(more=grouping))
    session.bind("at", [{"k": "a", "place": "x", "t": 1}])
    assert answers_of(session.run("coffee").toArrow().to_pylist()) == {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)
        counts = session.counts("coffee")
    assert (counts.read, counts.excluded, counts.answers) == (1, 1, 0)


def test_a_relation_with_several_partners_is_refused(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute("CREATE RELATION r (k, place); CREATE STREAM at KEY (k) VALUE (place) TIME t JOIN r USING (k);")
    session.execute(query(more=""))
    session.bind("at", [{"k": "a", "t": 1}])
    session.bind("r", [("a", "x"), ("a", "y")])
    with pytest.raises(DataError, match="relation r has several rows with k = a; JOIN needs one row per key"):
        session.run("coffee")


def test_a_missing_file_of_a_joined_relation_is_found_by_check() -> None:
    session = Session()
    with pytest.raises(WorkbookError, match="there is no file 'none.csv'"):
        session.execute(
            "CREATE RELATION r (k, place) FROM 'none.csv'; CREATE STREAM at KEY (k) TIME t JOIN r USING (k);"
        )
        session.execute("CREATE QUERY q AS PATTERN at(x);")
        session.run("q")
