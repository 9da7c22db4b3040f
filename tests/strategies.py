"""Hypothesis strategies for syntax trees: every kind of statement, as the parser builds it.

`workbooks()` is made of `statements()`, `queries()`, `conditions()` and `expressions()`. Names are often keywords or
need quoting, because such names cause errors.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from anabranch.constrain.syntax import Constrain, Counted
from anabranch.language import nodes
from anabranch.language.names import SECONDS_OF, quoted
from anabranch.language.types import TYPE_NAMES
from anabranch.monitor.syntax import Monitor
from anabranch.pattern.combination import Combination, Combined, NamedQuery
from anabranch.pattern.syntax import Goal, Kleene, Pattern, Step
from anabranch.relate.query import COMPOSITE, SIMPLE
from anabranch.relate.syntax import Quantified, Relate
from anabranch.sequence.syntax import Component, Delay, Given, Miss, Occurs, Sequence

#: Names that are also keywords somewhere, and names that need backticks.
AWKWARD_NAMES = [
    "location", "order", "window", "value", "key", "time", "t", "p", "error", "method", "length", "from", "where",
    "then", "select", "not", "true", "NULL", "in", "is", "and", "as", "all", "at", "within", "second", "string",
    "_", "_x", "Größe", "名前", "two words", "`", "a.b", "1st", "it's", ";", "--", "+<", "threshold",
    "create", "per", "keys",
]  # fmt: skip

_plain_names = st.from_regex(r"[a-z][a-z0-9_]{0,4}", fullmatch=True)
_any_names = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), min_size=1, max_size=8).filter(str.strip)
# Deferred, because Hypothesis prints a strategy with all strategies inside it, and this one is inside most others.
names = st.deferred(lambda: st.one_of(_plain_names, st.sampled_from(AWKWARD_NAMES), _any_names))
upper_words = st.from_regex(r"[A-Z]{1,8}", fullmatch=True)
strings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=12)
integers = st.one_of(st.integers(0, 20), st.integers(-(2**63), 2**63 - 1))
numbers = st.one_of(integers, st.floats(allow_nan=False, allow_infinity=False))
small_numbers = st.one_of(st.integers(-1000, 1000), st.floats(-1e6, 1e6))


def several(items: st.SearchStrategy[Any], least: int = 1, most: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    """Tuples of `least` to `most` items."""
    return st.lists(items, min_size=least, max_size=most).map(tuple)


def maybe(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """An item, or None for a clause that is not written."""
    return st.none() | items


# ---------------------------------------------------------------- expressions

variables = st.builds(nodes.Variable, names)
literals = st.builds(nodes.Literal, st.one_of(numbers, strings, st.booleans(), st.none()))
durations_with_unit = st.builds(nodes.Duration, small_numbers, st.sampled_from(list(SECONDS_OF)))
durations = st.one_of(st.builds(nodes.Duration, numbers, st.none()), durations_with_unit)
attributes = st.recursive(
    st.builds(nodes.Attribute, names, names, maybe(literals)),
    lambda defaults: st.builds(nodes.Attribute, names, names, defaults),
    max_leaves=3,
)


def _joined(kind: type, parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A conjunction or disjunction, which never directly contains another of its kind."""
    return several(parts.filter(lambda part: not isinstance(part, kind)), 2).map(kind)


def _larger(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(nodes.Negate, parts),
        st.builds(nodes.Arithmetic, st.sampled_from("+-*/%"), parts, parts),
        st.builds(nodes.Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), parts, parts),
        st.builds(nodes.InRange, parts, parts, parts, st.booleans()),
        st.builds(nodes.InList, parts, several(parts), st.booleans()),
        st.builds(nodes.IsNull, parts, st.booleans()),
        st.builds(nodes.Windowed, parts, durations),
        st.builds(nodes.Call, names, several(parts)),
        st.builds(nodes.Not, parts),
        _joined(nodes.And, parts),
        _joined(nodes.Or, parts),
    )


_leaves = st.deferred(lambda: st.one_of(variables, attributes, literals, durations_with_unit))


def expressions(max_leaves: int = 10) -> st.SearchStrategy[Any]:
    """Any expression; the parser does not check types."""
    return st.recursive(_leaves, _larger, max_leaves=max_leaves)


def conditions() -> st.SearchStrategy[Any]:
    """A condition after WHERE: for the parser, any expression."""
    return expressions(max_leaves=6)


# ---------------------------------------------------------------- declarations

columns = st.builds(nodes.ColumnName, names, maybe(st.sampled_from(list(TYPE_NAMES)) | names))


