"""Streaming: files in any order within the watermark give the answers of a batch, once, also after restarts."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.drawn import drawn
from tests.local import local_job, to_table
from tests.pattern.strategies import Case
from tests.runtime.cases import cases, local_run, session_of
from tests.runtime.office import ANSWERS, ROWS, collect, query, same, stream, write_csv, write_parquet, written
from tests.runtime.streams import Office
from tests.splits import disordered_splits

from anabranch.errors import AnabranchError, DataError, StateError, WorkbookError
from anabranch.runtime.failures import translate
from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.stream_log import entries
from anabranch.transport.operator import COUNTED


@pytest.fixture(autouse=True)
def stopped(spark: SparkSession) -> Iterator[None]:
    """Stop the streams of a test at its end."""
    yield
    for running in spark.streams.active:
        running.stop()


# ---------------------------------------------------------------- the same answers


def disordered(case: Case) -> list[dict]:
    """The disordered split with most non-empty parts, of the first 20 that Hypothesis draws."""
    return max(drawn(disordered_splits(case.rows, 2), 20), key=lambda parts: sum(any(part.values()) for part in parts))


def test_files_in_any_order_within_the_watermark_give_the_answers_of_a_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    started = []
    for number, case in enumerate(cases(1, watermark=2)):
        session = session_of(spark, case)
        folder = tmp_path / str(number)
        job = local_job(case.workbook, case.query, case.relations)
        for index, layout in enumerate(job.layouts):
            for batch, part in enumerate(disordered(case)):
                # A micro-batch reads one file of each stream; empty files keep the streams in step.
                rows = to_table(job, index, part[layout.name])
                write_parquet(folder / layout.name / f"{batch}.parquet", rows)
            session.bind(layout.name, str(folder / layout.name))
        running = session.start("q", str(folder / "cp"), str(folder / "out"), max_files=1)
        started.append((case, session, folder, running))
    for case, session, folder, running in started:
        running.processAllAvailable()
        session.end_input(str(folder / "cp"))
        running.processAllAvailable()
        counts = session.counts("q")
        assert counts.late == 0
        assert counts.read == counts.used + counts.duplicate == sum(map(len, case.rows.values()))
        assert same(written(folder / "out"), local_run(case).answers()), case.workbook


def test_an_answer_appears_when_the_watermark_has_passed_its_instant(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS)
    office.process_files()
    assert office.answers == {}, "the newest row is of instant 3, so rows of instant 1 may still arrive"
    office.add("2", ("ann", "hall", 4, 1.0))
    office.process_files()
    assert office.answers == {}, "an instant is over when the watermark is strictly past it"
    office.add("3", ("ann", "room", 5, 1.0))
    office.process_files()
    assert same(office.answers, {key: p for key, p in ANSWERS.items() if key[0] == 2})
    office.end()
    assert same(office.answers, ANSWERS)


def test_late_rows_are_quarantined_and_the_input_can_continue_after_its_end(
    spark: SparkSession, tmp_path: Path
) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS)
    office.add("2", ("ann", "hall", 10, 1.0))
    office.add("3", ("bob", "coffee", 7, 1.0), ("eve", "hall", 8, 1.0), (None, "hall", 8, 1.0))
    office.process_files()
    assert (office.counts.read, office.counts.late, office.counts.quarantined) == (10, 1, 1)
    reasons = {row["reason"]: json.loads(row["row"]) for row in office.quarantined()}
    assert reasons["late"] == {"person": "bob", "place": "coffee", "t": 7, "p": 1.0}
    assert reasons["person is NULL"]["t"] == 8
    office.end()
    first = office.answers
    assert same(first, ANSWERS)
    # The input continues: rows before the watermark of the end are late, the others are used as if it had never ended.
    office.add("4", ("ann", "coffee", 10, 0.5), ("ann", "coffee", 11, 0.5), ("eve", "coffee", 12, 0.5))
    office.process_files()
    office.end()
    assert same(office.answers, ANSWERS | {(11, "ann"): 0.5, (12, "eve"): 0.5})
    counts = office.counts
    assert (counts.read, counts.late) == (13, 2)
    assert counts.read == counts.used + counts.duplicate + counts.late + counts.quarantined


def test_rows_that_arrive_with_the_end_of_the_input_are_processed(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS)
    office.session.end_input(office.checkpoint)
    office.process_files()
    assert same(office.answers, ANSWERS)


def test_events_at_and_before_time_zero_are_used(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", ("ann", "hall", -5, 1.0), ("ann", "coffee", -4, 0.5), ("bob", "hall", -1, 1.0))
    office.add("2", ("bob", "coffee", 0, 0.5), ("eve", "hall", 0, 1.0))
    office.add("3", ("eve", "coffee", 1, 0.5))
    office.process_files()
    assert same(office.answers, {(-4, "ann"): 0.5})
    office.end()
    assert same(office.answers, {(-4, "ann"): 0.5, (0, "bob"): 0.5, (1, "eve"): 0.5})
    assert office.counts.late == 0


def test_timestamps_give_the_same_answers_in_streaming_and_batch(spark: SparkSession, tmp_path: Path) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    rows = [("ann", "hall", epoch, 1.0), ("ann", "coffee", epoch + timedelta(seconds=1.5), 0.5)]
    rows += [("bob", "hall", epoch - timedelta(days=1), 1.0), ("bob", "coffee", epoch, 0.5)]
    for number, (person, place, when, p) in enumerate(sorted(rows, key=lambda row: row[2])):
        write_csv(tmp_path / "in" / f"{number}.csv", [(person, place, f"{when:%Y-%m-%d %H:%M:%S.%f}", p)])
    declaration = stream("at", f"'{tmp_path}/in'", "t TIMESTAMP", more="WATERMARK 1 SECOND")
    office = Office(spark, tmp_path, declaration)
    office.process_files()
    office.end()
    assert same(office.answers, {(epoch + timedelta(seconds=1.5), "ann"): 0.5, (epoch, "bob"): 0.5})
    assert same(office.answers, collect(office.session.run("coffee")))


def test_a_malformed_cell_of_a_stream_is_quarantined(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "in" / "1.csv", ROWS)
    office = Office(spark, tmp_path, stream("at", f"'{tmp_path}/in'", "t INTEGER", "person STRING"))
    office.process_files()
    write_csv(tmp_path / "in" / "2.csv", [("ann", "hall", "soon", 1.0), ("ann", "hall", 9, 1.0)])
    office.process_files()
    office.end()
    assert same(office.answers, ANSWERS)
    (row,) = office.quarantined()
    assert row["reason"] == "a cell does not fit its column's type"
    assert "soon" in row["row"]


# ---------------------------------------------------------------- restarts


def test_another_session_resumes_where_the_first_stopped(spark: SparkSession, tmp_path: Path) -> None:
    first = Office(spark, tmp_path)
    for number, row in enumerate(ROWS[:3]):
        first.add(str(number), row)
    first.process_files()
    first.stop()
    second = Office(spark, tmp_path)
    for number, row in enumerate(ROWS[3:], start=3):
        second.add(str(number), row)
    second.process_files()
    second.end()
    assert same(second.answers, ANSWERS)
    assert (first.counts.read, second.counts.read) == (3, 3), "no file is read twice"


def test_the_checkpoint_or_output_of_another_query_is_refused_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS)
    office.process_files()
    office.stop()
    before = sorted(path.name for path in office.output.iterdir())
    changed = Office(spark, tmp_path, query_text=query("coffee", "at", "GROUP BY x THRESHOLD 0.3"))
    later = Office(spark, tmp_path, stream("at", f"'{tmp_path}/in/*.parquet'", more="WATERMARK 3"))
    elsewhere = Office(spark, tmp_path)
    elsewhere.checkpoint = str(tmp_path / "another checkpoint")
    for wrong, kind, message in (
        (changed, StateError, "belongs to another query, or to an earlier version of this query; start with a new"),
        (later, StateError, "was written for streams with other columns, types or clauses; start with a new"),
        (elsewhere, DataError, "holds the answers of another checkpoint; use a new output folder, or the checkpoint"),
    ):
        with pytest.raises(kind, match=message) as refused:
            wrong.process_files()
        assert "\n" not in str(refused.value)
    assert sorted(path.name for path in office.output.iterdir()) == before
    (tmp_path / "checkpoint" / "anabranch.json").write_text("{")
    with pytest.raises(StateError, match=r"anabranch\.json is damaged; start with a new checkpoint folder"):
        office.process_files()


def test_a_new_checkpoint_may_have_another_number_of_buckets_and_keeps_it(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS[:3])
    office.process_files(buckets=3)
    office.stop()
    with pytest.raises(StateError, match="was created with 3 buckets, not 5; start with a new checkpoint folder"):
        office.process_files(buckets=5)
    office.add("2", *ROWS[3:])
    office.process_files()
    office.end()
    assert same(office.answers, ANSWERS)
    state = spark.read.format("statestore").option("stateVarName", "bucket").load(f"{office.checkpoint}/spark")
    assert {row["key"]["bucket"] for row in state.collect()} == {0, 1, 2}


def test_a_file_older_than_those_already_read_is_still_read(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS[:3])
    office.process_files()
    office.stop()
    office.add("2", *ROWS[3:])
    a_month_ago = office.file("1").stat().st_mtime - 30 * 86_400
    os.utime(office.file("2"), (a_month_ago, a_month_ago))
    office.process_files()
    office.end()
    assert same(office.answers, ANSWERS)


def test_moving_the_input_files_does_not_change_the_identity_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS[:2])
    office.process_files()
    office.stop()
    moved = Office(spark, tmp_path, stream("at", f"'{tmp_path}/new/*.parquet'", more="WATERMARK 2"))
    write_parquet(tmp_path / "new" / "2.parquet", ROWS[2:])
    moved.process_files()
    moved.end()
    assert same(moved.answers, ANSWERS)


# ---------------------------------------------------------------- what others can see


def test_the_log_and_the_progress_of_spark_have_counts_and_watermark(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    for number, row in enumerate(ROWS):
        office.add(str(number), row)
    office.process_files()
    progress = [update for update in office.running.recentProgress if "anabranch" in update.observedMetrics]
    observed = [update.observedMetrics["anabranch"].asDict() for update in progress]
    logged = [entry for entry in entries(LocalFolder(Path(office.checkpoint))) if entry.batch is not None]
    assert [update.batchId for update in progress] == [entry.batch for entry in logged] == [*range(len(ROWS))]
    for seen, entry in zip(observed, logged, strict=True):
        assert seen == {name: getattr(entry.rows, name) for name in COUNTED} | {
            "watermark": entry.watermark, "state_bytes": entry.state_bytes,
        }  # fmt: skip
    assert [entry.watermark for entry in logged] == sorted(entry.watermark for entry in logged)
    assert logged[-1].watermark == max(row[2] for row in ROWS) - 2
    assert logged[-1].total == office.counts
    assert all(entry.state_bytes > 0 for entry in logged)


def test_an_idle_stream_with_many_files_starts_no_jobs(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    for number in range(40):  # Spark lists more than 32 files with a job, by default
        office.add(str(number), ("ann", "hall", number, 0.5))
    office.running = office.session.start("coffee", office.checkpoint, str(office.output))
    office.process_files()
    tracker, group = spark.sparkContext.statusTracker(), str(office.running.runId)
    before = tracker.getJobIdsForGroup(group)
    time.sleep(1)
    assert sorted(tracker.getJobIdsForGroup(group)) == sorted(before)
    assert office.counts.read == 40


# ---------------------------------------------------------------- sinks and sources


def test_a_foreach_batch_function_receives_the_answers_of_each_micro_batch(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path, stream("at", f"'{tmp_path}/in'"))
    for number, row in enumerate(sorted(ROWS, key=lambda row: row[2])):
        office.add(str(number), row)
    received: dict[int, dict[tuple, float]] = {}

    def receive(frame: DataFrame, batch: int) -> None:
        received[batch] = collect(frame)

    started = office.session.start("coffee", office.checkpoint, foreach_batch=receive, max_files=1)
    started.processAllAvailable()
    office.session.end_input(office.checkpoint)
    started.processAllAvailable()
    assert len(received) > 1
    assert same({key: p for part in received.values() for key, p in part.items()}, ANSWERS)
    assert sum(map(len, received.values())) == len(ANSWERS)


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_answers_are_written_in_the_requested_format(spark: SparkSession, tmp_path: Path, file_format: str) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS)
    office.session.end_input(office.checkpoint)
    office.process_files(file_format=file_format)
    rows = spark.read.format(file_format).option("header", "true").load(str(office.output)).collect()
    assert {(int(row["t"]), row["x"]): float(row["probability"]) for row in rows} == pytest.approx(ANSWERS)


def test_a_streaming_table_is_an_input(spark: SparkSession, tmp_path: Path) -> None:
    write_parquet(tmp_path / "in" / "1.parquet")
    schema = "person string, place string, t long, p double"
    spark.readStream.schema(schema).parquet(str(tmp_path / "in")).createOrReplaceTempView("live_rows")
    office = Office(spark, tmp_path, stream("at", "TABLE live_rows"))
    office.process_files()
    office.end()
    assert same(office.answers, ANSWERS)


def test_an_endless_stream_is_answered_while_it_runs(spark: SparkSession, tmp_path: Path) -> None:
    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
    frame = rate.selectExpr(
        "'ann' AS person", "IF(value % 2 = 0, 'hall', 'coffee') AS place", "value AS t", "0.5D AS p"
    )
    office = Office(spark, tmp_path, stream("at"))
    office.session.bind("at", frame)
    seen: dict[tuple, float] = {}
    started = office.session.start(
        "coffee", office.checkpoint, foreach_batch=lambda answers, batch: seen.update(collect(answers))
    )
    try:
        while len(seen) < 15:
            assert started.exception() is None
            started.processAllAvailable() if not started.isActive else started.awaitTermination(0.2)
    finally:
        started.stop()
    assert all(t % 2 == 1 and p <= 0.5 for (t, _), p in seen.items())
    assert seen[1, "ann"] == 0.25


def test_a_batch_dataframe_cannot_be_started(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path, stream("at"))
    office.session.bind("at", spark.createDataFrame(ROWS, "person string, place string, t long, p double"))
    with pytest.raises(DataError, match="the input of at is not a streaming DataFrame; bind one, or use run"):
        office.process_files()


def test_start_needs_one_kind_of_output_and_a_known_format(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path)
    office.add("1", *ROWS)
    with pytest.raises(AnabranchError, match="coffee needs an output folder, a foreach_batch function or a target"):
        office.session.start("coffee", office.checkpoint)
    with pytest.raises(AnabranchError, match="there is no format excel; there are parquet, csv, json"):
        office.process_files(file_format="excel")
    with pytest.raises(AnabranchError, match="its quarantine is written next to its answers"):
        office.process_files()
        office.session.quarantine("coffee")
    with pytest.raises(AnabranchError, match="only the inputs of a batch run are examined"):
        office.session.doubts("coffee")


# ---------------------------------------------------------------- strict


@pytest.mark.parametrize(
    ("row", "reason"), [(("bob", "hall", 1, 1.0), "late"), (("bob", "hall", 99, math.nan), "p is")]
)
def test_strict_stops_at_an_invalid_or_late_row(spark: SparkSession, tmp_path: Path, row: tuple, reason: str) -> None:
    office = Office(spark, tmp_path)
    office.add("1", ("ann", "hall", 50, 1.0))
    office.process_files(strict=True)
    office.add("2", row)
    with pytest.raises(Exception) as failed:
        office.process_files(strict=True)
    error = translate(failed.value)
    assert isinstance(error, DataError)
    assert f"invalid row of at: {reason}" in str(error)
    assert "\n" not in str(error)
    # Without strict, the stream resumes from the same checkpoint and quarantines the row.
    office.stop()
    office.process_files()
    assert len(office.quarantined()) == 1


def test_a_query_that_cannot_be_answered_cannot_be_started(spark: SparkSession, tmp_path: Path) -> None:
    office = Office(spark, tmp_path, query_text=query(more="ORDER BY probability DESC LIMIT 3"))
    office.add("1", *ROWS)
    with pytest.raises(WorkbookError) as refused:
        office.process_files()
    assert "\n" not in str(refused.value)


def test_the_schema_of_the_first_start_is_kept(spark: SparkSession, tmp_path: Path) -> None:
    write_csv(tmp_path / "in" / "1.csv", [("7", "hall", 1, 1.0)])
    declaration = stream("at", f"'{tmp_path}/in'")
    office = Office(spark, tmp_path, declaration)
    office.process_files()
    office.stop()
    # From this file alone, `person` would be inferred as a string; the stream started with integers.
    (tmp_path / "in" / "1.csv").unlink()
    late, large = 2**40, 2**50
    write_csv(tmp_path / "in" / "2.csv", [("ann", "hall", 2, 1.0), ("7", "coffee", late, 0.5), (large, "hall", 2, 1.0)])
    again = Office(spark, tmp_path, declaration)
    again.process_files()
    again.end()
    assert same(again.answers, {(late, 7): 0.5})
    assert pa.types.is_integer(pq.read_schema(next(again.output.glob("*.parquet"))).field("x").type)
    assert [row["reason"] for row in again.quarantined()] == ["a cell does not fit its column's type"]
