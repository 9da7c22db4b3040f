"""Parse tree to syntax tree: one method a grammar rule, applied from the leaves up by a loop, never by recursion."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from lark import Token, Tree

from anabranch.errors import Span
from anabranch.kinds import KINDS, load_kind_module
from anabranch.language import limits, nodes
from anabranch.language.build_clauses import Clause, QueryBuilder
from anabranch.language.names import quoted


class StatementBuilder(QueryBuilder):
    """The rules of statements; `build` makes one statement of one parse tree."""

    def build(self, tree: Tree[Token]) -> nodes.Statement | None:
        """The statement, None where the findings say why there is none."""
        before = len(self.findings.found)
        values: dict[int, Any] = {}
        depths: dict[int, int] = {}
        for subtree in tree.iter_subtrees():
            span = self.places.span(subtree.meta.start_pos, subtree.meta.end_pos)
            below = [child for child in subtree.children if isinstance(child, Tree)]
            depths[id(subtree)] = depth = 1 + max((depths[id(child)] for child in below), default=0)
            if depth > limits.MAX_DEPTH:
                hint = "shorten the chain of operators, or split it with AND"
                self.findings.add(
                    "too-deep", f"this expression is more than {limits.MAX_DEPTH} operations deep", span, hint
                )
                return None
            children = [values[id(child)] if isinstance(child, Tree) else child for child in subtree.children]
            values[id(subtree)] = getattr(self, subtree.data)(span, *children)
        statement: nodes.Statement = values[id(tree)]
        return statement if len(self.findings.found) == before else None

    # ------------------------------------------------------------ CREATE STREAM, CREATE RELATION

    def create_stream(self, span: Span, name: Token, *clauses: Clause) -> nodes.CreateStream:
        fields, places = self.gathered(clauses)
        given = {"keys": (), "values": (), "time": None} | fields
        method = given.pop("using", {})
        if isinstance(given.get("source"), nodes.PredictedSource):
            given["source"] = replace(given["source"], **method)
        return nodes.CreateStream(name.value, **given, span=span, places=places)

    def create_relation(self, span: Span, name: Token, *rest: Any) -> nodes.CreateRelation:
        *columns, source = rest
        return nodes.CreateRelation(name.value, tuple(columns), source and source.values["source"], span=span)

    def column(self, span: Span, name: Token, type_name: Token | None) -> nodes.ColumnName:
        return nodes.ColumnName(name.value, type_name and type_name.value, span=span)

    def key(self, span: Span, *columns: nodes.ColumnName) -> Clause:
        return Clause("KEY", {"keys": columns}, span)

    def value(self, span: Span, *columns: nodes.ColumnName) -> Clause:
        return Clause("VALUE", {"values": columns}, span)

    def time(self, span: Span, name: Token, type_name: Token | None) -> Clause:
        return Clause("TIME", {"time": self.column(self.span_of(name), name, type_name)}, span)

    def lasting(
        self,
        span: Span,
        start: Token,
        start_type: Token | None,
        end: Token,
        end_type: Token | None,
        both_type: Token | None,
    ) -> Clause:
        if both_type is not None and (start_type is not None or end_type is not None):
            message = "the types of TIME are stated inside its brackets and after them"
            self.findings.add("clause-twice", message, self.span_of(both_type), "keep one of them")
        columns = {
            "start": self.column(self.span_of(start), start, start_type or both_type),
            "time": self.column(self.span_of(end), end, end_type or both_type),
        }
        return Clause("TIME", columns, span)

    def model(self, span: Span, name: Token) -> Clause:
        return Clause("MODEL", {"model": name.value.upper()}, span)

    def order(self, span: Span, name: Token) -> Clause:
        return Clause("ORDER", {"order": name.value}, span)

    def probability(self, span: Span, name: Token) -> Clause:
        return Clause("PROBABILITY", {"probability": name.value}, span)

    def horizon(self, span: Span, low: nodes.Expr, high: nodes.Expr) -> Clause:
        return Clause("HORIZON", {"horizon": (low, high)}, span)

    def length(self, span: Span, name: Token) -> Clause:
        return Clause("LENGTH", {"length": name.value}, span)

    def role(self, span: Span, name: Token) -> Clause:
        return Clause("ROLE", {"role": name.value}, span)

    def window(self, span: Span, low: Token, high: Token) -> Clause:
        return Clause("WINDOW", {"window": (low.value, high.value)}, span)

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

    def space(self, span: Span, first: Token, second: Token | None, geodesic: bool | None) -> Clause:
        names = tuple(name.value for name in (first, second) if name is not None)
        return Clause("SPACE", {"space": names, "geodesic": bool(geodesic)}, span)

    def geodesic(self, span: Span) -> bool:
        return True

    def watermark(self, span: Span, duration: nodes.Duration) -> Clause:
        return Clause("WATERMARK", {"watermark": duration}, span)

    def source(self, span: Span, source: nodes.Source) -> Clause:
        return Clause("FROM", {"source": source}, span)

    def file_source(self, span: Span, path: Token, *options: nodes.Option | None) -> nodes.FileSource:
        return nodes.FileSource(path.value, tuple(option for option in options if option), span=span)

    def option(self, span: Span, name: Token, _equal: Token, value: Any) -> nodes.Option:
        plain: Any = value.value if isinstance(value, nodes.Literal) else value
        return nodes.Option(name.value, plain, span=span)

    def table_source(self, span: Span, *parts: Token) -> nodes.TableSource:
        return nodes.TableSource(".".join(quoted(part.value) for part in parts), span=span)

    def query_source(self, span: Span, name: Token) -> nodes.QuerySource:
        return nodes.QuerySource(name.value, span=span)

    def time_step(self, span: Span, step: nodes.Duration) -> Clause:
        return Clause("STEP", {"step": step}, span)

    def prune(self, span: Span, least: int | float) -> Clause:
        return Clause("PRUNE", {"prune": least}, span)

    def inferred(
        self,
        span: Span,
        stream: Token,
        family: Token,
        path: Token,
        method: Token,
        argument: int | float | None,
        *options: Clause,
    ) -> Clause:
        given, _ = self.gathered(options)
        source = nodes.InferredSource(
            stream.value, family.value.upper(), path.value, method.value.upper(), argument, **given, span=span
        )
        # The rows of a stream come from one place: the two forms of FROM exclude each other.
        return Clause("FROM", {"source": source}, span)

    def predicted(self, span: Span, stream: Token) -> Clause:
        return Clause("FROM", {"source": nodes.PredictedSource(stream.value, span=span)}, span)

    def using(self, span: Span, method: Token, *arguments: int | float | None) -> Clause:
        given = tuple(number for number in arguments if number is not None)
        return Clause("USING", {"using": {"method": method.value.upper(), "arguments": given}}, span)

    # ------------------------------------------------------------ CREATE QUERY

    def create_query(self, span: Span, name: Token, query: tuple[Any, int | float | None]) -> nodes.CreateQuery:
        return nodes.CreateQuery(name.value, query[0], query[1], span=span, places=query[0].places)


def _error_bound(
    span: Span, column: str | None, amount: int | float | Token, normal: int | float | None
) -> nodes.ErrorBound:
    """The error of a column, or of all of them: a number, or the name of the column that holds it."""
    if isinstance(amount, Token):
        return nodes.ErrorBound(column, None, amount.value, normal, span=span)
    return nodes.ErrorBound(column, amount, None, normal, span=span)


@cache
def builder() -> type[StatementBuilder]:
    """The builder of statements, with the rules of every kind of query."""
    kinds = (load_kind_module(kind, "syntax").Builder for kind in KINDS)
    return type("Builder", (StatementBuilder, *kinds), {})