def read_columns(types: st.SearchStrategy[str]) -> st.SearchStrategy[nodes.ColumnName]:
    """Columns of KEY, VALUE and TIME: as in the source, renamed or computed."""
    return st.one_of(
        st.builds(nodes.ColumnName, names, maybe(types), maybe(names)),
        st.builds(nodes.ColumnName, names, expression=expressions(max_leaves=4)),
    )


stream_columns = read_columns(st.sampled_from(list(TYPE_NAMES)) | names)
time_columns = read_columns(st.sampled_from(list(TYPE_NAMES)))
joins = st.one_of(
    st.builds(nodes.Join, names, several(names), left=st.booleans()),
    st.builds(nodes.Join, names, on=expressions(max_leaves=4), left=st.booleans()),
)
options = st.builds(nodes.Option, names, st.one_of(numbers, strings, st.booleans()))
targets = st.one_of(
    st.builds(nodes.Target, upper_words, strings, several(options, 0)),
    st.builds(nodes.Target, st.none(), strings, format=maybe(names.map(str.lower))),
)
file_sources = st.builds(nodes.FileSource, strings, several(options, 0), maybe(names.map(str.lower)))
connector_sources = st.builds(
    nodes.ConnectorSource, st.sampled_from(("KAFKA", "MQTT", "SOURCE")), strings, several(options, 0)
)
table_sources = st.builds(nodes.TableSource, several(names).map(lambda parts: ".".join(quoted(part) for part in parts)))
query_sources = st.builds(nodes.QuerySource, names)
inferred_sources = st.builds(
    nodes.InferredSource,
    names,
    upper_words,
    strings,
    upper_words,
    maybe(numbers),
    maybe(durations),
    maybe(numbers),
    maybe(durations),
    maybe(names),
)
predicted_sources = st.builds(nodes.PredictedSource, names, upper_words, several(numbers, 0, 2))
segmented_sources = st.builds(
    nodes.SegmentedSource, names, expressions(max_leaves=4), maybe(durations), maybe(durations)
)
sources = st.one_of(file_sources, connector_sources, table_sources, query_sources)
horizon_ends = st.one_of(st.builds(nodes.Literal, numbers | strings), durations_with_unit, variables)


def error_bounds_of(columns: st.SearchStrategy[Any]) -> st.SearchStrategy[nodes.ErrorBound]:
    """Items of ERROR: numbers, and columns of rows."""
    amounts = st.tuples(numbers, st.none()) | st.tuples(st.none(), names)
    return st.builds(
        lambda column, amount, normal: nodes.ErrorBound(column, *amount, normal), columns, amounts, maybe(numbers)
    )


error_bounds = st.one_of(error_bounds_of(st.none()).map(lambda bound: (bound,)), several(error_bounds_of(names)))

probabilities = maybe(names).map(lambda name: {"probability": name}) | st.builds(
    lambda name, value: {"probability": name, "computed": (nodes.ColumnName(name, expression=value),)},
    names,
    expressions(max_leaves=4),
)


@st.composite
def create_streams(draw: st.DrawFn) -> nodes.CreateStream:
    """CREATE STREAM with any choice of clauses, sensible or not."""
    space = draw(maybe(several(names)))
    geodesic = space is not None and draw(st.booleans())
    degrees = st.floats(-360, 360, allow_subnormal=False)
    time = draw(maybe(time_columns))
    return nodes.CreateStream(
        draw(names),
        keys=draw(several(stream_columns, 0)),
        values=draw(several(stream_columns, 0)),
        time=time,
        time_format=draw(maybe(strings)),
        zone=draw(maybe(strings)),
        joins=draw(several(joins, 0, 2)),
        where=draw(maybe(conditions())),
        model=draw(maybe(upper_words)),
        order=draw(maybe(names)),
        **draw(probabilities),
        horizon=draw(maybe(st.tuples(horizon_ends, horizon_ends))),
        length=draw(maybe(names)),
        role=draw(maybe(names)),
        window=draw(maybe(st.tuples(names, names))),
        error=draw(st.just(()) | error_bounds),
        period=draw(maybe(durations)),
        space=space,
        geodesic=geodesic,
        watermark=draw(maybe(durations)),
        idle_after=draw(maybe(durations)),
        clustered=draw(several(names, 0, 2)),
        max_ahead=draw(maybe(durations)),
        source=draw(maybe(st.one_of(sources, inferred_sources, predicted_sources, segmented_sources))),
        start=None if time is None else draw(maybe(time_columns)),
        or_replace=draw(st.booleans()),
        origin=draw(maybe(st.tuples(degrees, degrees))) if geodesic else None,
    )


