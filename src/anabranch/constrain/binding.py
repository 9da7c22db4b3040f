"""CONSTRAIN: variables, some standing for several interchangeable events, and the conditions between them."""

from __future__ import annotations

from dataclasses import replace

from anabranch.binding.conditions import ARITIES, ConditionBinder
from anabranch.binding.queries import OperandScope, QueryBinder, check_column_types, known
from anabranch.binding.typed import Reference, Typed, conjuncts, walk, with_references
from anabranch.catalog import Model, Stream
from anabranch.constrain.arguments import check_functions
from anabranch.constrain.query import STRATEGIES, BoundConstrain, BoundCounted
from anabranch.constrain.syntax import Constrain
from anabranch.language import limits, nodes
from anabranch.language.findings import listed, shown


class Binder(QueryBinder):
    """Binds one CONSTRAIN."""

    kind = "CONSTRAIN"
    models = (Model.CERTAIN,)
    answer_columns = frozenset({"t", "probability"})
    takes_durations = True

    def bind(self, query: Constrain) -> BoundConstrain | None:
        """The bound query, None where the findings say why there is none."""
        streams = self.operands([(counted.name, counted.span) for counted in query.names], query.operands)
        for stream in streams.values():
            if stream is not None:
                check_column_types(stream, self.findings, declared=False)
        self.check_clauses(query)
        conditions = self.conditions(query, streams)
        if self.findings:
            return None
        variables = tuple(
            BoundCounted(node.name, node.name.lower(), known(streams, node.name), node.count, span=node.span)
            for node in query.names
        )
        return BoundConstrain(
            self.query.name, variables, conditions, self.threshold, self.query.span, query.strategy
        )  # fmt: skip

    def check_clauses(self, query: Constrain) -> None:
        """How many events a variable stands for, and the word after STRATEGY."""
        for counted in query.names:
            if not 1 <= counted.count <= limits.MAX_COUNT:
                message = (
                    f"{shown(counted.name)} stands for {counted.count} events, and 1 to {limits.MAX_COUNT} are allowed"
                )
                self.findings.add("out-of-range", message, counted.span, f"write {counted.name}*5")
        if query.strategy is not None and query.strategy not in STRATEGIES:
            message, hint = f"there is no strategy {shown(query.strategy)}", f"they are {listed(STRATEGIES, 'and')}"
            self.findings.add("unknown-strategy", message, query.place("STRATEGY"), hint)

    def conditions(self, query: Constrain, streams: dict[str, Stream | None]) -> tuple[Typed, ...]:
        """The conjuncts of WHERE.

        Each is bound by itself, because the mentions of a counted variable are counted in what the user wrote:
        `v.kind IN ('A', 'B')` names v once, though it becomes two comparisons.
        """
        counted = {node.name.lower() for node in query.names if node.count > 1}
        where = query.where
        parts = where.items if isinstance(where, nodes.And) else () if where is None else (where,)
        bound: list[Typed] = []
        for part in parts:
            scope = OperandScope(self.kind, streams, self.findings, functions=tuple(ARITIES), counted=counted)
            bound.extend(conjuncts(ConditionBinder(self.catalog, self.findings, scope).condition(part)))
        for condition in bound:
            check_functions(condition, streams, self.findings)
        return tuple(_with_first_mentions(condition) for condition in bound)


def _with_first_mentions(condition: Typed) -> Typed:
    """The condition without second mentions of variables that it does not mention first.

    What names v twice may fall into conjuncts that name it once, and these hold for each event:
    `3 BETWEEN v.low AND v.high` does.
    """
    first = {node.owner for node in walk(condition) if isinstance(node, Reference) and node.mention == 1}
    return with_references(condition, lambda each: each if each.owner in first else replace(each, mention=1))
