"""RELATE: two quantified operands, and the union of simple relations that is asked of them."""

from __future__ import annotations

from collections.abc import Mapping

from anabranch.binding.queries import OperandScope, QueryBinder, known
from anabranch.binding.typed import Reference, Typed, walk
from anabranch.catalog import Model, Stream
from anabranch.language.findings import listed, shown
from anabranch.relate.query import COMPOSITE, SIMPLE, BoundQuantified, BoundRelate
from anabranch.relate.syntax import Relate


class Binder(QueryBinder):
    """Binds one RELATE."""

    kind = "RELATE"
    models = (Model.INTERVALS,)
    answer_columns = frozenset({"probability", "complement", "status"})

    def bind(self, query: Relate) -> BoundRelate | None:
        """The bound query, None where the findings say why there is none."""
        both = (query.first, query.second)
        streams = self.operands([(operand.name, operand.span) for operand in both], query.operands)
        for operand in both:
            if operand.at_least is not None and operand.at_least < 1:
                message = f"AT LEAST takes a number of segments from 1, and has {operand.at_least}"
                self.findings.add("out-of-range", message, operand.span, f"write SOME {operand.name} for at least one")
        where = self.condition(query.where, OperandScope(self.kind, streams, self.findings))
        self.check_keys(where, streams)
        timeout = self.duration("TIMEOUT", query.timeout, positive=True)
        if self.findings:
            return None
        first, second = (
            BoundQuantified(node.name, node.name.lower(), known(streams, node.name), node.at_least, span=node.span)
            for node in both
        )
        wanted = {simple for relation in query.relations for simple in COMPOSITE.get(relation, (relation,))}
        relations = tuple(relation for relation in SIMPLE if relation in wanted)
        return BoundRelate(
            self.query.name, first, relations, second, where, timeout, query.complement, self.threshold,
            self.query.span,
        )  # fmt: skip

    def check_keys(self, where: Typed | None, streams: Mapping[str, Stream | None]) -> None:
        """WHERE chooses pairs of entities, so it speaks of their keys: other columns differ from event to event."""
        for node in () if where is None else walk(where):
            if not isinstance(node, Reference) or node.owner is None:
                continue
            keys = [column.name for column in known(streams, node.owner).keys]
            if node.name not in [key.lower() for key in keys]:
                message = f"{shown(node.name)} belongs to single events, and WHERE chooses whole entities"
                self.findings.add("not-a-key", message, node.span, f"use the key: {listed(keys)}")
