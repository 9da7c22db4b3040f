"""Syntax tree to text: `parse(unparse(tree)) == tree`, with as few parentheses as that needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from anabranch.language import nodes
from anabranch.language.names import quoted

# How tightly each kind of expression binds; an operand that binds less tightly stands in parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _PRIMARY = range(7)


def unparse(node: nodes.Node) -> str:
    """The text of any node, in the form the documentation writes it.

    Examples
    --------
    >>> unparse(nodes.Compare("<", nodes.Variable("x"), nodes.Literal("it's")))
    "x < 'it''s'"
    """
    return _WRITERS[type(node)](node)


def _list(items: Iterable[nodes.Node]) -> str:
    return ", ".join(unparse(item) for item in items)


def _names(names: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def _clause(keyword: str, value: object, write: Callable[[Any], str] = str) -> list[str]:
    """The clause in a list, empty where it was not written."""
    return [] if value is None or value == () else [f"{keyword} {write(value)}"]


def _string(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# ---------------------------------------------------------------- expressions


def _literal(node: nodes.Literal) -> str:
    return _constant(node.value)


def _constant(value: str | int | float | bool | None) -> str:
    if isinstance(value, str):
        return _string(value)
    return (
        {True: "TRUE", False: "FALSE", None: "NULL"}[value] if value is None or isinstance(value, bool) else repr(value)
    )


def _duration(node: nodes.Duration) -> str:
    return f"{node.amount!r} {node.unit}S" if node.unit else repr(node.amount)


def _attribute(node: nodes.Attribute) -> str:
    default = f"[{unparse(node.default)}]" if node.default else ""
    return f"{quoted(node.owner)}.{quoted(node.name)}{default}"


def _call(node: nodes.Call) -> str:
    return f"{quoted(node.name)}({_list(node.arguments)})"


def _operand(node: nodes.Expr, least: int) -> str:
    """The expression, in parentheses where it binds less tightly than `least`."""
    text = unparse(node)
    return f"({text})" if _tightness(node) < least else text


def _tightness(node: nodes.Expr) -> int:
    if isinstance(node, nodes.Arithmetic):
        return _SUM if node.op in "+-" else _PRODUCT
    return _TIGHTNESS.get(type(node), _PRIMARY)


_TIGHTNESS: dict[type, int] = {
    nodes.Or: _OR, nodes.And: _AND, nodes.Not: _NOT,
    nodes.Compare: _PREDICATE, nodes.InRange: _PREDICATE, nodes.InList: _PREDICATE, nodes.IsNull: _PREDICATE,
}  # fmt: skip


def _negate(node: nodes.Negate) -> str:
    # `-5` is a number and `--` a comment, so only names and calls stand bare after a minus.
    bare = isinstance(node.operand, nodes.Variable | nodes.Attribute | nodes.Call)
    return f"-{unparse(node.operand)}" if bare else f"-({unparse(node.operand)})"


def _arithmetic(node: nodes.Arithmetic) -> str:
    own = _tightness(node)
    return f"{_operand(node.left, own)} {node.op} {_operand(node.right, own + 1)}"


def _compare(node: nodes.Compare) -> str:
    return f"{_operand(node.left, _SUM)} {node.op} {_operand(node.right, _SUM)}"


def _in_range(node: nodes.InRange) -> str:
    word = "NOT IN" if node.negated else "IN"
    return f"{_operand(node.operand, _SUM)} {word} [{_operand(node.low, _SUM)}, {_operand(node.high, _SUM)}]"


def _in_list(node: nodes.InList) -> str:
    word = "NOT IN" if node.negated else "IN"
    return f"{_operand(node.operand, _SUM)} {word} ({', '.join(_operand(item, _SUM) for item in node.items)})"


def _is_null(node: nodes.IsNull) -> str:
    return f"{_operand(node.operand, _SUM)} IS {'NOT ' if node.negated else ''}NULL"


# ---------------------------------------------------------------- declarations


def _column(node: nodes.ColumnName) -> str:
    return f"{quoted(node.name)} {quoted(node.type_name)}" if node.type_name else quoted(node.name)


def _option(node: nodes.Option) -> str:
    return f"{quoted(node.name)} = {_constant(node.value)}"


def _file_source(node: nodes.FileSource) -> str:
    options = f" OPTIONS ({_list(node.options)})" if node.options else ""
    return f"FROM {_string(node.path)}{options}"


def _inferred_source(node: nodes.InferredSource) -> str:
    argument = f"({node.argument!r})" if node.argument is not None else ""
    step = f" STEP {unparse(node.step)}" if node.step is not None else ""
    prune = f" PRUNE {node.prune!r}" if node.prune is not None else ""
    return (
        f"INFERRED FROM {quoted(node.stream)} USING {quoted(node.family)} {_string(node.path)} "
        f"METHOD {quoted(node.method)}{argument}{step}{prune}"
    )


def _predicted_source(node: nodes.PredictedSource) -> str:
    arguments = f"({', '.join(map(repr, node.arguments))})" if node.arguments else ""
    plain = nodes.PredictedSource(node.stream)
    using = "" if node == plain else f" USING {quoted(node.method)}{arguments}"
    return f"PREDICTED FROM {quoted(node.stream)}{using}"


def _error_bound(node: nodes.ErrorBound) -> str:
    column = "" if node.column is None else f"{quoted(node.column)} = "
    amount = repr(node.amount) if node.source is None else quoted(node.source)
    normal = "" if node.normal is None else f" NORMAL {node.normal!r}"
    return f"{column}{amount}{normal}"


def _error(bounds: tuple[nodes.ErrorBound, ...]) -> str:
    return _list(bounds) if bounds[0].column is None else f"({_list(bounds)})"


def _time(node: nodes.CreateStream) -> list[str]:
    if node.start is None or node.time is None:
        return _clause("TIME", node.time, unparse)
    return [f"TIME ({unparse(node.start)}, {unparse(node.time)})"]


def _create_stream(node: nodes.CreateStream) -> str:
    geodesic = " GEODESIC" if node.geodesic else ""
    clauses = [
        *_clause("KEY", node.keys, lambda keys: f"({_list(keys)})"),
        *_clause("VALUE", node.values, lambda values: f"({_list(values)})"),
        *_time(node),
        *_clause("MODEL", node.model, quoted),
        *_clause("ORDER", node.order, quoted),
        *_clause("PROBABILITY", node.probability, quoted),
        *_clause("HORIZON", node.horizon, lambda horizon: f"[{_list(horizon)}]"),
        *_clause("LENGTH", node.length, quoted),
        *_clause("ROLE", node.role, quoted),
        *_clause("WINDOW", node.window, lambda window: f"({_names(window)})"),
        *_clause("ERROR", node.error, _error),
        *_clause("PERIOD", node.period, unparse),
        *_clause("SPACE", node.space, lambda space: f"({_names(space)}){geodesic}"),
        *_clause("WATERMARK", node.watermark, unparse),
        *([unparse(node.source)] if node.source else []),
    ]
    return " ".join([f"CREATE STREAM {quoted(node.name)}", *clauses])


def _create_relation(node: nodes.CreateRelation) -> str:
    source = f" {unparse(node.source)}" if node.source else ""
    return f"CREATE RELATION {quoted(node.name)} ({_list(node.columns)}){source}"


# ---------------------------------------------------------------- questions


def _create_query(node: nodes.CreateQuery) -> str:
    parts = [
        f"CREATE QUERY {quoted(node.name)} AS {unparse(node.question)}",
        *_clause("THRESHOLD", node.threshold, repr),
    ]
    return " ".join(parts)


def _goal(node: nodes.Goal) -> str:
    condition = f"[{unparse(node.filter)}]" if node.filter else ""
    return f"{quoted(node.stream)}({_list(node.terms)}){condition}"


def _kleene(node: nodes.Kleene) -> str:
    if not node.shared and node.condition is None:
        return "+"
    condition = f" | {unparse(node.condition)}" if node.condition is not None else ""
    return f"+<{_list(node.shared)}{condition}>"


def _step(node: nodes.Step) -> str:
    goal = unparse(node.goal) + (unparse(node.kleene) if node.kleene else "")
    return f"({goal} WHERE {unparse(node.where)})" if node.where else goal


def _pattern(node: nodes.Pattern) -> str:
    text = ""
    for step in node.steps:
        goal = unparse(nodes.Step(step.goal, step.kleene))
        text = f"{text} THEN {goal}" if text else goal
        # A WHERE in the middle selects on the whole prefix, so the parentheses enclose all of it.
        text = f"({text} WHERE {unparse(step.where)})" if step.where else text
    clauses = [
        *_clause("WHERE", node.where, unparse),
        *_clause("GROUP BY", node.group_by, _list),
        *_clause("ACCURACY", node.accuracy, repr),
        *_clause("CONFIDENCE", node.confidence, repr),
        *_clause("SEED", node.seed, repr),
    ]
    return " ".join([f"PATTERN {text}", *clauses])


def _delay(node: nodes.Delay) -> str:
    given = f" {_string(node.path)}" if node.path is not None else f"({_list(node.arguments)})"
    return f"{quoted(node.component)} {quoted(node.law)}{given}"


def _sequence(node: nodes.Sequence) -> str:
    clauses = [
        *_clause("WHERE", node.where, unparse),
        *_clause("MISS", node.miss, _list),
        *_clause("DELAY", node.delay, _list),
        *_clause("WITHIN", node.within, unparse),
        *_clause("ENDING", node.ending, quoted),
        *_clause("EMIT", node.emit, lambda names: ", ".join(map(quoted, names))),
        *_clause("SCORING", node.scoring, quoted),
    ]
    return " ".join([f"SEQUENCE ({_list(node.components)}) FROM {_list(node.operands)}", *clauses])


def _quantified(node: nodes.Quantified) -> str:
    word = {None: "ALL", 1: "SOME"}.get(node.at_least, f"AT LEAST {node.at_least}")
    return f"{word} {quoted(node.name)}"


def _relate(node: nodes.Relate) -> str:
    relations = node.relations[0] if len(node.relations) == 1 else f"({' OR '.join(node.relations)})"
    question = f"RELATE {unparse(node.first)} {relations} {unparse(node.second)} FROM {_list(node.operands)}"
    clauses = [*_clause("WHERE", node.where, unparse), *_clause("TIMEOUT", node.timeout, unparse)]
    return " ".join([question, *clauses, *(["COMPLEMENT"] if node.complement else [])])


def _monitor(node: nodes.Monitor) -> str:
    discard = f" DISCARD {node.discard}" if node.discard else ""
    clauses = [
        *_clause("WHERE", node.where, unparse),
        *_clause("WITHIN", node.within, unparse),
        *_clause("SEMANTICS", node.semantics, quoted),
        *_clause("EVERY", node.every, unparse),
        *_clause("MAX DELAY", node.max_delay, unparse),
        *_clause("BUFFER", node.buffer, lambda size: f"{size}{discard}"),
    ]
    return " ".join([f"MONITOR {_list(node.names)} FROM {_list(node.operands)}", *clauses])


def _constrain(node: nodes.Constrain) -> str:
    question = f"CONSTRAIN {_list(node.names)} FROM {_list(node.operands)}"
    clauses = [*_clause("WHERE", node.where, unparse), *_clause("STRATEGY", node.strategy, quoted)]
    return " ".join([question, *clauses])


_WRITERS: dict[type, Callable[[Any], str]] = {
    nodes.Literal: _literal,
    nodes.Duration: _duration,
    nodes.Variable: lambda node: quoted(node.name),
    nodes.Wildcard: lambda node: "_",
    nodes.Attribute: _attribute,
    nodes.Negate: _negate,
    nodes.Arithmetic: _arithmetic,
    nodes.Compare: _compare,
    nodes.InRange: _in_range,
    nodes.InList: _in_list,
    nodes.IsNull: _is_null,
    nodes.Call: _call,
    nodes.Not: lambda node: f"NOT {_operand(node.operand, _NOT)}",
    nodes.And: lambda node: " AND ".join(_operand(item, _NOT) for item in node.items),
    nodes.Or: lambda node: " OR ".join(_operand(item, _AND) for item in node.items),
    nodes.ColumnName: _column,
    nodes.Option: _option,
    nodes.FileSource: _file_source,
    nodes.TableSource: lambda node: f"FROM TABLE {node.name}",
    nodes.QuerySource: lambda node: f"FROM QUERY {quoted(node.name)}",
    nodes.InferredSource: _inferred_source,
    nodes.PredictedSource: _predicted_source,
    nodes.ErrorBound: _error_bound,
    nodes.CreateStream: _create_stream,
    nodes.CreateRelation: _create_relation,
    nodes.CreateQuery: _create_query,
    nodes.Goal: _goal,
    nodes.Kleene: _kleene,
    nodes.Step: _step,
    nodes.Pattern: _pattern,
    nodes.Operand: lambda node: _names([node.stream]) + (f" AS {quoted(node.alias)}" if node.alias else ""),
    nodes.Component: lambda node: ("!" if node.negative else "") + quoted(node.name),
    nodes.Miss: lambda node: f"{quoted(node.component)} {node.probability!r}",
    nodes.MissBy: lambda node: f"BY {quoted(node.column)} FROM {quoted(node.relation)}",
    nodes.Delay: _delay,
    nodes.Sequence: _sequence,
    nodes.Quantified: _quantified,
    nodes.Relate: _relate,
    nodes.Monitor: _monitor,
    nodes.Counted: lambda node: quoted(node.name) + (f"*{node.count}" if node.count != 1 else ""),
    nodes.Constrain: _constrain,
    nodes.Workbook: lambda node: "".join(f"{unparse(statement)};\n" for statement in node.statements),
}
