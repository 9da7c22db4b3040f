"""`anabranch stream` with every kind of query, killed and stopped in every way: every answer is written exactly once.

One stream goes through all of it, because a start takes longer than everything else. `make recovery` does the same with
more kills and a million events.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.oracles.events import frozen
from tests.recovery.campaign import Campaign
from tests.recovery.killing import micro_batches
from tests.recovery.readers import compare, installed_readers
from tests.recovery.workload import GROUPS, Size

from anabranch import Session

SIZE = Size(events=2_400, files=10)
#: The query that is added in the middle, and the one that is removed.
ADDED = {
    "lonely": "CONSTRAIN u, NOT v FROM seen AS u, seen AS v WHERE SPAN(u, v) <= 1 AND u.car <> v.car"
    " AND v.x - u.x IN [-10, 10]"
}
REMOVED = "close"


class Reader(threading.Thread):
    """Reads new files of output folders all the time; every file must be complete."""

    def __init__(self, folders: Sequence[Path]) -> None:
        super().__init__(daemon=True)
        self.folders = folders
        self.problems: list[str] = []
        self.files_read = 0
        self._known: dict[Path, list] = {}
        self._seen: dict[Path, tuple[int, int, int]] = {}
        self._done = threading.Event()

    def run(self) -> None:
        while not self._done.wait(0.1):
            try:
                self._read_new_files()
            except Exception as error:
                self.problems.append(repr(error))

    def _read_new_files(self) -> None:
        for path in (folder / name for folder in self.folders if folder.exists() for name in os.listdir(folder)):
            if path.name.startswith(("_", ".")):
                continue
            file = path.stat()
            if not file.st_size:
                self.problems.append(f"{path} is empty")
            version = file.st_ino, file.st_mtime_ns, file.st_size
            if self._seen.get(path) == version:
                continue
            self._seen[path] = version
            rows = sorted(map(repr, pq.read_table(path).to_pylist()))
            if self._known.setdefault(path, rows) != rows:
                self.problems.append(f"{path} has changed")
            self.files_read += 1

    def stop(self) -> None:
        self._done.set()
        self.join()


class KilledStream:
    """The stream after all kills, and what was seen on the way."""

    def __init__(self, folder: Path) -> None:
        self.campaign = Campaign(folder, list(GROUPS), SIZE, seed=20260807, early_share=0)
        self.reader = Reader([folder / "out" / name for name in ("coffee", "unpaid", "passing")])
        self.reader.start()
        try:
            self._run()
        finally:
            self.reader.stop()
            self.campaign.close()

    def _run(self) -> None:
        campaign = self.campaign
        campaign.attack("worker", 4)
        campaign.attack("driver", 3)
        campaign.advance(1)
        self.interrupted = campaign.stop(signal.SIGINT)
        self.n_read = micro_batches(campaign.folder / "checkpoint" / "passing+close")
        self._change_queries()
        campaign.attack("JVM", 1)
        self.log_of_jvm = campaign.last_log
        campaign.advance(1)
        self.terminated = campaign.stop(signal.SIGTERM)
        campaign.finish()

    def _change_queries(self) -> None:
        """Remove a query of a group, and add another one."""
        path = self.campaign.folder / "workbook.abq"
        text = path.read_text()
        removed = f"CREATE QUERY {REMOVED} AS\n  {GROUPS['constrain'].queries[REMOVED]};\n"
        added = "".join(f"CREATE QUERY {name} AS\n  {query};\n" for name, query in ADDED.items())
        assert removed in text
        path.write_text(text.replace(removed, added))


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> KilledStream:
    return KilledStream(tmp_path_factory.mktemp("killed"))


@pytest.fixture(scope="module")
def session(spark: SparkSession, killed: KilledStream) -> Iterator[Session]:
    session = Session(spark)
    session.execute_file(str(killed.campaign.folder / "workbook.abq"))
    yield session


@pytest.mark.spark
def test_most_kills_follow_committed_micro_batches_and_every_start_goes_on(killed: KilledStream) -> None:
    kills = killed.campaign.kills
    assert [kill.victim for kill in kills] == ["worker", "driver", "JVM"]
    assert sum(len(kill.committed) for kill in kills) > len(GROUPS) * len(kills) / 2
    assert killed.reader.problems == []
    assert killed.reader.files_read > 0


@pytest.mark.spark
def test_all_queries_go_on_without_a_worker_and_a_lost_jvm_ends_the_stream_in_one_line(killed: KilledStream) -> None:
    after_worker = killed.campaign.kills[1]
    assert after_worker.committed == {group.checkpoint for group in killed.campaign.groups}
    status, log = killed.log_of_jvm
    assert status == 1
    assert "the Java process of Spark has ended" in log
    assert "Traceback" not in log


@pytest.mark.spark
def test_signals_stop_the_stream_without_an_error(killed: KilledStream) -> None:
    for status, log in (killed.interrupted, killed.terminated):
        assert status == 0, log
        assert "stopping; a restarted stream resumes from the checkpoint" in log
        assert "Traceback" not in log


@pytest.mark.spark
def test_every_answer_is_written_once_whoever_reads_it(session: Session, killed: KilledStream) -> None:
    readers = installed_readers()
    whole = [name for name in killed.campaign.queries if name != REMOVED]
    comparisons = compare(session, killed.campaign.folder / "out", whole, readers)
    assert [comparison for comparison in comparisons if not comparison.is_same] == []
    assert all(comparison.answers > 50 for comparison in comparisons), comparisons
    assert len(comparisons) == len(whole) * len(readers)
    assert session.counts("coffee").late == 0
    written_files = (killed.campaign.folder / "out" / "coffee").glob("*.parquet")
    assert all(pq.read_metadata(path).num_rows for path in written_files)


@pytest.mark.spark
def test_invalid_rows_are_quarantined_once(killed: KilledStream) -> None:
    people = killed.campaign.files.rows["at"].to_pylist()
    files = sorted((killed.campaign.folder / "out" / "_quarantine" / "coffee").glob("*.json"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    bad = sorted(row["t"] for row in people if row["person"] is None)
    assert sorted(json.loads(row["row"])["t"] for row in rows) == bad
    assert {row["reason"] for row in rows} == {"person is NULL"}


@pytest.mark.spark
def test_queries_that_were_added_and_removed_give_the_answers_of_their_time(
    session: Session, killed: KilledStream
) -> None:
    assert "added lonely: it sees the events that are newer than all rows read before\n" in killed.log_of_jvm[1]
    assert f"removed {REMOVED}: its answers so far stay in its folder\n" in killed.log_of_jvm[1]
    out = killed.campaign.folder / "out"
    arrived = sorted((killed.campaign.folder / "in" / "cars").iterdir())
    newest = max(max(pq.read_table(path, columns=["t"])["t"].to_pylist()) for path in arrived[: killed.n_read])
    everything = pq.read_table(out.parent / "in" / "cars").drop_columns("x_rate").to_pylist()
    lonely = answers_of(session, "lonely", ADDED["lonely"], [row for row in everything if row["t"] > newest])
    assert written(out / "lonely") == lonely
    assert lonely.total() > 10
    closed = written(out / REMOVED)
    complete = answers_of(session, REMOVED, GROUPS["constrain"].queries[REMOVED], everything)
    assert closed <= complete
    decided = Counter({answer: count for answer, count in complete.items() if dict(answer)["t"] < newest - 8})
    assert decided <= closed
    assert decided.total() > 10


def written(folder: Path) -> Counter:
    return Counter(frozen(row) for path in sorted(folder.glob("*.parquet")) for row in pq.read_table(path).to_pylist())


def answers_of(session: Session, name: str, query: str, rows: Sequence[dict]) -> Counter:
    """The answers of a query over some rows."""
    other = Session(session.spark)
    other.execute("CREATE STREAM seen KEY (car) VALUE (x) TIME t;\n" + f"CREATE QUERY {name} AS {query};\n")
    other.bind("seen", session.spark.createDataFrame(pa.Table.from_pylist(list(rows))))
    return Counter(map(frozen, other.run(name).toArrow().to_pylist()))
