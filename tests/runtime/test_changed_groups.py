"""Queries added to a stopped stream, and removed from it: the others go on with the same checkpoint."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tests.oracles.events import frozen

from anabranch import Session
from anabranch.errors import StateError
from anabranch.planning.identity import VERSION
from anabranch.runtime.checkpoint import Changes, Checkpoint, folder_of
from anabranch.runtime.file_system import Folder, LocalFolder
from anabranch.transport.state import OLDEST_FORMAT

STREAMS = """
CREATE STREAM e KEY (id STRING) VALUE (kind STRING) TIME t INTEGER SPACE (x, y) WATERMARK 5;
CREATE STREAM f KEY (id STRING) VALUE (kind STRING) TIME t INTEGER SPACE (x, y) WATERMARK 5;
"""
#: By kind. The first query is removed, the second one stays, and the others are added; the order of streams differs.
QUERIES = {
    "CONSTRAIN": {
        "near": "u, v FROM e AS u, f AS v WHERE DISTANCE(u, v) < 3 AND v.t - u.t IN [0, 8]",
        "quiet": "u, v, NOT w FROM f AS u, e AS v, f AS w WHERE u.kind = 'A' AND v.kind = 'B' AND DISTANCE(u, v) < 4 "
        "AND v.t - u.t IN [0, 8] AND w.kind = 'C' AND w.t - u.t IN [-5, 12] AND DISTANCE(u, w) < 3",
        "windows": "u, v FROM f AS u, e AS v WHERE u.id = v.id AND SPAN(u, v) <= 9 PER 50",
        "episodes": "u, v FROM e AS u, f AS v WHERE u.id = v.id AND SPAN(u, v) <= 9 PER EPISODE GAP 3",
        "soon": "u, v FROM e AS u, f AS v WHERE u.kind = 'C' AND DISTANCE(u, v) < 3 AND SPAN(u, v) <= 4 EMIT EARLY",
    },
    "SEQUENCE": {
        "near": "(u, v) FROM e AS u, f AS v WHERE u.kind = 'A' AND v.kind = 'B' AND u.id = v.id WITHIN 9",
        "quiet": "(u, !v, w) FROM f AS u, e AS v, f AS w WHERE u.kind = 'A' AND v.kind = 'B' AND w.kind = 'C' AND "
        "u.id = v.id AND v.id = w.id WITHIN 20",
        "windows": "(u, v) FROM f AS u, e AS v WHERE u.kind = 'C' AND v.kind = 'C' AND u.id = v.id WITHIN 9 PER 50",
        "next": "(u, v) FROM f AS u, e AS v WHERE u.kind = 'B' AND v.kind = 'C' EMIT NEXT WITHIN 5",
    },
}
FILES = 4


def rows_of_files(seed: int) -> list[list[dict]]:
    """The rows of each file, in disorder within the watermark."""
    draw = random.Random(seed)
    return [
        [
            {
                "id": f"k{draw.randrange(12)}",
                "kind": draw.choice("ABC"),
                "t": number * 60 + t + draw.randrange(4),
                "x": draw.uniform(0, 12),
                "y": draw.uniform(0, 12),
            }
            for t in range(60)
        ]
        for number in range(FILES)
    ]


ROWS = {"e": rows_of_files(1), "f": rows_of_files(2)}


class Group:
    """A group of queries over two folders of files, in order of their times."""

    def __init__(self, spark: SparkSession, folder: Path, kind: str) -> None:
        self.spark, self.folder, self.kind = spark, folder, kind
        self.checkpoint = folder / "checkpoint"
        for name in ROWS:
            (folder / name).mkdir()

    def add(self, *files: int) -> None:
        """Add files of both streams."""
        for name, parts in ROWS.items():
            for number in files:
                path = self.folder / f"{name} {number}.parquet"
                pq.write_table(pa.Table.from_pylist(parts[number]), path)
                os.utime(path, (1_800_000_000 + number, 1_800_000_000 + number))
                path.rename(self.folder / name / f"{number}.parquet")

    def session(self, queries: dict[str, str], folder: Path) -> Session:
        session = Session(self.spark)
        session.execute(STREAMS + "".join(f"CREATE QUERY {name} AS {self.kind} {queries[name]};" for name in queries))
        for name in ROWS:
            session.bind(name, str(folder / name))
        return session

    def process(self, *names: str, end: bool = False, **changed: str) -> None:
        """Process all files, one micro-batch each."""
        queries = {name: changed.get(name, QUERIES[self.kind][name]) for name in names}
        session = self.session(queries, self.folder)
        if end:
            session.end_input(str(self.checkpoint))
        outputs = [str(self.folder / "out" / name) for name in names]
        trigger = {"availableNow": True}
        session.start_together(names, str(self.checkpoint), outputs, trigger=trigger, max_files=1).awaitTermination()

    def answers(self, name: str) -> Counter:
        """The final answers in the folder of a query."""
        files = (self.folder / "out" / name).glob("*.parquet")
        return Counter(frozen(row) for path in files for row in pq.read_table(path).to_pylist())

    def batch(self, name: str, after: int, before_file: int = FILES) -> Counter:
        """The answers of a batch run over the events of the first files after a time."""
        folder = self.folder / f"batch {name} {after} {before_file}"
        for stream, parts in ROWS.items():
            rows = [row for part in parts[:before_file] for row in part if row["t"] > after]
            (folder / stream).mkdir(parents=True)
            pq.write_table(pa.Table.from_pylist(rows), folder / stream / "rows.parquet")
        frame = self.session({name: QUERIES[self.kind][name]}, folder).run(name)
        return Counter(map(frozen, frame.toArrow().to_pylist()))

    def forget_last_commit(self) -> None:
        """As if the machine had stopped before Spark's commit of the last micro-batch."""
        commits = self.checkpoint / "spark" / "commits"
        last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        last.unlink()
        (commits / f".{last.name}.crc").unlink(missing_ok=True)


