"""The catalog of declarations: streams with their uncertainty model, relations, and queries.

The binder fills the catalog from CREATE statements. A column type is UNKNOWN until a declaration states it or the
session has read the schema of the source (`with_types`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from anabranch import markup
from anabranch.errors import AnabranchError
from anabranch.language import nodes
from anabranch.language.names import ANSWERS, LOCAL_QUERY
from anabranch.language.temporal import amount_of
from anabranch.language.types import Type
from anabranch.language.unparse import unparse

#: A summary lists at most this many names of each sort.
_MAX_NAMES = 10

#: MAX AHEAD of TIMESTAMP streams that do not state it, in seconds: a year. Times beyond it are errors of a clock or of
#: a format. Numeric times have no default, because their unit is not known.
MAX_AHEAD = 366 * 86_400.0


class Model(Enum):
    """What is uncertain about the rows of a stream."""

    CERTAIN = "CERTAIN"
    INDEPENDENT = "INDEPENDENT"
    MARKOV = "MARKOV"
    INTERVALS = "INTERVALS"
    PREDICTED = "PREDICTED"


@dataclass(frozen=True, slots=True)
class Column:
    """A named column; `declared` is True if the workbook states its type.

    `source_type` is the type in the source where it differs: a time that is a DATE there is a TIMESTAMP for queries.
    """

    name: str
    type: Type = Type.UNKNOWN
    declared: bool = False
    source_type: Type | None = None


@dataclass(frozen=True, slots=True)
class Stream:
    """A declared stream. `declaration` has the clauses that only one model uses.

    Events with a duration begin at `start` and end at `time`; `start` is None for point events. `shape` is the geometry
    column of `SPACE (shape)`, None if SPACE names two coordinates or is absent. `accelerations` are those of the
    `optional_columns` that the source has; none are known before it is opened.
    """

    name: str
    keys: tuple[Column, ...]
    values: tuple[Column, ...]
    time: Column
    model: Model
    declaration: nodes.CreateStream
    probability: str = "p"
    start: Column | None = None
    shape: Column | None = None
    accelerations: tuple[Column, ...] = ()

    @property
    def source(self) -> nodes.Source | None:
        """The source of the rows; None if a source is bound later."""
        return self.declaration.source

    @property
    def has_duration(self) -> bool:
        """Whether the events have a duration (`TIME (start, end)`)."""
        return self.start is not None

    @property
    def time_names(self) -> frozenset[str]:
        """The columns that hold times, in lower case: event time, start, and the ends of WINDOW and HORIZON."""
        bounds = (*(self.declaration.window or ()), *self.horizon_columns)
        names = (self.time.name, self.start and self.start.name, *bounds)
        return frozenset(name.lower() for name in names if name)

    @property
    def horizon_columns(self) -> tuple[str | None, str | None]:
        """The columns of the ends of HORIZON; None where an end is a constant, or there is no HORIZON."""
        low, high = self.declaration.horizon or (None, None)
        return low.name if isinstance(low, nodes.Variable) else None, (
            high.name if isinstance(high, nodes.Variable) else None
        )

    @property
    def lateness(self) -> float:
        """How late a row may arrive (WATERMARK): in seconds if it has a unit or the time is a TIMESTAMP."""
        watermark = self.declaration.watermark
        return 0.0 if watermark is None else float(amount_of(watermark))

    @property
    def idle_after(self) -> float | None:
        """How far the stream may fall behind the others before it stops holding them back (IDLE AFTER)."""
        idle = self.declaration.idle_after
        return None if idle is None else float(amount_of(idle))

    @property
    def max_ahead(self) -> float | None:
        """How far a row may be ahead of the clock, or a numeric time ahead of other rows (MAX AHEAD); None: any."""
        ahead = self.declaration.max_ahead
        if ahead is None:
            return MAX_AHEAD if self.time.type is Type.TIMESTAMP else None
        return float(amount_of(ahead))

    @property
    def has_height(self) -> bool:
        """Whether the location has a third coordinate."""
        return len(self.declaration.space or ()) == 3

    @property
    def previous(self) -> tuple[Column, ...]:
        """The `prev_<value>` columns of a MARKOV stream."""
        if self.model is not Model.MARKOV:
            return ()
        return tuple(replace(column, name=f"prev_{column.name}") for column in self.values)

    @property
    def quantities(self) -> tuple[Column, ...]:
        """The columns from which values can be predicted: those of VALUE, then the coordinates of SPACE."""
        space = [name.lower() for name in self.declaration.space or () if self.shape is None]
        values = {column.name.lower() for column in self.values}
        coordinates = [column for column in self.columns if column.name.lower() in space]
        return (*self.values, *(column for column in coordinates if column.name.lower() not in values))

    @property
    def errors(self) -> tuple[nodes.ErrorBound, ...]:
        """The ERROR of each value column of a PREDICTED stream, in the order of the columns."""
        bounds = {(bound.column or "").lower(): bound for bound in self.declaration.error}
        by_value = (bounds.get(value.name.lower(), bounds.get("")) for value in self.values)
        return tuple(bound for bound in by_value if bound is not None)

    @property
    def location_error(self) -> nodes.ErrorBound | None:
        """How far the true location of an event can be from its reading; None if it is known."""
        return self.declaration.error[0] if self.declaration.error and self.model is not Model.PREDICTED else None

    @property
    def error_columns(self) -> tuple[str, ...]:
        """The distinct columns that hold the errors of a row."""
        return tuple(dict.fromkeys(bound.source for bound in self.errors if bound.source is not None))

    @property
    def segment_laws(self) -> tuple[tuple[str, nodes.SegmentLaw], ...]:
        """The distributions of an INTERVALS stream, each with its clause."""
        laws = (("DURATION", self.declaration.duration), ("GAP", self.declaration.gap))
        return tuple((clause, law) for clause, law in laws if law is not None)

    @property
    def optional_columns(self) -> tuple[Column, ...]:
        """The columns that a source may have or not: the accelerations of a PREDICTED stream, which are 0 without."""
        if self.model is not Model.PREDICTED:
            return ()
        return tuple(Column(f"{column.name}_accel", Type.DOUBLE) for column in self.values)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column that a source of this stream must have, in a fixed order, and the optional ones that it has."""
        extra: list[Column] = list(self.previous)
        if self.model in (Model.INDEPENDENT, Model.MARKOV):
            extra.append(Column(self.probability, Type.DOUBLE))
        if self.model is Model.PREDICTED:
            extra += [Column(f"{column.name}_rate", Type.DOUBLE) for column in self.values]
            extra += [Column(name, Type.DOUBLE) for name in self.error_columns]
            extra += self.accelerations
        extra += [
            Column(law.column, Type.DOUBLE if law.path is None else Type.STRING)
            for _, law in self.segment_laws
            if law.column is not None
        ]
        declaration = self.declaration
        for name, kind in (
            (declaration.order, Type.INTEGER),
            (declaration.length, Type.INTEGER),
            (declaration.role, Type.STRING),
            *((name, self.time.type) for name in (*(declaration.window or ()), *self.horizon_columns)),
            *((name, Type.DOUBLE) for name in declaration.space or () if self.shape is None),
        ):
            if name is not None:
                extra.append(Column(name, kind))
        if self.shape is not None:
            extra.append(self.shape)
        times = (self.time,) if self.start is None else (self.start, self.time)
        columns = (*self.keys, *self.values, *times, *extra)
        return tuple({column.name.lower(): column for column in reversed(columns)}.values())[::-1]

    def with_types(self, types: Mapping[str, Type]) -> Stream:
        """The same stream with the column types of its source (names are compared without case)."""
        return replace(
            self,
            keys=tuple(_typed(column, types) for column in self.keys),
            values=tuple(_typed(column, types) for column in self.values),
            time=as_time(_typed(self.time, types)),
            start=self.start and as_time(_typed(self.start, types)),
            shape=self.shape and _typed(self.shape, types),
        )


