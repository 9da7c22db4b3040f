"""Binds combinations of PATTERN queries: finds the operands, and checks that they have the same groups."""

from __future__ import annotations

from collections.abc import Callable

from anabranch.catalog import Catalog, Column, Query, Relation, Stream
from anabranch.errors import Span
from anabranch.language import nodes
from anabranch.language.findings import Findings, shown
from anabranch.language.types import comparable
from anabranch.language.unparse import unparse
from anabranch.pattern.combination import Combination, Formula, NamedQuery
from anabranch.pattern.query import BoundCombination, BoundPattern, Connective, Truth
from anabranch.pattern.safe_plan import common_positions, is_independent

#: The most distinct operands: a group of several chains has a probability for each set of operands.
MOST_OPERANDS = 8


class Combining:
    """Binds one combination.

    Parameters
    ----------
    name : of the combination
    catalog, findings
    bind : binds an operand; None if it has errors
    """

    def __init__(
        self,
        name: str,
        catalog: Catalog,
        findings: Findings,
        bind: Callable[[nodes.CreateQuery], BoundPattern | None],
    ) -> None:
        self._name = name
        self._catalog = catalog
        self._findings = findings
        self._bind = bind
        #: The operands by lower-case name, and their texts.
        self._operands: dict[str, BoundPattern] = {}
        self._definitions: dict[str, str] = {}

    def bind(self, body: Combination) -> BoundCombination | None:
        """The combination without its clauses; None if there are findings."""
        formula = self._formula(body.formula)
        given = None if body.given is None else self._formula(body.given)
        if formula is None or (body.given is not None and given is None):
            return None
        operands = tuple(self._operands.values())
        if len(operands) > MOST_OPERANDS:
            message = f"a combination has at most {MOST_OPERANDS} queries, this one has {len(operands)}"
            self._findings.add("too-many-operands", message, body.span, "split it into several combinations")
            return None
        goals = tuple(goal for operand in operands for goal in operand.goals)
        return BoundCombination(
            self._name, goals, operands[0].group_by, operands=operands, formula=formula, given=given,
            definitions=tuple(self._definitions.values()),
        )  # fmt: skip

    def _formula(self, node: Formula) -> Truth | None:
        """The formula over operand numbers; None if an operand is invalid."""
        if isinstance(node, NamedQuery):
            return self._named(node)
        parts = [self._formula(part) for part in node.parts]
        known = tuple(part for part in parts if part is not None)
        return Connective(node.op, known) if len(known) == len(parts) else None

    def _named(self, node: NamedQuery) -> Truth | None:
        query = self._query(node)
        if query is None:
            return None
        if query.name.lower() in self._operands:
            return list(self._operands).index(query.name.lower())
        bound = self._bind(query)
        if bound is None:
            return None
        if not isinstance(bound, BoundCombination):
            return self._operand(query.name.lower(), bound, unparse(query.body), node.span)
        if bound.given is not None:
            message = f"query {shown(query.name)} has a GIVEN, which stands outermost only"
            self._findings.add("given-inside", message, node.span, "combine its operands, and write GIVEN here")
            return None
        numbers = [
            self._operand(operand.name.lower(), operand, text, node.span)
            for operand, text in zip(bound.operands, bound.definitions, strict=True)
        ]
        known = [number for number in numbers if number is not None]
        return _renumbered(bound.formula, known) if len(known) == len(numbers) else None

    def _query(self, node: NamedQuery) -> nodes.CreateQuery | None:
        """The declaration of an operand; report a name that is no PATTERN query, and one that has PER."""
        entry = self._catalog.get(node.name)
        if isinstance(entry, Stream | Relation):
            message = f"{shown(node.name)} is a {entry.declaration.what}, but a combination takes queries"
            self._findings.add("not-a-query", message, node.span, "declare a query over it: CREATE QUERY ... PATTERN")
            return None
        if entry is None:
            names = self._catalog.names((Query,))
            self._findings.unknown("query", node.name, names, node.span, "declare it with CREATE QUERY")
            return None
        query = entry.declaration
        if query.body.kind != "PATTERN":
            message = f"query {shown(node.name)} is a {query.body.kind}, but a combination takes PATTERN queries"
            self._findings.add("not-a-pattern", message, node.span, "combine PATTERN queries only")
            return None
        if query.per is not None:
            message = f"query {shown(node.name)} has PER, so it has no truth at an instant"
            self._findings.add("operand-per", message, node.span, "combine a query without PER")
            return None
        return query

    def _operand(self, name: str, bound: BoundPattern, text: str, span: Span) -> int | None:
        """The number of an operand; None if its groups are not those of the others."""
        if name not in self._operands:
            if not self._has_keys(bound, span) or not all(
                self._same_groups(other, bound, span) for other in self._operands.values()
            ):
                return None
            self._operands[name] = bound
            self._definitions[name] = text
        return list(self._operands).index(name)

    def _has_keys(self, operand: BoundPattern, span: Span) -> bool:
        """Report a grouping variable that is not a key of every goal: its groups would have no first instant."""
        for written, variable in operand.group_by:
            if not is_independent(operand.goals, variable):
                message = f"{operand.name} is grouped by {shown(written)}, which is not the same key of all its goals"
                self._findings.add("operand-group", message, span, "GROUP BY keys that all goals share")
                return False
        return True

    def _same_groups(self, first: BoundPattern, second: BoundPattern, span: Span) -> bool:
        """Report operands with different grouping variables, or whose variables are different keys."""
        groups = [tuple(written for written, _ in operand.group_by) for operand in (first, second)]
        variables = [{variable for _, variable in operand.group_by} for operand in (first, second)]
        if variables[0] != variables[1]:
            texts = [f"grouped by {', '.join(names)}" if names else "not grouped" for names in groups]
            message = f"{first.name} is {texts[0]}, but {second.name} is {texts[1]}"
            self._findings.add("operand-group", message, span, "write the same GROUP BY in both")
            return False
        for variable in sorted(variables[0]):
            mismatch = _different_keys(first, second, variable)
            if mismatch is not None:
                message = f"{shown(variable)} is {mismatch}"
                self._findings.add("operand-group", message, span, "group both queries by the same key")
                return False
        return True


def _different_keys(first: BoundPattern, second: BoundPattern, variable: str) -> str | None:
    """How a grouping variable of two operands differs; None if they can have the same groups."""
    keys = [_keys(operand, variable) for operand in (first, second)]
    for stream in keys[0].keys() & keys[1].keys():
        one, other = keys[0][stream], keys[1][stream]
        if one.name != other.name:
            return f"the key {one.name} of {stream} in {first.name}, but the key {other.name} in {second.name}"
    for one in keys[0].values():
        for other in keys[1].values():
            if not comparable(one.type, other.type):
                return f"{one.type.value} in {first.name}, but {other.type.value} in {second.name}"
    return None


def _keys(operand: BoundPattern, variable: str) -> dict[str, Column]:
    """The key column that a grouping variable is, by stream."""
    return {
        stream.name: stream.keys[common_positions(operand.goals, stream, (variable,))[0]] for stream in operand.streams
    }


def _renumbered(formula: Truth, numbers: list[int]) -> Truth:
    """The formula of an operand that is a combination, with the numbers of this one's operands."""
    if isinstance(formula, int):
        return numbers[formula]
    return Connective(formula.op, tuple(_renumbered(part, numbers) for part in formula.parts))
