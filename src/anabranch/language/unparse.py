"""Writes a syntax tree as text, with as few parentheses as `parse(unparse(tree)) == tree` allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatch
from typing import Any

from anabranch.language import nodes
from anabranch.language.names import quoted

# The precedence of each kind of expression; an operand of lower precedence needs parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _PRIMARY = range(7)


@singledispatch
def unparse(node: nodes.Node) -> str:
    """Return the text of a node, in the style of the documentation.

    Examples
    --------
    >>> unparse(nodes.Compare("<", nodes.Variable("x"), nodes.Literal("it's")))
    "x < 'it''s'"
    """
    raise TypeError(f"cannot unparse a {type(node).__name__}")


def joined(items: Iterable[nodes.Node]) -> str:
    """The texts of nodes, separated by commas."""
    return ", ".join(unparse(item) for item in items)


def _names(names: Iterable[str]) -> str:
    return ", ".join(quoted(name) for name in names)


def clause(keyword: str, value: object, write: Callable[[Any], str] = str) -> list[str]:
    """The clause as a list of one text; an empty list if the clause is not written."""
    return [] if value is None or value == () else [f"{keyword} {write(value)}"]


def string(text: str) -> str:
    """A text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


# ---------------------------------------------------------------- expressions


@unparse.register
def _literal(node: nodes.Literal) -> str:
    return _constant(node.value)


def _constant(value: str | int | float | bool | None) -> str:
    if isinstance(value, str):
        return string(value)
    if value is None or isinstance(value, bool):
        return {True: "TRUE", False: "FALSE", None: "NULL"}[value]
    return repr(value)


@unparse.register
def _duration(node: nodes.Duration) -> str:
    return f"{node.amount!r} {node.unit}S" if node.unit else repr(node.amount)


@unparse.register
def _variable(node: nodes.Variable) -> str:
    return quoted(node.name)


@unparse.register
def _wildcard(node: nodes.Wildcard) -> str:
    return "_"


@unparse.register
def _attribute(node: nodes.Attribute) -> str:
    default = f"[{unparse(node.default)}]" if node.default else ""
    return f"{quoted(node.owner)}.{quoted(node.name)}{default}"


@unparse.register
def _call(node: nodes.Call) -> str:
    # WITHIN is a function and a clause; a call is never mistaken for the clause.
    name = node.name if node.name.upper() == "WITHIN" else quoted(node.name)
    return f"{name}({joined(node.arguments)})"


def _operand(node: nodes.Expr, least: int) -> str:
    """The expression, in parentheses if its precedence is below `least`."""
    text = unparse(node)
    return f"({text})" if _precedence(node) < least else text


def _precedence(node: nodes.Expr) -> int:
    if isinstance(node, nodes.Arithmetic):
        return _SUM if node.op in "+-" else _PRODUCT
    return _PRECEDENCE.get(type(node), _PRIMARY)


_PRECEDENCE: dict[type, int] = {
    nodes.Or: _OR, nodes.And: _AND, nodes.Not: _NOT,
    nodes.Compare: _PREDICATE, nodes.InRange: _PREDICATE, nodes.InList: _PREDICATE, nodes.IsNull: _PREDICATE,
}  # fmt: skip


@unparse.register
def _negate(node: nodes.Negate) -> str:
    # `-5` is a number and `--` a comment, so only names and calls need no parentheses after a minus.
    bare = isinstance(node.operand, nodes.Variable | nodes.Attribute | nodes.Call)
    return f"-{unparse(node.operand)}" if bare else f"-({unparse(node.operand)})"


@unparse.register
def _arithmetic(node: nodes.Arithmetic) -> str:
    precedence = _precedence(node)
    return f"{_operand(node.left, precedence)} {node.op} {_operand(node.right, precedence + 1)}"


@unparse.register
def _compare(node: nodes.Compare) -> str:
    return f"{_operand(node.left, _SUM)} {node.op} {_operand(node.right, _SUM)}"


@unparse.register
def _in_range(node: nodes.InRange) -> str:
    word = "NOT IN" if node.negated else "IN"
    return f"{_operand(node.operand, _SUM)} {word} [{_operand(node.low, _SUM)}, {_operand(node.high, _SUM)}]"


@unparse.register
def _in_list(node: nodes.InList) -> str:
    word = "NOT IN" if node.negated else "IN"
    return f"{_operand(node.operand, _SUM)} {word} ({', '.join(_operand(item, _SUM) for item in node.items)})"


@unparse.register
def _is_null(node: nodes.IsNull) -> str:
    return f"{_operand(node.operand, _SUM)} IS {'NOT ' if node.negated else ''}NULL"


