"""The stateful processor of a bucket: Spark's state store keeps its bytes between micro-batches.

At each start of a stream, Spark asks for the names of the state in a new Python process. To avoid loading the kernels
there, which would take most of its time, the step is pickled and opened when rows arrive, and this module imports
nothing else of the package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor import MapState

#: The state of a bucket: its clock and its operator.
Saved = tuple[bytes, bytes]


class StatePages:
    """The pages of a bucket in Spark's map state (`transport/pages.py`)."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def read(self, page: int) -> bytes:
        """The bytes of a page; none if it is missing, which is refused like other damaged state."""
        value = self._state.getValue((page,))
        return bytes(value[0]) if value is not None else b""

    def write(self, page: int, data: bytes) -> None:
        """Write a page, or replace it."""
        self._state.updateValue((page,), (data,))

    def remove(self, page: int) -> None:
        """Remove a page."""
        self._state.removeKey((page,))


#: From the saved state of a bucket, None at first, its pages and its packet rows to the new state and the outcome.
Step = Callable[[Saved | None, StatePages, Iterable[Row]], tuple[Saved, Row]]


class BucketProcessor(StatefulProcessor):
    """One step per bucket and micro-batch, with the state in Spark's state store."""

    def __init__(self, step: Step) -> None:
        self._pickled_step: bytes = CloudPickleSerializer().dumps(step)
        self._step: Step | None = None

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state: what is read in every micro-batch is one value, the rest is in pages."""
        self._state = handle.getValueState("bucket", "clock binary, operator binary")
        self._pages = StatePages(handle.getMapState("pages", "page long", "data binary"))

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # names are Spark's
        """One micro-batch of one bucket."""
        if self._step is None:
            self._step = CloudPickleSerializer().loads(self._pickled_step)
        saved = self._state.get()
        state, outcome = self._step(saved and (bytes(saved[0]), bytes(saved[1])), self._pages, rows)
        self._state.update(state)
        yield outcome

    def close(self) -> None:
        """Nothing to close."""
