"""What happened to the rows of a stream, in a file of its checkpoint folder.

The process that counts is the one that Spark calls after each micro-batch. On Connect that is a process of the server,
which shares nothing with the session but the checkpoint folder. Therefore counts are passed on as a file, in both
modes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from anabranch.runtime import atomic
from anabranch.transport.operator import ROW_COUNTS, Counts


class StreamCounts:
    """The counts of a stream since it was started, and those of `earlier` starts. Picklable.

    Parameters
    ----------
    path : of the file; it is replaced
    earlier : the counts to add to
    """

    def __init__(self, path: str, earlier: Counts) -> None:
        self._path = Path(path)
        self._counts = Counts(**asdict(earlier))
        self._write()

    def add(self, outcomes: pa.Table, n_answers: int) -> None:
        """Add the counts of a micro-batch, which has a row per bucket, and its answers."""
        counts = self._counts
        for name in (*ROW_COUNTS, "reported"):
            setattr(counts, name, getattr(counts, name) + sum(outcomes[name].to_pylist()))
        counts.kept = max(counts.kept, sum(outcomes["kept"].to_pylist()))
        counts.answers += n_answers
        self._write()

    def read(self) -> Counts:
        """The counts up to the last complete micro-batch, whichever process has counted them."""
        return Counts(**json.loads(self._path.read_text()))

    def _write(self) -> None:
        atomic.write_text(self._path, json.dumps(asdict(self._counts)))