@dataclass(frozen=True, slots=True)
class Relation:
    """An ordinary table that conditions look up."""

    name: str
    columns: tuple[Column, ...]
    declaration: nodes.CreateRelation

    @property
    def source(self) -> nodes.Source | None:
        """The source of the rows; None if a source is bound later."""
        return self.declaration.source

    def with_types(self, types: Mapping[str, Type]) -> Relation:
        """The same relation with the column types of its source."""
        return replace(self, columns=tuple(_typed(column, types) for column in self.columns))


@dataclass(frozen=True, slots=True)
class Query:
    """A named query; it is bound again, with the types of its sources, when it is run."""

    name: str
    declaration: nodes.CreateQuery

    @property
    def threshold(self) -> float:
        """The lowest probability of an answer."""
        return float(self.declaration.threshold or 0.0)


def title_of(names: Sequence[str]) -> str:
    """The names of queries that share a pass, shortened if there are many."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} more"


def _typed(column: Column, types: Mapping[str, Type]) -> Column:
    if column.declared:
        return column
    return replace(column, type=types.get(column.name.lower(), column.type))


def as_time(column: Column) -> Column:
    """The column as a time: a DATE is the TIMESTAMP of its midnight in UTC."""
    return replace(column, type=Type.TIMESTAMP, source_type=Type.DATE) if column.type is Type.DATE else column


@dataclass(slots=True)
class Catalog:
    """The declarations of a session by lower-case name; streams, relations and queries share one namespace."""

    entries: dict[str, Stream | Relation | Query] = field(default_factory=dict)

    def add(self, entry: Stream | Relation | Query) -> None:
        """Add an entry; it replaces an entry of the same name."""
        self.entries[entry.name.lower()] = entry

    def get(self, name: str) -> Stream | Relation | Query | None:
        """The entry called `name`, or None."""
        return self.entries.get(name.lower())

    def stream(self, name: str) -> Stream | None:
        """The stream called `name`, or None."""
        entry = self.get(name)
        return entry if isinstance(entry, Stream) else None

    def relation(self, name: str) -> Relation | None:
        """The relation called `name`, or None."""
        entry = self.get(name)
        return entry if isinstance(entry, Relation) else None

    def query(self, name: str) -> Query | None:
        """The query called `name`, or None."""
        entry = self.get(name)
        return entry if isinstance(entry, Query) else None

    def require_stream(self, name: str) -> Stream:
        """The stream called `name`; raises if there is none."""
        stream = self.stream(name)
        if stream is None:
            raise self._missing("stream", name, Stream)
        return stream

    def require_query(self, name: str) -> Query:
        """The query called `name`; raises if there is none."""
        query = self.query(name)
        if query is None:
            raise self._missing("query", name, Query)
        return query

    def _missing(self, what: str, name: str, kind: type) -> AnabranchError:
        known = ", ".join(self.names((kind,))) or "none"
        return AnabranchError(f"there is no {what} {name}; declared are: {known}")

    def queries(self) -> list[Query]:
        """All queries that statements declare, in their order; not those that a WITH implies."""
        queries = (entry for entry in self.entries.values() if isinstance(entry, Query))
        return [query for query in queries if not query.declaration.implied]

    def names(self, kinds: Iterable[type] = (Stream, Relation, Query)) -> list[str]:
        """The names of the entries of these classes, for suggestions; not those that only statements imply."""
        classes = tuple(kinds)
        entries = (entry for entry in self.entries.values() if isinstance(entry, classes))
        return [entry.name for entry in entries if not entry.name.endswith((LOCAL_QUERY, ANSWERS))]

    def summary(self) -> str:
        """How many streams, relations and queries there are, with their names."""
        parts = []
        for kind, one, many in (
            (Stream, "stream", "streams"),
            (Relation, "relation", "relations"),
            (Query, "query", "queries"),
        ):
            names = self.names((kind,))
            if names:
                shown = ", ".join(names[:_MAX_NAMES]) + (", ..." if len(names) > _MAX_NAMES else "")
                parts.append(f"{len(names)} {one if len(names) == 1 else many} ({shown})")
        return ", ".join(parts) or "nothing declared"

    def to_html(self, title: str) -> str:
        """A table of the declarations, for notebooks."""
        rows = [
            (entry.name, entry.declaration.what, markup.code(unparse(entry.declaration)))
            for entry in self.entries.values()
        ]
        if not rows:
            return markup.output(title, note="nothing declared")
        return markup.output(title, markup.table(("name", "what", "declaration"), rows))
