"""CONSTRAIN on Spark: each alert is found exactly once with any number of partitions, and many queries in one pass."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.constrain.local import ConstrainRun
from tests.local import local_job
from tests.oracles.events import frozen
from tests.runtime.streams import finish

from anabranch import Session
from anabranch.errors import AnabranchError, WorkbookError

STREAM = """
CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp DOUBLE) TIME t INTEGER SPACE (x, y) WATERMARK 5;
"""
QUERIES = """
CREATE QUERY near AS CONSTRAIN u, v, w FROM e
  WHERE u.kind = 'A' AND v.kind = 'B' AND w.kind = 'C'
    AND DISTANCE(u, v) < 3 AND v.t - u.t IN [0, 8] AND DISTANCE(v, w) < 3 AND w.t - v.t IN [1, 8];
CREATE QUERY crowd AS CONSTRAIN v*3 FROM e
  WHERE v.temp > 0.5 AND v.id <> v.id AND DISTANCE(v, v) <= 4 AND SPAN(v, v) <= 10;
CREATE QUERY twice AS CONSTRAIN u, v FROM e
  WHERE u.id = v.id AND u.kind = 'A' AND v.kind = 'A' AND v.t - u.t IN [1, 30];
CREATE QUERY quiet AS CONSTRAIN u, v, NOT w FROM e
  WHERE u.kind = 'A' AND v.kind = 'B' AND w.kind = 'C' AND DISTANCE(u, v) < 3 AND v.t - u.t IN [0, 8]
    AND DISTANCE(w, u) < 3 AND w.t - u.t IN [-5, 12] AND (w.temp > u.temp OR w.temp > v.temp);
CREATE QUERY crowds AS CONSTRAIN u, AT LEAST 2 v FROM e
  WHERE u.kind = 'A' AND v.temp > 0.3 AND DISTANCE(u, v) <= 5 AND u.t - v.t IN [0, 8]
    AND v.id <> v.id AND DISTANCE(v, v) <= 6;
CREATE QUERY never AS CONSTRAIN u, v FROM e WHERE u.kind = 'X' AND SPAN(u, v) <= 3;
"""
NAMES = ("near", "crowd", "twice", "quiet", "crowds", "never")


def rows() -> list[dict]:
    draw = random.Random(7)
    return [
        {
            "id": f"k{draw.randrange(20)}",
            "kind": draw.choice("ABC"),
            "temp": draw.random(),
            "t": t // 3 + draw.randrange(4),
            "x": draw.uniform(0, 30),
            "y": draw.uniform(0, 30),
        }
        for t in range(1500)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The rows in order of time, in four files."""
    folder = tmp_path_factory.mktemp("events")
    all_rows = rows()
    for number in range(4):
        part = all_rows[number * 375 : (number + 1) * 375]
        pq.write_table(pa.Table.from_pylist(part), folder / f"{number}.parquet")
        # Spark reads files in the order of their times; the order of files with the same millisecond is undefined.
        os.utime(folder / f"{number}.parquet", (1_800_000_000 + number, 1_800_000_000 + number))
    return folder


@pytest.fixture(scope="module")
def expected() -> dict[str, Counter]:
    """The answers of one bucket in this process, which other tests compare with nested loops."""
    answers = {}
    for name in NAMES:
        run = ConstrainRun(local_job(STREAM + QUERIES, name), 1)
        run.step({"e": rows()}, end=True)
        answers[name] = Counter(map(frozen, run.answers()))
    assert all(len(answers[name]) > 20 for name in NAMES[:-1])
    return answers


def session_of(spark: SparkSession, source: Path | str, partitions: int | None = None) -> Session:
    session = Session(spark, partitions=partitions)
    session.execute(STREAM + QUERIES)
    session.bind("e", str(source))
    return session


def counted(frame: DataFrame) -> Counter:
    return Counter(frozen(row) for row in frame.toArrow().to_pylist())


@pytest.mark.parametrize("n_partitions", [1, 2, 7])
def test_each_alert_is_found_once_with_any_number_of_partitions(
    spark: SparkSession, folder: Path, expected: dict, n_partitions: int
) -> None:
    session = session_of(spark, folder, n_partitions)
    frames = session.run_all()
    assert {name: counted(frame) for name, frame in frames.items()} == expected
    session.release()


