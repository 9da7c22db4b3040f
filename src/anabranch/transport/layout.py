"""Layouts: which columns of a source hold the key, the value and the time of a stream, and what its model adds.

A layout has a core that every stream has, and one part for each model that needs more columns: `DistributionColumns`
(INDEPENDENT, MARKOV), `IntervalColumns` (INTERVALS) and `PredictionColumns` (PREDICTED). `SpaceColumns` is the part of
streams with a SPACE clause. Workers get layouts; the catalog stays in the driver.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from anabranch.arrays import BEGINNING, END, F64, I64
from anabranch.binding.typed import Reference, Typed
from anabranch.columns.times import TimeKind
from anabranch.transport.derivation import Derivation, ReportingPolicy
from anabranch.transport.preparation import Preparation


@dataclass(frozen=True, slots=True)
class DistributionColumns:
    """The part of INDEPENDENT and MARKOV streams.

    Attributes
    ----------
    probability : column of the probability of a row
    previous : for each value column, the column of the value at the previous instant; empty unless MARKOV
    """

    probability: str
    previous: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentTimes:
    """The distribution of the length of segments, or of the gaps between them.

    Attributes
    ----------
    phases : the k of ERLANG; 1 for EXPONENTIAL
    mean : the mean, in the unit of time codes; None if `column` says more
    column : the mean of each segment, in seconds for a TIMESTAMP, else in the unit of the time column; or its class
    classes : for each class its name, phases and mean; the class '' stands for all others
    """

    phases: int = 1
    mean: float | None = None
    column: str | None = None
    classes: tuple[tuple[str, int, float], ...] = ()

    def encode(self, column: pa.ChunkedArray, kind: TimeKind) -> I64:
        """A number for each row: the bits of its mean, or the number of its class from 1; 0 if it is unknown."""
        if not self.classes:
            means = pc.fill_null(pc.cast(column, pa.float64()), 0.0).to_numpy()
            return (means * kind.per_unit).view(np.int64)
        names = [name for name, _, _ in self.classes]
        others = names.index("") if "" in names else -1
        index = pc.index_in(pc.cast(column, pa.string()), value_set=pa.array(names))
        return 1 + pc.fill_null(index, others).to_numpy().astype(np.int64)

    def decode(self, numbers: I64) -> tuple[F64, F64]:
        """The phases and the mean of each number of `encode`; NaN if it is unknown."""
        if not self.classes:
            means = np.where(numbers > 0, numbers.view(np.float64), np.nan)
            return np.where(numbers > 0, float(self.phases), np.nan), means
        phases, means = (np.array([np.nan, *values]) for values in list(zip(*self.classes, strict=True))[1:])
        return phases[numbers], means[numbers]

    def source_cell(self, number: int, kind: TimeKind) -> object:
        """The cell of `column` that has this number; None if it is unknown."""
        if self.classes:
            return self.classes[number - 1][0] or None if number else None
        return float(np.int64(number).view(np.float64)) / kind.per_unit if number else None


#: The distributions of segments and of the gaps between them; None where there is none.
SegmentLaws = tuple[SegmentTimes | None, SegmentTimes | None]


@dataclass(frozen=True, slots=True)
class IntervalColumns:
    """The part of INTERVALS streams.

    Attributes
    ----------
    order : column of the position of an event within its entity, from 1; where a row is a segment (`Layout.start`),
        of the number of the segment, and empty if segments are numbered by time
    length : column of the number of events of the entity; of segments, where a row is a segment
    role : column that says whether the event starts, suspends, resumes or ends the entity
    window : columns of the earliest and latest time of an event whose time is lost
    horizon : codes of the two times between which every event happened; BEGINNING and END where a column has them
    horizon_columns : columns of these times, which are the same for all rows of an entity; None where it is a constant
    duration, gap : the distributions of segments and of the gaps between them
    """

    order: str
    length: str | None = None
    role: str | None = None
    window: tuple[str, str] | None = None
    horizon: tuple[int, int] | None = None
    duration: SegmentTimes | None = None
    gap: SegmentTimes | None = None
    horizon_columns: tuple[str | None, str | None] = (None, None)

    @property
    def columns(self) -> list[str]:
        """Every column of this part."""
        of_laws = [column for _, column in self.laws_by_row.values()]
        names = (self.order, self.length, self.role, *(self.window or ()), *self.horizon_columns, *of_laws)
        return [name for name in names if name]

    @property
    def laws_by_row(self) -> dict[str, tuple[SegmentTimes, str]]:
        """The distributions that depend on a column, with that column, by the name of their numbers in packets."""
        laws = {"segment_mean": self.duration, "gap_mean": self.gap}
        return {name: (law, law.column) for name, law in laws.items() if law is not None and law.column is not None}


@dataclass(frozen=True, slots=True)
class RunColumns:
    """How segments are made from the rows of another stream (INTERVALS FROM s WHILE).

    Attributes
    ----------
    condition : on a row
    at_least, silence : durations, in seconds for a TIMESTAMP, else in the unit of the time column
    interval : the part of the INTERVALS stream that is made
    """

    condition: Typed
    at_least: float | None
    silence: float | None
    interval: IntervalColumns


@dataclass(frozen=True, slots=True)
class PredictionColumns:
    """The part of PREDICTED streams; tuples have one entry per value column.

    Attributes
    ----------
    errors : a number, or the column that holds the error of a row
    normals : standard deviation of a normal error; None where the error is uniform
    period : how long a prediction is valid, in seconds for a TIMESTAMP, else in the unit of the time column
    rates : columns of the rates of change; empty where the source has positions
    accelerations : columns of the accelerations, None for a value without; empty if no value has one
    reporting : how positions become predictions; None where the source has predictions
    """

    errors: tuple[str | float, ...]
    normals: tuple[float | None, ...]
    period: float
    rates: tuple[str, ...] = ()
    reporting: ReportingPolicy | None = None
    accelerations: tuple[str | None, ...] = ()

    @property
    def error_columns(self) -> list[str]:
        """The columns that hold the errors of a row, each once."""
        return list(dict.fromkeys(error for error in self.errors if isinstance(error, str)))

    @property
    def acceleration_columns(self) -> list[str]:
        """The columns that hold accelerations."""
        return [name for name in self.accelerations if name is not None]


@dataclass(frozen=True, slots=True)
class SpaceColumns:
    """Where an event is: two or three coordinates, or one column of geometries of `shape_type`.

    If they are `geodesic`, the first two coordinates are in degrees, and a third one is a height in metres.

    `origin` is that of the local projection, in degrees, where coordinates are projected.
    """

    columns: tuple[str, ...]
    geodesic: bool = False
    shape_type: pa.DataType | None = None
    origin: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a stream's source, as the workers see them.

    Attributes
    ----------
    name : of the stream
    keys, key_types, values, value_types : columns of KEY and VALUE with their Arrow types
    time, time_kind : column and type of the event time; of events with a duration, the end
    start : column of the start of events with a duration
    lateness : the WATERMARK clause, in seconds for a TIMESTAMP, else in the unit of the time column
    idle_after : the IDLE AFTER clause, in the same unit
    max_ahead : the MAX AHEAD clause, in the same unit: how far a TIMESTAMP may be ahead of the clock of the machine, or
        a number ahead of other rows (`jumps.py`); None without a limit
    common_clock : whether a row is at most `lateness` behind the newest row of any stream of the query, instead of its
        own (MAX DELAY of a MONITOR)
    distribution, interval, prediction : the part of the model; all None for CERTAIN
    space : the part of the SPACE clause
    derivation : makes the rows of the stream from those of its source, where the two differ
    preparation : makes each row of the stream from one row of its source, before rows are checked
    runs : makes segments from the rows
    """

    name: str
    keys: tuple[str, ...]
    key_types: tuple[pa.DataType, ...]
    values: tuple[str, ...]
    value_types: tuple[pa.DataType, ...]
    time: str
    time_kind: TimeKind
    start: str | None = None
    lateness: float = 0.0
    idle_after: float | None = None
    max_ahead: float | None = None
    common_clock: bool = False
    distribution: DistributionColumns | None = None
    interval: IntervalColumns | None = None
    prediction: PredictionColumns | None = None
    space: SpaceColumns | None = None
    derivation: Derivation | None = None
    preparation: Preparation | None = None
    runs: RunColumns | None = None

    @property
    def max_jump(self) -> float | None:
        """How far a numeric time may be ahead of other rows; None without a limit."""
        return None if self.time_kind is TimeKind.TIMESTAMP else self.max_ahead

    @property
    def segments(self) -> IntervalColumns | None:
        """The part of an INTERVALS stream, whether its rows or its runs are segments."""
        return self.interval if self.runs is None else self.runs.interval

    @property
    def source_columns(self) -> list[str]:
        """Every column to read from the source."""
        return self.columns if self.preparation is None else list(self.preparation.sources)

    @property
    def coded_sources(self) -> set[str]:
        """The columns of the source, in lower case, that are keys or values as they are, so that codes are enough."""
        names = {name.lower() for name in (*self.keys, *self.values, *self.previous)}
        if self.preparation is None:
            return names
        trees = [tree for name, tree in self.preparation.columns if name.lower() in names]
        return {tree.name for tree in trees if isinstance(tree, Reference) and tree.owner is None}

    def plain_sources(self, names: Collection[str]) -> list[str]:
        """The columns of the source, as spelled there, that are some columns of the stream as they are.

        Only of texts and integers: their distinct values are distinct in the source and in the stream.
        """
        kinds = dict(zip((*self.keys, *self.values), (*self.key_types, *self.value_types), strict=True))
        plain = [
            name
            for name, kind in kinds.items()
            if name.lower() in names and (pa.types.is_string(kind) or pa.types.is_int64(kind))
        ]
        if self.preparation is None:
            return plain
        trees = {name.lower(): tree for name, tree in self.preparation.columns}
        spelled = {name.lower(): name for name in self.preparation.sources}
        chosen = [trees.get(name.lower()) for name in plain]
        return [spelled[tree.name] for tree in chosen if isinstance(tree, Reference) and tree.owner is None]

    @property
    def previous(self) -> tuple[str, ...]:
        """The columns of the previous values of a MARKOV stream."""
        return () if self.distribution is None else self.distribution.previous

    @property
    def times(self) -> list[str]:
        """The columns of times: event time, start, and the ends of windows and horizons of lost events."""
        bounds = () if self.interval is None else (*(self.interval.window or ()), *self.interval.horizon_columns)
        return [name for name in (self.time, self.start, *bounds) if name is not None]

    @property
    def horizon(self) -> tuple[int, int]:
        """Between which times the events of INTERVALS happened; all of time where there is no HORIZON."""
        return (self.segments and self.segments.horizon) or (BEGINNING, END)

    @property
    def segment_laws(self) -> SegmentLaws:
        """The distributions of DURATION and GAP."""
        return (None, None) if self.segments is None else (self.segments.duration, self.segments.gap)

    @property
    def reaches_back(self) -> bool:
        """Whether the first event of an entity may lie before all recorded events: it is lost, or its row comes later.

        The row of a segment comes when the segment has ended.
        """
        if self.interval is None:
            return False
        interval = self.interval
        return bool(interval.horizon or interval.window or any(interval.horizon_columns) or self.start is not None)

    @property
    def columns(self) -> list[str]:
        """Every column of the rows, each once."""
        times = [self.time] if self.start is None else [self.start, self.time]
        names = [*self.keys, *self.values, *self.previous, *times]
        if self.prediction is not None:
            prediction = self.prediction
            names += [*prediction.rates, *prediction.acceleration_columns, *prediction.error_columns]
        if self.distribution is not None:
            names.append(self.distribution.probability)
        names += [] if self.interval is None else self.interval.columns
        names += [] if self.space is None else self.space.columns
        return list(dict.fromkeys(names))


def require_distribution(layout: Layout) -> DistributionColumns:
    """The part of an INDEPENDENT or MARKOV stream."""
    if layout.distribution is None:
        raise LookupError(f"{layout.name} has no probabilities")
    return layout.distribution


def require_interval(layout: Layout) -> IntervalColumns:
    """The part of an INTERVALS stream."""
    if layout.interval is None:
        raise LookupError(f"{layout.name} is not INTERVALS")
    return layout.interval


def require_prediction(layout: Layout) -> PredictionColumns:
    """The part of a PREDICTED stream; the binder admits no other stream to MONITOR."""
    if layout.prediction is None:
        raise LookupError(f"{layout.name} is not PREDICTED")
    return layout.prediction
