"""The base class of the binders of the five kinds: resolves streams and operands, and checks clauses."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

from anabranch.binding.bound import CALIBRATED, BoundQuery
from anabranch.binding.conditions import ConditionBinder
from anabranch.binding.durations import checked_duration
from anabranch.binding.per import COLUMNS, Per, bound_per, check_time_type, in_zone
from anabranch.binding.scopes import OperandScope
from anabranch.binding.typed import Typed
from anabranch.catalog import Catalog, Model, Query, Relation, Stream
from anabranch.errors import Span
from anabranch.kinds import KINDS, load_kind_module
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown

#: Returns the query whose answers a stream has, and its text; None if it has none.
Inner = Callable[[Stream], tuple[BoundQuery, str] | None]


class QueryBinder(ABC):
    """Base class of the binders in `binding.py` of each kind; one instance binds one query."""

    #: The keyword of the kind.
    kind: ClassVar[str]
    #: The models of the streams that the kind takes.
    models: ClassVar[tuple[Model, ...]]
    #: The columns of every answer of the kind; names in the query must differ from them.
    answer_columns: frozenset[str]
    #: The forms of PER that the kind takes.
    takes_per: ClassVar[tuple[type[Per], ...]] = ()
    #: Why it does not take the others, for the message.
    why_not_per: ClassVar[str] = ""
    #: Whether the kind takes events with a duration.
    takes_durations: ClassVar[bool] = False
    #: Whether a condition may have a window: `a.x < b.x WITHIN 3`.
    allows_windows: ClassVar[bool] = False

    def __init__(self, query: nodes.CreateQuery, catalog: Catalog, findings: Findings) -> None:
        self.query = query
        self.catalog = catalog
        self.findings = findings
        threshold = self.ratio("THRESHOLD", query.threshold, 0.0, query.clause_span("THRESHOLD"))
        self.per = self.bound_per(query.per, threshold)
        #: The lowest probability of an answer; with PER, THRESHOLD applies to rows of several answers.
        self.threshold = threshold if self.per is None else self.per.least
        if query.limit is not None and query.limit < 1:
            span = query.clause_span("ORDER BY")
            findings.add("out-of-range", f"LIMIT must be 1 or more, not {query.limit}", span, "write LIMIT 10")

    @abstractmethod
    def bind(self, body: Any) -> BoundQuery | None:
        """Return the bound query, or None if there are findings."""

    def bind_query(self) -> BoundQuery | None:
        """Return the bound query with the clauses of its rows, or None if there are findings."""
        bound = self.bind(self.query.body)
        if bound is None:
            return None
        if self.per is not None:
            span = self.query.clause_span("PER")
            check_time_type(self.per, bound.streams[0], span, self.findings)
            self.per = in_zone(self.per, bound.streams, span, self.findings)
        return None if self.findings else replace(bound, per=self.per, limit=self.query.limit)

    def as_one(self, bound: BoundQuery, inner_of: Inner) -> BoundQuery | None:
        """The query and those whose answers it reads as one, whose probabilities are exact; None if there is none."""
        return None

    # ------------------------------------------------------------ rows of several answers

    def bound_per(self, node: nodes.Per | None, threshold: float) -> Per | None:
        """Bind PER; report a form that the kind does not take."""
        if node is None:
            return None
        above = node.above if isinstance(node, nodes.PerEpisode) else None
        least = self.ratio("ABOVE", above, 0.0, node.span)
        if least == 1:
            message = "no probability is above 1, so PER EPISODE ABOVE 1 has no rows"
            self.findings.add("out-of-range", message, node.span, "write a fraction such as 0.5")
        per = bound_per(node, threshold, least, self.findings)
        if type(per) not in self.takes_per:
            taken = listed(f"PER {form.form}" for form in self.takes_per)
            message = f"{self.kind} does not take PER {per.form}{self.why_not_per}"
            self.findings.add("no-per", message, node.span, f"use {taken}" if taken else "remove it")
        return per

    # ------------------------------------------------------------ numbers

    def ratio(
        self, clause: str, value: int | float | None, default: float, span: Span, open_ends: bool = False
    ) -> float:
        """Return the value, or the default if it is None; report a value outside [0, 1], or (0, 1) if `open_ends`."""
        if value is None:
            return default
        if not 0 <= value <= 1 or (open_ends and value in (0, 1)):
            interval = "above 0 and below 1" if open_ends else "between 0 and 1"
            message = f"{clause} must be {interval}, not {value}"
            self.findings.add("out-of-range", message, span, "write a fraction such as 0.5")
            return default
        return float(value)

    def duration(self, clause: str, node: nodes.Duration | None, positive: bool = False) -> float | None:
        """Return the duration in the unit of the time column, or None if the clause is not written."""
        return None if node is None else checked_duration(self.findings, clause, node, positive)

    # ------------------------------------------------------------ streams and operands

    def stream(self, name: str, span: Span) -> Stream | None:
        """Return the stream called `name`; report a name that is no stream, or a stream that the kind does not take."""
        entry = self.catalog.get(name)
        if isinstance(entry, Stream):
            self.check_model(entry, span)
            return entry
        if isinstance(entry, Relation):
            message = f"{shown(name)} is a relation, but {self.kind} takes streams"
            self.findings.add("not-a-stream", message, span, f"use it in a condition: {name}(...)")
        elif isinstance(entry, Query):
            message = f"{shown(name)} is a query, but {self.kind} takes streams"
            hint = f"declare a stream of its answers: CREATE STREAM ... FROM QUERY {name}"
            self.findings.add("not-a-stream", message, span, hint)
        else:
            self.findings.unknown("stream", name, self.catalog.names((Stream,)), span, "declare it with CREATE STREAM")
        return None

    def check_model(self, stream: Stream, span: Span) -> None:
        """Report a stream that this kind does not take."""
        if stream.model not in self.models:
            kinds = [kind for kind in KINDS if stream.model in load_kind_module(kind, "binding").Binder.models]
            allowed = listed(model.value for model in self.models)
            message = f"{self.kind} takes {allowed} streams, but {shown(stream.name)} is {stream.model.value}"
            self.findings.add("wrong-model", message, span, f"use {listed(kinds)}")
        elif stream.start is not None and stream.model is Model.CERTAIN and not self.takes_durations:
            duration = f"has events with a duration, TIME ({stream.start.name}, {stream.time.name})"
            message = f"{self.kind} takes point events, but {shown(stream.name)} {duration}"
            hint = f"use CONSTRAIN, or declare the stream with TIME {stream.time.name}"
            self.findings.add("event-duration", message, span, hint)

    def operands(
        self, names: Iterable[tuple[str, Span]], operands: tuple[nodes.Operand, ...]
    ) -> dict[str, Stream | None]:
        """Return the stream of each name of the query, by lower-case name; None if it is unknown.

        One operand without AS is the stream of all names; otherwise every name needs a `stream AS name`.
        """
        labels = self.distinct(names)
        first = operands[0]
        if len(operands) == 1 and first.alias is None and first.stream.lower() not in labels:
            stream = self.stream(first.stream, first.span)
            return dict.fromkeys(labels, stream)
        streams: dict[str, Stream | None] = {}
        for operand in operands:
            alias = operand.alias or operand.stream
            stream = self.stream(operand.stream, operand.span)
            if alias.lower() in streams:
                self.findings.add("name-twice", f"FROM names {shown(alias)} twice", operand.span, "remove one of them")
            elif alias.lower() not in labels:
                self.report_unused(operand, labels)
            streams[alias.lower()] = stream
        for name, (label, span) in labels.items():
            if name not in streams:
                message = f"FROM has no stream for {shown(label)}"
                self.findings.add("no-stream", message, span, f"add `stream AS {label}` to FROM")
        return {name: streams.get(name) for name in labels}

    def report_unused(self, operand: nodes.Operand, labels: dict[str, tuple[str, Span]]) -> None:
        """Report an operand of FROM that the query does not name."""
        names = [label for label, _ in labels.values()]
        if operand.alias is None:
            message = f"FROM has several operands, but {shown(operand.stream)} has no AS"
            hint = f"write `{operand.stream} AS name`, where name is {listed(names)}"
            self.findings.add("no-alias", message, operand.span, hint)
        else:
            where, hint = f"this {self.kind}", f"its names are {listed(names, 'and')}"
            self.findings.unknown("name", operand.alias, names, operand.span, hint, where)

    def distinct(self, names: Iterable[tuple[str, Span]]) -> dict[str, tuple[str, Span]]:
        """Return the names by lower-case name; report repeated names and names of answer columns."""
        labels: dict[str, tuple[str, Span]] = {}
        for label, span in names:
            if label.lower() in labels:
                self.findings.add("name-twice", f"the name {shown(label)} is used twice", span, "use distinct names")
            self.check_answer_column(label, span)
            labels.setdefault(label.lower(), (label, span))
        return labels

    def check_answer_column(self, label: str, span: Span) -> None:
        """Report a name that is also a column of every answer."""
        columns = {*self.answer_columns, *(() if self.per is None else COLUMNS[type(self.per)])}
        if label.lower() in columns or (label.lower() == CALIBRATED and self.query.calibrated is not None):
            message = f"{self.kind} answers already have a column {shown(label)}"
            self.findings.add("answer-column", message, span, "use another name")

    def condition(self, node: nodes.Expr | None, scope: OperandScope) -> Typed | None:
        """Bind the WHERE of a query over operands; None if it is not written or invalid."""
        binder = ConditionBinder(self.catalog, self.findings, scope, self.allows_windows)
        return None if node is None else binder.condition(node)


def known_stream(streams: Mapping[str, Stream | None], name: str) -> Stream:
    """The stream of a name in a query without findings."""
    stream = streams[name.lower()]
    if stream is None:  # impossible: an unknown stream is a finding
        raise LookupError(name)
    return stream
