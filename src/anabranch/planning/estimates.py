"""Estimates from a sample: how many answers a query will have, and how much memory it needs (`explain --data`).

The sample is run in this process, in one bucket, by the operators of a run. A sample has one or more *blocks*, which
are run separately: all rows of some keys, or all rows of some time. Rows before the `start` of a block only lead up to
it; answers about them are not counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from anabranch.arrays import F64
from anabranch.binding.words import count_of
from anabranch.plan import Step
from anabranch.planning.in_process import answers_in_process, packets_of
from anabranch.text import size_text
from anabranch.transport.job import Job
from anabranch.transport.routing import route
from anabranch.transport.watermark import Clock, Progress

#: A block is split into this many micro-batches, to see how large the state becomes.
MICRO_BATCHES = 8

#: With fewer answers in the sample, the estimate can be far off.
FEW = 20

#: With fewer blocks of time, the estimate can be far off if answers come in bursts.
FEW_BLOCKS = 4

#: The columns that say when an answer is, in the order in which they are looked for.
_TIMES = ("t", "valid_from", "t_from")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a sample, one table per stream, sorted by time; `start` is None if all answers count.

    A `start` is in the unit of event times, microseconds for timestamps.
    """

    tables: tuple[pa.Table, ...]
    start: float | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample of the rows of a query.

    Attributes
    ----------
    blocks : of the sample
    total_rows : the number of all rows
    factor : how many times as many answers all rows have
    memory_factor : how many times as much state all rows need
    what : the sample in words
    """

    blocks: tuple[Block, ...]
    total_rows: int
    factor: float = 1.0
    memory_factor: float = 1.0
    what: str = "all rows"

    @property
    def n_rows(self) -> int:
        """The number of rows in the sample, without those that lead up to a block."""
        return sum(table.num_rows for block in self.blocks for table in block.tables)


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run over all rows will probably give and need.

    Attributes
    ----------
    answers : the number of answers
    in_sample : the number of answers in the sample
    state : the bytes that a stream keeps; None if the query cannot stream
    held : the bytes of the packed rows that a run over an archive holds, in all partitions together
    """

    answers: float
    in_sample: int
    state: float | None
    held: float
    sample: Sample

    def steps(self) -> list[Step]:
        """The estimate as lines of a plan."""
        about = "" if self.sample.factor == 1 else "about "
        counted = f"{about}{rounded(self.answers)}"
        sampled = "" if self.sample.factor == 1 else f"; {self.in_sample:,} in the sample"
        if sampled and self.in_sample < FEW:
            sampled += ", which are few: this is rough"
        elif sampled and self.sample.blocks[0].start is not None and len(self.sample.blocks) < FEW_BLOCKS:
            sampled += f", from {count_of(len(self.sample.blocks), 'block')} of time: this is rough"
        memory = f"about {size_text(self.held)} of packed rows in a run over an archive"
        if self.state is not None:
            memory += f", {size_text(self.state)} of state in a stream"
        rows = f"{self.sample.n_rows:,} of {self.sample.total_rows:,} rows"
        return [
            Step("answers", counted + sampled),
            Step("memory", memory),
            Step("sample", f"{self.sample.what} ({rows})"),
        ]


def rounded(number: float) -> str:
    """A number with two digits, if it is an estimate above 100."""
    if number < 100 or number == int(number):
        return f"{number:,.0f}"
    digits = 10 ** (len(str(int(number))) - 2)
    return f"{round(number / digits) * digits:,}"


def estimate(job: Job, live_job: Job | None, sample: Sample, n_buckets: int = 1) -> Estimate:
    """Run a sample, and scale what it gives. A stream would have `n_buckets`: rows can be kept in several of them."""
    in_sample, state, held = 0, 0, 0
    for block in sample.blocks:
        answers, n_bytes = answers_in_process(job, block.tables)
        in_sample += _n_counted(answers, block.start)
        held += n_bytes
        if live_job is not None:
            state = max(state, _state_size(live_job, block, n_buckets))
    share = sample.n_rows / max(sample.total_rows, 1)
    return Estimate(
        answers=in_sample * sample.factor,
        in_sample=in_sample,
        state=None if live_job is None else state * sample.memory_factor,
        held=held / share if share else 0.0,
        sample=sample,
    )


def _n_counted(answers: pa.Table, start: float | None) -> int:
    """How many answers are not before the start of a block."""
    time = next((name for name in _TIMES if name in answers.column_names), None)
    if start is None or time is None:
        return int(answers.num_rows)
    return int((times_of(answers[time]) >= start).sum())


def times_of(column: pa.ChunkedArray) -> F64:
    """Times as numbers, microseconds for timestamps."""
    numbers = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    return np.asarray(numbers.cast(pa.float64(), safe=False).to_numpy(), np.float64)


def _state_size(job: Job, block: Block, n_buckets: int) -> int:
    """The largest state of all operators together, where a block arrives in micro-batches."""
    clock, saved = Clock(job.layouts), [b""] * n_buckets
    largest = 0
    for number in range(MICRO_BATCHES):
        parts = [_part(table, number) for table in block.tables]
        routed = [route(part, stream, job, n_buckets) for stream, part in enumerate(parts)]
        watermark = clock.advance([part.newest for part in routed])
        saved = [_stepped(job, state, packets_of(routed, bucket), watermark) for bucket, state in enumerate(saved)]
        largest = max(largest, sum(map(len, saved)))
    return largest


def _stepped(job: Job, saved: bytes, packets: list[tuple[int, bytes]], watermark: Progress) -> bytes:
    """The state of a bucket after a micro-batch. It is opened again in every micro-batch, as in a stream."""
    operator = job.operator()
    if saved:
        operator.open(saved)
    operator.step(packets, watermark, ended=False)
    return operator.save()


def _part(table: pa.Table, number: int) -> pa.Table:
    """One of the micro-batches of a table, in the order of its rows."""
    start, end = (table.num_rows * bound // MICRO_BATCHES for bound in (number, number + 1))
    return table.slice(start, end - start)
