"""The syntax tree: what the parser makes of workbook text, before any name is looked up.

Every node is a frozen value with a `span` that takes no part in equality, so that
`parse(unparse(tree)) == tree`. Names keep the case they were written in and are compared without it.
Lists of alternatives (`And`, `Or`, `steps`) are flat tuples, so no tree is deep because a text is long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from anabranch.errors import Span

NOWHERE = Span(1, 1, 1, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The root of the tree's classes; carries the place in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses(Node):
    """A node with clauses; `places` has the span of each clause that was written, by its keywords."""

    places: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def place(self, clause: str) -> Span:
        """Where the clause stands; the whole node where it was not written."""
        return self.places.get(clause, self.span)


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Literal(Node):
    """`'a'`, `3`, `0.5`, `TRUE`, `NULL`."""

    value: str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Duration(Node):
    """`5`, `0.5`, `5 SECONDS`. `unit` is None or one of SECOND, MINUTE, HOUR, DAY (upper case, singular)."""

    amount: int | float
    unit: str | None


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """A bare name: a PATTERN variable, or an argument such as `v` in `DISTANCE(v, w)`."""

    name: str


@dataclass(frozen=True, slots=True)
class Wildcard(Node):
    """`_` as a goal's term: anything, and nobody asks what."""


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`x.tag`, or `x.tag['none']` with the value to use where x is missing."""

    owner: str
    name: str
    default: Literal | None = None


@dataclass(frozen=True, slots=True)
class Negate(Node):
    """`-x`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """`left op right`, op one of `+ - * / %`."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """`left op right`, op one of `= <> < <= > >=` (`!=` is read as `<>`)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class InRange(Node):
    """`operand IN [low, high]`, and `BETWEEN low AND high`, which means the same."""

    operand: Expr
    low: Expr
    high: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class InList(Node):
    """`operand IN (a, b, c)`."""

    operand: Expr
    items: tuple[Expr, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """`operand IS NULL`, `IS NOT NULL`."""

    operand: Expr
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Call(Node):
    """`name(a, b)`: a relation atom such as `hall(l)`, or a function such as `ABS(x)`."""

    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Not(Node):
    """`NOT operand`."""

    operand: Expr


@dataclass(frozen=True, slots=True)
class And(Node):
    """A conjunction of two or more; never directly holds another And."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """A disjunction of two or more; never directly holds another Or."""

    items: tuple[Expr, ...]


Expr = (
    Literal | Duration | Variable | Attribute | Negate | Arithmetic
    | Compare | InRange | InList | IsNull | Call | Not | And | Or
)  # fmt: skip


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class ColumnName(Node):
    """`person` or `person STRING`; `type_name` as written, None where it comes from the source."""

    name: str
    type_name: str | None = None


@dataclass(frozen=True, slots=True)
class Option(Node):
    """`sep = ';'` inside OPTIONS."""

    name: str
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class FileSource(Node):
    """`FROM 'path' OPTIONS (...)`."""

    path: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSource(Node):
    """`FROM TABLE name`; dotted names are one string."""

    name: str


@dataclass(frozen=True, slots=True)
class QuerySource(Node):
    """`FROM QUERY name`."""

    name: str


@dataclass(frozen=True, slots=True)
class InferredSource(Node):
    """`INFERRED FROM readings USING HMM 'building/' METHOD PARTICLE(100) STEP 5 SECONDS PRUNE 1e-6`."""

    stream: str
    family: str
    path: str
    method: str
    argument: int | float | None = None
    step: Duration | None = None
    prune: int | float | None = None


@dataclass(frozen=True, slots=True)
class PredictedSource(Node):
    """`PREDICTED FROM positions USING KALMAN(0.5, 2)`; `method` in upper case, LINEAR where no USING is written."""

    stream: str
    method: str = "LINEAR"
    arguments: tuple[int | float, ...] = ()


#: Sources whose rows are made from those of another stream.
DerivedSource = InferredSource | PredictedSource

Source = FileSource | TableSource | QuerySource | DerivedSource


@dataclass(frozen=True, slots=True)
class ErrorBound(Node):
    """`ERROR 25`, or one item of `ERROR (x = 25, y = spread NORMAL 10)`; `column` None means every value column.

    Where the error is a column of each row, `amount` is None and `source` its name. `normal` is the standard deviation
    of an error that is not uniform.
    """

    column: str | None
    amount: int | float | None
    source: str | None = None
    normal: int | float | None = None


@dataclass(frozen=True, slots=True)
class CreateStream(Clauses):
    """`CREATE STREAM`. A clause that was not written is None (or empty).

    `TIME (a, b)` gives `start` a and `time` b; a type after the brackets is given to both. `space` names two
    coordinates, or one column of geometries.
    """

    name: str
    keys: tuple[ColumnName, ...]
    values: tuple[ColumnName, ...]
    time: ColumnName | None
    model: str | None = None
    order: str | None = None
    probability: str | None = None
    horizon: tuple[Expr, Expr] | None = None
    length: str | None = None
    role: str | None = None
    window: tuple[str, str] | None = None
    error: tuple[ErrorBound, ...] = ()
    period: Duration | None = None
    space: tuple[str, ...] | None = None
    geodesic: bool = False
    watermark: Duration | None = None
    source: Source | None = None
    start: ColumnName | None = None


@dataclass(frozen=True, slots=True)
class CreateRelation(Node):
    """`CREATE RELATION hall (location) FROM 'hall.csv'`."""

    name: str
    columns: tuple[ColumnName, ...]
    source: Source | None = None


# ---------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True)
class Operand(Node):
    """`stream AS name` in a FROM; `alias` None where only the stream is named."""

    stream: str
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBody(Clauses):
    """What a CREATE QUERY asks; the nodes of each kind are in its folder (`syntax.py`)."""

    #: The keyword of the kind.
    kind: ClassVar[str]

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The streams that it names, as written."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class CreateQuery(Clauses):
    """`CREATE QUERY name AS query THRESHOLD r`."""

    name: str
    body: QueryBody
    threshold: int | float | None = None


Statement = CreateStream | CreateRelation | CreateQuery


@dataclass(frozen=True, slots=True)
class Workbook(Node):
    """The statements of one text, in order."""

    statements: tuple[Statement, ...]
