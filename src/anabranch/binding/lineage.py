"""Lineage: which uncertain rows an answer depends on, and whether the rows that a query combines are independent.

Lineage is a formula over columns, so it needs no data. Rows of a stream that is read are independent as its model says.
Rows of a stream of answers (FROM QUERY) depend on what their answers depend on; two of them are independent if their
lineages are disjoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from anabranch.binding.reading import source_name
from anabranch.catalog import Catalog, Model, Query, Stream
from anabranch.language import nodes
from anabranch.language.findings import Findings, shown

if TYPE_CHECKING:
    from anabranch.binding.bound import BoundOperand, BoundQuery

#: Binds a query.
Bind = Callable[[Query], "BoundQuery | None"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Uncertain rows of a stream, in terms of the columns (in lower case) of an answer or event.

    Attributes
    ----------
    stream : its name in lower case
    keys : for each of its key columns, the column that has its value; None for rows of any key
    since : the column with the time of the first row; None for all earlier rows
    until : the column with the time of the last row; None for all later rows
    before : how long before `since` the first row can be; in seconds for a TIMESTAMP
    """

    stream: str
    keys: tuple[str | None, ...]
    since: str | None
    until: str | None
    before: float = 0.0

    def renamed(self, names: Mapping[str, str | None]) -> Origin:
        """The same rows in terms of other columns; a column without a name there is not known any more."""
        keys = tuple(None if key is None else names.get(key) for key in self.keys)
        since, until = (None if time is None else names.get(time) for time in (self.since, self.until))
        return Origin(self.stream, keys, since, until, self.before if since else 0.0)


@dataclass(frozen=True, slots=True)
class Bounded:
    """Why the events of an answer are not independent, and what is needed to bound the probability of all of them.

    Attributes
    ----------
    why : for `explain`
    events : for each operand with an event in the answers, its label, its column of probabilities (None if its events
        are certain) and the origins of its events; empty if answers have no events
    """

    why: str
    events: tuple[tuple[str, str | None, tuple[Origin, ...]], ...] = ()


def of_events(operand: BoundOperand) -> Origin:
    """The row of an operand's event, in columns of the answer."""
    keys = tuple(_field(operand, key.name) for key in operand.stream.keys)
    time = _field(operand, operand.stream.time.name)
    return Origin(operand.stream.name.lower(), keys, time, time)


def of_entity(operand: BoundOperand) -> Origin:
    """All rows of the key of an operand."""
    return replace(of_events(operand), since=None, until=None)


def any_rows(stream: Stream, until: str | None = None) -> Origin:
    """All rows of a stream, or those until a time."""
    return Origin(stream.name.lower(), (None,) * len(stream.keys), None, until)


def _field(operand: BoundOperand, column: str) -> str:
    return f"{operand.label}.{column}".lower()


# ---------------------------------------------------------------- from answers to rows that are read


def is_of_answers(stream: Stream) -> bool:
    """Whether the rows of a stream are answers of a query that are uncertain events."""
    return isinstance(stream.source, nodes.QuerySource) and stream.model is Model.INDEPENDENT


class Lineages:
    """Finds the lineage of rows and answers in a catalog without cycles."""

    def __init__(self, catalog: Catalog, bind: Bind) -> None:
        self._catalog, self._bind = catalog, bind

    def of_rows(self, stream: Stream) -> tuple[Origin, ...]:
        """The rows that are read which a row of a stream depends on, in terms of its columns."""
        if stream.model not in (Model.INDEPENDENT, Model.MARKOV):
            return ()
        time = stream.time.name.lower()
        own = Origin(stream.name.lower(), tuple(key.name.lower() for key in stream.keys), time, time)
        if not isinstance(stream.source, nodes.QuerySource):
            # A MARKOV row depends on the earlier values of its key.
            return (replace(own, since=None) if stream.model is Model.MARKOV else own,)
        query = self._catalog.query(stream.source.name)
        bound = None if query is None else self._bind(query)
        if bound is None:
            return ()
        written = (*stream.declaration.keys, *stream.declaration.values)
        computed = {node.name.lower() for node in written if node.expression is not None}
        columns = {column.name.lower() for column in (*stream.keys, *stream.values, stream.time)} - computed
        names = {source_name(stream, column).lower(): column for column in sorted(columns)}
        return tuple(dict.fromkeys(origin.renamed(names) for origin in self.of_answers(bound)))

    def of_answers(self, bound: BoundQuery) -> tuple[Origin, ...]:
        """The rows that are read which an answer depends on, in terms of its columns."""
        return tuple(dict.fromkeys(base for origin in bound.origins for base in self._resolved(origin)))

    def _resolved(self, origin: Origin) -> Iterator[Origin]:
        stream = self._catalog.stream(origin.stream)
        if stream is None or not is_of_answers(stream):
            yield origin
            return
        keys = (key.name.lower() for key in stream.keys)
        names: dict[str, str | None] = dict(zip(keys, origin.keys, strict=True))
        time = stream.time.name.lower()
        for base in self.of_rows(stream):
            # Only the key and the time of an event are known here, not its values.
            begins = base.since == time and origin.since is not None
            yield Origin(
                base.stream,
                tuple(None if key is None else names.get(key) for key in base.keys),
                origin.since if begins else None,
                origin.until if base.until == time else None,
                base.before + origin.before if begins else 0.0,
            )