@unparse.register
def _windowed(node: nodes.Windowed) -> str:
    # In parentheses, because at the end of WHERE it would be the clause WITHIN.
    return f"({_operand(node.operand, _PREDICATE)} WITHIN {unparse(node.window)})"


@unparse.register
def _not(node: nodes.Not) -> str:
    return f"NOT {_operand(node.operand, _NOT)}"


@unparse.register
def _and(node: nodes.And) -> str:
    return " AND ".join(_operand(item, _NOT) for item in node.items)


@unparse.register
def _or(node: nodes.Or) -> str:
    return " OR ".join(_operand(item, _AND) for item in node.items)


# ---------------------------------------------------------------- declarations


@unparse.register
def _column(node: nodes.ColumnName) -> str:
    if node.expression is not None:
        return f"{quoted(node.name)} = {unparse(node.expression)}"
    kind = f" {quoted(node.type_name)}" if node.type_name else ""
    alias = "" if node.source is None else f" AS {quoted(node.name)}"
    return f"{quoted(node.source or node.name)}{kind}{alias}"


@unparse.register
def _option(node: nodes.Option) -> str:
    return f"{quoted(node.name)} = {_constant(node.value)}"


@unparse.register
def _file_source(node: nodes.FileSource) -> str:
    file_format = f" FORMAT {quoted(node.format)}" if node.format else ""
    return f"FROM {string(node.path)}{file_format}{_options(node.options)}"


@unparse.register
def _connector_source(node: nodes.ConnectorSource) -> str:
    return f"FROM {node.connector} {string(node.address)}{_options(node.options)}"


def _options(options: Sequence[nodes.Option]) -> str:
    return f" OPTIONS ({joined(options)})" if options else ""


@unparse.register
def _table_source(node: nodes.TableSource) -> str:
    return f"FROM TABLE {node.name}"


@unparse.register
def _query_source(node: nodes.QuerySource) -> str:
    return f"FROM QUERY {quoted(node.name)}"


@unparse.register
def _inferred_source(node: nodes.InferredSource) -> str:
    argument = ""
    if node.argument is not None:
        argument = f" {unparse(node.argument)}" if isinstance(node.argument, nodes.Duration) else f"({node.argument!r})"
    step = f" STEP {unparse(node.step)}" if node.step is not None else ""
    prune = f" PRUNE {node.prune!r}" if node.prune is not None else ""
    expire = f" EXPIRE {unparse(node.expire)}" if node.expire is not None else ""
    by = f" BY {quoted(node.by)}" if node.by is not None else ""
    return (
        f"INFERRED FROM {quoted(node.stream)} USING {quoted(node.family)} {string(node.path)}{by} "
        f"METHOD {quoted(node.method)}{argument}{step}{prune}{expire}"
    )


@unparse.register
def _predicted_source(node: nodes.PredictedSource) -> str:
    arguments = f"({', '.join(map(repr, node.arguments))})" if node.arguments else ""
    default = nodes.PredictedSource(node.stream)
    using = "" if node == default else f" USING {quoted(node.method)}{arguments}"
    return f"PREDICTED FROM {quoted(node.stream)}{using}"


@unparse.register
def _segmented_source(node: nodes.SegmentedSource) -> str:
    at_least = f" FOR AT LEAST {unparse(node.at_least)}" if node.at_least is not None else ""
    silence = f" SILENCE {unparse(node.silence)}" if node.silence is not None else ""
    return f"INTERVALS FROM {quoted(node.stream)} WHILE {unparse(node.condition)}{at_least}{silence}"


@unparse.register
def _error_bound(node: nodes.ErrorBound) -> str:
    column = "" if node.column is None else f"{quoted(node.column)} = "
    amount = repr(node.amount) if node.source is None else quoted(node.source)
    normal = "" if node.normal is None else f" NORMAL {node.normal!r}"
    return f"{column}{amount}{normal}"


@unparse.register
def _segment_law(node: nodes.SegmentLaw) -> str:
    if node.path is not None:
        return f"{quoted(node.law)} {string(node.path)}" + (f" BY {quoted(node.by)}" if node.by else "")
    return f"{quoted(node.law)}({joined(node.arguments)})"


def _create(node: nodes.Statement) -> str:
    return f"CREATE {'OR REPLACE ' if node.or_replace else ''}{node.what.upper()}"


def _error(bounds: tuple[nodes.ErrorBound, ...]) -> str:
    return joined(bounds) if bounds[0].column is None else f"({joined(bounds)})"


