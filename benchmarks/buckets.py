"""The operators of all buckets of a stream, in one process without Spark."""

from __future__ import annotations

import pyarrow as pa

from anabranch.transport.job import Job
from anabranch.transport.pages import Paged
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock


class CountedPages(dict[int, bytes]):
    """Pages in memory that count the bytes that are written."""

    written = 0

    def read(self, page: int) -> bytes:
        """Return a page."""
        return self[page]

    def write(self, page: int, data: bytes) -> None:
        """Write a page."""
        self.written += len(data)
        self[page] = data

    def remove(self, page: int) -> None:
        """Remove a page."""
        del self[page]


class Buckets:
    """The operators of a live query. As in Spark, each is opened, stepped and saved in every micro-batch.

    Attributes
    ----------
    arrived : the bytes of the packets so far
    written : the bytes written to the state so far
    answers : the number of answers so far
    """

    def __init__(self, job: Job, n_buckets: int) -> None:
        """Start without state."""
        self._job, self._clock = job, Clock(job.layouts)
        self._states: list[bytes | None] = [None] * n_buckets
        self._pages = [CountedPages() for _ in range(n_buckets)]
        self._in_states = self.arrived = self.answers = 0

    @property
    def written(self) -> int:
        """The bytes of the states and of the changed pages."""
        return self._in_states + sum(pages.written for pages in self._pages)

    def step(self, rows: pa.Table) -> None:
        """Process a micro-batch."""
        routed = route(rows, 0, self._job, len(self._states))
        watermark = self._clock.advance([routed.newest])
        for bucket, pages in enumerate(self._pages):
            packets = [(0, blob) for to, blob in routed.packets if to == bucket]
            self.arrived += sum(len(blob) for _, blob in packets)
            operator = self._job.operator()
            operator.open(self._states[bucket])
            if isinstance(operator, Paged):
                operator.use_pages(pages)
            self.answers += operator.step(packets, watermark, ended=False).answers.num_rows
            state = self._states[bucket] = operator.save()
            self._in_states += len(state)
