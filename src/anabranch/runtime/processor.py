"""A bucket as Spark's state store knows it: bytes that are stepped on with the rows of each micro-batch.

At each start of a stream Spark asks for the names of its state, in a new Python process. So that this process loads no
kernels, which takes most of its time, the step travels as bytes and is opened when rows have come; and nothing else of
this package is imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

#: What is kept of a bucket from one micro-batch to the next: its clock, and its operator.
Saved = tuple[bytes, bytes]

#: Takes what was saved of a bucket, nothing at first, and its packed rows; gives what to save, and the outcome.
Step = Callable[[Saved | None, Iterable[Row]], tuple[Saved, Row]]


class BucketProcessor(StatefulProcessor):
    """One step a bucket and micro-batch, its state in Spark's state store."""

    def __init__(self, step: Step) -> None:
        self._closed: bytes = CloudPickleSerializer().dumps(step)
        self._step: Step | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state: both parts are written as one value."""
        self._state = handle.getValueState("bucket", "clock binary, operator binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # names are Spark's
        """One micro-batch of one bucket."""
        if self._step is None:
            self._step = CloudPickleSerializer().loads(self._closed)
        saved = self._state.get()
        state, outcome = self._step(saved and (bytes(saved[0]), bytes(saved[1])), rows)
        self._state.update(state)
        yield outcome

    def close(self) -> None:
        """Nothing is held between micro-batches."""
