"""Binds how the rows of a stream are made from those of its source: AS, computed columns, JOIN, WHERE, FORMAT, ZONE.

Names in these clauses are columns of the source, or of the relations that are joined. At declaration the types of the
source are not known, so a stream is bound a second time when its source has been opened.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

from anabranch.binding.conditions import ConditionBinder
from anabranch.binding.type_rules import a_type
from anabranch.binding.typed import Member, Operation, Reference, Typed, conjuncts, walk
from anabranch.catalog import Catalog, Column, Relation, Stream
from anabranch.language import nodes
from anabranch.language.findings import Findings, listed, shown
from anabranch.language.time_patterns import time_pattern
from anabranch.language.types import Type, comparable

#: The types of a column that FORMAT or ZONE can be used with.
_WRITTEN_TYPES = (Type.STRING, Type.TIMESTAMP, Type.DATE, Type.UNKNOWN)


@dataclass(frozen=True, slots=True)
class BoundJoin:
    """A relation that is joined: for each of its key columns (lower case), the value that a row has for it."""

    relation: Relation
    keys: tuple[tuple[str, Typed], ...]
    left: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """How the rows of a stream are made from those of its source.

    Attributes
    ----------
    columns : the value of each column of the stream, by its name
    where : the condition on the rows of the source
    joins : the relations that are joined, in order
    needed : the columns of the source that are read
    written : those of them (lower case) that FORMAT or ZONE convert
    """

    columns: dict[str, Typed]
    where: Typed | None
    joins: tuple[BoundJoin, ...]
    needed: tuple[Column, ...]
    written: frozenset[str]

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations that are joined or looked up, each once."""
        trees = [*self.columns.values(), *([] if self.where is None else [self.where])]
        looked_up = [node.relation for tree in trees for node in walk(tree) if isinstance(node, Member)]
        joined = [join.relation for join in self.joins]
        return tuple({relation.name.lower(): relation for relation in (*joined, *looked_up)}.values())

    def source_of(self, column: str) -> str | None:
        """The column of the source that a column of the stream is equal to; None if it is computed or joined."""
        tree = next((tree for name, tree in self.columns.items() if name.lower() == column.lower()), None)
        return tree.name if isinstance(tree, Reference) and tree.owner is None else None


def has_reading(stream: Stream) -> bool:
    """Whether the rows of a stream differ from those of its source."""
    node = stream.declaration
    columns = _written_columns(node)
    return bool(
        node.joins or node.where or node.zone or node.time_format
        or any(column.source or column.expression for column in columns)
    )  # fmt: skip


def _written_columns(node: nodes.CreateStream) -> list[nodes.ColumnName]:
    times = [time for time in (node.start, node.time) if time is not None]
    return [*node.keys, *node.values, *times, *node.computed]


def bind_reading(
    stream: Stream, catalog: Catalog, findings: Findings, types: Mapping[str, Type] | None = None
) -> Reading | None:
    """How the rows of a stream are made; None if nothing is to be done, or there are findings.

    `types` are those of the source, by lower-case name; None before it is opened. The relations of `catalog` have the
    types that are known.
    """
    if not has_reading(stream):
        return None
    before = len(findings.items)
    reading = _Binder(stream, catalog, findings, types).bind()
    return reading if len(findings.items) == before else None


