"""A stream that seems to run: its files are written as Spark's micro-batches write them, without Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.runtime.file_system import LocalFolder
from anabranch.runtime.lock import FolderLock
from anabranch.runtime.stream_log import StreamLog
from anabranch.transport.operator import COUNTED, Counts


class Stream:
    """A stream with the log, the lock and the answers of some micro-batches."""

    def __init__(self, folder: Path) -> None:
        checkpoint = folder / "checkpoint" / "coffee"
        checkpoint.mkdir(parents=True)
        self._output = folder / "out" / "coffee"
        self._output.mkdir(parents=True)
        self._lock = FolderLock(LocalFolder(checkpoint))
        self._log = StreamLog(LocalFolder(checkpoint), "coffee", Counts())
        self.n_rows = self.n_batches = 0
        for number in range(45):
            self._log_batch(1_000 + 37 * (number * 7 % 23))
        self._write("ana", "ben", "eva")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def add_batch(self, person: str) -> None:
        """Read more rows, and give an answer about a person."""
        self._log_batch(1_500)
        self._write(person)

    def _log_batch(self, rows: int) -> None:
        counted = dict.fromkeys(COUNTED, 0) | {"read": rows, "used": rows, "state_bytes": 54_600 + 100 * self.n_batches}
        outcomes = pa.table({name: [count] for name, count in counted.items()})
        self._log.add(self.n_batches, outcomes, 1, 0.8, f"2026-03-02 09:{self.n_batches:02}:00")
        self.n_rows, self.n_batches = self.n_rows + rows, self.n_batches + 1

    def _write(self, *people: str) -> None:
        probabilities = [0.28 + 0.17 * index for index in range(len(people))]
        columns = {"t": [self.n_batches] * len(people), "p": people, "probability": probabilities}
        table = pa.table(columns | {"lower": probabilities, "upper": probabilities, "method": ["exact"] * len(people)})
        pq.write_table(table, self._output / f"part-{self.n_batches}.parquet")
