"""Parse tree to syntax tree: one method a grammar rule, applied from the leaves up by a loop, never by recursion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from lark import Token, Tree

from anabranch.errors import Span
from anabranch.language import limits, nodes
from anabranch.language.build_expressions import ExpressionBuilder
from anabranch.language.names import quoted


@dataclass(frozen=True, slots=True)
class _Clause:
    """One clause: its keywords, and the fields of the node it gives."""

    word: str
    values: dict[str, Any]
    span: Span


@dataclass(frozen=True, slots=True)
class _Prefix:
    """A parenthesised beginning of a pattern, its WHERE already on its last step."""

    steps: tuple[nodes.Step, ...]


class Builder(ExpressionBuilder):
    """The methods for statements; `build` makes one statement of one parse tree."""

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

    def gathered(self, clauses: tuple[_Clause, ...]) -> tuple[dict[str, Any], dict[str, Span]]:
        """The fields that clauses give, and the clauses' places; a clause written twice is a finding."""
        fields: dict[str, Any] = {}
        spans: dict[str, Span] = {}
        for clause in clauses:
            if clause.word in spans:
                first = spans[clause.word]
                message = f"{clause.word} is written twice, first at {first.line}:{first.column}"
                self.findings.add("clause-twice", message, clause.span, "keep one of them")
            spans.setdefault(clause.word, clause.span)
            fields |= clause.values
        return fields, spans

    # ------------------------------------------------------------ CREATE STREAM, CREATE RELATION

    def create_stream(self, span: Span, name: Token, *clauses: _Clause) -> nodes.CreateStream:
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

    def key(self, span: Span, *columns: nodes.ColumnName) -> _Clause:
        return _Clause("KEY", {"keys": columns}, span)

    def value(self, span: Span, *columns: nodes.ColumnName) -> _Clause:
        return _Clause("VALUE", {"values": columns}, span)

    def time(self, span: Span, name: Token, type_name: Token | None) -> _Clause:
        return _Clause("TIME", {"time": self.column(self.span_of(name), name, type_name)}, span)

    def lasting(
        self,
        span: Span,
        start: Token,
        start_type: Token | None,
        end: Token,
        end_type: Token | None,
        both_type: Token | None,
    ) -> _Clause:
        if both_type is not None and (start_type is not None or end_type is not None):
            message = "the types of TIME are stated inside its brackets and after them"
            self.findings.add("clause-twice", message, self.span_of(both_type), "keep one of them")
        columns = {
            "start": self.column(self.span_of(start), start, start_type or both_type),
            "time": self.column(self.span_of(end), end, end_type or both_type),
        }
        return _Clause("TIME", columns, span)

    def model(self, span: Span, name: Token) -> _Clause:
        return _Clause("MODEL", {"model": name.value.upper()}, span)

    def order(self, span: Span, name: Token) -> _Clause:
        return _Clause("ORDER", {"order": name.value}, span)

    def probability(self, span: Span, name: Token) -> _Clause:
        return _Clause("PROBABILITY", {"probability": name.value}, span)

    def horizon(self, span: Span, low: nodes.Expr, high: nodes.Expr) -> _Clause:
        return _Clause("HORIZON", {"horizon": (low, high)}, span)

    def length(self, span: Span, name: Token) -> _Clause:
        return _Clause("LENGTH", {"length": name.value}, span)

    def role(self, span: Span, name: Token) -> _Clause:
        return _Clause("ROLE", {"role": name.value}, span)

    def window(self, span: Span, low: Token, high: Token) -> _Clause:
        return _Clause("WINDOW", {"window": (low.value, high.value)}, span)

    def error(self, span: Span, *bounds: nodes.ErrorBound) -> _Clause:
        return _Clause("ERROR", {"error": bounds}, span)

    def error_everywhere(self, span: Span, amount: int | float | Token, normal: int | float | None) -> nodes.ErrorBound:
        return _error_bound(span, None, amount, normal)

    def error_of(
        self, span: Span, column: Token, _equal: Token, amount: int | float | Token, normal: int | float | None
    ) -> nodes.ErrorBound:
        return _error_bound(span, column.value, amount, normal)

    def period(self, span: Span, duration: nodes.Duration) -> _Clause:
        return _Clause("PERIOD", {"period": duration}, span)

    def space(self, span: Span, first: Token, second: Token | None, geodesic: bool | None) -> _Clause:
        names = tuple(name.value for name in (first, second) if name is not None)
        return _Clause("SPACE", {"space": names, "geodesic": bool(geodesic)}, span)

    def geodesic(self, span: Span) -> bool:
        return True

    def watermark(self, span: Span, duration: nodes.Duration) -> _Clause:
        return _Clause("WATERMARK", {"watermark": duration}, span)

    def source(self, span: Span, source: nodes.Source) -> _Clause:
        return _Clause("FROM", {"source": source}, span)

    def file_source(self, span: Span, path: Token, *options: nodes.Option | None) -> nodes.FileSource:
        return nodes.FileSource(path.value, tuple(option for option in options if option), span=span)

    def option(self, span: Span, name: Token, _equal: Token, value: Any) -> nodes.Option:
        plain: Any = value.value if isinstance(value, nodes.Literal) else value
        return nodes.Option(name.value, plain, span=span)

    def table_source(self, span: Span, *parts: Token) -> nodes.TableSource:
        return nodes.TableSource(".".join(quoted(part.value) for part in parts), span=span)

    def query_source(self, span: Span, name: Token) -> nodes.QuerySource:
        return nodes.QuerySource(name.value, span=span)

    def time_step(self, span: Span, step: nodes.Duration) -> _Clause:
        return _Clause("STEP", {"step": step}, span)

    def prune(self, span: Span, least: int | float) -> _Clause:
        return _Clause("PRUNE", {"prune": least}, span)

    def inferred(
        self,
        span: Span,
        stream: Token,
        family: Token,
        path: Token,
        method: Token,
        argument: int | float | None,
        *options: _Clause,
    ) -> _Clause:
        given, _ = self.gathered(options)
        source = nodes.InferredSource(
            stream.value, family.value.upper(), path.value, method.value.upper(), argument, **given, span=span
        )
        # The rows of a stream come from one place: the two forms of FROM exclude each other.
        return _Clause("FROM", {"source": source}, span)

    def predicted(self, span: Span, stream: Token) -> _Clause:
        return _Clause("FROM", {"source": nodes.PredictedSource(stream.value, span=span)}, span)

    def using(self, span: Span, method: Token, *arguments: int | float | None) -> _Clause:
        given = tuple(number for number in arguments if number is not None)
        return _Clause("USING", {"using": {"method": method.value.upper(), "arguments": given}}, span)

    # ------------------------------------------------------------ CREATE QUERY

    def create_query(self, span: Span, name: Token, question: tuple[Any, int | float | None]) -> nodes.CreateQuery:
        return nodes.CreateQuery(name.value, question[0], question[1], span=span, places=question[0].places)

    def asked(
        self, kind: type, span: Span, clauses: tuple[_Clause, ...], **fields: Any
    ) -> tuple[Any, int | float | None]:
        """A question, and the threshold that belongs to its query."""
        given, places = self.gathered(clauses)
        threshold = given.pop("threshold", None)
        return kind(**fields, **given, span=span, places=places), threshold

    def where(self, span: Span, condition: nodes.Expr) -> _Clause:
        return _Clause("WHERE", {"where": condition}, span)

    def group_by(self, span: Span, *variables: nodes.Variable) -> _Clause:
        return _Clause("GROUP BY", {"group_by": variables}, span)

    def threshold(self, span: Span, number: int | float) -> _Clause:
        return _Clause("THRESHOLD", {"threshold": number}, span)

    def accuracy(self, span: Span, number: int | float) -> _Clause:
        return _Clause("ACCURACY", {"accuracy": number}, span)

    def confidence(self, span: Span, number: int | float) -> _Clause:
        return _Clause("CONFIDENCE", {"confidence": number}, span)

    def seed(self, span: Span, number: int | float) -> _Clause:
        return _Clause("SEED", {"seed": self.whole("SEED", number, span)}, span)

    def within(self, span: Span, duration: nodes.Duration) -> _Clause:
        return _Clause("WITHIN", {"within": duration}, span)

    def operands(self, span: Span, *operands: nodes.Operand) -> tuple[nodes.Operand, ...]:
        return operands

    def operand(self, span: Span, stream: Token, alias: Token | None) -> nodes.Operand:
        return nodes.Operand(stream.value, alias and alias.value, span=span)

    def whole(self, what: str, number: int | float, span: Span) -> int:
        """The number as an integer; one with a fraction is a finding."""
        if isinstance(number, int) and limits.MIN_INTEGER <= number <= limits.MAX_INTEGER:
            return number
        self.findings.add(
            "not-whole",
            f"{what} takes a whole number of 64 bits, and found {number}",
            span,
            "write it without a fraction",
        )
        return 1

    # PATTERN

    def pattern(self, span: Span, *parts: Any) -> tuple[nodes.Pattern, int | float | None]:
        clauses = tuple(part for part in parts if isinstance(part, _Clause))
        return self.asked(nodes.Pattern, span, clauses, steps=self.steps(parts))

    def steps(self, parts: tuple[Any, ...]) -> tuple[nodes.Step, ...]:
        """The steps of a sequence whose first part may be a parenthesised prefix."""
        steps = tuple(part for part in parts if isinstance(part, nodes.Step))
        return (*parts[0].steps, *steps) if isinstance(parts[0], _Prefix) else steps

    def prefix(self, span: Span, *parts: Any) -> _Prefix:
        *steps, last = self.steps(parts)
        where = parts[-1]
        if where is not None:
            both = [condition for condition in (last.where, where.values["where"]) if condition is not None]
            condition = self.and_(where.span, *both) if len(both) > 1 else both[0]
            last = nodes.Step(last.goal, last.kleene, condition, span=last.span)
        return _Prefix((*steps, last))

    def step(self, span: Span, goal: nodes.Goal, kleene: nodes.Kleene | None) -> nodes.Step:
        return nodes.Step(goal, kleene, span=span)

    def goal(self, span: Span, stream: Token, *rest: Any) -> nodes.Goal:
        *terms, condition = rest
        return nodes.Goal(stream.value, tuple(terms), condition, span=span)

    def wildcard(self, span: Span, _mark: Token) -> nodes.Wildcard:
        return nodes.Wildcard(span=span)

    def kleene(self, span: Span, *parts: Any) -> nodes.Kleene:
        if len(parts) == 1:
            return nodes.Kleene(span=span)
        _plus, _open, shared, condition, _close = parts
        return nodes.Kleene(shared or (), condition, span=span)

    def shared(self, span: Span, *variables: nodes.Variable) -> tuple[nodes.Variable, ...]:
        return variables

    # SEQUENCE

    def sequence(self, span: Span, *parts: Any) -> tuple[nodes.Sequence, int | float | None]:
        components = tuple(part for part in parts if isinstance(part, nodes.Component))
        return self.asked(
            nodes.Sequence, span, parts[len(components) + 1 :], components=components, operands=parts[len(components)]
        )

    def component(self, span: Span, bang: Token | None, name: Token) -> nodes.Component:
        return nodes.Component(name.value, bang is not None, span=span)

    def miss(self, span: Span, *items: nodes.Miss | nodes.MissBy) -> _Clause:
        return _Clause("MISS", {"miss": items}, span)

    def miss_of(self, span: Span, component: Token, probability: int | float) -> nodes.Miss:
        return nodes.Miss(component.value, probability, span=span)

    def miss_by(self, span: Span, column: Token, relation: Token) -> nodes.MissBy:
        return nodes.MissBy(column.value, relation.value, span=span)

    def delay(self, span: Span, *items: nodes.Delay) -> _Clause:
        return _Clause("DELAY", {"delay": items}, span)

    def delay_of(self, span: Span, component: Token, law: Token, *given: Any) -> nodes.Delay:
        if isinstance(given[0], Token):
            return nodes.Delay(component.value, law.value.upper(), (), given[0].value, span=span)
        return nodes.Delay(component.value, law.value.upper(), given, span=span)

    def ending(self, span: Span, name: Token) -> _Clause:
        return _Clause("ENDING", {"ending": name.value.upper()}, span)

    def emit(self, span: Span, *names: Token) -> _Clause:
        return _Clause("EMIT", {"emit": tuple(name.value.upper() for name in names)}, span)

    def scoring(self, span: Span, name: Token) -> _Clause:
        return _Clause("SCORING", {"scoring": name.value.upper()}, span)

    # RELATE

    def relate(
        self,
        span: Span,
        first: nodes.Quantified,
        relations: tuple[str, ...],
        second: nodes.Quantified,
        operands: tuple[nodes.Operand, ...],
        *clauses: _Clause,
    ) -> tuple[nodes.Relate, int | float | None]:
        return self.asked(
            nodes.Relate, span, clauses, first=first, relations=relations, second=second, operands=operands
        )

    def all_of(self, span: Span, name: Token) -> nodes.Quantified:
        return nodes.Quantified(name.value, None, span=span)

    def some_of(self, span: Span, name: Token) -> nodes.Quantified:
        return nodes.Quantified(name.value, 1, span=span)

    def at_least(self, span: Span, number: Token, name: Token) -> nodes.Quantified:
        return nodes.Quantified(name.value, self.whole("AT LEAST", number.value, self.span_of(number)), span=span)

    def relations(self, span: Span, *relations: str) -> tuple[str, ...]:
        return relations

    def relation(self, span: Span, *words: Token) -> str:
        return " ".join(word.value.upper() for word in words)

    def timeout(self, span: Span, duration: nodes.Duration) -> _Clause:
        return _Clause("TIMEOUT", {"timeout": duration}, span)

    def complement(self, span: Span) -> _Clause:
        return _Clause("COMPLEMENT", {"complement": True}, span)

    # MONITOR

    def monitor(self, span: Span, *parts: Any) -> tuple[nodes.Monitor, int | float | None]:
        names = tuple(part for part in parts if isinstance(part, nodes.Variable))
        return self.asked(nodes.Monitor, span, parts[len(names) + 1 :], names=names, operands=parts[len(names)])

    def semantics(self, span: Span, name: Token) -> _Clause:
        return _Clause("SEMANTICS", {"semantics": name.value.upper()}, span)

    def every(self, span: Span, duration: nodes.Duration) -> _Clause:
        return _Clause("EVERY", {"every": duration}, span)

    def max_delay(self, span: Span, duration: nodes.Duration) -> _Clause:
        return _Clause("MAX DELAY", {"max_delay": duration}, span)

    def buffer(self, span: Span, size: Token, discard: str | None) -> _Clause:
        return _Clause("BUFFER", {"buffer": self.whole("BUFFER", size.value, span), "discard": discard}, span)

    def discard(self, span: Span, *words: Token) -> str:
        return self.relation(span, *words)

    # CONSTRAIN

    def constrain(self, span: Span, *parts: Any) -> tuple[nodes.Constrain, int | float | None]:
        names = tuple(part for part in parts if isinstance(part, nodes.Counted))
        return self.asked(nodes.Constrain, span, parts[len(names) + 1 :], names=names, operands=parts[len(names)])

    def strategy(self, span: Span, name: Token) -> _Clause:
        return _Clause("STRATEGY", {"strategy": name.value.upper()}, span)

    def counted(self, span: Span, name: Token, _star: Token | None, count: Token | None) -> nodes.Counted:
        number = 1 if count is None else self.whole(f"{name.value}*n", count.value, self.span_of(count))
        return nodes.Counted(name.value, number, span=span)


def _error_bound(
    span: Span, column: str | None, amount: int | float | Token, normal: int | float | None
) -> nodes.ErrorBound:
    """The error of a column, or of all of them: a number, or the name of the column that holds it."""
    if isinstance(amount, Token):
        return nodes.ErrorBound(column, None, amount.value, normal, span=span)
    return nodes.ErrorBound(column, amount, None, normal, span=span)
