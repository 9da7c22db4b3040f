"""Conditions after binding: small typed trees, the only form in which a condition is ever evaluated.

Four kinds of node are enough, so a lowering (to Spark columns in `rows/columns.py`, to Arrow arrays in
`rows/conditions.py`) is one table from operator to function. Nothing here is text any more: there is nothing to inject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from anabranch.catalog import Relation
from anabranch.errors import Span
from anabranch.language.nodes import NOWHERE
from anabranch.language.types import Type

#: Every operator a bound condition may hold, with its number of arguments (None: two or more).
OPERATORS: dict[str, int | None] = {
    "+": 2, "-": 2, "*": 2, "/": 2, "%": 2, "negate": 1, "abs": 1,
    "=": 2, "<>": 2, "<": 2, "<=": 2, ">": 2, ">=": 2,
    "and": None, "or": None, "not": 1, "is_null": 1,
    "distance": 2, "span": 2, "within": 2, "intersects": 2,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. A duration is already in the unit of the time column it is compared with.

    The value of a TIMESTAMP is an integer, microseconds since 1970 UTC; that of a DATE the days since 1970.
    """

    value: str | int | float | bool | None
    type: Type
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reference:
    """A PATTERN variable (`owner` None), or column `name` of the component or operand `owner`.

    Both names are lower case. `default` is the value to use where the component is missing (SEQUENCE). A reference to a
    whole event (`v` in `DISTANCE(v, w)`) has the name "*"; where its place is a geometry, it is a reference to the
    column that holds it. `mention` is 2 where a CONSTRAIN condition names the interchangeable `v*5` a second time: the
    other event of a pair.
    """

    owner: str | None
    name: str
    type: Type
    default: Constant | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    mention: int = 1


@dataclass(frozen=True, slots=True)
class Operation:
    """`op` of OPERATORS applied to its arguments; SQL's three-valued logic holds throughout."""

    op: str
    arguments: tuple[Typed, ...]
    type: Type
    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """Whether the tuple of arguments is a row of the relation; NULL anywhere in it makes it NULL."""

    relation: Relation
    arguments: tuple[Typed, ...]
    span: Span = field(default=NOWHERE, compare=False, repr=False)

    @property
    def type(self) -> Type:
        """A relation atom is a condition."""
        return Type.BOOLEAN


Typed = Constant | Reference | Operation | Member


def walk(tree: Typed) -> Iterator[Typed]:
    """Every node of the tree, parents first, without recursion."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Operation | Member):
            stack.extend(reversed(node.arguments))


def references(tree: Typed) -> set[tuple[str | None, str]]:
    """The (owner, name) pairs a condition asks for."""
    return {(node.owner, node.name) for node in walk(tree) if isinstance(node, Reference)}


def with_references(tree: Typed, change: Callable[[Reference], Reference]) -> Typed:
    """The tree with every reference changed."""
    if isinstance(tree, Reference):
        return change(tree)
    if isinstance(tree, Operation | Member):
        return replace(tree, arguments=tuple(with_references(part, change) for part in tree.arguments))
    return tree


def conjuncts(tree: Typed | None) -> tuple[Typed, ...]:
    """The parts of a conjunction; empty for None."""
    if tree is None:
        return ()
    if isinstance(tree, Operation) and tree.op == "and":
        return tree.arguments
    return (tree,)


def conjunction(parts: tuple[Typed, ...]) -> Typed | None:
    """One condition that holds where all parts hold; None for no parts."""
    if len(parts) <= 1:
        return parts[0] if parts else None
    return Operation("and", parts, Type.BOOLEAN, parts[0].span)


def disjunction(parts: Sequence[Typed | None]) -> Typed | None:
    """One condition that holds where any part does; None, which always holds, where a part is, or there is none."""
    known = tuple(part for part in parts if part is not None)
    if len(known) < len(parts) or not known:
        return None
    return known[0] if len(known) == 1 else Operation("or", known, Type.BOOLEAN, known[0].span)
