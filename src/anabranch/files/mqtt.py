"""Reads ranges of the log of an MQTT stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from anabranch.clients.message_log import Received, read_segment, segments_of
from anabranch.errors import DataError
from anabranch.files.messages import Messages, ValueFormat, read_messages
from anabranch.files.text import joined
from anabranch.transport.layout import Layout

#: The columns of a task: messages of a segment from position `start` on, without `stop`.
TASKS = pa.schema([("path", pa.string()), ("start", pa.int64()), ("stop", pa.int64())])


def tasks_of(folder: Path, start: int, stop: int) -> list[dict[str, Any]]:
    """The tasks that read from a position to another: one per segment."""
    segments = segments_of(folder)
    tasks = []
    for (first, path), behind in zip(segments, [*(first for first, _ in segments[1:]), stop], strict=True):
        begin, end = max(first, start), min(behind, stop)
        if begin < end:
            tasks.append({"path": str(path), "start": begin, "stop": end})
    return tasks


@dataclass(frozen=True, slots=True)
class MqttReader:
    """Reads ranges of a log (a `TaskReader`); `columns` are those of the rows, in order."""

    values: ValueFormat
    columns: Sequence[str]

    def tables(self, task: dict[str, Any], layout: Layout) -> Iterator[tuple[pa.Table, pa.Table]]:
        """The rows of a range, and a QUARANTINE table of the messages that cannot be read."""
        start, stop = task["start"], task["stop"]
        path = Path(task["path"])
        try:
            first = start - int(path.stem)
            records = [record for record, _ in islice(read_segment(path), first, first + stop - start)]
        except FileNotFoundError:
            records = []
        if len(records) < stop - start:
            raise DataError(f"the log of messages {path} has lost positions {start + len(records)} to {stop - 1}")
        yield joined([read_messages(_batch(records, start), self.values, self.columns, layout.name)], layout)


def _batch(records: Sequence[Received], start: int) -> Messages:
    metadata = {
        "message_topic": pa.array([record.topic for record in records], pa.string()),
        "message_timestamp": pa.array([record.arrived for record in records], pa.int64()).view(
            pa.timestamp("us", tz="UTC")
        ),
        "message_position": pa.array(range(start, start + len(records)), pa.int64()),
    }
    places = {"topic": "message_topic", "position": "message_position"}
    return Messages([record.value for record in records], metadata, places)
