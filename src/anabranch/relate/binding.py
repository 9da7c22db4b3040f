"""Binds RELATE queries: two quantified operands, and the simple relations between them."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.binding.per import PerKeys
from anabranch.binding.query_binder import QueryBinder, known_stream
from anabranch.binding.scopes import OperandScope
from anabranch.binding.typed import Reference, Typed, walk
from anabranch.catalog import Model, Stream
from anabranch.language.findings import listed, shown
from anabranch.relate.query import COMPOSITE, SIMPLE, BoundQuantified, BoundRelate
from anabranch.relate.syntax import Relate


class Binder(QueryBinder):
    """Binds one RELATE."""

    kind = "RELATE"
    models = (Model.INTERVALS,)
    answer_columns = frozenset({"probability", "complement", "expected", "distribution", "status"})
    takes_per = (PerKeys,)
    why_not_per = ", because its answers have no time"

    def bind(self, body: Relate) -> BoundRelate | None:
        """Return the bound query, or None if there are findings."""
        quantified = (body.first, body.second)
        streams = self.operands([(operand.name, operand.span) for operand in quantified], body.operands)
        for operand in quantified:
            if operand.at_most is None and operand.at_least is not None and operand.at_least < 1:
                message = f"AT LEAST must be 1 or more, not {operand.at_least}"
                self.findings.add("out-of-range", message, operand.span, f"write SOME {operand.name} for at least one")
        where = self.condition(body.where, OperandScope(self.kind, streams, self.findings))
        self.check_columns(where, streams)
        if body.count and self.per is not None:
            message = "PER KEYS and COUNT both have a column expected, with different meanings"
            self.findings.add("count-per", message, self.query.clause_span("COUNT"), "remove PER KEYS or COUNT")
        timeout = self.duration("TIMEOUT", body.timeout, positive=True)
        if self.findings:
            return None
        first, second = (
            BoundQuantified(
                node.name,
                node.name.lower(),
                known_stream(streams, node.name),
                node.at_least,
                node.at_most,
                span=node.span,
            )  # fmt: skip
            for node in quantified
        )
        simple = {name for relation in body.relations for name in COMPOSITE.get(relation, (relation,))}
        relations = tuple(relation for relation in SIMPLE if relation in simple)
        return BoundRelate(
            self.query.name, first, relations, second, where, timeout, body.complement,
            # A pair has one answer, so PER KEYS has a row for each answer.
            self.threshold if self.per is None else self.per.threshold, self.query.span, body.count,
        )  # fmt: skip

    def check_columns(self, where: Typed | None, streams: Mapping[str, Stream | None]) -> None:
        """Report columns in WHERE that are no keys and no values: an entity has the former, a segment the latter."""
        for node in () if where is None else walk(where):
            if not isinstance(node, Reference) or node.owner is None:
                continue
            stream = known_stream(streams, node.owner)
            columns = [column.name for column in (*stream.keys, *stream.values)]
            if node.name not in [column.lower() for column in columns]:
                message = f"WHERE in RELATE can only use KEY and VALUE columns, and {shown(node.name)} is neither"
                self.findings.add("not-a-key", message, node.span, f"use {listed(columns)}")
