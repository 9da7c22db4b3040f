"""Typed trees: conditions after binding, the only form in which they are evaluated.

There are four kinds of node, so that a lowering (to Spark columns in `runtime/filters.py`, to Arrow arrays in
`columns/conditions.py`) is one table from operator to function. A tree contains no code as text, so there is nothing to
inject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from anabranch.catalog import Relation
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE
from anabranch.language.types import Type

#: Every operator of a typed tree, with its number of arguments (None: two or more).
OPERATORS: dict[str, int | None] = {
    "+": 2, "-": 2, "*": 2, "/": 2, "%": 2, "negate": 1, "abs": 1,
    "=": 2, "<>": 2, "<": 2, "<=": 2, ">": 2, ">=": 2,
    "and": None, "or": None, "not": 1, "is_null": 1,
    "distance": 2, "span": 2, "within": 2, "intersects": 2, "touches": 2, "windowed": 2,
}  # fmt: skip

#: The operator with its sides swapped: `a < b` is `b > a`.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant. A duration is already in the unit of the time column.

    The value of a TIMESTAMP is in microseconds since 1970 UTC, that of a DATE in days since 1970-01-01.
    """

    value: str | int | float | bool | None
    type: Type
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A PATTERN variable (`owner` is None), or the column `name` of the component or operand `owner`.

    Both names are in lower case. `default` is the value to use if the component is missing (SEQUENCE): a constant, or a
    column of another component. A reference to a whole event (`v` in `DISTANCE(v, w)`) has the name "*"; if its
    location is a geometry, it refers to the geometry column instead. `mention` is 2 for the second mention of an
    interchangeable variable `v*5` in a CONSTRAIN condition: the other event of a pair.
    """

    owner: str | None
    name: str
    type: Type
    default: Constant | Reference | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    mention: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator of OPERATORS with its arguments; SQL's three-valued logic applies."""

    op: str
    arguments: tuple[Typed, ...]
    type: Type
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """Whether the arguments are a row of the relation; NULL if any argument is NULL."""

    relation: Relation
    arguments: tuple[Typed, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def type(self) -> Type:
        """A lookup in a relation is a condition."""
        return Type.BOOLEAN


Typed = Constant | Reference | Operation | Member


def walk(tree: Typed) -> Iterator[Typed]:
    """Every node of the tree, parents first; iterative."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Operation | Member):
            stack.extend(reversed(node.arguments))


def references(tree: Typed) -> set[tuple[str | None, str]]:
    """The (owner, name) pairs of all references in a condition."""
    return {(node.owner, node.name) for node in walk(tree) if isinstance(node, Reference)}


def with_references(tree: Typed, change: Callable[[Reference], Reference]) -> Typed:
    """The tree with `change` applied to every reference."""
    if isinstance(tree, Reference):
        return change(tree)
    if isinstance(tree, Operation | Member):
        return replace(tree, arguments=tuple(with_references(part, change) for part in tree.arguments))
    return tree


def of_event(tree: Typed) -> Typed:
    """A condition or value of one event, on the columns of its stream: references without owner and default."""
    return with_references(tree, lambda reference: replace(reference, owner=None, default=None, mention=1))


def conjuncts(tree: Typed | None) -> tuple[Typed, ...]:
    """The parts of a conjunction; empty for None."""
    if tree is None:
        return ()
    if isinstance(tree, Operation) and tree.op == "and":
        return tree.arguments
    return (tree,)


def conjunction(parts: tuple[Typed, ...]) -> Typed | None:
    """The conjunction of the parts; None (always true) for no parts."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    return Operation("and", parts, Type.BOOLEAN, parts[0].span)


def disjunction(parts: Sequence[Typed | None]) -> Typed | None:
    """The disjunction of the parts; None (always true) if a part is None, or for no parts."""
    conditions = tuple(part for part in parts if part is not None)
    if len(conditions) < len(parts) or not conditions:
        return None
    return conditions[0] if len(conditions) == 1 else Operation("or", conditions, Type.BOOLEAN, conditions[0].span)


def equal_references(tree: Typed | None, owner: str, name: str) -> set[tuple[str | None, str]]:
    """The columns, with their owners, that a condition makes equal to a column, by equalities joined by AND."""
    parts = (part.arguments for part in conjuncts(tree) if isinstance(part, Operation) and part.op == "=")
    # An equality with a default may hold although the columns differ.
    columns = (
        [(side.owner, side.name) for side in sides if isinstance(side, Reference) and side.default is None]
        for sides in parts
    )
    equalities = [sides for sides in columns if len(sides) == 2]
    equal: set[tuple[str | None, str]] = {(owner, name)}
    while True:
        added = {side for sides in equalities if equal & set(sides) for side in sides} - equal
        if not added:
            return equal
        equal |= added
