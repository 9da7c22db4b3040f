"""The log of a stream: a JSON line for each start and each micro-batch, in its checkpoint folder.

The process that writes it is the one that Spark calls after each micro-batch. On Connect that is a process of the
server, which shares nothing with the session but the checkpoint folder. Therefore all that others want to know about a
running stream is in this file, in both modes: the counts of a session, `anabranch status` and the metrics come from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from anabranch.runtime.file_system import Folder
from anabranch.transport.operator import ROW_COUNTS, Counts

if TYPE_CHECKING:
    import pyarrow as pa

_FILE, _OLDER_FILE = "log.jsonl", "log.1.jsonl"
#: The file becomes the older one when it has this many bytes, so a log has at most about twice as many.
_MOST_BYTES = 4 << 20
#: The same on a file system that writes the whole file for each line.
_MOST_REWRITTEN = 1 << 16
#: The last line of a file is in this many bytes.
_TAIL = 1 << 14


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of the log.

    Attributes
    ----------
    at : when it was written
    stream : the names of the queries, shortened if there are many
    batch : the number of the micro-batch; None at the start of the stream
    seconds : how long the micro-batch took, from the call of Spark to the delivered answers
    watermark : a time as text, a number, or None if no row has set it
    state_bytes : the size of the state that every micro-batch reads and writes; keys in pages are not part of it
    rows : the counts of the micro-batch
    total : the counts since the process was started
    """

    at: datetime
    stream: str
    batch: int | None
    seconds: float
    watermark: str | float | None
    state_bytes: int
    rows: Counts
    total: Counts

    def to_json(self) -> str:
        """The entry as a line, without its end."""
        return json.dumps(asdict(self) | {"at": self.at.isoformat(timespec="milliseconds")})

    @staticmethod
    def of_json(line: str) -> Entry:
        """The entry of a line."""
        fields: dict[str, Any] = json.loads(line)
        rows, total = Counts(**fields.pop("rows")), Counts(**fields.pop("total"))
        return Entry(at=datetime.fromisoformat(fields.pop("at")), rows=rows, total=total, **fields)


class StreamLog:
    """Writes the log of a stream. Picklable.

    Parameters
    ----------
    folder : the checkpoint folder
    stream : the names of the queries
    earlier : the counts of earlier starts in the same process, to add to
    """

    def __init__(self, folder: Folder, stream: str, earlier: Counts) -> None:
        self.folder = folder
        self._stream = stream
        self._total = Counts(**asdict(earlier))
        # A process that was killed may have left a line without an end.
        if _is_torn(folder):
            folder.append(_FILE, b"\n")
        self._add(None, 0.0, None, 0, Counts())

    def add(
        self, batch: int, outcomes: pa.Table, n_answers: int, seconds: float, watermark: str | float | None
    ) -> None:
        """Add a micro-batch; `outcomes` has a row per bucket."""
        sums = {name: sum(outcomes[name].to_pylist()) for name in (*ROW_COUNTS, "kept", "reported", "state_bytes")}
        state_bytes = sums.pop("state_bytes")
        rows = Counts(answers=n_answers, **sums)
        most_kept = max(self._total.kept, rows.kept)
        self._total += rows
        self._total.kept = most_kept
        self._add(batch, round(seconds, 4), watermark, state_bytes, rows)

    def _add(
        self, batch: int | None, seconds: float, watermark: str | float | None, state_bytes: int, rows: Counts
    ) -> None:
        entry = Entry(datetime.now(UTC), self._stream, batch, seconds, watermark, state_bytes, rows, self._total)
        if self.folder.size(_FILE) > (_MOST_BYTES if self.folder.appends else _MOST_REWRITTEN):
            self.folder.move(_FILE, _OLDER_FILE)
        self.folder.append(_FILE, f"{entry.to_json()}\n".encode())


def folders_with_log(checkpoint: Folder) -> list[Folder]:
    """The checkpoints of single streams: the folder itself, or its subfolders, each after those that it reads."""
    if checkpoint.exists(_FILE):
        return [*_with_log(checkpoint.folder("read")), checkpoint]
    return [inner for folder in _with_log(checkpoint) for inner in folders_with_log(folder)]


def _with_log(folder: Folder) -> list[Folder]:
    return [folder.folder(name) for name in sorted(folder.names()) if folder.exists(f"{name}/{_FILE}")]


def entries(folder: Folder) -> Iterator[Entry]:
    """The entries of the log in a checkpoint folder, from the oldest that is left."""
    for name in (_OLDER_FILE, _FILE):
        yield from _entries(_text(folder, name))


class NewEntries:
    """The entries of the log in a checkpoint folder that were added since the last look at it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._position = folder.size(_FILE)

    def read(self) -> list[Entry]:
        """The new entries, in order."""
        text = ""
        size = self._folder.size(_FILE)
        if size < self._position:  # it has become the older file
            text, self._position = self._new_lines(_OLDER_FILE), 0
        if size > self._position:
            text += self._new_lines(_FILE)
        return [*_entries(text)]

    def _new_lines(self, name: str) -> str:
        """The complete lines behind the position, which is moved behind them."""
        lines, end, _ = _text(self._folder, name, self._position).rpartition("\n")
        self._position += len((lines + end).encode())
        return lines + end


def last_entry(folder: Folder) -> Entry | None:
    """The last entry of the log in a checkpoint folder; None if there is none."""
    for name in (_FILE, _OLDER_FILE):
        start = max(0, folder.size(name) - _TAIL - 1)
        text = _text(folder, name, start)
        # What is left of a line that is cut off may look like an entry.
        found = [*_entries(text.partition("\n")[2] if start else text)]
        if found:
            return found[-1]
    return None


def _text(folder: Folder, name: str, start: int = 0) -> str:
    """The text of a file behind a position; empty if there is no file."""
    try:
        return folder.read(name, start).decode(errors="replace")
    except FileNotFoundError:
        return ""


def _entries(text: str) -> Iterator[Entry]:
    """The entries of a text; a line that is being written, or was cut off, is none."""
    for line in text.splitlines(keepends=True):
        if line.startswith("{") and line.endswith("}\n"):
            yield Entry.of_json(line)


def _is_torn(folder: Folder) -> bool:
    size = folder.size(_FILE)
    return size > 0 and folder.read(_FILE, size - 1) != b"\n"