def newest(files: Sequence[int]) -> int:
    """The newest time in files of both streams."""
    return max(row["t"] for parts in ROWS.values() for number in files for row in parts[number])


@pytest.mark.parametrize("replayed", [False, True])
@pytest.mark.parametrize("kind", QUERIES)
def test_queries_are_added_and_removed_between_two_starts(
    spark: SparkSession, tmp_path: Path, kind: str, replayed: bool
) -> None:
    removed, stays, *added = QUERIES[kind]
    group = Group(spark, tmp_path, kind)
    group.add(0, 1)
    group.process(removed, stays)
    before = group.answers(removed)
    if replayed:  # the second file is then read again, by the new set of queries
        group.forget_last_commit()
    group.add(2)
    group.process(*added, stays)
    group.add(3)
    group.process(stays, *added)
    group.process(stays, *added, end=True)
    assert group.answers(stays) == group.batch(stays, -1)
    after = newest([0] if replayed else [0, 1])
    for name in added:
        assert group.answers(name) == group.batch(name, after)
        assert group.answers(name).total() > 5
    # What the removed query gave stays, and is complete before the watermark.
    assert group.answers(removed) == before
    watermark = min(max(row["t"] for row in parts[1]) for parts in ROWS.values()) - 5
    complete = {answer for answer in group.batch(removed, -1, 2) if dict(answer)["t"] < watermark}
    assert complete <= set(before)
    assert len(complete) > 5


def test_a_query_that_is_added_again_has_no_rows_of_its_earlier_life(spark: SparkSession, tmp_path: Path) -> None:
    group = Group(spark, tmp_path, "CONSTRAIN")
    group.add(0)
    group.process("quiet", "windows")
    group.add(1)
    group.process("quiet")
    earlier = group.answers("windows")
    group.add(2, 3)
    group.process("quiet", "windows")
    group.process("quiet", "windows", end=True)
    assert group.answers("windows") - earlier == group.batch("windows", newest([0, 1]))
    assert group.answers("quiet") == group.batch("quiet", -1)


def test_a_changed_query_needs_a_new_name(spark: SparkSession, tmp_path: Path) -> None:
    group = Group(spark, tmp_path, "CONSTRAIN")
    group.add(0)
    group.process("near", "quiet")
    changed = "u, v FROM e AS u, f AS v WHERE DISTANCE(u, v) < 2 AND v.t - u.t IN [0, 8]"
    message = r"has another definition of near; give the changed query a new name, or start with a new checkpoint"
    with pytest.raises(StateError, match=message):
        group.process("near", "quiet", near=changed)
    group.process("quiet")
    with pytest.raises(StateError, match=message):  # the answers in its folder are those of the removed query
        group.process("near", "quiet", near=changed)
    with pytest.raises(StateError, match="belongs to other queries; start with a new checkpoint folder"):
        group.process("soon")


def test_a_group_finds_the_checkpoint_that_has_one_of_its_queries(tmp_path: Path) -> None:
    def claim(folder: Folder, *names: str) -> None:
        identity = {
            "version": VERSION,
            "state format": OLDEST_FORMAT,
            "queries": dict.fromkeys(names, "text"),
            "streams": [],
        }
        Checkpoint(folder).claim(identity, 16, {}, shares_pass=True)

    checkpoints = LocalFolder(tmp_path)
    first = folder_of(checkpoints, ["a", "B"])
    assert first.name == "a+B"
    assert folder_of(checkpoints, ["a", "b", "c", "d", "e"]).address == str(tmp_path / "a+4")
    claim(first, "a", "b")
    assert folder_of(checkpoints, ["c", "b"]).name == "a+B"
    claim(first, "b", "c")
    assert folder_of(checkpoints, ["a"]).name == "a", "a was removed"
    assert Checkpoint(first).changes(["B", "d"]) == Changes(added=("d",), removed=("c",))
    claim(checkpoints.folder("d"), "d")
    with pytest.raises(StateError, match=r"c, d have several checkpoints: .*a\+B, .*d; start their queries as before"):
        folder_of(checkpoints, ["c", "d"])