create_relations = st.builds(nodes.CreateRelation, names, several(columns), maybe(sources), st.booleans())

# ---------------------------------------------------------------- queries

terms = st.one_of(variables, literals, st.just(nodes.Wildcard()))
goals = st.builds(Goal, names, several(terms), maybe(conditions()))
kleenes = st.builds(Kleene, several(variables, 0), maybe(conditions()))
steps = st.builds(Step, goals, maybe(kleenes), maybe(conditions()))
operands = several(st.builds(nodes.Operand, names, maybe(names)))

_sampling = {
    "accuracy": maybe(numbers), "confidence": maybe(numbers), "seed": maybe(integers), "method": maybe(upper_words),
    "emit": several(upper_words, 0),
}  # fmt: skip
patterns = st.builds(Pattern, several(steps), where=maybe(conditions()), group_by=several(variables, 0), **_sampling)
formulas = st.recursive(
    st.builds(NamedQuery, st.one_of(names, st.sampled_from(["pattern", "Relate", "given"]))),
    lambda parts: st.one_of(
        st.builds(Combined, st.sampled_from(["AND", "OR"]), several(parts, 2)),
        st.builds(Combined, st.just("NOT"), several(parts, 1, 1)),
    ),
    max_leaves=5,
)
combinations = st.builds(Combination, formulas, maybe(formulas), **_sampling)
given_components = maybe(st.builds(Given, st.booleans(), several(names)))
delays = st.one_of(
    st.builds(Delay, names, upper_words, several(durations), given=given_components),
    st.builds(Delay, names, upper_words, st.just(()), strings, given_components),
)
sequences = st.builds(
    Sequence,
    several(st.builds(Component, names, st.booleans())),
    operands=operands,
    where=maybe(conditions()),
    miss=several(st.builds(Miss, names, numbers), 0),
    occurs=several(st.builds(Occurs, names, numbers), 0),
    delay=several(delays, 0),
    within=maybe(durations),
)
quantified = st.builds(Quantified, names, st.sampled_from([None, 1, 2, 7]))
relates = st.builds(
    Relate,
    quantified,
    several(st.sampled_from([*SIMPLE, *COMPOSITE])),
    quantified,
    operands=operands,
    where=maybe(conditions()),
    timeout=maybe(durations),
    complement=st.booleans(),
)


@st.composite
def monitors(draw: st.DrawFn) -> Monitor:
    """MONITOR; DISCARD is a part of BUFFER."""
    buffer = draw(maybe(st.integers(0, 1000)))
    policies = ["LEAST CONTRIBUTION", "OLDEST", "RANDOM", "NEWEST"]
    return Monitor(
        draw(several(variables)),
        operands=draw(operands),
        where=draw(maybe(conditions())),
        within=draw(maybe(durations)),
        semantics=draw(maybe(upper_words)),
        every=draw(maybe(durations)),
        max_delay=draw(maybe(durations)),
        buffer=buffer,
        discard=None if buffer is None else draw(maybe(st.sampled_from(policies))),
        nearest=draw(maybe(st.integers(0, 1000))),
    )


constrains = st.builds(
    Constrain,
    several(st.builds(Counted, names, st.integers(1, 9), grows=st.booleans())),
    operands=operands,
    where=maybe(conditions()),
    strategy=maybe(upper_words),
    semantics=maybe(upper_words),
)


pers = st.one_of(
    st.builds(nodes.PerWindow, durations, st.integers(1, 9)),
    st.builds(nodes.PerEpisode, maybe(numbers), maybe(durations)),
    st.just(nodes.PerKeys()),
)
limits = st.integers(0, 1000)


def queries() -> st.SearchStrategy[Any]:
    """A query of any kind."""
    return st.one_of(patterns, sequences, relates, monitors(), constrains, combinations)


def statements() -> st.SearchStrategy[Any]:
    """A statement of any kind."""
    create_queries = st.builds(
        nodes.CreateQuery,
        names,
        queries(),
        maybe(numbers),
        maybe(strings),
        st.booleans(),
        maybe(pers),
        maybe(limits),
        maybe(targets),
    )
    return st.one_of(create_streams(), create_relations, create_queries)


def workbooks() -> st.SearchStrategy[nodes.Workbook]:
    """Statements that need not be consistent with each other."""
    return st.builds(nodes.Workbook, several(statements(), 0))