def test_many_queries_read_their_stream_once(spark: SparkSession, folder: Path, expected: dict) -> None:
    session = session_of(spark, folder)
    read = spark.sparkContext.accumulator(0)
    session.run_all(NAMES, counter=read)
    assert read.value == 1500
    for name in NAMES:
        report = session.counts(name)
        assert report.answers == expected[name].total()
        assert (report.read, report.used + report.duplicate, report.late) == (1500, 1500, 0)
        assert 0 < report.kept < 1500
    assert session.quarantine("near").count() == 0
    session.release()


def test_a_single_query_is_lazy_and_returns_structs_and_arrays(
    spark: SparkSession, folder: Path, expected: dict
) -> None:
    frame = session_of(spark, folder).run("crowd")
    assert frame.columns == ["t", "v", "probability"]
    assert frame.schema["v"].dataType.elementType.names == ["id", "kind", "temp", "t", "x", "y"]
    assert counted(frame) == expected["crowd"]


def test_live_queries_that_share_a_stream_give_the_answers_of_the_archive(
    spark: SparkSession, folder: Path, tmp_path: Path, expected: dict
) -> None:
    session = session_of(spark, folder, 7)
    outputs = [str(tmp_path / "out" / name) for name in NAMES]
    checkpoint = str(tmp_path / "checkpoint")
    for _ in range(2):  # a restarted stream resumes from its checkpoint
        running = session.start_together(NAMES, checkpoint, outputs, trigger={"availableNow": True}, max_files=1)
        running.awaitTermination()
        session.end_input(checkpoint)
    answers = {
        name: counted(spark.read.parquet(path)) if list(Path(path).glob("*.parquet")) else Counter()
        for name, path in zip(NAMES, outputs, strict=True)
    }
    assert answers == expected
    assert 0 < session.counts("near").kept < 1500


UNCERTAIN = """
CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER SPACE (x, y)
  PROBABILITY temp MODEL INDEPENDENT WATERMARK 5;
CREATE QUERY likely AS CONSTRAIN u, v, NOT w FROM e
  WHERE u.kind = 'A' AND v.kind = 'B' AND w.kind = 'C' AND DISTANCE(u, v) < 3 AND v.t - u.t IN [0, 8]
    AND DISTANCE(w, u) < 3 AND SPAN(w, u) <= 5 THRESHOLD 0.2;
"""


