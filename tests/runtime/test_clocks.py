"""Streams whose sources are silent or have wrong clocks: IDLE AFTER and MAX AHEAD, on Spark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.runtime.office import query, stream, write_csv, written
from tests.runtime.streams import Office

from anabranch.transport.checks import AHEAD

TWO_STREAMS = (
    "CREATE STREAM doors KEY (person) VALUE (place) TIME t INTEGER FROM '{0}/doors/*.csv';"
    "CREATE STREAM machines KEY (person) VALUE (place) TIME t INTEGER {1} FROM '{0}/machines/*.csv';"
)
BOTH = "CREATE QUERY coffee AS PATTERN doors(x, 'hall') THEN machines(x, 'coffee') GROUP BY x;"


def office_of_two(spark: SparkSession, folder: Path, clause: str) -> Office:
    """Doors send rows up to 20. Machines send one at 2, and are silent then."""
    for number, time in enumerate((1, 8, 20)):
        write_csv(
            folder / "doors" / f"{number}.csv", [("ann", "hall" if time == 1 else "office", time)], "person,place,t"
        )
    write_csv(folder / "machines" / "0.csv", [("ann", "coffee", 2)], "person,place,t")
    office = Office(spark, folder, TWO_STREAMS.format(folder, clause), BOTH)
    office.process_files()
    return office


def test_a_silent_stream_holds_answers_back(spark: SparkSession, tmp_path: Path) -> None:
    office = office_of_two(spark, tmp_path, "")
    office.stop()
    assert list(office.output.glob("*.parquet")) == []


def test_idle_after_ends_that(spark: SparkSession, tmp_path: Path) -> None:
    office = office_of_two(spark, tmp_path, "IDLE AFTER 5")
    assert list(written(office.output)) == [(2, "ann")]
    # The watermark is 15: rows of the machines are late if they are older.
    write_csv(tmp_path / "machines" / "1.csv", [("bob", "coffee", 14), ("bob", "coffee", 15)], "person,place,t")
    office.process_files()
    office.end()
    office.stop()
    assert [(row["reason"], '"t": 14' in row["row"]) for row in office.quarantined()] == [("late", True)]
    assert (office.counts.read, office.counts.late) == (6, 1)


def test_a_row_far_ahead_of_the_clock_does_not_move_the_watermark(spark: SparkSession, tmp_path: Path) -> None:
    declaration = stream("at", f"'{tmp_path}/in/*.csv'", time="t TIMESTAMP", more="MAX AHEAD 10 MINUTES")
    office = Office(spark, tmp_path, declaration, query())
    now = datetime.now(UTC)
    times = [
        now - timedelta(minutes=2),
        now + timedelta(hours=1),
        now - timedelta(minutes=1),
        now + timedelta(minutes=1),
    ]
    places = ["hall", "hall", "coffee", "office"]
    for number, (time, place) in enumerate(zip(times, places, strict=True)):
        write_csv(tmp_path / "in" / f"{number}.csv", [("ann", place, time.isoformat(), 1.0)])
    office.process_files()
    assert [time for time, _ in written(office.output)] == [times[2]]
    (row,) = office.quarantined()
    assert row["reason"] == "t is too far ahead of the clock (MAX AHEAD)"
    office.stop()


@pytest.mark.parametrize(("kind", "second"), [("INTEGER", 1), ("DOUBLE", 1.5)])
def test_a_row_from_the_year_2999_does_not_move_the_watermark_of_numeric_times(
    spark: SparkSession, tmp_path: Path, kind: str, second: float
) -> None:
    declaration = stream("at", f"'{tmp_path}/in/*.csv'", time=f"t {kind}", more="MAX AHEAD 86400")
    office = Office(spark, tmp_path, declaration, query())
    far = 32_472_144_000
    rows = [("ann", "hall", 0), ("bob", "hall", far), ("ann", "coffee", second), ("eve", "hall", far), ("ann", "x", 9)]
    for number, (person, place, time) in enumerate(rows):
        write_csv(tmp_path / "in" / f"{number}.csv", [(person, place, time, 1.0)])
        office.process_files()
        if number == 3:  # as if the machine had stopped before Spark's commit of this micro-batch, which is replayed
            office.stop()
            commits = Path(office.checkpoint) / "spark" / "commits"
            for file in (commits / f"{number}", commits / f".{number}.crc"):
                file.unlink(missing_ok=True)
    assert list(written(office.output)) == [(second, "ann")]
    assert [(row["reason"], str(far) in row["row"]) for row in office.quarantined()] == [(AHEAD, True)] * 2
    assert office.counts.late == 0
    office.stop()
