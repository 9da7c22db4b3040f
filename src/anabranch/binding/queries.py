"""What binding the five kinds of query has in common: streams and their models, operands, ranges of numbers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar

from anabranch.binding.bound import BoundQuery
from anabranch.binding.conditions import ConditionBinder, a_type
from anabranch.binding.typed import Reference, Typed
from anabranch.catalog import Catalog, Column, Model, Query, Relation, Stream
from anabranch.errors import Span
from anabranch.kinds import KINDS, load_kind_module
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.temporal import amount_of
from anabranch.language.types import Type


class QueryBinder:
    """The base of the binders of the kinds (`binding.py` in their folders); one instance binds one query."""

    #: The keyword of the query.
    kind: ClassVar[str]
    #: The models whose streams it takes.
    models: ClassVar[tuple[Model, ...]]
    #: The columns of its answers that the user does not name; a name of the query cannot be one of them.
    answer_columns: ClassVar[frozenset[str]]
    #: Whether it takes events that last.
    takes_durations: ClassVar[bool] = False

    def __init__(self, query: nodes.CreateQuery, catalog: Catalog, findings: Findings) -> None:
        self.query = query
        self.catalog = catalog
        self.findings = findings
        self.threshold = self.ratio("THRESHOLD", query.threshold, 0.0, query.place("THRESHOLD"))

    def bind(self, query: Any) -> BoundQuery | None:
        """The bound query, None where the findings say why there is none."""
        raise NotImplementedError

    # ------------------------------------------------------------ numbers

    def ratio(self, what: str, value: int | float | None, default: float, span: Span, open_ends: bool = False) -> float:
        """The value, which must lie in [0, 1], or strictly between where `open_ends`."""
        if value is None:
            return default
        if not 0 <= value <= 1 or (open_ends and value in (0, 1)):
            where = "strictly between 0 and 1" if open_ends else "between 0 and 1"
            message = f"{what} must be {where}, and is {value}"
            self.findings.add("out-of-range", message, span, "write a fraction such as 0.5")
            return default
        return float(value)

    def duration(self, what: str, node: nodes.Duration | None, positive: bool = False) -> float | None:
        """The duration in the unit of the time column, None where it was not given."""
        return None if node is None else checked_duration(self.findings, what, node, positive)

    # ------------------------------------------------------------ streams and operands

    def stream(self, name: str, span: Span) -> Stream | None:
        """The stream called `name`, whose model must fit the query."""
        entry = self.catalog.get(name)
        if isinstance(entry, Stream):
            self.check_model(entry, span)
            return entry
        if isinstance(entry, Relation):
            message = f"{name} is a relation, and {self.kind} asks streams"
            self.findings.add("not-a-stream", message, span, f"ask it in a condition: {name}(...)")
        elif isinstance(entry, Query):
            message = f"{name} is a query, and {self.kind} asks streams"
            hint = f"declare a stream of it: CREATE STREAM ... FROM QUERY {name}"
            self.findings.add("not-a-stream", message, span, hint)
        else:
            self.findings.unknown("stream", name, self.catalog.names((Stream,)), span, "declare it with CREATE STREAM")
        return None

    def check_model(self, stream: Stream, span: Span) -> None:
        """Refuse a stream that this kind of query cannot ask."""
        if stream.model not in self.models:
            kinds = [kind for kind in KINDS if stream.model in load_kind_module(kind, "binding").Binder.models]
            wanted = listed(model.value for model in self.models)
            message = f"{self.kind} takes {wanted} streams, and {stream.name} is {stream.model.value}"
            self.findings.add("wrong-model", message, span, f"ask it with {listed(kinds)}")
        elif stream.start is not None and stream.model is Model.CERTAIN and not self.takes_durations:
            lasting = f"those of {stream.name} last from {stream.start.name} to {stream.time.name}"
            message = f"{self.kind} takes events that happen at an instant, and {lasting}"
            hint = f"ask it with CONSTRAIN, or declare it with TIME {stream.time.name}"
            self.findings.add("lasting-events", message, span, hint)

    def operands(self, names: Iterable[tuple[str, Span]], given: tuple[nodes.Operand, ...]) -> dict[str, Stream | None]:
        """The stream of each name of the query, by lower-case name; None where it is not known.

        One stream without AS serves all names; otherwise every name has its own `stream AS name`.
        """
        wanted = self.distinct(names)
        first = given[0]
        if len(given) == 1 and first.alias is None and first.stream.lower() not in wanted:
            stream = self.stream(first.stream, first.span)
            return dict.fromkeys(wanted, stream)
        found: dict[str, Stream | None] = {}
        for operand in given:
            alias = operand.alias or operand.stream
            stream = self.stream(operand.stream, operand.span)
            if alias.lower() in found:
                self.findings.add("name-twice", f"FROM names {shown(alias)} twice", operand.span, "keep one of them")
            elif alias.lower() not in wanted:
                self.unwanted(operand, wanted)
            found[alias.lower()] = stream
        for name, (label, span) in wanted.items():
            if name not in found:
                message = f"FROM does not say which stream {shown(label)} comes from"
                self.findings.add("no-stream", message, span, f"add `stream AS {label}` to FROM")
        return {name: found.get(name) for name in wanted}

    def unwanted(self, operand: nodes.Operand, wanted: dict[str, tuple[str, Span]]) -> None:
        """Note an operand of FROM that the query does not name."""
        names = [label for label, _ in wanted.values()]
        if operand.alias is None:
            message = f"FROM names several streams, and {shown(operand.stream)} without AS"
            hint = f"write `{operand.stream} AS name`, name one of {listed(names)}"
            self.findings.add("no-alias", message, operand.span, hint)
        else:
            where, hint = f"this {self.kind}", f"it names {listed(names, 'and')}"
            self.findings.unknown("name", operand.alias, names, operand.span, hint, where)

    def distinct(self, names: Iterable[tuple[str, Span]]) -> dict[str, tuple[str, Span]]:
        """The names by their lower case; one that is there twice, or is an answer column, is a finding."""
        wanted: dict[str, tuple[str, Span]] = {}
        for label, span in names:
            if label.lower() in wanted:
                self.findings.add("name-twice", f"{shown(label)} is named twice", span, "give each its own name")
            self.check_answer_column(label, span)
            wanted.setdefault(label.lower(), (label, span))
        return wanted

    def check_answer_column(self, label: str, span: Span) -> None:
        """Refuse a name that would give the answers two columns of one name."""
        if label.lower() in self.answer_columns:
            message = f"the answers of a {self.kind} have a column {shown(label)} already"
            self.findings.add("answer-column", message, span, "rename it")

    def condition(self, node: nodes.Expr | None, scope: OperandScope) -> Typed | None:
        """The WHERE of a query over operands."""
        return None if node is None else ConditionBinder(self.catalog, self.findings, scope).condition(node)


class OperandScope:
    """The names in a condition over operands: `x.tag` is a column of the stream of x."""

    def __init__(
        self,
        kind: str,
        streams: dict[str, Stream | None],
        findings: Findings,
        functions: Collection[str] = ("ABS",),
        defaults: bool = False,
        counted: Collection[str] = (),
    ) -> None:
        self.kind = kind
        self.streams = streams
        self.findings = findings
        self.functions = functions
        self.defaults = defaults
        self.counted = counted
        self.mentions: dict[str, int] = {}

    def variable(self, node: nodes.Variable) -> Reference | None:
        """A bare name is no value here."""
        if node.name.lower() in self.streams:
            message, hint = f"{shown(node.name)} is a whole event", f"name one of its columns: {node.name}.column"
            self.findings.add("not-a-value", message, node.span, hint)
        else:
            owners = listed(f"{name}.{node.name}" for name in list(self.streams)[:3])
            message = f"there is no {shown(node.name)} in this {self.kind}"
            self.findings.add("unknown-name", message, node.span, f"say whose column it is: {owners}")
        return None

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        """A column of an operand's stream."""
        if node.default is not None and not self.defaults:
            message = f"only a SEQUENCE has values for what is missing, and this is a {self.kind}"
            self.findings.add("no-default", message, node.span, "leave out the [...]")
        stream = self.owner(node.owner, node.span)
        if stream is None:
            return None
        column = find_column(stream, node.name)
        if column is None:
            names = list(named_columns(stream))
            hint = f"it has {listed(names, 'and')}"
            self.findings.unknown("column", node.name, names, node.span, hint, f"stream {stream.name}")
            return None
        owner = node.owner.lower()
        return Reference(owner, column.name.lower(), column.type, None, node.span, self.mention(owner, node.span))

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        """A whole event, which has a SPACE where a place is asked for."""
        stream = self.owner(node.name, node.span)
        if stream is None:
            return None
        if spatial and stream.declaration.space is None:
            message = f"the events of {stream.name} have no place in space"
            self.findings.add("no-space", message, node.span, f"add SPACE (x, y) to CREATE STREAM {stream.name}")
            return None
        owner = node.name.lower()
        mention = self.mention(owner, node.span)
        if spatial and stream.shape is not None:
            return Reference(owner, stream.shape.name.lower(), stream.shape.type, None, node.span, mention)
        return Reference(owner, "*", Type.UNKNOWN, None, node.span, mention)

    def owner(self, name: str, span: Span) -> Stream | None:
        """The stream of the operand called `name`."""
        if name.lower() not in self.streams:
            hint = f"it names {listed(self.streams, 'and')}"
            self.findings.unknown("name", name, self.streams, span, hint, f"this {self.kind}")
        return self.streams.get(name.lower())

    def mention(self, owner: str, span: Span) -> int:
        """Which of two interchangeable events is meant: the first mention in a condition, or the second."""
        if owner not in self.counted:
            return 1
        self.mentions[owner] = count = self.mentions.get(owner, 0) + 1
        if count == 3:
            message = f"this condition names {shown(owner)} more than twice, and it stands for several events"
            hint = "name it once (each event) or twice (every pair), and split with AND"
            self.findings.add("counted-thrice", message, span, hint)
        return min(count, 2)