class _Binder:
    """Binds the clauses of one stream; also the scope of their names."""

    functions: Collection[str] = ("ABS",)

    def __init__(self, stream: Stream, catalog: Catalog, findings: Findings, types: Mapping[str, Type] | None) -> None:
        self.stream, self.catalog, self.findings, self.types = stream, catalog, findings, types
        self.binder = ConditionBinder(catalog, findings, self)
        self.declared = _written_columns(stream.declaration)
        self.joined: dict[str, tuple[Relation, frozenset[str]]] = {}
        self.needed: dict[str, Column] = {}
        self.written = frozenset(_converted(stream)) if _has_written_times(stream.declaration) else frozenset()

    def bind(self) -> Reading:
        """The reading; with findings, it is not complete."""
        node = self.stream.declaration
        self.check_times()
        joins = tuple(join for join in map(self.join, node.joins) if join is not None)
        columns = {column.name: tree for column in self.stream.columns if (tree := self.column(column)) is not None}
        where = None if node.where is None else self.binder.condition(node.where)
        return Reading(columns, where, joins, tuple(self.needed.values()), self.written)

    # ------------------------------------------------------------ columns and times

    def column(self, column: Column) -> Typed | None:
        """The value of a column of the stream."""
        name = column.name.lower()
        written = next((node for node in self.declared if node.name.lower() == name), None)
        if written is not None and written.expression is not None:
            tree = self.binder.expression(written.expression)
            if tree is not None and tree.type is Type.NULL:
                self.findings.add(
                    "computed-null", f"{shown(column.name)} is always NULL", written.span, "write a value"
                )
            return tree
        span = self.stream.declaration.span if written is None else written.span
        return self.variable(nodes.Variable(source_name(self.stream, column.name), span=span))

    def check_times(self) -> None:
        """Report FORMAT and ZONE that cannot be used, and times that they cannot be used for."""
        node = self.stream.declaration
        if node.time_format is not None:
            try:
                time_pattern(node.time_format)
            except ValueError as error:
                hint = "write a pattern of Spark, such as 'yyyy/MM/dd HH:mm:ss'"
                self.findings.add("time-format", str(error), node.clause_span("FORMAT"), hint)
        if node.zone is not None and not _is_zone(node.zone):
            message = f"there is no time zone {shown(node.zone)}"
            self.findings.add("time-zone", message, node.clause_span("ZONE"), "write a name such as 'Europe/Zurich'")
        if not _has_written_times(node):
            return
        clause = "FORMAT" if node.time_format is not None else "ZONE"
        for time in (node.start, node.time):
            if time is not None and time.expression is not None:
                message = f"{clause} converts a column of the source, but {shown(time.name)} is computed"
                self.findings.add(
                    "time-format", message, node.clause_span(clause), f"remove {clause}, or name a column"
                )
        for name in sorted(self.written):
            kind = Type.UNKNOWN if self.types is None else self.types.get(name, Type.UNKNOWN)
            allowed = (Type.STRING, Type.UNKNOWN) if node.time_format is not None else _WRITTEN_TYPES
            if kind not in allowed:
                message = f"{clause} needs times as {listed(item.value for item in allowed[:-1])}"
                message += f", but {shown(name)} is {a_type(kind)}"
                self.findings.add("time-format", message, node.clause_span(clause), f"remove {clause}")

    # ------------------------------------------------------------ relations

    def join(self, node: nodes.Join) -> BoundJoin | None:
        """A joined relation."""
        relation = self.catalog.relation(node.relation)
        if relation is None:
            names = self.catalog.names((Relation,))
            hint = f"the relations are {listed(names, 'and')}" if names else "declare it with CREATE RELATION"
            self.findings.unknown("relation", node.relation, names, node.span, hint)
            return None
        if relation.name.lower() in (*self.joined, self.stream.name.lower()):
            message = f"relation {shown(relation.name)} is joined twice"
            self.findings.add("name-twice", message, node.span, "remove one JOIN")
            return None
        columns = {column.name.lower(): column for column in relation.columns}
        unknown = [name for name in node.using if name.lower() not in columns]
        if unknown:
            hint = f"its columns are {listed(columns, 'and')}"
            self.findings.unknown("column", unknown[0], columns, node.span, hint, f"relation {relation.name}")
            return None
        using = [(name.lower(), self.source(name)) for name in node.using]
        self.joined[relation.name.lower()] = relation, frozenset(name for name, _ in using)
        keys = tuple(using) if node.on is None else tuple(self.join_keys(relation, node.on))
        for name, value in keys:
            if not comparable(columns[name].type, value.type):
                kinds = f"{a_type(columns[name].type)}, but {a_type(value.type)} is joined with it"
                self.findings.add("type-mismatch", f"{relation.name}.{name} is {kinds}", node.span)
        return BoundJoin(relation, keys, node.left)

    def join_keys(self, relation: Relation, node: nodes.Expr) -> Iterator[tuple[str, Typed]]:
        """The equalities of ON: a column of the relation, and a value without columns of the relation."""
        condition, name = self.binder.condition(node), relation.name.lower()
        for part in conjuncts(condition):
            sides = part.arguments if isinstance(part, Operation) and part.op == "=" else ()
            own = [side for side in sides if isinstance(side, Reference) and side.owner == name]
            others = [side for side in sides if not any(_is_of(inner, name) for inner in walk(side))]
            if len(own) != 1 or len(others) != 1:
                message = f"ON must equate columns of {relation.name} with columns of the source"
                hint = f"write ON {self.stream.name}.id = {relation.name}.{relation.columns[0].name}"
                self.findings.add("join-on", message, part.span, hint)
                return
            yield own[0].name, others[0]

    # ------------------------------------------------------------ the scope of names

    def variable(self, node: nodes.Variable) -> Reference | None:
        """A column of the source, or of a joined relation."""
        name = node.name.lower()
        owners = [
            relation for relation, using in self.joined.values()
            if name not in using and name in (column.name.lower() for column in relation.columns)
        ]  # fmt: skip
        in_source = not owners or (self.types is not None and name in self.types)
        if len(owners) + in_source > 1:
            where = [*(relation.name for relation in owners), *([self.stream.name] if in_source else [])]
            message = f"column {shown(node.name)} is in {listed(where, 'and')}"
            self.findings.add("ambiguous-column", message, node.span, f"write {listed(f'{w}.{name}' for w in where)}")
            return None
        return self.source(node.name, node) if in_source else self.of_relation(owners[0], node.name, node)

    def attribute(self, node: nodes.Attribute) -> Reference | None:
        """A column of the source (`stream.column`), or of a joined relation (`relation.column`)."""
        if node.default is not None:
            message = "only SEQUENCE allows a default for a missing event"
            self.findings.add("no-default", message, node.span, "remove the [...]")
            return None
        owner = node.owner.lower()
        if owner == self.stream.name.lower():
            return self.source(node.name, node)
        if owner not in self.joined:
            hint = f"write JOIN {node.owner} USING (...)" if self.catalog.relation(owner) else "remove it"
            names = [self.stream.name, *(relation.name for relation, _ in self.joined.values())]
            self.findings.unknown("name", node.owner, names, node.span, hint, f"stream {self.stream.name}")
            return None
        return self.of_relation(self.joined[owner][0], node.name, node)

    def event(self, node: nodes.Variable, spatial: bool) -> Reference | None:
        """No function of these clauses takes a whole event."""
        return None

    def source(self, name: str, node: nodes.Node | None = None) -> Reference:
        """A column of the source, which is then needed."""
        lower = name.lower()
        if lower not in self.needed:
            self.needed[lower] = self.source_column(name)
        column = self.needed[lower]
        kind = column.type if column.declared or self.types is None else self.types.get(lower, Type.UNKNOWN)
        kind = Type.TIMESTAMP if lower in self.written else kind
        return Reference(None, lower, kind, span=self.stream.declaration.span if node is None else node.span)

    def source_column(self, name: str) -> Column:
        """A column of the source, with its type if the workbook states one."""
        lower = name.lower()
        if lower in self.written:
            text = self.stream.declaration.time_format is not None
            return Column(name, Type.STRING, declared=True) if text else Column(name)
        for column in self.stream.columns:
            computed = any(node.expression and node.name.lower() == column.name.lower() for node in self.declared)
            if not computed and source_name(self.stream, column.name).lower() == lower:
                kind = column.source_type or column.type
                return Column(name, kind, column.declared, column.source_type)
        return Column(name)

    def of_relation(self, relation: Relation, name: str, node: nodes.Node) -> Reference | None:
        """A column of a joined relation."""
        column = next((column for column in relation.columns if column.name.lower() == name.lower()), None)
        if column is None:
            names = [column.name for column in relation.columns]
            hint = f"its columns are {listed(names, 'and')}"
            self.findings.unknown("column", name, names, node.span, hint, f"relation {relation.name}")
            return None
        return Reference(relation.name.lower(), column.name.lower(), column.type, span=node.span)


