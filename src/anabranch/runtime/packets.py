"""Shared by batch and streaming, on the workers: rows become packets before the shuffle, and inputs of buckets after.

Only blobs cross between Spark and Python: a packet row is (bucket, stream, times, end of input, counts, blob).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from anabranch.arrays import BEGINNING
from anabranch.errors import DataError
from anabranch.files.reader import ROWS_AT_ONCE, TaskReader, UnreadableFile
from anabranch.transport import state
from anabranch.transport.checks import QUARANTINE, UNREADABLE, quarantine
from anabranch.transport.job import Job
from anabranch.transport.jumps import Run
from anabranch.transport.operator import Counts
from anabranch.transport.relay import RelayedRows, read_rows
from anabranch.transport.routing import Routed, route, route_runs

#: One row per bucket and batch, or per run of a batch (`transport/jumps.py`). `oldest`, `newest` and `rows` are of the
#: run. `read`, `ignored` and `excluded` count rows, `rejected` holds a QUARANTINE table or is NULL, `instants` the
#: distinct times of the valid rows, as codes, or is NULL.
PACKET_SCHEMA = (
    "bucket int, stream int, oldest long, newest long, rows long, ended boolean, read long, ignored long, "
    "excluded long, quarantined long, rejected binary, instants binary, blob binary"
)

_PACKET_ARROW = pa.schema(
    [
        ("bucket", pa.int32()),
        ("stream", pa.int32()),
        ("oldest", pa.int64()),
        ("newest", pa.int64()),
        ("rows", pa.int64()),
        ("ended", pa.bool_()),
        ("read", pa.int64()),
        ("ignored", pa.int64()),
        ("excluded", pa.int64()),
        ("quarantined", pa.int64()),
        ("rejected", pa.binary()),
        ("instants", pa.binary()),
        ("blob", pa.binary()),
    ]
)

Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Packing:
    """How a stream of a job is packed.

    Attributes
    ----------
    every : bool
        Streaming: send a packet row to every bucket, even an empty one, so that all buckets know the times of the rows,
        divide rows at jumps of their times, and quarantine a file that cannot be read, which fails a batch run.
    counter : RowCounter or None
        Counts rows as they are read, for a progress bar.
    instants : bool
        Send the distinct times of the rows, for episodes of instants.
    """

    job: Job
    stream: int
    n_buckets: int
    every: bool = False
    counter: Any = None
    instants: bool = False

    def packet_rows(self, table: pa.Table, unreadable: pa.Table | None = None) -> Iterator[pa.RecordBatch]:
        """Route a batch of rows; returns its packets as rows for the shuffle."""
        if self.counter is not None:
            self.counter.add(table.num_rows)
        place = self.stream, self.job, self.n_buckets, self.instants
        for routed in route_runs(table, *place) if self.every else [route(table, *place)]:
            yield _packet_rows(routed, self.stream, self.n_buckets, self.every, unreadable)
            unreadable = None

    def answer_rows(self, relayed: RelayedRows) -> pa.RecordBatch:
        """The packets of the answers of another stream: their promise, not their times, moves the watermark."""
        routed = route(relayed.rows, self.stream, self.job, self.n_buckets, self.instants)
        known = relayed.promise > BEGINNING
        run = Run(relayed.promise, relayed.promise, max(1, relayed.rows.num_rows)) if known else Run()
        return _packet_rows(replace(routed, run=run), self.stream, self.n_buckets, self.every, ended=relayed.ended)

    def no_rows(self, unreadable: pa.Table) -> pa.RecordBatch:
        """The packets of something that could not be read; it counts as one row."""
        return _packet_rows(Routed(), self.stream, self.n_buckets, self.every, unreadable)


def pack_rows(packing: Packing, names: dict[str, str], corrupt: str | None) -> Stage:
    """A stage that packs rows that Spark has read.

    Parameters
    ----------
    names : for each column of the layout, its name in the rows
    corrupt : the column with the text of unreadable rows, if there is one
    """
    return partial(_pack_rows, packing, names, corrupt)


def _pack_rows(packing: Packing, names, corrupt, batches):
    layout = packing.job.layouts[packing.stream]
    for table in _tables(batches):
        unreadable = None
        if corrupt is not None:
            table, unreadable = quarantine_unreadable(table, layout.name, corrupt)
        yield from packing.packet_rows(table.select(list(names.values())).rename_columns(list(names)), unreadable)


def pack_files(packing: Packing, reader: TaskReader) -> Stage:
    """A stage that gets tasks, such as paths of files or ranges of a topic, and reads and packs their rows."""
    return partial(_pack_files, packing, reader)


def _pack_files(packing: Packing, reader, batches):
    layout = packing.job.layouts[packing.stream]
    for batch in batches:
        for task in batch.to_pylist():
            try:
                for table, unreadable in reader.tables(task, layout):
                    yield from packing.packet_rows(table, unreadable)
            except UnreadableFile as error:
                if not packing.every:
                    raise DataError(f"{task['path']} {error}") from error
                yield packing.no_rows(quarantine(layout.name, f"the file {error}", [{"file": task["path"]}]))


def pack_answers(packing: Packing, names: dict[str, str]) -> Stage:
    """A stage that gets the contents of files of answers (`runtime/relay.py`), and packs their rows.

    `names` has for each column of the layout its name in the rows.
    """
    return partial(_pack_answers, packing, names)


def _pack_answers(packing: Packing, names, batches):
    layout = packing.job.layouts[packing.stream]
    for batch in batches:
        for content in batch.column(0).to_pylist():
            relayed = read_rows(content, layout.time_kind)
            rows = relayed.rows.select(list(names.values())).rename_columns(list(names))
            yield packing.answer_rows(relayed._replace(rows=rows))


def _tables(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_AT_ONCE:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if held:
        yield pa.Table.from_batches(held)


def quarantine_unreadable(table: pa.Table, stream: str, corrupt: str) -> tuple[pa.Table, pa.Table]:
    """Separate the rows that Spark could not parse; `corrupt` is the column with their text."""
    column = table[corrupt]
    if column.null_count == len(column):
        return table, QUARANTINE.empty_table()
    bad = table.filter(column.is_valid())
    rows = [{"text": text} for text in bad[corrupt].to_pylist()]
    return table.filter(column.is_null()), quarantine(stream, UNREADABLE, rows)


def _packet_rows(
    routed: Routed, stream: int, n_buckets: int, every: bool, unreadable: pa.Table | None = None, ended: bool = False
) -> pa.RecordBatch:
    """The packets of one batch as rows for the shuffle; the first row has the counts."""
    # Queries that share a pass may send several packets to one bucket.
    packets: list[tuple[int, bytes | None]] = list(routed.packets)
    reached = {bucket for bucket, _ in packets}
    if every:
        packets += [(bucket, None) for bucket in range(n_buckets) if bucket not in reached]
    packets = packets or [(0, None)]
    buckets = [bucket for bucket, _ in packets]
    rejected = routed.rejected if unreadable is None else pa.concat_tables([routed.rejected, unreadable])
    unread = 0 if unreadable is None else unreadable.num_rows
    first = [True] + [False] * (len(buckets) - 1)
    return pa.record_batch(
        [
            pa.array(buckets, pa.int32()),
            pa.array([stream] * len(buckets), pa.int32()),
            pa.array([routed.run.oldest] * len(buckets), pa.int64()),
            pa.array([routed.run.newest] * len(buckets), pa.int64()),
            pa.array([routed.run.rows] * len(buckets), pa.int64()),
            pa.array([ended] * len(buckets), pa.bool_()),
            pa.array([routed.read + unread if head else 0 for head in first], pa.int64()),
            pa.array([routed.ignored if head else 0 for head in first], pa.int64()),
            pa.array([routed.excluded if head else 0 for head in first], pa.int64()),
            pa.array([rejected.num_rows if head else 0 for head in first], pa.int64()),
            pa.array(
                [state.write_tables({"rejected": rejected}) if head and rejected.num_rows else None for head in first],
                pa.binary(),
            ),
            pa.array([routed.instants if head else None for head in first], pa.binary()),
            pa.array([blob for _, blob in packets], pa.binary()),
        ],
        schema=_PACKET_ARROW,
    )


def end_packets(streams: Sequence[int], n_buckets: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A packet for every bucket that says that the input of these streams has ended, if a control file says so."""
    for batch in batches:
        if batch.num_rows:
            for stream in streams:
                yield _packet_rows(Routed(), stream, n_buckets, every=True, ended=True)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one packet row has for a bucket: rows of a run, if any, and the instants of the run."""

    stream: int
    run: Run
    blob: bytes | None
    instants: bytes | None


class BucketInput:
    """Everything that one bucket receives in one step: packets, and the counts of their senders."""

    def __init__(self, n_streams: int) -> None:
        self._n_streams = n_streams
        self._parts: list[_Part] = []
        #: The numbers of the streams whose input has ended.
        self.ended: set[int] = set()
        #: What the senders have counted of each input.
        self.counts_of_inputs = [Counts() for _ in range(n_streams)]
        self.rejected: list[pa.Table] = []

    def add(self, row: Any) -> None:
        """Add one packet row, a dict or a Spark Row."""
        if row["ended"]:
            self.ended.add(row["stream"])
        self.counts_of_inputs[row["stream"]] += Counts(
            read=row["read"], used=row["ignored"], quarantined=row["quarantined"], excluded=row["excluded"]
        )
        if row["rejected"] is not None:
            self.rejected.append(state.read_tables(row["rejected"])["rejected"])
        run = Run(row["oldest"], row["newest"], row["rows"])
        self._parts.append(_Part(row["stream"], run, row["blob"], row["instants"]))

    @property
    def counts(self) -> Counts:
        """What the senders have counted of all inputs."""
        counts = Counts()
        for of_input in self.counts_of_inputs:
            counts += of_input
        return counts

    @property
    def packets(self) -> list[tuple[int, bytes]]:
        """The packets, with the numbers of their streams."""
        return [(part.stream, part.blob) for part in self._parts if part.blob is not None]

    @property
    def runs(self) -> list[list[Run]]:
        """The runs of each stream that senders have found."""
        return [[part.run for part in self._parts if part.stream == stream] for stream in range(self._n_streams)]

    @property
    def newest(self) -> list[int]:
        """The newest time of each stream; BEGINNING if it has no rows."""
        return [max((run.newest for run in runs), default=BEGINNING) for runs in self.runs]

    @property
    def instants(self) -> bytes:
        """The distinct times of the rows, as codes."""
        return b"".join(part.instants for part in self._parts if part.instants is not None)

    def take_ahead(self, limits: Sequence[int]) -> BucketInput:
        """Remove the packets whose rows are after the limit of their stream; returns them."""
        ahead = BucketInput(self._n_streams)
        ahead._parts = [part for part in self._parts if part.run.oldest > limits[part.stream]]
        if ahead._parts:
            self._parts = [part for part in self._parts if part.run.oldest <= limits[part.stream]]
        return ahead

    def quarantined(self, rejected: pa.Table, strict: bool) -> pa.Table:
        """All quarantined rows, from before the shuffle and from the operator; with `strict`, any row is an error."""
        rejected = pa.concat_tables([*self.rejected, rejected])
        if strict and rejected.num_rows:
            first = rejected.slice(0, 1).to_pylist()[0]
            raise DataError(f"invalid row of {first['stream']}: {first['reason']}: {first['row']}")
        return rejected
