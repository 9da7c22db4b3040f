"""Scopes resolve the names in a condition."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from anabranch.binding.stream_columns import find_column, named_columns
from anabranch.binding.typed import Reference
from anabranch.catalog import Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.types import Type


class Scope(Protocol):
    """Resolves the names in a condition; each method reports an unknown name and then returns None."""

    #: The functions that a condition may call, in upper case.
    functions: Collection[str]

    def variable(self, node: nodes.Variable) -> Reference | None:
        """Resolve a bare name as a value."""

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        """Resolve a column of a component or operand."""

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        """Resolve a bare name as a whole event; if `spatial`, its stream must have a SPACE."""


class RowScope:
    """The names in a condition on the rows of one stream: `speed` is a column of the stream."""

    functions: Collection[str] = ("ABS",)

    def __init__(self, stream: Stream, findings: Findings) -> None:
        self.stream, self.findings = stream, findings

    def variable(self, node: nodes.Variable) -> Reference | None:
        """Resolve a column of the stream."""
        return self.column(node.name, node)

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        """Resolve a column with the name of the stream before it."""
        if node.owner.lower() != self.stream.name.lower() or node.default is not None:
            message = f"there is no name {shown(node.owner)} in this condition"
            self.findings.add("unknown-name", message, node.span, f"write {node.name}")
            return None
        return self.column(node.name, node)

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        """No function of these conditions takes a whole event."""
        return None

    def column(self, name: str, node: nodes.Node) -> Reference | None:
        """A column of the stream."""
        column = find_column(self.stream, name)
        if column is None:
            names = list(named_columns(self.stream))
            hint = f"its columns are {listed(names, 'and')}"
            self.findings.unknown("column", name, names, node.span, hint, f"stream {self.stream.name}")
            return None
        return Reference(None, column.name.lower(), column.type, None, node.span)


class OperandScope:
    """The names in a condition over operands: `x.tag` is a column of the stream of x.

    Parameters
    ----------
    kind : str
        The kind of the query, for messages.
    streams : dict
        The stream of each operand by lower-case name; None if the stream is unknown.
    functions : collection of str
        The functions that a condition may call.
    allows_defaults : bool
        Whether `x.tag['none']` is allowed.
    counted : collection of str
        The names that stand for several interchangeable events (`v*5`).
    """

    def __init__(
        self,
        kind: str,
        streams: dict[str, Stream | None],
        findings: Findings,
        functions: Collection[str] = ("ABS",),
        allows_defaults: bool = False,
        counted: Collection[str] = (),
    ) -> None:
        self.kind = kind
        self.streams = streams
        self.findings = findings
        self.functions = functions
        self.allows_defaults = allows_defaults
        self.counted = counted
        self.mentions: dict[str, int] = {}

    def variable(self, node: nodes.Variable) -> Reference | None:
        """Report a bare name: it is no value in these queries."""
        if node.name.lower() in self.streams:
            message, hint = f"{shown(node.name)} is an event, not a value", f"name a column: {node.name}.column"
            self.findings.add("not-a-value", message, node.span, hint)
        else:
            owners = listed(f"{name}.{node.name}" for name in list(self.streams)[:3])
            message = f"there is no name {shown(node.name)} in this {self.kind}"
            self.findings.add("unknown-name", message, node.span, f"write {owners}")
        return None

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        """Resolve a column of the stream of an operand."""
        if node.default is not None and not self.allows_defaults:
            message = f"only SEQUENCE allows a default for a missing event, not {self.kind}"
            self.findings.add("no-default", message, node.span, "remove the [...]")
        stream = self.stream_of(node.owner, node.span)
        if stream is None:
            return None
        column = find_column(stream, node.name)
        if column is None:
            names = list(named_columns(stream))
            hint = f"its columns are {listed(names, 'and')}"
            self.findings.unknown("column", node.name, names, node.span, hint, f"stream {stream.name}")
            return None
        owner = node.owner.lower()
        return Reference(owner, column.name.lower(), column.type, None, node.span, self.mention(owner, node.span))

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        """Resolve a whole event; if `spatial`, its stream must have a SPACE."""
        stream = self.stream_of(node.name, node.span)
        if stream is None:
            return None
        if spatial and stream.declaration.space is None:
            message = f"stream {stream.name} has no SPACE, so its events have no location"
            self.findings.add("no-space", message, node.span, f"add SPACE (x, y) to CREATE STREAM {stream.name}")
            return None
        owner = node.name.lower()
        mention = self.mention(owner, node.span)
        if spatial and stream.shape is not None:
            return Reference(owner, stream.shape.name.lower(), stream.shape.type, None, node.span, mention)
        return Reference(owner, "*", Type.UNKNOWN, None, node.span, mention)

    def stream_of(self, name: str, span: Span) -> Stream | None:
        """The stream of the operand called `name`."""
        if name.lower() not in self.streams:
            hint = f"its names are {listed(self.streams, 'and')}"
            self.findings.unknown("name", name, self.streams, span, hint, f"this {self.kind}")
        return self.streams.get(name.lower())

    def mention(self, owner: str, span: Span) -> int:
        """1 for the first mention of an operand in a condition, 2 for the second one of a counted operand."""
        if owner not in self.counted:
            return 1
        self.mentions[owner] = count = self.mentions.get(owner, 0) + 1
        if count == 3:
            message = f"this condition names {shown(owner)}, which stands for several events, more than twice"
            hint = "name it once (each event) or twice (every pair), and split the condition with AND"
            self.findings.add("counted-thrice", message, span, hint)
        return min(count, 2)