def source_name(stream: Stream, name: str) -> str:
    """The column of the source that a column of the stream is read from, if it is not computed.

    `VALUE (loc AS location)` also renames `prev_loc`, `loc_rate` and `loc_accel`, the columns that models add for each
    value.
    """
    renamed = {node.name.lower(): node.source for node in _written_columns(stream.declaration) if node.source}
    lower = name.lower()
    if lower in renamed:
        return renamed[lower]
    own = {node.name.lower() for node in _written_columns(stream.declaration)}
    if lower not in own and lower.startswith("prev_") and lower.removeprefix("prev_") in renamed:
        return f"prev_{renamed[lower.removeprefix('prev_')]}"
    for suffix in ("_rate", "_accel"):
        if lower not in own and lower.endswith(suffix) and lower.removesuffix(suffix) in renamed:
            return f"{renamed[lower.removesuffix(suffix)]}{suffix}"
    return name


def optional_sources(stream: Stream) -> dict[str, Column]:
    """The optional columns of a stream, by the name of the column of the source that each is read from."""
    return {source_name(stream, column.name): column for column in stream.optional_columns}


def with_optional_columns(stream: Stream, names: Iterable[str]) -> Stream:
    """The stream with those of its optional columns that a source with these columns has."""
    known = {name.lower() for name in names}
    found = tuple(column for source, column in optional_sources(stream).items() if source.lower() in known)
    return replace(stream, accelerations=found) if found else stream


def _has_written_times(node: nodes.CreateStream) -> bool:
    return node.time_format is not None or node.zone is not None


def _converted(stream: Stream) -> Iterator[str]:
    """The columns of the source, in lower case, that FORMAT and ZONE convert."""
    computed = {node.name.lower() for node in _written_columns(stream.declaration) if node.expression is not None}
    for name in stream.time_names - computed:
        yield source_name(stream, name).lower()


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        return False
    return True


def _is_of(node: Typed, owner: str) -> bool:
    return isinstance(node, Reference) and node.owner == owner
