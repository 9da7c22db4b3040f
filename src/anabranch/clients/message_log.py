"""A log of messages on disk, so that messages of a broker that keeps none can be read again.

The log is a folder of segments, each a file of records that is named by the position of its first one. A record is
`checksum, length, time of arrival, topic, value`. Positions count the messages. Only the end of the last segment can be
incomplete, after the process was killed; it is cut off when the log is opened.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

#: A segment of this size is followed by a new one.
SEGMENT_BYTES = 4 << 20

_HEADER = struct.Struct("<II")
_FIELDS = struct.Struct("<qH")


@dataclass(frozen=True, slots=True)
class Received:
    """A message, with the time of its arrival in microseconds since 1970."""

    arrived: int
    topic: str
    value: bytes


def segments_of(folder: Path) -> list[tuple[int, Path]]:
    """The segments of a log and the position of the first message of each, in order."""
    return sorted((int(path.stem), path) for path in folder.glob("*.segment"))


def read_segment(path: Path) -> Iterator[tuple[Received, int]]:
    """The complete records of a segment, and where in the file each ends."""
    data, place = path.read_bytes(), 0
    while place + _HEADER.size <= len(data):
        checksum, length = _HEADER.unpack_from(data, place)
        body = data[place + _HEADER.size : place + _HEADER.size + length]
        if len(body) < length or zlib.crc32(body) != checksum:
            return
        place += _HEADER.size + length
        arrived, topic_length = _FIELDS.unpack_from(body)
        value = _FIELDS.size + topic_length
        yield Received(arrived, body[_FIELDS.size : value].decode(), body[value:]), place


def remove_before(folder: Path, position: int) -> None:
    """Remove the segments that have only messages before a position; the last segment stays."""
    segments = segments_of(folder)
    for (_, path), (following, _) in zip(segments, segments[1:], strict=False):
        if following <= position:
            path.unlink(missing_ok=True)


def _record(message: Received) -> bytes:
    topic = message.topic.encode()
    body = _FIELDS.pack(message.arrived, len(topic)) + topic + message.value
    return _HEADER.pack(zlib.crc32(body), len(body)) + body


class MessageLog:
    """The log of one stream, which one process writes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        segments = segments_of(folder)
        first, path = segments[-1] if segments else (0, self._path(0))
        ends = [end for _, end in read_segment(path)] if segments else []
        self._file = open(path, "ab")
        self._file.truncate(ends[-1] if ends else 0)
        #: The position behind the last message, which is on disk.
        self.end = first + len(ends)
        self._flush_folder()

    def append(self, messages: Sequence[Received]) -> None:
        """Append messages; returns when they are on disk."""
        if self._file.tell() >= SEGMENT_BYTES:
            self._file.close()
            self._file = open(self._path(self.end), "ab")
            self._flush_folder()
        self._file.write(b"".join(map(_record, messages)))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.end += len(messages)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _path(self, position: int) -> Path:
        return self._folder / f"{position:020d}.segment"

    def _flush_folder(self) -> None:
        """Make sure that a new file is in its folder after a power failure."""
        descriptor = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
