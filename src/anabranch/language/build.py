"""Parse tree to syntax tree: one method per grammar rule, applied from the leaves up in a loop, without recursion."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from lark import Token, Tree

from anabranch.errors import Span
from anabranch.kinds import KINDS, load_kind_module
from anabranch.language import limits, nodes
from anabranch.language.build_clauses import Clause, QueryBuilder, QueryFields
from anabranch.language.names import ANSWERS, LOCAL_QUERY, quoted

Options = tuple[nodes.Option, ...]

#: A query of a WITH: its name, what it asks, and where it is.
LocalQuery = tuple[Token, tuple[nodes.QueryBody, QueryFields], Span]


class StatementBuilder(QueryBuilder):
    """The grammar rules of statements; `build` turns one parse tree into one statement."""

    def build(self, tree: Tree[Token]) -> nodes.Statement | None:
        """Return the statement, or None if building it added findings."""
        #: The statements that it implies: queries of a WITH, and streams of answers.
        self.implied: list[nodes.Statement] = []
        n_findings = len(self.findings.items)
        values: dict[int, Any] = {}
        depths: dict[int, int] = {}
        for subtree in tree.iter_subtrees():
            span = self.lines.span(subtree.meta.start_pos, subtree.meta.end_pos)
            child_trees = [child for child in subtree.children if isinstance(child, Tree)]
            depths[id(subtree)] = depth = 1 + max((depths[id(child)] for child in child_trees), default=0)
            if depth > limits.MAX_DEPTH:
                hint = "shorten the chain of operators, or split it with AND"
                message = f"this expression nests more than {limits.MAX_DEPTH} operations"
                self.findings.add("too-deep", message, span, hint)
                return None
            children = [values[id(child)] if isinstance(child, Tree) else child for child in subtree.children]
            values[id(subtree)] = getattr(self, subtree.data)(span, *children)
        statement: nodes.Statement = values[id(tree)]
        return statement if len(self.findings.items) == n_findings else None

    # ------------------------------------------------------------ CREATE STREAM, CREATE RELATION

    def or_replace(self, span: Span) -> bool:
        return True

    def create_stream(
        self, span: Span, or_replace: bool | None, name: Token, *clauses: Clause | nodes.Join
    ) -> nodes.CreateStream:
        joins = tuple(clause for clause in clauses if isinstance(clause, nodes.Join))
        written, clause_spans = self.collect_clauses(tuple(clause for clause in clauses if isinstance(clause, Clause)))
        fields = {"keys": (), "values": (), "time": None, "joins": joins} | written
        method = fields.pop("using", {})
        silence, of_answers = fields.pop("silence", None), fields.pop("of_answers", False)
        if isinstance(fields.get("source"), nodes.PredictedSource):
            fields["source"] = replace(fields["source"], **method)
        if isinstance(fields.get("source"), nodes.SegmentedSource):
            fields["source"] = replace(fields["source"], silence=silence)
        if of_answers:
            fields |= self._segmented_answers(name.value, fields, bool(or_replace))
        return nodes.CreateStream(
            name.value, **fields, or_replace=bool(or_replace), span=span, clause_spans=clause_spans
        )

    def _segmented_answers(self, name: str, fields: dict[str, Any], or_replace: bool) -> dict[str, Any]:
        """Imply the stream of answers that segments are made from, and return the fields that refer to it."""
        source, keys, time = fields["source"], fields["keys"], fields["time"]
        named = {column.name.lower() for column in (*keys, *([] if time is None else [time]))}
        values = tuple(
            nodes.ColumnName(variable.name, span=variable.span)
            for variable in nodes.variables_in(source.condition)
            if variable.name.lower() not in named
        )
        read = nodes.QuerySource(source.stream, span=source.span)
        answers = nodes.CreateStream(
            f"{name}{ANSWERS}", keys, values, time, "CERTAIN",
            source=read, or_replace=or_replace, implied=True, span=source.span,
        )  # fmt: skip
        self.implied.append(answers)
        # The answers have the names of this stream.
        plain = [column and replace(column, source=None) for column in (*keys, time)]
        return {"source": replace(source, stream=answers.name), "keys": tuple(plain[:-1]), "time": plain[-1]}

    def create_relation(self, span: Span, or_replace: bool | None, name: Token, *rest: Any) -> nodes.CreateRelation:
        *columns, source = rest
        return nodes.CreateRelation(
            name.value, tuple(columns), source and source.values["source"], bool(or_replace), span=span
        )

    def column(self, span: Span, name: Token, type_name: Token | None) -> nodes.ColumnName:
        return nodes.ColumnName(name.value, type_name and type_name.value, span=span)

    def field_column(self, span: Span, struct: Token, field: Token, type_name: Token | None) -> nodes.ColumnName:
        # A field of a struct of a query's answers; the answers have a column of this name for it.
        return nodes.ColumnName(f"{struct.value}.{field.value}", type_name and type_name.value, span=span)

    def key(self, span: Span, *columns: nodes.ColumnName) -> Clause:
        return Clause("KEY", {"keys": columns}, span)

    def value(self, span: Span, *columns: nodes.ColumnName) -> Clause:
        return Clause("VALUE", {"values": columns}, span)

    def renamed(self, span: Span, source: Token, type_name: Token | None, name: Token) -> nodes.ColumnName:
        return nodes.ColumnName(name.value, type_name and type_name.value, source.value, span=span)

    def renamed_field(
        self, span: Span, struct: Token, field: Token, type_name: Token | None, name: Token
    ) -> nodes.ColumnName:
        column = self.field_column(span, struct, field, type_name)
        return replace(column, name=name.value, source=column.name)

    def computed(self, span: Span, name: Token, _equal: Token, expression: nodes.Expr) -> nodes.ColumnName:
        return nodes.ColumnName(name.value, expression=expression, span=span)

    def time(self, span: Span, column: nodes.ColumnName) -> Clause:
        return Clause("TIME", {"time": column}, span)

    def time_range(self, span: Span, start: nodes.ColumnName, end: nodes.ColumnName, both_type: Token | None) -> Clause:
        columns = {"start": start, "time": end}
        if both_type is not None:
            if start.type_name is not None or end.type_name is not None:
                message = "TIME has types both inside and after its parentheses"
                self.findings.add("clause-twice", message, self.span_of(both_type), "write the types once")
            columns = {
                name: replace(column, type_name=column.type_name or both_type.value) for name, column in columns.items()
            }
        return Clause("TIME", columns, span)

    def time_format(self, span: Span, text: Token) -> Clause:
        return Clause("FORMAT", {"time_format": text.value}, span)

    def zone(self, span: Span, text: Token) -> Clause:
        return Clause("ZONE", {"zone": text.value}, span)

    def join(self, span: Span, relation: Token, keys: dict[str, Any]) -> nodes.Join:
        return nodes.Join(relation.value, **keys, span=span)

    def left_join(self, span: Span, relation: Token, keys: dict[str, Any]) -> nodes.Join:
        return nodes.Join(relation.value, **keys, left=True, span=span)

    def join_using(self, span: Span, *names: Token) -> dict[str, Any]:
        return {"using": tuple(name.value for name in names)}

    def join_on(self, span: Span, condition: nodes.Expr) -> dict[str, Any]:
        return {"on": condition}

    def model(self, span: Span, name: Token) -> Clause:
        return Clause("MODEL", {"model": name.value.upper()}, span)

    def order(self, span: Span, name: Token) -> Clause:
        return Clause("ORDER", {"order": name.value}, span)

    def probability(self, span: Span, column: nodes.ColumnName) -> Clause:
        computed = () if column.expression is None else (column,)
        return Clause("PROBABILITY", {"probability": column.name, "computed": computed}, span)

    def probability_column(self, span: Span, name: Token) -> nodes.ColumnName:
        return nodes.ColumnName(name.value, span=span)

    def horizon(self, span: Span, low: nodes.Expr, high: nodes.Expr) -> Clause:
        return Clause("HORIZON", {"horizon": (low, high)}, span)

    def length(self, span: Span, name: Token) -> Clause:
        return Clause("LENGTH", {"length": name.value}, span)

    def role(self, span: Span, name: Token) -> Clause:
        return Clause("ROLE", {"role": name.value}, span)

    def window(self, span: Span, low: Token, high: Token) -> Clause:
        return Clause("WINDOW", {"window": (low.value, high.value)}, span)

    def duration_of_segments(self, span: Span, law: nodes.SegmentLaw) -> Clause:
        return Clause("DURATION", {"duration": law}, span)

    def duration_of_gaps(self, span: Span, law: nodes.SegmentLaw) -> Clause:
        return Clause("GAP", {"gap": law}, span)

    def segment_law(self, span: Span, law: Token, *arguments: nodes.Duration | Token) -> nodes.SegmentLaw:
        written = (
            nodes.ColumnName(argument.value, None, span=self.span_of(argument))
            if isinstance(argument, Token)
            else argument
            for argument in arguments
        )
        return nodes.SegmentLaw(law.value.upper(), tuple(written), span=span)

    def fitted_law(self, span: Span, law: Token, path: Token, by: Token | None) -> nodes.SegmentLaw:
        return nodes.SegmentLaw(law.value.upper(), (), path.value, by and by.value, span=span)

    def error(self, span: Span, *bounds: nodes.ErrorBound) -> Clause:
        return Clause("ERROR", {"error": bounds}, span)

    def error_everywhere(self, span: Span, amount: int | float | Token, normal: int | float | None) -> nodes.ErrorBound:
        return _error_bound(span, None, amount, normal)

    def error_of(
        self, span: Span, column: Token, _equal: Token, amount: int | float | Token, normal: int | float | None
    ) -> nodes.ErrorBound:
        return _error_bound(span, column.value, amount, normal)

    def period(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("PERIOD", {"period": duration}, span)

    def space(self, span: Span, *parts: Any) -> Clause:
        *columns, geodesic = parts
        names = tuple(name.value for name in columns if name is not None)
        origin = tuple(geodesic or ()) or None
        return Clause("SPACE", {"space": names, "geodesic": geodesic is not None, "origin": origin}, span)

    def geodesic(self, span: Span, longitude: int | float | None, latitude: int | float | None) -> list[float]:
        """The origin of a local projection; empty without one."""
        return [float(degrees) for degrees in (longitude, latitude) if degrees is not None]

    def watermark(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("WATERMARK", {"watermark": duration}, span)

    def idle(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("IDLE AFTER", {"idle_after": duration}, span)

    def max_ahead(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("MAX AHEAD", {"max_ahead": duration}, span)

    def clustered(self, span: Span, *names: Token) -> Clause:
        return Clause("CLUSTERED BY", {"clustered": tuple(name.value for name in names)}, span)

    def source(self, span: Span, source: nodes.Source) -> Clause:
        return Clause("FROM", {"source": source}, span)

    def file_source(
        self, span: Span, path: Token, _word: Token | None, name: Token | None, options: Options | None
    ) -> nodes.FileSource:
        return nodes.FileSource(path.value, options or (), name and name.value.lower(), span=span)

    def connector_source(
        self, span: Span, connector: str, address: Token, options: Options | None
    ) -> nodes.ConnectorSource:
        return nodes.ConnectorSource(connector, address.value, options or (), span=span)

    def connector(self, span: Span, word: Token) -> str:
        return str(word.value).upper()

    def options(self, span: Span, *options: nodes.Option) -> Options:
        return options

    def option(self, span: Span, name: Token, _equal: Token, value: Any) -> nodes.Option:
        plain_value: Any = value.value if isinstance(value, nodes.Literal) else value
        return nodes.Option(name.value, plain_value, span=span)

    def table_source(self, span: Span, *parts: Token) -> nodes.TableSource:
        return nodes.TableSource(".".join(quoted(part.value) for part in parts), span=span)

    def query_source(self, span: Span, name: Token) -> nodes.QuerySource:
        return nodes.QuerySource(name.value, span=span)

    def time_step(self, span: Span, step: nodes.Duration) -> Clause:
        return Clause("STEP", {"step": step}, span)

    def prune(self, span: Span, least: int | float) -> Clause:
        return Clause("PRUNE", {"prune": least}, span)

    def expire(self, span: Span, after: nodes.Duration) -> Clause:
        return Clause("EXPIRE", {"expire": after}, span)

    def inferred(
        self,
        span: Span,
        stream: Token,
        family: Token,
        path: Token,
        by: Token | None,
        method: Token,
        argument: int | float | nodes.Duration | None,
        *options: Clause,
    ) -> Clause:
        fields, _ = self.collect_clauses(options)
        source = nodes.InferredSource(
            stream.value, family.value.upper(), path.value, method.value.upper(), argument, **fields,
            by=None if by is None else by.value, span=span,
        )  # fmt: skip
        # A stream has one source, so FROM, INFERRED FROM and PREDICTED FROM count as the same clause.
        return Clause("FROM", {"source": source}, span)

    def predicted(self, span: Span, stream: Token) -> Clause:
        return Clause("FROM", {"source": nodes.PredictedSource(stream.value, span=span)}, span)

    def segmented(self, span: Span, stream: Token, condition: nodes.Expr, at_least: nodes.Duration | None) -> Clause:
        return Clause("FROM", {"source": nodes.SegmentedSource(stream.value, condition, at_least, span=span)}, span)

    def segmented_answers(
        self, span: Span, query: Token, condition: nodes.Expr, at_least: nodes.Duration | None
    ) -> Clause:
        # `create_stream` makes a stream of the answers.
        source = nodes.SegmentedSource(query.value, condition, at_least, span=span)
        return Clause("FROM", {"source": source, "of_answers": True}, span)

    def silence(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("SILENCE", {"silence": duration}, span)

    def using(self, span: Span, method: Token, *arguments: int | float | None) -> Clause:
        numbers = tuple(number for number in arguments if number is not None)
        return Clause("USING", {"using": {"method": method.value.upper(), "arguments": numbers}}, span)

    # ------------------------------------------------------------ CREATE QUERY

    def create_query(
        self, span: Span, or_replace: bool | None, name: Token, target: nodes.Target | None,
        local: list[LocalQuery] | None, query: tuple[nodes.QueryBody, QueryFields],
    ) -> nodes.CreateQuery:  # fmt: skip
        body, fields = query
        self._imply(local, bool(or_replace))
        return nodes.CreateQuery(
            name.value, body, **fields, or_replace=bool(or_replace), target=target, span=span,
            clause_spans=body.clause_spans,
        )  # fmt: skip

    def target(self, span: Span, system: Token, name: Token, options: Options | None) -> nodes.Target:
        return nodes.Target(system.value.upper(), name.value, options or (), span=span)

    def folder_target(self, span: Span, path: Token, _word: Token | None, name: Token | None) -> nodes.Target:
        return nodes.Target(None, path.value, (), name and name.value.lower(), span=span)

    def local_queries(self, span: Span, *queries: LocalQuery) -> list[LocalQuery]:
        return list(queries)

    def local_query(self, span: Span, name: Token, query: tuple[nodes.QueryBody, QueryFields]) -> LocalQuery:
        return name, query, span

    def _imply(self, local: list[LocalQuery] | None, or_replace: bool) -> None:
        """Imply a query and the stream of its answers for each query of a WITH."""
        for name, (body, fields), span in local or ():
            query = nodes.CreateQuery(
                f"{name.value}{LOCAL_QUERY}", body, **fields, or_replace=or_replace, implied=True, span=span,
                clause_spans=body.clause_spans,
            )  # fmt: skip
            source = nodes.QuerySource(query.name, span=span)
            answers = nodes.CreateStream(
                name.value, (), (), None, source=source, or_replace=or_replace, implied=True, span=span
            )
            self.implied += [query, answers]

    def bare_query(
        self, span: Span, local: list[LocalQuery] | None, query: tuple[nodes.QueryBody, QueryFields]
    ) -> nodes.CreateQuery:
        body, fields = query
        self._imply(local, or_replace=False)
        return nodes.CreateQuery(nodes.BARE_QUERY, body, **fields, span=span, clause_spans=body.clause_spans)


def _error_bound(
    span: Span, column: str | None, amount: int | float | Token, normal: int | float | None
) -> nodes.ErrorBound:
    """The error of one value column, or of all if `column` is None: a number, or the column that holds it."""
    if isinstance(amount, Token):
        return nodes.ErrorBound(column, None, amount.value, normal, span=span)
    return nodes.ErrorBound(column, amount, None, normal, span=span)


@cache
def builder() -> type[StatementBuilder]:
    """The builder class with the rules of statements and of every kind of query."""
    kind_builders = (load_kind_module(kind, "syntax").Builder for kind in KINDS)
    return type("Builder", (StatementBuilder, *kind_builders), {})