def are_disjoint(stream: Stream, origins: Iterable[Origin]) -> bool:
    """Whether any two rows of a stream, which differ in key or time, depend on different rows that are read."""
    time, keys = stream.time.name.lower(), {key.name.lower() for key in stream.keys}
    seen: set[str] = set()
    for origin in origins:
        of_one_instant = origin.since == origin.until == time and origin.before == 0
        if not of_one_instant or set(origin.keys) != keys or origin.stream in seen:
            return False
        seen.add(origin.stream)
    return True


# ---------------------------------------------------------------- what a query combines


def dependence(bound: BoundQuery, lineages: Lineages, findings: Findings) -> Bounded | None:
    """Why a query combines rows that are not independent; None if all are. Reports what cannot be bounded."""
    if not bound.combines_rows or not any(map(is_of_answers, bound.streams)):
        return None
    origins = {stream.name.lower(): lineages.of_rows(stream) for stream in bound.streams}
    bounded = _dependence_of_events(bound, origins, findings) if bound.operands_of_events else None
    if not bound.operands_of_events:
        why = next(_dependent_rows(bound.streams, origins), None)
        bounded = None if why is None else Bounded(why)
    if bounded is not None and bound.per is not None:
        message = f"{bounded.why}, and rows of several such answers have no known probability"
        findings.add("no-per", message, bound.span, "remove PER, or declare the answers with MODEL CERTAIN")
    return bounded


def _dependence_of_events(
    bound: BoundQuery, origins: Mapping[str, tuple[Origin, ...]], findings: Findings
) -> Bounded | None:
    """Why the events of an answer are not independent."""
    _check_uncounted(bound, origins, findings)
    _check_unread(bound, origins, findings)
    for one, other in combinations(bound.combined_events, 2):
        shared = _shared(one.stream, other.stream, origins)
        if shared is not None:
            why = f"{one.label} and {other.label} may depend on the same rows of {shared}"
            events = (
                (operand.label, _probability(operand.stream), origins[operand.stream.name.lower()])
                for operand in bound.combined_events
            )
            return Bounded(why, tuple(events))
    return None


def _probability(stream: Stream) -> str | None:
    return stream.probability if stream.model is Model.INDEPENDENT else None


def _dependent_rows(streams: tuple[Stream, ...], origins: Mapping[str, tuple[Origin, ...]]) -> Iterator[str]:
    """Why rows of these streams are not independent."""
    for stream in streams:
        if is_of_answers(stream) and not are_disjoint(stream, origins[stream.name.lower()]):
            shared = ", ".join(dict.fromkeys(origin.stream for origin in origins[stream.name.lower()]))
            yield f"rows of {stream.name} depend on the same rows of {shared}"
    for one, other in combinations(streams, 2):
        shared_stream = _shared(one, other, origins)
        if shared_stream is not None:
            yield f"rows of {one.name} and {other.name} depend on the same rows of {shared_stream}"


def _shared(one: Stream, other: Stream, origins: Mapping[str, tuple[Origin, ...]]) -> str | None:
    """A stream whose rows two events may both depend on, if one of them is an answer."""
    if not is_of_answers(one) and not is_of_answers(other):
        return None
    first, second = (origins[stream.name.lower()] for stream in (one, other))
    if one.name.lower() == other.name.lower() and are_disjoint(one, first):
        return None
    return next((origin.stream for origin in first if origin.stream in {base.stream for base in second}), None)


def _check_unread(bound: BoundQuery, origins: Mapping[str, tuple[Origin, ...]], findings: Findings) -> None:
    """Report answers that depend on what the query itself is uncertain about, besides its events."""
    for operand in bound.combined_events:
        base = {origin.stream for origin in origins[operand.stream.name.lower()]}
        shared = sorted(base & bound.unread) if is_of_answers(operand.stream) else []
        if shared:
            message = f"{shown(operand.label)} depends on readings of {shared[0]}, and so does the score of this query"
            hint = f"declare {operand.stream.name} with MODEL CERTAIN and a THRESHOLD in its query"
            findings.add("dependent-events", message, operand.span, hint)


def _check_uncounted(bound: BoundQuery, origins: Mapping[str, tuple[Origin, ...]], findings: Findings) -> None:
    """Report operands whose events are not all in the answers, if these events are not independent of all others."""
    listed = {operand.name for operand in bound.combined_events}
    for operand in bound.operands_of_events:
        if operand.name in listed:
            continue
        others = (other.stream for other in bound.operands_of_events if other is not operand)
        own = operand.stream
        alone = not is_of_answers(own) or are_disjoint(own, origins[own.name.lower()])
        if not alone or any(_shared(own, other, origins) is not None for other in others):
            message = (
                f"the events of {shown(operand.label)} depend on each other or on other events, "
                f"so their absence or number has no known probability"
            )
            hint = f"declare {own.name} with MODEL CERTAIN and a THRESHOLD in its query, or use single events"
            findings.add("dependent-events", message, operand.span, hint)
