"""Binds conditions to typed trees: resolves names, checks types, and rewrites IN and BETWEEN into comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anabranch.binding.durations import checked_duration
from anabranch.binding.scopes import Scope
from anabranch.binding.shifted_times import compare_shifted, is_shifted, shifted_time
from anabranch.binding.type_rules import a_type, arithmetic_type, coerce_string, comparison_hint, constant_hint, type_of
from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed, walk
from anabranch.binding.words import count_of
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import Span
from anabranch.language import limits, nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.temporal import amount_of
from anabranch.language.types import Type, comparable

#: The number of arguments of each function.
ARITIES = {"ABS": 1, "DISTANCE": 2, "SPAN": 2, "WITHIN": 2, "CONTAINS": 2, "INTERSECTS": 2, "TOUCHES": 2}


class ConditionBinder:
    """Binds the conditions of one scope. An invalid part is reported once and becomes None, and so does its parent."""

    def __init__(self, catalog: Catalog, findings: Findings, scope: Scope, allows_windows: bool = False) -> None:
        self.catalog = catalog
        self.findings = findings
        self.scope = scope
        self.allows_windows = allows_windows

    def condition(self, node: nodes.Expr) -> Typed | None:
        """Bind a condition, which is true, false or NULL."""
        typed = self.expression(node)
        if typed is not None and typed.type not in (Type.BOOLEAN, Type.UNKNOWN, Type.NULL):
            message = f"a condition must be a BOOLEAN, but this is {a_type(typed.type)}"
            self.findings.add("not-a-condition", message, node.span, "compare it with a value")
            return None
        return typed

    def expression(self, node: nodes.Expr) -> Typed | None:
        """Bind a value of any type."""
        return self.without_shift(self.side(node))

    def side(self, node: nodes.Expr) -> Typed | None:
        """Bind a side of a comparison, which may also be a shifted time: `v.t + 5`."""
        return _BINDERS[type(node)](self, node)

    def without_shift(self, typed: Typed | None) -> Typed | None:
        """Return the value; report a shifted time, which can only be compared with another time, and return None."""
        if typed is None or not is_shifted(typed):
            return typed
        message = "a time plus or minus a number can only be compared with the time of an event"
        hint = "subtract one time from the other, and compare the difference with a duration"
        self.findings.add("moved-time", message, typed.span, hint)
        return None

    # ------------------------------------------------------------ leaves

    def literal(self, node: nodes.Literal) -> Typed:
        """A constant."""
        return Constant(node.value, type_of(node.value), node.span)

    def duration(self, node: nodes.Duration) -> Typed:
        """A duration in the unit of the time column."""
        amount = amount_of(node)
        return Constant(amount, type_of(amount), node.span)

    def variable(self, node: nodes.Variable) -> Typed | None:
        """A bare name."""
        return self.scope.variable(node)

    def attribute(self, node: nodes.Attribute) -> Typed | None:
        """A column, with the default for a missing component."""
        reference = self.scope.attribute(node)
        if reference is None or node.default is None:
            return reference
        column = f"{node.owner}.{node.name} is {a_type(reference.type)}"
        if isinstance(node.default, nodes.Attribute):
            other = self.attribute(node.default)
            if not isinstance(other, Reference):
                return None
            if other.type is not reference.type and Type.UNKNOWN not in (other.type, reference.type):
                message = f"{column}, but its default is {a_type(other.type)}"
                self.findings.add("type-mismatch", message, node.default.span, "use columns of the same type")
                return None
            return replace(reference, default=other, span=node.span)
        default = coerce_string(self.literal(node.default), reference.type)
        if not isinstance(default, Constant) or not comparable(default.type, reference.type):
            message = f"{column}, but its default is {a_type(type_of(node.default.value))}"
            hint = constant_hint(self.literal(node.default), reference.name, reference.type)
            self.findings.add("type-mismatch", message, node.default.span, hint)
            return None
        return replace(reference, default=default, span=node.span)

    # ------------------------------------------------------------ arithmetic and comparison

    def negate(self, node: nodes.Negate) -> Typed | None:
        """A negated number."""
        operand = self.number(node.operand, "-")
        return operand and Operation("negate", (operand,), operand.type, node.span)

    def number(self, node: nodes.Expr, op: str) -> Typed | None:
        """Bind a number."""
        typed = self.expression(node)
        return typed if typed is not None and self.is_number(typed, op) else None

    def is_number(self, typed: Typed, op: str) -> bool:
        """Whether arithmetic is allowed on the value; report it if not."""
        if typed.type.is_numeric or typed.type is Type.NULL:
            return True
        hint = "use numeric columns and constants"
        if typed.type is Type.TIMESTAMP:
            hint = "subtract one time from the other, and compare the difference with a duration"
        self.findings.add("not-a-number", f"{op} needs numbers, but this is {a_type(typed.type)}", typed.span, hint)
        return False

    def arithmetic(self, node: nodes.Arithmetic) -> Typed | None:
        """Arithmetic on numbers, a shifted time, or the seconds between two times."""
        left, right = self.pair(node.left, node.right)
        if left is None or right is None:
            return None
        shifted = shifted_time(node.op, left, right, node.span)
        if shifted is not None or self.without_shift(left) is None or self.without_shift(right) is None:
            return shifted
        kinds = (left.type, right.type)
        if node.op == "-" and Type.TIMESTAMP in kinds and set(kinds) <= {Type.TIMESTAMP, Type.UNKNOWN, Type.NULL}:
            kind = Type.DOUBLE if kinds == (Type.TIMESTAMP, Type.TIMESTAMP) else Type.UNKNOWN
            return Operation("-", (left, right), kind, node.span)
        # A list, not a generator: both sides are checked, so that both are reported.
        if not all([self.is_number(left, node.op), self.is_number(right, node.op)]):
            return None
        return Operation(node.op, (left, right), arithmetic_type(node.op, *kinds), node.span)

    def compare(self, node: nodes.Compare) -> Typed | None:
        """A comparison of two values."""
        left, right = self.pair(node.left, node.right)
        if left is None or right is None:
            return None
        return self.comparison(node.op, left, right, node.span)

    def pair(self, left: nodes.Expr, right: nodes.Expr) -> tuple[Typed | None, Typed | None]:
        """Bind both sides; a string constant next to a time becomes a time."""
        first, second = self.side(left), self.side(right)
        if first is None or second is None:
            return first, second
        return coerce_string(first, second.type), coerce_string(second, first.type)

    def comparison(self, op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        """`left op right`; report types that cannot be compared."""
        right = coerce_string(right, left.type)
        if is_shifted(left) or is_shifted(right):
            compared = compare_shifted(op, left, right, span)
            if compared is None:
                self.without_shift(left if is_shifted(left) else right)
            return compared
        if comparable(left.type, right.type):
            sides = _without_mutual_defaults(left, right) if op == "=" else (left, right)
            return Operation(op, sides, Type.BOOLEAN, span)
        message = f"{a_type(left.type)} cannot be compared with {a_type(right.type)}"
        self.findings.add("type-mismatch", message, span, comparison_hint(left, right))
        return None

    def in_range(self, node: nodes.InRange) -> Typed | None:
        """Two comparisons, one with each end."""
        operand, low, high = (self.side(part) for part in (node.operand, node.low, node.high))
        if operand is None or low is None or high is None or not self.repeatable(operand, 2):
            return None
        parts = [self.comparison(">=", operand, low, node.span), self.comparison("<=", operand, high, node.span)]
        return self.joined("and", parts, node.negated, node.span)

    def in_list(self, node: nodes.InList) -> Typed | None:
        """One comparison for each item."""
        operand = self.side(node.operand)
        items = [self.side(item) for item in node.items]
        if operand is None or not self.repeatable(operand, len(items)):
            return None
        parts = [item and self.comparison("=", operand, item, item.span) for item in items]
        return self.joined("or", parts, node.negated, node.span)

    def repeatable(self, operand: Typed, times: int) -> bool:
        """Whether the operand of IN can be repeated for each item; report it if not.

        A condition cannot: with nested INs, each one would double the size of the one inside it.
        """
        if operand.type is Type.BOOLEAN and not isinstance(operand, Reference):
            message = "the left side of IN must be a value, but this is a condition"
            hint = "compare it with = TRUE or = FALSE"
            self.findings.add("type-mismatch", message, operand.span, hint)
            return False
        nodes_needed = times * sum(1 for _ in walk(operand))
        if nodes_needed > limits.MAX_CONDITION_NODES:
            message = f"this IN expands to {nodes_needed:,} terms (at most {limits.MAX_CONDITION_NODES:,} are allowed)"
            self.findings.add("too-long", message, operand.span, "put the list into a RELATION")
            return False
        return True

    def is_null(self, node: nodes.IsNull) -> Typed | None:
        """A test for NULL, which is itself never NULL."""
        operand = self.expression(node.operand)
        return operand and _negated(Operation("is_null", (operand,), Type.BOOLEAN, node.span), node.negated)

    def windowed(self, node: nodes.Windowed) -> Typed | None:
        """A condition on values of instants that are at most a duration apart."""
        operand = self.condition(node.operand)
        if not self.allows_windows:
            message = "only MONITOR allows WITHIN behind a condition"
            self.findings.add("no-window", message, node.span, "write WITHIN as a clause, after the condition")
            return None
        window = checked_duration(self.findings, "WITHIN", node.window, positive=False)
        constant = Constant(window, Type.DOUBLE, node.window.span)
        return operand and Operation("windowed", (operand, constant), Type.BOOLEAN, node.span)

    # ------------------------------------------------------------ logic

    def not_(self, node: nodes.Not) -> Typed | None:
        """A negated condition."""
        operand = self.condition(node.operand)
        return operand and _negated(operand, True, node.span)

    def and_(self, node: nodes.And) -> Typed | None:
        """A flat conjunction."""
        return self.joined("and", [self.condition(item) for item in node.items], False, node.span)

    def or_(self, node: nodes.Or) -> Typed | None:
        """A flat disjunction."""
        return self.joined("or", [self.condition(item) for item in node.items], False, node.span)

    def joined(self, op: str, parts: list[Typed | None], negated: bool, span: Span) -> Typed | None:
        """Join the parts by AND or OR into a flat operation; None if a part is invalid."""
        flat: list[Typed] = []
        for part in parts:
            if part is None:
                return None
            flat.extend(part.arguments if isinstance(part, Operation) and part.op == op else (part,))
        whole = flat[0] if len(flat) == 1 else Operation(op, tuple(flat), Type.BOOLEAN, span)
        return _negated(whole, negated)

    # ------------------------------------------------------------ functions and relations

    def call(self, node: nodes.Call) -> Typed | None:
        """A function that the scope allows, or a relation."""
        name = node.name.upper()
        if name in self.scope.functions:
            return self.function(name, node)
        entry = self.catalog.get(node.name)
        if isinstance(entry, Relation):
            return self.member(entry, node)
        if isinstance(entry, Stream | Query):
            kind = "stream" if isinstance(entry, Stream) else "query"
            message = f"{shown(node.name)} is a {kind}, but conditions can only look up relations"
            self.findings.add("not-a-relation", message, node.span, "declare a table with CREATE RELATION")
        elif name in ARITIES:
            message = f"{name} is not available in this kind of query"
            hint = f"available functions: {listed(sorted(self.scope.functions), 'and')}"
            self.findings.add("unknown-function", message, node.span, hint)
        else:
            candidates = [*self.catalog.names((Relation,)), *self.scope.functions]
            hint = "declare it with CREATE RELATION"
            self.findings.unknown("relation or function", node.name, candidates, node.span, hint)
        return None

    def member(self, relation: Relation, node: nodes.Call) -> Typed | None:
        """A lookup in a relation, with one argument per column."""
        arguments = [self.expression(argument) for argument in node.arguments]
        if len(arguments) != len(relation.columns):
            names = ", ".join(column.name for column in relation.columns)
            columns = f"{count_of(len(relation.columns), 'column')} ({names})"
            message = f"relation {relation.name} has {columns}, but this has {count_of(len(arguments), 'argument')}"
            self.findings.add("arity", message, node.span, "write one argument per column")
            return None
        coerced = [
            argument and coerce_string(argument, column.type)
            for argument, column in zip(arguments, relation.columns, strict=True)
        ]
        for argument, column in zip(coerced, relation.columns, strict=True):
            if argument is not None and not comparable(argument.type, column.type):
                message = f"{relation.name}.{column.name} is {a_type(column.type)}, but this is {a_type(argument.type)}"
                hint = constant_hint(argument, f"{relation.name}.{column.name}", column.type)
                self.findings.add("type-mismatch", message, argument.span, hint)
                return None
        valid = tuple(argument for argument in coerced if argument is not None)
        return Member(relation, valid, node.span) if len(valid) == len(coerced) else None

    def function(self, name: str, node: nodes.Call) -> Typed | None:
        """A function call; report a wrong number of arguments."""
        if len(node.arguments) != ARITIES[name]:
            message = f"{name} takes {count_of(ARITIES[name], 'argument')}, but this has {len(node.arguments)}"
            self.findings.add("arity", message, node.span)
            return None
        if name == "ABS":
            number = self.number(node.arguments[0], "ABS")
            return number and Operation("abs", (number,), number.type, node.span)
        one, other = (self.spatial_argument(name, argument) for argument in node.arguments)
        if one is None or other is None:
            return None
        if name == "CONTAINS":
            name, one, other = "WITHIN", other, one
        kind = Type.DOUBLE if name in ("DISTANCE", "SPAN") else Type.BOOLEAN
        return Operation(name.lower(), (one, other), kind, node.span)

    def spatial_argument(self, function: str, node: nodes.Expr) -> Typed | None:
        """An event; or a geometry (a STRING or BINARY value), for functions other than SPAN."""
        if isinstance(node, nodes.Variable):
            return self.scope.event(node, spatial=function != "SPAN")
        typed = self.expression(node)
        if typed is None:
            return None
        if function == "SPAN" or typed.type not in (Type.STRING, Type.BINARY, Type.UNKNOWN):
            allowed = "events" if function == "SPAN" else "events and geometries such as 'POLYGON(...)'"
            message = f"{function} takes {allowed}, but this is {a_type(typed.type)}"
            self.findings.add("type-mismatch", message, node.span)
            return None
        return typed


_BINDERS: dict[type, Callable[[ConditionBinder, Any], Typed | None]] = {
    nodes.Literal: ConditionBinder.literal, nodes.Duration: ConditionBinder.duration,
    nodes.Variable: ConditionBinder.variable, nodes.Attribute: ConditionBinder.attribute,
    nodes.Negate: ConditionBinder.negate, nodes.Arithmetic: ConditionBinder.arithmetic,
    nodes.Compare: ConditionBinder.compare, nodes.InRange: ConditionBinder.in_range,
    nodes.InList: ConditionBinder.in_list, nodes.IsNull: ConditionBinder.is_null,
    nodes.Windowed: ConditionBinder.windowed,
    nodes.Call: ConditionBinder.call, nodes.Not: ConditionBinder.not_,
    nodes.And: ConditionBinder.and_, nodes.Or: ConditionBinder.or_,
}  # fmt: skip


def _negated(typed: Typed, negated: bool, span: Span | None = None) -> Typed:
    return Operation("not", (typed,), Type.BOOLEAN, span or typed.span) if negated else typed


def _without_mutual_defaults(left: Typed, right: Typed) -> tuple[Typed, Typed]:
    """Two columns that are equated, without defaults if each is the default of the other: `x.id[y.id] = y.id[x.id]`.

    Both forms hold if either event is missing. But only equalities without defaults are combined with others.
    """
    if isinstance(left, Reference) and isinstance(right, Reference):
        plain = replace(left, default=None), replace(right, default=None)
        if (right.default, left.default) == plain:
            return plain
    return left, right
