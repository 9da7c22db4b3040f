"""CALIBRATED BY: the column `calibrated` in batch, in streaming and in groups; the probability stays as it is."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import ROWS, query, stream, table
from tests.runtime.streams import Office

from anabranch import DataError, Session
from anabranch.columns.calibration import CalibrationMap, write_map

MAP = CalibrationMap(((0.25, 0.125), (0.5, 0.75)))


@pytest.fixture
def office_map(tmp_path: Path) -> Path:
    write_map(MAP, tmp_path / "map.csv")
    return tmp_path / "map.csv"


def by_key(answers: pa.Table) -> dict[tuple, tuple]:
    return {(row["t"], row["x"]): (row["probability"], row["calibrated"]) for row in answers.to_pylist()}


def test_a_stream_gives_the_calibrated_answers_of_a_batch_run(
    spark: SparkSession, tmp_path: Path, office_map: Path
) -> None:
    text = query(more=f"GROUP BY x CALIBRATED BY '{office_map}' THRESHOLD 0.25")
    batch = Session(spark)
    batch.execute(
        stream("at")
        + text
        + "CREATE STREAM had KEY (x) VALUE (method) TIME t MODEL INDEPENDENT PROBABILITY calibrated "
        "FROM QUERY coffee; CREATE QUERY again AS PATTERN had(x, 'exact') GROUP BY x;"
    )
    batch.bind("at", table())
    expected = by_key(batch.run("coffee").toArrow())
    answers = {(2, "ann"): 0.4, (2, "bob"): 0.25, (3, "007"): 0.25}
    assert {key: probability for key, (probability, _) in expected.items()} == pytest.approx(answers), (
        "as without a map"
    )
    assert expected[2, "bob"][1] == 0.125, "below the threshold, which applies to the probability"
    assert expected[2, "ann"][1] == pytest.approx(0.5)
    again = {(row.t, row.x): row.probability for row in batch.run("again").collect()}
    assert again == pytest.approx({key: calibrated for key, (_, calibrated) in expected.items()})

    office = Office(spark, tmp_path, query_text=text)
    office.add("rows", *ROWS)
    office.process_files()
    office.end()
    office.stop()
    parts = pa.concat_tables(pq.read_table(path) for path in sorted(office.output.glob("*.parquet")))
    assert by_key(parts) == expected, "to the last bit"


SEQUENCE = (
    "CREATE STREAM r KEY (tag STRING) VALUE (reader STRING) TIME t INTEGER;"
    "CREATE QUERY q AS SEQUENCE (x, y, z) FROM r WHERE x.reader = 'x' AND y.reader = 'y' AND z.reader = 'z' "
    "AND x.tag = y.tag AND y.tag = z.tag MISS y 0.5 DELAY y UNIFORM(0, 4) WITHIN 9",
    ("tag", "reader", "t"),
    [("a", "x", 0), ("a", "y", 1), ("b", "x", 1), ("a", "z", 2), ("b", "z", 3), ("c", "x", 4), ("c", "z", 5)],
)
MONITOR = (
    "CREATE STREAM r KEY (car INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 10 PERIOD 20;"
    "CREATE QUERY q AS MONITOR a, b FROM r AS a, r AS b WHERE ABS(a.x - b.x) <= 10 AND a.car < b.car WITHIN 3 "
    "SEMANTICS MAY",
    ("car", "t", "x", "x_rate", "x_error"),
    [(1, 0.0, 0.0, 1.0, 10.0), (2, 0.0, 12.0, 0.0, 10.0), (3, 1.0, 25.0, 0.0, 10.0), (1, 8.0, 9.0, 1.0, 10.0),
     (2, 9.0, 40.0, 0.0, 10.0), (3, 60.0, 0.0, 0.0, 10.0)],
)  # fmt: skip
RELATE = (
    "CREATE STREAM r KEY (sector INTEGER) TIME t INTEGER MODEL INTERVALS ORDER seq LENGTH n HORIZON [0, 20] "
    "WATERMARK 100;"
    "CREATE QUERY q AS RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.sector < b.sector",
    ("sector", "seq", "t", "n"),
    [(1, 1, 2, 2), (2, 1, 6, 2), (1, 2, None, 2), (2, 2, 8, 2), (3, 1, None, 2), (3, 2, 11, 2)],
)


@pytest.mark.parametrize("workload", [SEQUENCE, MONITOR, RELATE], ids=["SEQUENCE", "MONITOR", "RELATE"])
def test_streams_of_other_kinds_give_the_calibrated_answers_of_a_batch_run(
    spark: SparkSession, tmp_path: Path, office_map: Path, workload: tuple[str, tuple[str, ...], list[tuple]]
) -> None:
    text, names, rows = workload
    for number in range(3):
        part = [dict(zip(names, row, strict=True)) for row in rows[number * 2 : number * 2 + 2 + (number == 2)]]
        schema = pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows]).schema
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.Table.from_pylist(part, schema), tmp_path / "in" / f"{number}.parquet")
        os.utime(tmp_path / "in" / f"{number}.parquet", (1_800_000_000 + number, 1_800_000_000 + number))
    session = Session(spark)
    session.execute(f"{text} CALIBRATED BY '{office_map}';")
    session.bind("r", str(tmp_path / "in"))
    expected = session.run("q").toArrow().to_pylist()
    probabilities = np.array([row["probability"] for row in expected])
    assert [row["calibrated"] for row in expected] == MAP.apply(probabilities).tolist()
    assert len(set(probabilities.tolist())) > 1, "more than one part of the map is used"

    checkpoint, output = str(tmp_path / "checkpoint"), tmp_path / "out"
    running = session.start("q", checkpoint, str(output), max_files=1)
    running.processAllAvailable()
    session.end_input(checkpoint)
    running.processAllAvailable()
    running.stop()
    live = [row for path in sorted(output.glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    # Answers of RELATE and MONITOR have a status in a stream.
    assert _identified(live) == _identified(expected)


def _identified(rows: list[dict]) -> dict[str, tuple[float, float]]:
    """The probability of each answer, before and after the map, to the last bit."""
    left_out = ("probability", "calibrated", "status", "boundary")
    return {
        repr(sorted((name, value) for name, value in row.items() if name not in left_out)): (
            row["probability"],
            row["calibrated"],
        )
        for row in rows
    }


def test_each_query_of_a_group_has_its_own_map(spark: SparkSession, office_map: Path) -> None:
    session = Session(spark)
    pair = "CONSTRAIN u, v FROM at WHERE u.place = 'hall' AND v.place = 'coffee' AND u.person = v.person"
    session.execute(
        "CREATE STREAM at KEY (person) VALUE (place) TIME t;"
        f"CREATE QUERY plain AS {pair} AND v.t - u.t IN [0, 9];"
        f"CREATE QUERY mapped AS {pair} AND v.t - u.t IN [0, 9] CALIBRATED BY '{office_map}';"
    )
    session.bind("at", table())
    answers = session.run_all(["plain", "mapped"])
    assert "calibrated" not in answers["plain"].columns
    assert {(row.probability, row.calibrated) for row in answers["mapped"].collect()} == {(1.0, 0.75)}
    session.release()


def test_pairs_are_calibrated_too(spark: SparkSession, office_map: Path) -> None:
    session = Session(spark)
    session.execute(
        "CREATE STREAM jam KEY (sector) TIME t MODEL INTERVALS ORDER seq HORIZON [0, 10];"
        f"CREATE QUERY met AS RELATE SOME a INTERSECTS SOME b FROM jam AS a, jam AS b WHERE a.sector < b.sector"
        f" CALIBRATED BY '{office_map}';"
    )
    session.bind(
        "jam", [{"sector": s, "seq": n, "t": t} for s, n, t in ((1, 1, 2), (1, 2, None), (2, 1, 6), (2, 2, 8))]
    )
    (row,) = session.run("met").collect()
    assert row.calibrated == MAP.apply(pa.array([row.probability]).to_numpy())[0]
    assert row.probability == pytest.approx(0.5)


def test_a_missing_map_is_reported_before_anything_runs(tmp_path: Path) -> None:
    session = Session()
    path = tmp_path / "coffee.abq"
    path.write_text(stream("at") + query(more="GROUP BY x\n  CALIBRATED BY 'map.csv'"))
    session.execute_file(str(path))
    session.bind("at", table())
    (finding,) = session.objections(session.catalog.queries())
    assert finding.line("coffee.abq") == (f"coffee.abq:3:3: {tmp_path / 'map.csv'}: there is no such file")


def test_an_invalid_map_fails_the_run(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "map.csv").write_text("probability,calibrated\n0.5,2\n")
    session = Session(spark)
    session.execute(stream("at") + query(more=f"GROUP BY x CALIBRATED BY '{tmp_path / 'map.csv'}'"))
    session.bind("at", table())
    with pytest.raises(DataError, match=r"map\.csv:2: calibrated is 2, but a probability is between 0 and 1"):
        session.run("coffee")


def test_the_plan_has_the_step() -> None:
    session = Session()
    session.execute(
        "CREATE STREAM at KEY (person STRING) VALUE (place STRING) TIME t INTEGER MODEL INDEPENDENT;"
        + query(more="GROUP BY x CALIBRATED BY 'map.csv'")
    )
    assert session.explain("coffee").steps[-1].does == "add the column calibrated: the probability, mapped by map.csv"


def test_evaluation_of_a_query(spark: SparkSession) -> None:
    session = Session(spark)
    session.execute(stream("at") + query())
    session.bind("at", table())
    truth = [{"x": "ann", "t": 2}, {"x": "007", "t": 9}]
    result = session.evaluate("coffee", truth)
    assert result.true.tolist().count(True) == 1
    assert (result.best.threshold, result.best.recall) == (0.4, 0.5)
    assert str(session.evaluate(session.run("coffee"), pa.Table.from_pylist(truth))) == str(result)
