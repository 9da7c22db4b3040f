"""CONSTRAIN: variables, some standing for several interchangeable events, and the conditions between them."""

from __future__ import annotations

from anabranch.catalog import Stream
from anabranch.language import limits, nodes
from anabranch.language.bound import BoundConstrain, BoundCounted
from anabranch.language.conditions import ARITIES, ConditionBinder
from anabranch.language.findings import shown
from anabranch.language.questions import OperandScope, QuestionBinder, known
from anabranch.language.typed import Typed, conjuncts


class ConstrainBinder(QuestionBinder):
    """Binds one CONSTRAIN."""

    kind = "CONSTRAIN"

    def bind(self, question: nodes.Constrain) -> BoundConstrain | None:
        """The bound question, None where the findings say why there is none."""
        streams = self.operands([(counted.name, counted.span) for counted in question.names], question.operands)
        for counted in question.names:
            if not 1 <= counted.count <= limits.MAX_COUNT:
                message = (
                    f"{shown(counted.name)} stands for {counted.count} events, and 1 to {limits.MAX_COUNT} are allowed"
                )
                self.findings.add("out-of-range", message, counted.span, f"write {counted.name}*5")
        conditions = self.conditions(question, streams)
        if self.findings:
            return None
        variables = tuple(
            BoundCounted(node.name, node.name.lower(), known(streams, node.name), node.count, span=node.span)
            for node in question.names
        )
        return BoundConstrain(self.query.name, variables, conditions, self.threshold, self.query.span)

    def conditions(self, question: nodes.Constrain, streams: dict[str, Stream | None]) -> tuple[Typed, ...]:
        """The conjuncts of WHERE.

        Each is bound by itself, because the mentions of a counted variable are counted in what the user wrote:
        `v.kind IN ('A', 'B')` names v once, though it becomes two comparisons.
        """
        counted = {node.name.lower() for node in question.names if node.count > 1}
        where = question.where
        parts = where.items if isinstance(where, nodes.And) else () if where is None else (where,)
        bound: list[Typed] = []
        for part in parts:
            scope = OperandScope(self.kind, streams, self.findings, functions=tuple(ARITIES), counted=counted)
            bound.extend(conjuncts(ConditionBinder(self.catalog, self.findings, scope).condition(part)))
        return tuple(bound)
