"""Samples of inputs, for the estimates of `explain --data`: all rows of some keys, or of some blocks of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from anabranch.binding.words import count_of
from anabranch.columns.times import TimeKind
from anabranch.plan import Plan, Sampling
from anabranch.planning.estimates import Block, Sample, estimate, times_of
from anabranch.planning.prepared import with_job
from anabranch.runtime.execution import Resolved
from anabranch.runtime.inputs import Input
from anabranch.runtime.kernels import ensure_kernels
from anabranch.runtime.validation import valid_rows
from anabranch.transport.layout import Layout

#: About how many rows a sample has; readings of inferred streams count more, because many rows follow from one.
ROWS = 20_000
ROWS_PER_READING = 10

#: A sample of keys has at least about this many of them, if it then has at most so many times the wanted rows.
KEYS = 10
MOST_TIMES_ROWS = 20

#: Blocks are spread evenly over time.
BLOCKS = 8


@dataclass(frozen=True, slots=True)
class _Rows:
    """The valid rows of one stream."""

    frame: DataFrame
    layout: Layout
    time: Column
    count: int
    earliest: float
    latest: float

    def where(self, condition: Column | None) -> pa.Table:
        """Some of the rows, sorted by time."""
        frame = self.frame if condition is None else self.frame.where(condition)
        return frame.orderBy(self.layout.time).toArrow()


def estimated_plan(resolved: Resolved, n_buckets: int, rows: int = ROWS) -> Plan:
    """The plan of a query with the number of answers and the memory, estimated from a sample of about `rows` rows.

    The memory of a stream is that of a new checkpoint with `n_buckets`.
    """
    (prepared,), context = resolved.prepared, resolved.context
    sample = take_sample(resolved.sources, context.layouts, prepared.analysis.sampling, rows)
    # The sample has rows of the streams, not of their sources.
    context = replace(context, layouts=tuple(replace(layout, preparation=None) for layout in context.layouts))
    _, job = with_job([prepared], context)
    ensure_kernels([job])
    live_job = None
    if prepared.plan.streams == "yes":
        _, live_job = with_job([prepared], replace(context, live=True))
    steps = estimate(job, live_job, sample, n_buckets).steps()
    return replace(prepared.plan, steps=(*prepared.plan.steps, *steps))


def take_sample(sources: Sequence[Input], layouts: Sequence[Layout], sampling: Sampling, rows: int) -> Sample:
    """A sample of about `rows` rows; all rows if there are no more."""
    inputs = [_rows_of(source, layout) for source, layout in zip(sources, layouts, strict=True)]
    total = sum(part.count for part in inputs)
    if any(layout.derivation is not None for layout in layouts):
        rows = max(1, rows // ROWS_PER_READING)
    if total <= rows:
        return Sample((Block(tuple(part.where(None) for part in inputs)),), total)
    share = rows / total
    if sampling.columns is not None:
        values = [_sampled_value(part, names) for part, names in zip(inputs, sampling.columns, strict=True)]
        n_values = max(_n_distinct(part, value) for part, value in zip(inputs, values, strict=True))
        names = ", ".join(dict.fromkeys(name for names in sampling.columns for name in names))
        share = min(1.0, max(share, min(KEYS / max(n_values, 1), MOST_TIMES_ROWS * share)))
        return _keys(inputs, values, share, sampling.power, names, total)
    return _blocks(inputs, share, sampling.window, total)


def _rows_of(source: Input, layout: Layout) -> _Rows:
    frame = valid_rows(source, layout)
    column = F.col(f"`{layout.time}`")
    is_timestamp = layout.time_kind is TimeKind.TIMESTAMP
    time = F.unix_micros(column.cast("timestamp")) if is_timestamp else column.cast("double")
    found = frame.agg(F.count(F.lit(1)), F.min(time), F.max(time)).collect()[0]
    return _Rows(frame, layout, time, found[0], float(found[1] or 0), float(found[2] or 0))


# ---------------------------------------------------------------- keys


def _sampled_value(rows: _Rows, names: Sequence[str]) -> Column:
    """A hash of the sampled columns from 0 to 999,999; numbers of all types that are equal have equal hashes."""
    columns = [F.col(f"`{_spelled(rows.layout, name)}`") for name in names]
    texts = [F.coalesce(column.try_cast("double").cast("string"), column.cast("string")) for column in columns]
    return F.pmod(F.xxhash64(*texts), F.lit(1_000_000))


def _spelled(layout: Layout, name: str) -> str:
    """The column as the layout names it."""
    return next((column for column in layout.columns if column.lower() == name.lower()), layout.keys[0])


def _n_distinct(rows: _Rows, value: Column) -> int:
    return int(rows.frame.agg(F.approx_count_distinct(value)).collect()[0][0])


def _keys(
    inputs: Sequence[_Rows], values: Sequence[Column], share: float, power: int, names: str, total: int
) -> Sample:
    tables = tuple(part.where(value < share * 1_000_000) for part, value in zip(inputs, values, strict=True))
    n_rows = sum(table.num_rows for table in tables)
    # By rows, not by the share of the keys that was wanted: keys have different numbers of rows.
    ratio = total / max(n_rows, 1)
    what = f"{1 / ratio:.1%} of the rows, by {names}; answers x {ratio**power:,.1f}"
    return Sample((Block(tables),), total, ratio**power, ratio, what)


# ---------------------------------------------------------------- blocks of time


def _blocks(inputs: Sequence[_Rows], share: float, window: float | None, total: int) -> Sample:
    known = [part for part in inputs if part.count]
    earliest, latest = min(part.earliest for part in known), max(part.latest for part in known)
    unit = known[0].layout.time_kind.per_unit
    whole = (latest - earliest) * (1 + 1e-12)
    # Without a bound on the window, everything from the beginning on may matter.
    lead = 0.0 if window is None else window * unit
    n_blocks = 1 if window is None else int(max(1, min(BLOCKS, share * whole // max(lead, 1e-300))))
    length = share * whole / n_blocks
    middles = [(number + 0.5) * whole / n_blocks for number in range(n_blocks)]
    starts = [earliest + (0.0 if window is None else middle - length / 2) for middle in middles]
    blocks = [
        Block(tuple(part.where(_between(part, start - lead, start + length)) for part in inputs), start)
        for start in starts
    ]
    n_rows = sum(
        int(np.count_nonzero(times_of(table[part.layout.time]) >= start))
        for start, block in zip(starts, blocks, strict=True)
        for part, table in zip(inputs, block.tables, strict=True)
    )
    ratio = total / max(n_rows, 1)
    where = "the beginning" if window is None else f"{count_of(n_blocks, 'block')} of time, each with a lead"
    what = f"{where}: {1 / ratio:.1%} of the rows; answers x {ratio:,.1f}"
    return Sample(tuple(blocks), total, ratio, 1.0, what)


def _between(rows: _Rows, start: float, end: float) -> Column:
    return (rows.time >= start) & (rows.time < end)