def named_columns(stream: Stream) -> dict[str, Column]:
    """The columns of a stream by name; `t` and `t_from` also name the ends of an event that lasts.

    They do so unless the stream has a column of that name.
    """
    named = {column.name: column for column in stream.columns}
    if stream.start is not None:
        taken = {name.lower() for name in named}
        named |= {name: end for name, end in (("t", stream.time), ("t_from", stream.start)) if name not in taken}
    return named


def find_column(stream: Stream, name: str) -> Column | None:
    """The column of a stream that a condition calls `name`, found without case."""
    return next((column for own, column in named_columns(stream).items() if own.lower() == name.lower()), None)


#: The types of the columns of SPACE: of coordinates, and of geometries.
_COORDINATES = (Type.INTEGER, Type.DOUBLE, Type.UNKNOWN)
_GEOMETRIES = (Type.STRING, Type.BINARY, Type.UNKNOWN)


def check_column_types(stream: Stream, findings: Findings, declared: bool) -> None:
    """The columns of TIME have one type, those of SPACE a type that can be a place; what is predicted are numbers.

    A type that the workbook states is looked at where the stream is declared; one that the source turns out to
    have, where a query asks for the stream.
    """
    if stream.start is not None and (stream.start.declared and stream.time.declared) is declared:
        _check_times(stream, stream.start, stream.time, findings)
    for name in stream.declaration.space or ():
        column = find_column(stream, name)
        if column is not None and column.declared is declared:
            _check_place(stream, column, findings)
    if stream.model is Model.PREDICTED:
        for clause, what, names in (
            ("VALUE", "a predicted value", [value.name for value in stream.values]),
            ("ERROR", "an error", stream.error_columns),
        ):
            columns = (find_column(stream, name) for name in names)
            own = [column for column in columns if column is not None and column.declared is declared]
            _check_numbers(stream, clause, what, own, findings)


