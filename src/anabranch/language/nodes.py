"""The syntax tree that the parser builds from workbook text, before names are resolved.

Every node is frozen and has a `span` that equality ignores, so that `parse(unparse(tree)) == tree`. Names keep the case
in which they were written; comparisons ignore case. Lists (`And`, `Or`, `steps`) are flat tuples, so a long text does
not make a deep tree.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import ClassVar

from anabranch.errors import Span

NOWHERE = Span(1, 1, 1, 1)

#: The name of a query without CREATE QUERY; no other name is like it unless it is in backticks.
BARE_QUERY = "(query)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Base class of all nodes; has the position in the text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses(Node):
    """A node with clauses; `clause_spans` has the span of each written clause, by its keyword."""

    clause_spans: Mapping[str, Span] = field(default_factory=dict, compare=False, repr=False)

    def clause_span(self, clause: str) -> Span:
        """The span of a clause, or of the whole node if the clause is not written."""
        return self.clause_spans.get(clause, self.span)


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
    """`_` as a term of a goal: matches any value, and binds no variable."""


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`x.tag`, or `x.tag['none']` with the value to use if x is missing, which may be a column: `x.tag[y.tag]`."""

    owner: str
    name: str
    default: Literal | Attribute | None = None


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
    """`left op right`, op one of `= <> < <= > >=` (`!=` becomes `<>`)."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class InRange(Node):
    """`operand IN [low, high]`, or the equivalent `BETWEEN low AND high`."""

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
class Windowed(Node):
    """`operand WITHIN 3`: a condition on values of instants that are at most 3 apart."""

    operand: Expr
    window: Duration


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
    """A conjunction of two or more items, none of which is an And."""

    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    """A disjunction of two or more items, none of which is an Or."""

    items: tuple[Expr, ...]


Expr = (
    Literal | Duration | Variable | Attribute | Negate | Arithmetic
    | Compare | InRange | InList | IsNull | Windowed | Call | Not | And | Or
)  # fmt: skip


def variables_in(expression: Expr) -> Iterator[Variable]:
    """The bare names of an expression, each once."""
    seen: set[str] = set()
    stack: list[object] = [expression]
    while stack:
        part = stack.pop()
        if isinstance(part, Variable) and part.name.lower() not in seen:
            seen.add(part.name.lower())
            yield part
        elif isinstance(part, tuple):
            stack += part[::-1]
        elif isinstance(part, Node):
            stack += [getattr(part, own.name) for own in fields(part) if own.name != "span"][::-1]


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class ColumnName(Node):
    """`person` or `person STRING`; `type_name` as written, None if the type comes from the source.

    `case_id AS case` has the name `case` and the `source` case_id. `kmh = speed * 3.6` has an `expression` over columns
    of the source.
    A field of a struct, `a.car`, is a column with a dot in its name.
    """

    name: str
    type_name: str | None = None
    source: str | None = None
    expression: Expr | None = None


@dataclass(frozen=True, slots=True)
class Option(Node):
    """`sep = ';'` inside OPTIONS."""

    name: str
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class FileSource(Node):
    """`FROM 'path' FORMAT parquet OPTIONS (...)`; `format` in lower case, None if the extension says it."""

    path: str
    options: tuple[Option, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectorSource(Node):
    """`FROM KAFKA 'topic' OPTIONS (...)`; `connector` in upper case, SOURCE for a source of Spark.

    `address` says what is read: a topic, or the name of a source.
    """

    connector: str
    address: str
    options: tuple[Option, ...] = ()


@dataclass(frozen=True, slots=True)
class TableSource(Node):
    """`FROM TABLE name`; a dotted name is one string."""

    name: str


@dataclass(frozen=True, slots=True)
class QuerySource(Node):
    """`FROM QUERY name`."""

    name: str


@dataclass(frozen=True, slots=True)
class InferredSource(Node):
    """`INFERRED FROM readings USING HMM 'building/' METHOD PARTICLE(100) STEP 5 SECONDS PRUNE 1e-6 EXPIRE 1 HOUR`.

    `argument` is a number in brackets, or a duration (`METHOD LAG 5 SECONDS`). `by` is the column of the readings that
    says which of several models a key has (`USING HMM 'building/' BY kind`).
    """

    stream: str
    family: str
    path: str
    method: str
    argument: int | float | Duration | None = None
    step: Duration | None = None
    prune: int | float | None = None
    expire: Duration | None = None
    by: str | None = None


@dataclass(frozen=True, slots=True)
class PredictedSource(Node):
    """`PREDICTED FROM positions USING KALMAN(0.5, 2)`; `method` in upper case, LINEAR without USING."""

    stream: str
    method: str = "LINEAR"
    arguments: tuple[int | float, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentedSource(Node):
    """`INTERVALS FROM speeds WHILE speed < 30 FOR AT LEAST 60 SECONDS`, with the clause `SILENCE 5 MINUTES`."""

    stream: str
    condition: Expr
    at_least: Duration | None = None
    silence: Duration | None = None


#: Sources whose rows are derived from the rows of another stream.
DerivedSource = InferredSource | PredictedSource | SegmentedSource

Source = FileSource | ConnectorSource | TableSource | QuerySource | DerivedSource


@dataclass(frozen=True, slots=True)
class ErrorBound(Node):
    """`ERROR 25`, or one item of `ERROR (x = 25, y = spread NORMAL 10)`; `column` None means every value column.

    If each row has its own error, `amount` is None and `source` names the column. `normal` is the standard deviation of
    a normal error, None for a uniform one.
    """

    column: str | None
    amount: int | float | None
    source: str | None = None
    normal: int | float | None = None


@dataclass(frozen=True, slots=True)
class SegmentLaw(Node):
    """The distribution of DURATION and GAP: `EXPONENTIAL(5 MINUTES)`, `ERLANG(3, mean)`; an argument may be a column.

    `FITTED 'durations.csv' BY activity` has a `path`, and in `by` the column of the class of a segment.
    """

    law: str
    arguments: tuple[Duration | ColumnName, ...]
    path: str | None = None
    by: str | None = None

    @property
    def mean(self) -> Duration | ColumnName:
        """The mean, which is the last argument of every law but FITTED."""
        return self.arguments[-1]

    @property
    def column(self) -> str | None:
        """The column that a row has for this law: its mean, or its class."""
        if self.path is not None:
            return self.by
        return self.mean.name if isinstance(self.mean, ColumnName) else None

    @property
    def phases(self) -> int:
        """The k of ERLANG; 1 for EXPONENTIAL."""
        first = self.arguments[0]
        return int(first.amount) if len(self.arguments) > 1 and isinstance(first, Duration) else 1


@dataclass(frozen=True, slots=True)
class Join(Node):
    """`JOIN sensors USING (sensor)` or `LEFT JOIN sensors ON id = sensors.sensor`.

    `using` has the names of columns that both sides have; otherwise `on` is a conjunction of equalities.
    """

    relation: str
    using: tuple[str, ...] = ()
    on: Expr | None = None
    left: bool = False


@dataclass(frozen=True, slots=True)
class CreateStream(Clauses):
    """`CREATE STREAM`. A clause that is not written is None or empty.

    `TIME (a, b)` sets `start` to a and `time` to b; a type after the parentheses applies to both. `space` has two
    or three columns of coordinates, or one column of geometries. `time_format` and `zone` say how times are written.
    `computed` has the computed column of `PROBABILITY p = percent / 100`. A stream that another statement implies is
    `implied`: that of a WITH, and the answers of INTERVALS FROM QUERY.
    """

    #: What messages call it.
    what: ClassVar[str] = "stream"
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
    duration: SegmentLaw | None = None
    gap: SegmentLaw | None = None
    error: tuple[ErrorBound, ...] = ()
    period: Duration | None = None
    space: tuple[str, ...] | None = None
    geodesic: bool = False
    watermark: Duration | None = None
    source: Source | None = None
    start: ColumnName | None = None
    or_replace: bool = False
    origin: tuple[float, float] | None = None
    time_format: str | None = None
    zone: str | None = None
    computed: tuple[ColumnName, ...] = ()
    joins: tuple[Join, ...] = ()
    where: Expr | None = None
    idle_after: Duration | None = None
    max_ahead: Duration | None = None
    clustered: tuple[str, ...] = ()
    implied: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class CreateRelation(Node):
    """`CREATE RELATION hall (location) FROM 'hall.csv'`."""

    what: ClassVar[str] = "relation"
    name: str
    columns: tuple[ColumnName, ...]
    source: Source | None = None
    or_replace: bool = False


# ---------------------------------------------------------------- queries


@dataclass(frozen=True, slots=True)
class Operand(Node):
    """`stream AS name` in a FROM; `alias` is None without AS."""

    stream: str
    alias: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryBody(Clauses, ABC):
    """The query after AS in CREATE QUERY; each kind has a subclass in its `syntax.py`."""

    #: The keyword of the kind.
    kind: ClassVar[str]

    @property
    @abstractmethod
    def stream_names(self) -> tuple[str, ...]:
        """The names of its streams, as written."""

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of the queries that it combines, as written."""
        return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperandQueryBody(QueryBody):
    """A query whose streams are the operands of its FROM clause."""

    operands: tuple[Operand, ...]

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of its streams, as written."""
        return tuple(operand.stream for operand in self.operands)


@dataclass(frozen=True, slots=True)
class PerWindow(Node):
    """`PER 1 DAY AT LEAST 3 TIMES`: one row per window of time and keys; `at_least` is 1 without AT LEAST."""

    length: Duration
    at_least: int = 1


@dataclass(frozen=True, slots=True)
class PerEpisode(Node):
    """`PER EPISODE ABOVE 0.5 GAP 10 MINUTES`: one row per run of answers that follow each other."""

    above: int | float | None = None
    gap: Duration | None = None


@dataclass(frozen=True, slots=True)
class PerKeys(Node):
    """`PER KEYS`: one row per set of keys."""


Per = PerWindow | PerEpisode | PerKeys


@dataclass(frozen=True, slots=True)
class Target(Node):
    """`TO KAFKA 'alerts' OPTIONS (...)`, or `TO 'folder/' FORMAT csv`; `system` in upper case, None for a folder."""

    system: str | None
    name: str
    options: tuple[Option, ...] = ()
    format: str | None = None


@dataclass(frozen=True, slots=True)
class CreateQuery(Clauses):
    """`CREATE QUERY name TO target AS body PER d THRESHOLD r CALIBRATED BY 'file' ORDER BY probability DESC LIMIT n`.

    `calibrated` is the path of the file, `limit` the n of ORDER BY ... LIMIT. The queries of a WITH are statements of
    their own, which are `implied`.
    """

    what: ClassVar[str] = "query"
    name: str
    body: QueryBody
    threshold: int | float | None = None
    calibrated: str | None = None
    or_replace: bool = False
    per: Per | None = None
    limit: int | None = None
    target: Target | None = None
    implied: bool = field(default=False, compare=False)


Statement = CreateStream | CreateRelation | CreateQuery


@dataclass(frozen=True, slots=True)
class Workbook(Node):
    """The statements of one text, in order."""

    statements: tuple[Statement, ...]

    @property
    def written(self) -> tuple[Statement, ...]:
        """The statements that are in the text, without those that they imply."""
        return tuple(node for node in self.statements if isinstance(node, CreateRelation) or not node.implied)
