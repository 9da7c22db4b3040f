"""Declarations of streams and relations that a query names without a CREATE statement, from their columns.

Columns are taken by name (`t`, `p`, `prev_<value>`, `seq`, coordinates), the others in their order: the key first. If
the columns leave a choice, the error has a CREATE STREAM statement to complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from anabranch.errors import AnabranchError
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.language.unparse import unparse

#: Names of coordinates, and whether they are degrees on the globe.
_COORDINATES = ((("x", "y"), False), (("lon", "lat"), True), (("longitude", "latitude"), True))


def declaration_of(name: str, columns: Mapping[str, Type], query: nodes.QueryBody) -> str:
    """The CREATE statement of an input of a query; one that the query does not use as a stream is a relation.

    Raises
    ------
    AnabranchError
        If the columns do not determine the declaration; the message has an example of one.
    """
    if name.lower() not in {stream.lower() for stream in query.stream_names}:
        return unparse(nodes.CreateRelation(name, _names(columns)))
    return unparse(_Layout(name, columns).stream(query.kind))


class _Layout:
    """The columns of one stream: those that are still to be assigned to KEY and VALUE, and those that are found."""

    def __init__(self, name: str, columns: Mapping[str, Type]) -> None:
        self.name = name
        self.rest = dict(columns)
        self.time = self._time()

    def _take(self, *names: str) -> tuple[str, ...]:
        """Columns of these names, in their spelling, if all of them are there; they are then assigned."""
        spelled = {column.lower(): column for column in self.rest}
        found = tuple(spelled[name] for name in names if name in spelled)
        if len(found) < len(names):
            return ()
        for column in found:
            del self.rest[column]
        return found

    def _time(self) -> str | None:
        times = self._take("t") or [name for name, kind in self.rest.items() if kind in (Type.TIMESTAMP, Type.DATE)]
        if len(times) != 1:
            return None
        self.rest.pop(times[0], None)
        return times[0]

    def stream(self, kind: str) -> nodes.CreateStream:
        """The declaration for a kind of query."""
        if self.time is None:
            raise self._unknown("it has no column t, and not exactly one TIMESTAMP or DATE column", self._declare())
        make = {"PATTERN": self._pattern, "RELATE": self._relate, "MONITOR": self._monitor}.get(kind, self._events)
        statement = make()
        if not statement.keys:
            raise self._unknown("no column is left for its key", replace(statement, keys=_names(["id"])))
        return statement

    def _declare(self, n_keys: int = 1) -> nodes.CreateStream:
        """The first columns as KEY, the others as VALUE."""
        names = list(self.rest)
        time = nodes.ColumnName(self.time or "t")
        return nodes.CreateStream(self.name, _names(names[:n_keys]), _names(names[n_keys:]), time)

    def _pattern(self) -> nodes.CreateStream:
        uncertain = self._take("p")
        values = [name for name in list(self.rest) if uncertain and self._take(f"prev_{name.lower()}")]
        if values:
            keys = [name for name in self.rest if name not in values]
            return replace(self._declare(), keys=_names(keys), values=_names(values), model="MARKOV")
        statement = replace(self._declare(), model="INDEPENDENT" if uncertain else None)
        if len(self.rest) > 2:
            raise self._unknown(f"any of {', '.join(self.rest)} can be a key or a value", statement)
        return statement

    def _events(self) -> nodes.CreateStream:
        for names, geodesic in _COORDINATES:
            space = self._take(*names)
            if space:
                return replace(self._declare(), space=space, geodesic=geodesic)
        return self._declare()

    def _relate(self) -> nodes.CreateStream:
        order = self._take("seq")
        statement = replace(self._declare(len(self.rest)), model="INTERVALS", order=order[0] if order else "seq")
        if not order:
            raise self._unknown("it has no column seq with the positions of events", statement)
        return statement

    def _monitor(self) -> nodes.CreateStream:
        values = [name for name in list(self.rest) if self._take(f"{name.lower()}_rate")]
        for name in values:
            self._take(f"{name.lower()}_accel")
        keys = [name for name in self.rest if name not in values]
        example = replace(
            self._declare(), keys=_names(keys), values=_names(values), model="PREDICTED",
            error=(nodes.ErrorBound(None, 10),), period=nodes.Duration(60, None),
        )  # fmt: skip
        raise self._unknown("no column has the ERROR and the PERIOD of its predictions", example)

    def _unknown(self, reason: str, example: nodes.CreateStream) -> AnabranchError:
        declare = f"declare it first, such as {unparse(example)};"
        return AnabranchError(f"the layout of {self.name} is not clear from its columns: {reason}; {declare}")


def _names(names: Iterable[str]) -> tuple[nodes.ColumnName, ...]:
    return tuple(map(nodes.ColumnName, names))