def _time(node: nodes.CreateStream) -> list[str]:
    if node.start is None or node.time is None:
        return clause("TIME", node.time, _sum_column)
    return [f"TIME ({_sum_column(node.start)}, {_sum_column(node.time)})"]


def _sum_column(node: nodes.ColumnName) -> str:
    # A sum only: other clauses follow it without a separator.
    return unparse(node) if node.expression is None else f"{quoted(node.name)} = {_operand(node.expression, _SUM)}"


@unparse.register
def _join(node: nodes.Join) -> str:
    keys = f"USING ({_names(node.using)})" if node.on is None else f"ON {_operand(node.on, _AND)}"
    return f"{'LEFT ' if node.left else ''}JOIN {quoted(node.relation)} {keys}"


@unparse.register
def _create_stream(node: nodes.CreateStream) -> str:
    geodesic = " GEODESIC" if node.geodesic else ""
    if node.origin is not None:
        geodesic += f" ORIGIN ({', '.join(str(degrees) for degrees in node.origin)})"
    clauses = [
        *clause("KEY", node.keys, lambda keys: f"({joined(keys)})"),
        *clause("VALUE", node.values, lambda values: f"({joined(values)})"),
        *_time(node),
        *clause("FORMAT", node.time_format, string),
        *clause("ZONE", node.zone, string),
        *clause("MODEL", node.model, quoted),
        *clause("ORDER", node.order, quoted),
        *(
            [f"PROBABILITY {_sum_column(node.computed[0])}"]
            if node.computed
            else clause("PROBABILITY", node.probability, quoted)
        ),
        *clause("HORIZON", node.horizon, lambda horizon: f"[{joined(horizon)}]"),
        *clause("LENGTH", node.length, quoted),
        *clause("ROLE", node.role, quoted),
        *clause("WINDOW", node.window, lambda window: f"({_names(window)})"),
        *clause("DURATION", node.duration, unparse),
        *clause("GAP", node.gap, unparse),
        *clause("ERROR", node.error, _error),
        *clause("PERIOD", node.period, unparse),
        *clause("SPACE", node.space, lambda space: f"({_names(space)}){geodesic}"),
        *clause("WATERMARK", node.watermark, unparse),
        *clause("IDLE AFTER", node.idle_after, unparse),
        *clause("MAX AHEAD", node.max_ahead, unparse),
        *clause("CLUSTERED BY", node.clustered, lambda names: f"({_names(names)})"),
        *([unparse(node.source)] if node.source else []),
        *map(unparse, node.joins),
        *clause("WHERE", node.where, unparse),
    ]
    return " ".join([f"{_create(node)} {quoted(node.name)}", *clauses])


@unparse.register
def _create_relation(node: nodes.CreateRelation) -> str:
    source = f" {unparse(node.source)}" if node.source else ""
    return f"{_create(node)} {quoted(node.name)} ({joined(node.columns)}){source}"


# ---------------------------------------------------------------- queries


@unparse.register
def _create_query(node: nodes.CreateQuery) -> str:
    clauses = [
        *clause("PER", node.per, unparse),
        *clause("THRESHOLD", node.threshold, repr),
        *clause("CALIBRATED BY", node.calibrated, string),
        *clause("ORDER BY probability DESC LIMIT", node.limit, repr),
    ]
    target = f" {unparse(node.target)}" if node.target else ""
    return " ".join([f"{_create(node)} {quoted(node.name)}{target} AS {unparse(node.body)}", *clauses])


@unparse.register
def _target(node: nodes.Target) -> str:
    if node.system is None:
        return " ".join([f"TO {string(node.name)}", *clause("FORMAT", node.format, quoted)])
    return f"TO {quoted(node.system)} {string(node.name)}{_options(node.options)}"


@unparse.register
def _per_window(node: nodes.PerWindow) -> str:
    return unparse(node.length) + (f" AT LEAST {node.at_least} TIMES" if node.at_least != 1 else "")


@unparse.register
def _per_episode(node: nodes.PerEpisode) -> str:
    return " ".join(["EPISODE", *clause("ABOVE", node.above, repr), *clause("GAP", node.gap, unparse)])


@unparse.register
def _per_keys(node: nodes.PerKeys) -> str:
    return "KEYS"


@unparse.register
def _from_operand(node: nodes.Operand) -> str:
    return quoted(node.stream) + (f" AS {quoted(node.alias)}" if node.alias else "")


@unparse.register
def _workbook(node: nodes.Workbook) -> str:
    return "".join(f"{unparse(statement)};\n" for statement in node.statements)
