"""Conditions to typed trees: names resolved by a scope, types checked, sugar rewritten into few operators."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Protocol

from anabranch.binding.typed import Constant, Member, Operation, Reference, Typed, walk
from anabranch.binding.words import count_of
from anabranch.catalog import Catalog, Query, Relation, Stream
from anabranch.errors import Span
from anabranch.language import limits, nodes
from anabranch.language.findings import Findings, listed
from anabranch.language.temporal import amount_of, parse_date, parse_timestamp
from anabranch.language.types import Type, comparable

#: How a string is read where a column of this type stands beside it.
_READERS: dict[Type, tuple[Callable[[str], int | None], str]] = {
    Type.TIMESTAMP: (parse_timestamp, "'2026-01-31 12:00:00'"),
    Type.DATE: (parse_date, "'2026-01-31'"),
}

#: Functions, with their number of arguments.
ARITIES = {"ABS": 1, "DISTANCE": 2, "SPAN": 2, "WITHIN": 2, "INTERSECTS": 2}


class Scope(Protocol):
    """What the names in a condition stand for; each method notes a finding and gives None for a wrong name."""

    #: The functions that a condition may call, in upper case.
    functions: Collection[str]

    def variable(self, node: nodes.Variable) -> Reference | None:
        """A bare name as a value."""

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        """A column of a component or operand."""

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        """A bare name as a whole event, which must have a place in space where `spatial`."""


class ConditionBinder:
    """Binds the conditions of one scope. A part that is wrong becomes None, and silences what is above it."""

    def __init__(self, catalog: Catalog, findings: Findings, scope: Scope) -> None:
        self.catalog = catalog
        self.findings = findings
        self.scope = scope

    def condition(self, node: nodes.Expr) -> Typed | None:
        """The node as a condition: something that is true, false or NULL."""
        typed = self.expression(node)
        if typed is not None and typed.type not in (Type.BOOLEAN, Type.UNKNOWN, Type.NULL):
            message = f"a condition must be true or false, and this is {a_type(typed.type)}"
            self.findings.add("not-a-condition", message, node.span, "compare it with something")
            return None
        return typed

    def expression(self, node: nodes.Expr) -> Typed | None:
        """The node as a value of any type."""
        return self.unmoved(self.side(node))

    def side(self, node: nodes.Expr) -> Typed | None:
        """The node as a side of a comparison, which may also be a time moved by seconds: `v.t + 5`."""
        return _BINDERS[type(node)](self, node)

    def unmoved(self, typed: Typed | None) -> Typed | None:
        """The value, None (and a finding) for a moved time: it is good for comparing with another time alone."""
        if typed is None or not _is_moved(typed):
            return typed
        message = "a time plus or minus a number can be compared with the time of an event, and nothing else"
        hint = "subtract one time from the other, and compare with a duration"
        self.findings.add("moved-time", message, typed.span, hint)
        return None

    # ------------------------------------------------------------ leaves

    def literal(self, node: nodes.Literal) -> Typed:
        """A constant of its own type."""
        return Constant(node.value, type_of(node.value), node.span)

    def duration(self, node: nodes.Duration) -> Typed:
        """A duration in the unit of the time column."""
        amount = amount_of(node)
        return Constant(amount, type_of(amount), node.span)

    def variable(self, node: nodes.Variable) -> Typed | None:
        """A bare name."""
        return self.scope.variable(node)

    def attribute(self, node: nodes.Attribute) -> Typed | None:
        """A column, with the value to use where its component is missing."""
        reference = self.scope.attribute(node)
        if reference is None or node.default is None:
            return reference
        default = fitted(self.literal(node.default), reference.type)
        if not isinstance(default, Constant) or not comparable(default.type, reference.type):
            given = a_type(type_of(node.default.value))
            message = f"{node.owner}.{node.name} is {a_type(reference.type)}, and its default is {given}"
            self.findings.add("type-mismatch", message, node.default.span, f"write {a_type(reference.type)}")
            return None
        return Reference(reference.owner, reference.name, reference.type, default, node.span, reference.mention)

    # ------------------------------------------------------------ arithmetic and comparison

    def negate(self, node: nodes.Negate) -> Typed | None:
        """A number with its sign turned."""
        operand = self.number(node.operand, "-")
        return operand and Operation("negate", (operand,), operand.type, node.span)

    def number(self, node: nodes.Expr, op: str) -> Typed | None:
        """The node as a number."""
        typed = self.expression(node)
        return typed if typed is not None and self.is_number(typed, op) else None

    def is_number(self, typed: Typed, op: str) -> bool:
        """Whether arithmetic is defined on it; a finding where it is not."""
        if typed.type.is_numeric or typed.type is Type.NULL:
            return True
        hint = (
            "subtract one time from the other, and compare with a duration"
            if typed.type is Type.TIMESTAMP
            else "use numbers"
        )
        self.findings.add("not-a-number", f"{op} needs numbers, and this is {a_type(typed.type)}", typed.span, hint)
        return False

    def arithmetic(self, node: nodes.Arithmetic) -> Typed | None:
        """Numbers, or the seconds between two times."""
        left, right = self.pair(node.left, node.right)
        if left is None or right is None:
            return None
        moved = _moved(node.op, left, right, node.span)
        if moved is not None or self.unmoved(left) is None or self.unmoved(right) is None:
            return moved
        kinds = (left.type, right.type)
        if node.op == "-" and Type.TIMESTAMP in kinds and set(kinds) <= {Type.TIMESTAMP, Type.UNKNOWN, Type.NULL}:
            kind = Type.DOUBLE if kinds == (Type.TIMESTAMP, Type.TIMESTAMP) else Type.UNKNOWN
            return Operation("-", (left, right), kind, node.span)
        # Both sides are asked, so that both are reported.
        if not all([self.is_number(left, node.op), self.is_number(right, node.op)]):
            return None
        return Operation(node.op, (left, right), _arithmetic_type(node.op, *kinds), node.span)

    def compare(self, node: nodes.Compare) -> Typed | None:
        """Two values of one type."""
        left, right = self.pair(node.left, node.right)
        if left is None or right is None:
            return None
        return self.comparison(node.op, left, right, node.span)

    def pair(self, left: nodes.Expr, right: nodes.Expr) -> tuple[Typed | None, Typed | None]:
        """Both sides, a string beside a time read as a time."""
        first, second = self.side(left), self.side(right)
        if first is None or second is None:
            return first, second
        return fitted(first, second.type), fitted(second, first.type)

    def comparison(self, op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        """`left op right`, where it means anything."""
        right = fitted(right, left.type)
        if _is_moved(left) or _is_moved(right):
            return self.difference(op, left, right, span)
        if comparable(left.type, right.type):
            return Operation(op, (left, right), Type.BOOLEAN, span)
        message = f"{a_type(left.type)} cannot be compared with {a_type(right.type)}"
        self.findings.add("type-mismatch", message, span, _comparison_hint(left.type, right.type))
        return None

    def difference(self, op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
        """`u.t + 2 <= v.t + 5` as `u.t - v.t <= 3`."""
        (time, before), (other, after) = _apart(left), _apart(right)
        if not (isinstance(time, Reference) and isinstance(other, Reference) and comparable(time.type, other.type)):
            return self.unmoved(left) and self.unmoved(right)
        kind = Type.DOUBLE if time.type is other.type else Type.UNKNOWN
        seconds = Constant(after - before, Type.DOUBLE, span)
        return Operation(op, (Operation("-", (time, other), kind, span), seconds), Type.BOOLEAN, span)

    def in_range(self, node: nodes.InRange) -> Typed | None:
        """Two comparisons with the ends."""
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
        """Whether the operand of IN can be written once for each item.

        A condition cannot: nested, each IN would double the one inside it.
        """
        if operand.type is Type.BOOLEAN and not isinstance(operand, Reference):
            message, hint = "IN asks about a value, and this is a condition", "compare it with = TRUE or = FALSE"
            self.findings.add("type-mismatch", message, operand.span, hint)
            return False
        nodes_needed = times * sum(1 for _ in walk(operand))
        if nodes_needed > limits.MAX_CONDITION_NODES:
            message = (
                f"this IN stands for {nodes_needed:,} terms, and at most {limits.MAX_CONDITION_NODES:,} are allowed"
            )
            self.findings.add("too-long", message, operand.span, "put the list into a RELATION")
            return False
        return True

    def is_null(self, node: nodes.IsNull) -> Typed | None:
        """A test that is never NULL itself."""
        operand = self.expression(node.operand)
        return operand and _negated(Operation("is_null", (operand,), Type.BOOLEAN, node.span), node.negated)

    # ------------------------------------------------------------ logic

    def not_(self, node: nodes.Not) -> Typed | None:
        """A condition turned round."""
        operand = self.condition(node.operand)
        return operand and _negated(operand, True, node.span)

    def and_(self, node: nodes.And) -> Typed | None:
        """A conjunction, flat."""
        return self.joined("and", [self.condition(item) for item in node.items], False, node.span)

    def or_(self, node: nodes.Or) -> Typed | None:
        """A disjunction, flat."""
        return self.joined("or", [self.condition(item) for item in node.items], False, node.span)

    def joined(self, op: str, parts: list[Typed | None], negated: bool, span: Span) -> Typed | None:
        """The parts under AND or OR, flat; None where one of them is wrong."""
        flat: list[Typed] = []
        for part in parts:
            if part is None:
                return None
            flat.extend(part.arguments if isinstance(part, Operation) and part.op == op else (part,))
        whole = flat[0] if len(flat) == 1 else Operation(op, tuple(flat), Type.BOOLEAN, span)
        return _negated(whole, negated)

    # ------------------------------------------------------------ functions and relations

    def call(self, node: nodes.Call) -> Typed | None:
        """A function of this kind of query, or else a relation."""
        name = node.name.upper()
        if name in self.scope.functions:
            return self.function(name, node)
        entry = self.catalog.get(node.name)
        if isinstance(entry, Relation):
            return self.member(entry, node)
        if isinstance(entry, Stream | Query):
            kind = "stream" if isinstance(entry, Stream) else "query"
            message = f"{node.name} is a {kind}, and a condition asks relations"
            self.findings.add("not-a-relation", message, node.span, "declare a table with CREATE RELATION")
        elif name in ARITIES:
            message = f"{name} has no meaning in this kind of query"
            self.findings.add(
                "unknown-function", message, node.span, f"it can call {listed(sorted(self.scope.functions))}"
            )
        else:
            candidates = [*self.catalog.names((Relation,)), *self.scope.functions]
            hint = "declare it with CREATE RELATION"
            self.findings.unknown("relation or function", node.name, candidates, node.span, hint)
        return None

    def member(self, relation: Relation, node: nodes.Call) -> Typed | None:
        """A relation atom, with as many arguments as the relation has columns."""
        arguments = [self.expression(argument) for argument in node.arguments]
        if len(arguments) != len(relation.columns):
            names = ", ".join(column.name for column in relation.columns)
            columns = f"{count_of(len(relation.columns), 'column')} ({names})"
            message = f"{relation.name} has {columns}, and this asks for {len(arguments)}"
            self.findings.add("arity", message, node.span, "give one argument per column")
            return None
        fitting = [
            argument and fitted(argument, column.type)
            for argument, column in zip(arguments, relation.columns, strict=True)
        ]
        for argument, column in zip(fitting, relation.columns, strict=True):
            if argument is not None and not comparable(argument.type, column.type):
                message = f"{relation.name}.{column.name} is {a_type(column.type)}, and this is {a_type(argument.type)}"
                self.findings.add("type-mismatch", message, argument.span, f"give {a_type(column.type)}")
                return None
        whole = tuple(argument for argument in fitting if argument is not None)
        return Member(relation, whole, node.span) if len(whole) == len(fitting) else None

    def function(self, name: str, node: nodes.Call) -> Typed | None:
        """A function with its arguments checked."""
        if len(node.arguments) != ARITIES[name]:
            message = f"{name} takes {count_of(ARITIES[name], 'argument')}, and this has {len(node.arguments)}"
            self.findings.add("arity", message, node.span)
            return None
        if name == "ABS":
            number = self.number(node.arguments[0], "ABS")
            return number and Operation("abs", (number,), number.type, node.span)
        arguments = [self.located(name, argument) for argument in node.arguments]
        if arguments[0] is None or arguments[1] is None:
            return None
        kind = Type.DOUBLE if name in ("DISTANCE", "SPAN") else Type.BOOLEAN
        return Operation(name.lower(), (arguments[0], arguments[1]), kind, node.span)

    def located(self, function: str, node: nodes.Expr) -> Typed | None:
        """An event, or a geometry (a text or binary value) for the functions that take one."""
        if isinstance(node, nodes.Variable):
            return self.scope.event(node, spatial=function != "SPAN")
        typed = self.expression(node)
        if typed is None:
            return None
        if function == "SPAN" or typed.type not in (Type.STRING, Type.BINARY, Type.UNKNOWN):
            wanted = "events" if function == "SPAN" else "events and geometries such as 'POLYGON(...)'"
            self.findings.add(
                "type-mismatch", f"{function} takes {wanted}, and this is {a_type(typed.type)}", node.span
            )
            return None
        return typed


_BINDERS: dict[type, Callable[[ConditionBinder, Any], Typed | None]] = {
    nodes.Literal: ConditionBinder.literal, nodes.Duration: ConditionBinder.duration,
    nodes.Variable: ConditionBinder.variable, nodes.Attribute: ConditionBinder.attribute,
    nodes.Negate: ConditionBinder.negate, nodes.Arithmetic: ConditionBinder.arithmetic,
    nodes.Compare: ConditionBinder.compare, nodes.InRange: ConditionBinder.in_range,
    nodes.InList: ConditionBinder.in_list, nodes.IsNull: ConditionBinder.is_null,
    nodes.Call: ConditionBinder.call, nodes.Not: ConditionBinder.not_,
    nodes.And: ConditionBinder.and_, nodes.Or: ConditionBinder.or_,
}  # fmt: skip


def type_of(value: str | int | float | bool | None) -> Type:
    """The type of a constant."""
    return _TYPE_OF[type(value)]


_TYPE_OF = {str: Type.STRING, bool: Type.BOOLEAN, int: Type.INTEGER, float: Type.DOUBLE, type(None): Type.NULL}


def fitted(typed: Typed, beside: Type) -> Typed:
    """A string constant that stands beside a time, read as a time; anything else as it is."""
    if beside in _READERS and isinstance(typed, Constant) and isinstance(typed.value, str):
        value = _READERS[beside][0](typed.value)
        if value is not None:
            return Constant(value, beside, typed.span)
    return typed


def _moved(op: str, left: Typed, right: Typed, span: Span) -> Typed | None:
    """A time plus or minus a constant, in the form that `_apart` takes apart; None for anything else."""
    if op == "+" and isinstance(left, Constant):
        left, right = right, left
    time, seconds = _apart(left)
    number = right.value if isinstance(right, Constant) and right.type.is_numeric else None
    if op not in "+-" or time.type is not Type.TIMESTAMP or isinstance(time, Constant) or number is None:
        return None
    seconds += float(number) if op == "+" else -float(number)
    return Operation("+", (time, Constant(seconds, Type.DOUBLE, span)), Type.TIMESTAMP, span)


def _is_moved(typed: Typed) -> bool:
    # No operator gives a time but the one that `_moved` makes.
    return isinstance(typed, Operation) and typed.type is Type.TIMESTAMP


def _apart(typed: Typed) -> tuple[Typed, float]:
    """A moved time, and by how many seconds; anything else, by none."""
    if isinstance(typed, Operation) and _is_moved(typed):
        time, seconds = typed.arguments
        return time, seconds.value if isinstance(seconds, Constant) and isinstance(seconds.value, float) else 0.0
    return typed, 0.0


def _negated(typed: Typed, negated: bool, span: Span | None = None) -> Typed:
    return Operation("not", (typed,), Type.BOOLEAN, span or typed.span) if negated else typed


def _arithmetic_type(op: str, left: Type, right: Type) -> Type:
    if Type.UNKNOWN in (left, right) or Type.NULL in (left, right):
        return Type.DOUBLE if op == "/" else Type.UNKNOWN
    return Type.INTEGER if left == right == Type.INTEGER and op != "/" else Type.DOUBLE


def _comparison_hint(left: Type, right: Type) -> str:
    for kind, (_, example) in _READERS.items():
        if kind in (left, right):
            return f"write the time as {example}, or compare a difference of times with a duration"
    if Type.STRING in (left, right):
        return "put quotes around a text, and none around a number"
    return "compare values of one type"


def a_type(kind: Type) -> str:
    """A type as a message names it: `a STRING`."""
    return f"{'an' if kind.value[0] in 'IU' else 'a'} {kind.value}"