def test_probabilities_are_the_same_in_batch_and_streaming(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    assert len(chances_in_batch_and_streaming(spark, folder, tmp_path, UNCERTAIN, "likely")) > 20


def chances_in_batch_and_streaming(
    spark: SparkSession, folder: Path, tmp_path: Path, workbook: str, name: str
) -> dict[Hashable, float]:
    """The probabilities of one bucket in this process, which are also those of Spark, in batch and as a stream."""
    run = ConstrainRun(local_job(workbook, name), 1)
    run.step({"e": rows()}, end=True)
    expected = {frozen(run._answer(0, row)): row["probability"] for row in run.rows_of(0)}
    for frame in frames(spark, folder, tmp_path, workbook, name):
        found = [{**row} for row in frame.toArrow().to_pylist()]
        more = {"probability", "lower", "upper", "method"}
        answers = {frozen({k: v for k, v in row.items() if k not in more}): row["probability"] for row in found}
        assert answers == pytest.approx(expected)
    return expected


def frames(spark: SparkSession, folder: Path, tmp_path: Path, workbook: str, name: str) -> tuple[DataFrame, DataFrame]:
    """The answers of Spark, in batch and as a stream: its rows are in 16 buckets, whatever the partitions."""
    archive, live = Session(spark, partitions=7), Session(spark)
    for session in (archive, live):
        session.execute(workbook)
        session.bind("e", str(folder))
    checkpoint, out = str(tmp_path / "checkpoint"), str(tmp_path / "out")
    finish(live.start(name, checkpoint, out, max_files=1), live, checkpoint)
    return archive.run(name), spark.read.parquet(out)


HIGH = """
CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER SPACE (x, y, temp) WATERMARK 5;
CREATE QUERY high AS CONSTRAIN u, v FROM e
  WHERE u.kind = 'A' AND v.kind = 'B' AND v.t - u.t IN [0, 8] AND DISTANCE(u, v) <= 2.5;
"""


def test_three_coordinates_in_batch_and_streaming(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    answers = batch_and_streaming(spark, folder, tmp_path, HIGH, "high")
    flat = batch_and_streaming(spark, folder, tmp_path / "flat", HIGH.replace("(x, y, temp)", "(x, y)"), "high")
    assert 20 < len(answers) < len(flat)


BLURRED = """
CREATE STREAM e KEY (id STRING) VALUE (kind STRING, temp DOUBLE) TIME t INTEGER SPACE (x, y) ERROR temp WATERMARK 5;
CREATE QUERY blurred AS CONSTRAIN u, v FROM e
  WHERE u.kind = 'A' AND v.kind = 'B' AND v.t - u.t IN [0, 8] AND DISTANCE(u, v) <= 2 SEMANTICS MUST;
"""


def test_locations_with_an_error_in_batch_and_streaming(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    answers = batch_and_streaming(spark, folder, tmp_path, BLURRED, "blurred")
    others = batch_and_streaming(spark, folder, tmp_path / "may", BLURRED.replace("MUST", "MAY"), "blurred")
    assert 5 < len(answers) < len(others)


@pytest.mark.parametrize(
    ("more", "method"), [("", "exact"), (" AND w.kind = 'C' AND DISTANCE(v, w) <= 5 AND SPAN(v, w) <= 8", "sampling")]
)
def test_expected_locations_in_batch_and_streaming(
    spark: SparkSession, folder: Path, tmp_path: Path, more: str, method: str
) -> None:
    workbook = BLURRED.replace(" SEMANTICS MUST", f"{more} SEMANTICS EXPECTED THRESHOLD 0.2")
    workbook = workbook.replace("u, v FROM", "u, v, w FROM") if more else workbook
    assert len(chances_in_batch_and_streaming(spark, folder, tmp_path, workbook, "blurred")) > 20
    session = Session(spark, partitions=3)
    session.execute(workbook)
    session.bind("e", str(folder))
    (row,) = session.run("blurred").select("lower", "probability", "upper", "method").limit(1).collect()
    assert row.method == method
    assert (row.lower < row.probability < row.upper) == (method == "sampling")


def batch_and_streaming(spark: SparkSession, folder: Path, tmp_path: Path, workbook: str, name: str) -> Counter:
    """The answers of one bucket in this process, which are also those of Spark, in batch and as a stream."""
    run = ConstrainRun(local_job(workbook, name), 1)
    run.step({"e": rows()}, end=True)
    expected = Counter(map(frozen, run.answers()))
    for frame in frames(spark, folder, tmp_path, workbook, name):
        assert counted(frame) == expected
    return expected


def test_arrays_of_events_are_json_in_csv(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    from anabranch.runtime.sinks.files import write_whole

    frame = session_of(spark, folder).run("crowd")
    write_whole(frame, str(tmp_path / "crowd"), "csv")
    first = spark.read.csv(str(tmp_path / "crowd"), header=True, escape='"').first()
    assert first["v"].startswith('[{"id":"k')


def test_a_query_with_unbounded_state_cannot_be_streamed(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    session = Session(spark)
    session.execute(STREAM + "CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE u.kind = 'A' AND DISTANCE(u, v) < 1;")
    session.bind("e", str(folder))
    with pytest.raises(WorkbookError, match="q cannot stream: the time between u and v is not bounded"):
        session.start("q", str(tmp_path / "checkpoint"), str(tmp_path / "out"))


def test_queries_that_cannot_share_a_pass_are_not_started_together(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    session = session_of(spark, folder)
    session.execute("CREATE QUERY alone AS PATTERN e(x, y, z);")
    checkpoint, out = str(tmp_path / "checkpoint"), str(tmp_path / "out")
    with pytest.raises(AnabranchError, match="near, alone cannot share a pass"):
        session.start_together(["near", "alone"], checkpoint, [out, out])
    with pytest.raises(AnabranchError, match="2 queries have 1 output folders"):
        session.start_together(["near", "crowd"], checkpoint, [out])
    with pytest.raises(AnabranchError, match="there is no format xml"):
        session.start_together(["near"], checkpoint, [out], "xml")


def test_a_contradiction_is_refused_with_its_cycle(spark: SparkSession, folder: Path) -> None:
    session = Session(spark)
    session.execute(STREAM + "CREATE QUERY q AS CONSTRAIN u, v FROM e WHERE u.t < v.t AND v.t < u.t;")
    session.bind("e", str(folder))
    with pytest.raises(WorkbookError, match="the time from v to u is < 0, the time from u to v is < 0"):
        session.run("q")