def _check_numbers(stream: Stream, clause: str, what: str, columns: Iterable[Column], findings: Findings) -> None:
    for column in columns:
        if not column.type.is_numeric:
            message = f"{what} is a number, and {shown(column.name)} is {a_type(column.type)}"
            findings.add(
                f"{clause.lower()}-type", message, stream.declaration.place(clause), "name a column of numbers"
            )


def _check_times(stream: Stream, start: Column, end: Column, findings: Findings) -> None:
    if start.type is end.type or Type.UNKNOWN in (start.type, end.type):
        return
    types = f"{shown(start.name)} is {a_type(start.type)}, and {shown(end.name)} {a_type(end.type)}"
    numbers = start.type.is_numeric and end.type.is_numeric
    hint = f"write TIME ({start.name}, {end.name}) DOUBLE" if numbers else "name two columns of one type"
    message = f"the columns of TIME must have one type: {types}"
    findings.add("time-type", message, stream.declaration.place("TIME"), hint)


def _check_place(stream: Stream, column: Column, findings: Findings) -> None:
    if stream.shape is None:
        what, fitting, hint = "a coordinate is a number", _COORDINATES, "name columns of numbers"
    else:
        what, fitting = "a geometry is a STRING or a BINARY", _GEOMETRIES
        hint = "name a column of well-known text or binary"
    if column.type not in fitting:
        message = f"{what}, and {shown(column.name)} is {a_type(column.type)}"
        findings.add("space-type", message, stream.declaration.place("SPACE"), hint)


def checked_duration(findings: Findings, what: str, node: nodes.Duration, positive: bool) -> float:
    """The duration as a number; one below 0, or 0 where it must be positive, is a finding."""
    amount = amount_of(node)
    if amount < 0 or (positive and amount == 0):
        message = f"{what} must be {'above 0' if positive else '0 or more'}, and is {node.amount}"
        findings.add("out-of-range", message, node.span, "write a duration such as 5 SECONDS")
    return float(amount)


def known(streams: Mapping[str, Stream | None], name: str) -> Stream:
    """The stream of a name once everything was found to be right."""
    stream = streams[name.lower()]
    if stream is None:  # cannot be: an unknown stream is a finding
        raise LookupError(name)
    return stream
