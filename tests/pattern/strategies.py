"""Hypothesis strategies for PATTERN: small random streams, and queries over them.

`pattern_cases` describes what varies. Values and keys come from tiny domains, so that joins and conditions often hold,
and more than half of the cases have answers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from tests.cases import (
    DOUBLE,
    INTEGER,
    QUERY,
    STRING,
    Case,
    Draw,
    Row,
    Rows,
    constant_text,
    lists,
    one_in,
    watermark_of,
    workbook_of,
)

#: No variable is shared by goals or unfoldings, and every condition is local to one goal.
REGULAR = "regular"
#: Variables are shared in one key position of all goals, and every condition is local to one goal.
EXTENDED = "extended"
#: A key variable is shared by the goals of the first stream; goals of other streams follow.
SAFE = "safe"
#: Anything the language accepts.
GENERAL = "general"
CLASSES = (REGULAR, EXTENDED, SAFE, GENERAL)

MODELS = ("CERTAIN", "INDEPENDENT", "MARKOV")

TIME = "t"

KEY_DOMAIN = {STRING: ("a", "b", "k"), INTEGER: (0, 1, 5)}
VALUE_DOMAIN = {STRING: ("a", "b", "c"), INTEGER: (0, 1, 2)}
#: The constants of conditions and rows of relations: all keys and values, and one that is neither.
DOMAIN = {STRING: ("a", "b", "c", "k", "z"), INTEGER: (0, 1, 2, 5, 9)}
INSTANTS = {INTEGER: (1, 2, 3, 4, 5, 7), DOUBLE: (0.5, 1.0, 1.25, 3.0, 4.5, 4.75)}
#: The durations of WITHIN; some are equal to the time between two instants.
WITHIN = {INTEGER: (1, 3, 2, 1.5), DOUBLE: (0.25, 2, 0.5, 3.5)}

#: The weights of alternatives, and of the value *nothing*.
WEIGHTS = (1, 2, 0, 3, 5, 8, 13)
LEFT_OVER = (0, 1, 8, 3, 0)


@dataclass(frozen=True)
class Shape:
    """How a stream is declared; columns are (name, type)."""

    name: str
    model: str
    keys: tuple[tuple[str, str], ...]
    values: tuple[tuple[str, str], ...]
    time_type: str
    watermark: int | float | None = None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The columns of the terms of a goal."""
        return self.keys + self.values

    def text(self) -> str:
        """The declaration."""
        values = f" VALUE ({_columns(self.values)})" if self.values else ""
        time = f" TIME {TIME} {self.time_type} MODEL {self.model}{watermark_of(self.watermark)}"
        return f"CREATE STREAM {self.name} KEY ({_columns(self.keys)}){values}{time};"


@dataclass(frozen=True)
class Table:
    """How a relation is declared, and its rows."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: tuple[tuple[Any, ...], ...]

    def text(self) -> str:
        """The declaration."""
        return f"CREATE RELATION {self.name} ({_columns(self.columns)});"


@dataclass(frozen=True)
class Goal:
    """One goal of a query, as text; `variables` and `exported` give the type of each variable.

    `keys` has the terms in key positions of each of its alternatives, and `guards` the goals of NOT before it.
    """

    shape: Shape
    keys: tuple[tuple[str, ...], ...]
    variables: dict[str, str]
    text: str
    exported: dict[str, str] = field(default_factory=dict)
    guards: tuple[Goal, ...] = ()


def _columns(columns: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name} {type_}" for name, type_ in columns)


# ---------------------------------------------------------------- cases


@st.composite
def pattern_cases(
    draw: Draw,
    classes: Sequence[str] = CLASSES,
    models: Sequence[str] = MODELS,
    most_worlds: int = 1000,
    most_streams: int = 2,
    watermark: int | float | None = None,
    any_group: bool = False,
    within: bool = False,
) -> Case:
    """A query with data that have at most `most_worlds` possible worlds.

    Parameters
    ----------
    classes : the classes of query to choose from, of `CLASSES`
        `GENERAL` queries may by chance be of a simpler class.
    models : the models of streams to choose from, of `MODELS`
    most_worlds : int
    most_streams : int
        The query uses all declared streams.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None declares none.
    any_group : bool
        Whether the query groups by any of its variables, if it has one.
    within : bool
        Whether the query has WITHIN; otherwise one in five has it.
    """
    class_ = draw(st.sampled_from(classes))
    if class_ == SAFE:
        first, *others = draw(_shapes(models, draw(st.sampled_from([2, 3, 2])), watermark))
        used = [first] * draw(st.sampled_from([2, 2, 3, 1])) + others
    else:
        declared = draw(_shapes(models, draw(st.integers(1, most_streams)), watermark))
        used = draw(lists(st.sampled_from(declared), sizes=[1, 2, 4, 3, 3, 2]))
    shapes = list(dict.fromkeys(used))
    tables = draw(_tables())
    rows = draw(_rows(shapes, len(used), most_worlds))
    query = draw(_queries(class_, used, rows, tables, any_group, within))
    declarations = [*(shape.text() for shape in shapes), *(table.text() for table in tables)]
    return Case(
        workbook=workbook_of(declarations, query),
        query=QUERY,
        rows=rows,
        relations={table.name: list(table.rows) for table in tables},
    )


@st.composite
def _shapes(draw: Draw, models: Sequence[str], count: int, watermark: int | float | None) -> list[Shape]:
    """The streams; their keys and times have the same types, so that one variable can be used in all of them."""
    key_types = draw(st.tuples(*[st.sampled_from([STRING, INTEGER, STRING])] * 2))
    time_type = draw(st.sampled_from([INTEGER, DOUBLE, INTEGER]))
    shapes = []
    for name in ("r", "s", "u")[:count]:
        model = draw(st.sampled_from(models))
        keys = draw(st.sampled_from([1, 2, 1]))
        values = draw(st.sampled_from([1, 2, 1] if model == "MARKOV" else [1, 0, 2, 1]))
        value_types = draw(lists(st.sampled_from([STRING, INTEGER]), sizes=[values]))
        shapes.append(
            Shape(
                name,
                model,
                tuple(zip(("k", "j"), key_types[:keys], strict=False)),
                tuple(zip(("v", "w"), value_types, strict=False)),
                time_type,
                watermark,
            )
        )
    return shapes


@st.composite
def _tables(draw: Draw) -> list[Table]:
    """Up to two relations of one or two columns."""
    tables = []
    for name in ("hall", "office")[: draw(st.integers(0, 2))]:
        types = draw(lists(st.sampled_from([STRING, INTEGER]), sizes=[1, 2]))
        row = st.tuples(*(st.sampled_from(DOMAIN[type_]) for type_ in types))
        rows = dict.fromkeys(draw(lists(row, sizes=[0, 1, 3, 6] if len(types) == 1 else [0, 5, 15])))
        tables.append(Table(name, tuple(zip(("c1", "c2"), types, strict=False)), tuple(rows)))
    return tables


# ---------------------------------------------------------------- rows


@st.composite
def _rows(draw: Draw, shapes: Sequence[Shape], goals: int, most_worlds: int) -> Rows:
    """Rows for each stream, at enough instants for most queries with this number of goals.

    The number of worlds is the product over the keys, so every key has an equal share.
    """
    count = max(1, goals + draw(st.sampled_from([1, 2, 0, 3, 3, 2])))
    instants = INSTANTS[shapes[0].time_type][:count]
    keys = draw(_keys(shapes))
    share = int(most_worlds ** (1 / sum(map(len, keys.values()))) + 1e-9)
    rows: Rows = {}
    for shape in shapes:
        stream_rows: list[Row] = []
        for key in keys[shape.name]:
            times = [t for t in instants if not draw(one_in(6))] or instants[:1]
            stream_rows += draw(_KEY_ROWS[shape.model](shape, key, times, share))
        duplicates = draw(st.lists(st.sampled_from(stream_rows), max_size=2))
        rows[shape.name] = stream_rows + duplicates
    return rows


@st.composite
def _keys(draw: Draw, shapes: Sequence[Shape]) -> dict[str, list[tuple[Any, ...]]]:
    """One to three keys for each stream; most of them are in every stream."""
    columns = max((shape.keys for shape in shapes), key=len)
    key = st.tuples(*(st.sampled_from(KEY_DOMAIN[type_]) for _, type_ in columns))
    drawn = draw(lists(key, sizes=[1, 2, 3]))
    keys = {}
    for shape in shapes:
        present = [key for key in drawn if not draw(one_in(6))] or drawn
        keys[shape.name] = list(dict.fromkeys(key[: len(shape.keys)] for key in present))
    return keys


def _values(shape: Shape) -> st.SearchStrategy[tuple[Any, ...]]:
    """A value of the stream: mostly without NULL, sometimes *nothing*, sometimes NULL in one of two columns."""
    columns = [VALUE_DOMAIN[type_][: 4 - len(shape.values)] for _, type_ in shape.values]
    without_null = list(itertools.product(*columns))
    with_null = list(itertools.product(*((None, column[0]) for column in columns)))[:-1]
    return st.sampled_from(without_null * 2 + with_null + without_null)


def _row(shape: Shape, key: tuple[Any, ...], t: Any, value: tuple[Any, ...], **other_columns: Any) -> Row:
    names = [name for name, _ in shape.columns]
    return {**dict(zip(names, key + value, strict=True)), TIME: t, **other_columns}


def _is_nothing(value: tuple[Any, ...]) -> bool:
    return bool(value) and all(part is None for part in value)


@st.composite
def _certain_rows(draw: Draw, shape: Shape, key: tuple[Any, ...], times: Sequence[Any], share: int) -> list[Row]:
    """One or two events at each instant; `share` is not used, because there is one world."""
    return [
        _row(shape, key, t, value) for t in times for value in draw(st.lists(_values(shape), min_size=1, max_size=2))
    ]


@st.composite
def _independent_rows(draw: Draw, shape: Shape, key: tuple[Any, ...], times: Sequence[Any], share: int) -> list[Row]:
    """Alternatives at each instant until the share is used up; then certain rows."""
    rows = []
    for t in times:
        alternatives = draw(_alternatives(shape, share))
        share //= len(_outcomes(alternatives))
        rows += [_row(shape, key, t, value, p=p) for value, p in alternatives]
    return rows


@st.composite
def _markov_rows(draw: Draw, shape: Shape, key: tuple[Any, ...], times: Sequence[Any], share: int) -> list[Row]:
    """A table at each instant, with rows for some of the possible previous values of the key.

    From a possible previous value without rows, the key goes to *nothing*. A table may also have rows for an impossible
    previous value.
    """
    nothing = (None,) * len(shape.values)
    reachable: list[tuple[Any, ...]] = [nothing]
    rows = []
    for t in times:
        listed = [value for value in reachable if not draw(one_in(8))] or reachable[:1]
        other = draw(_values(shape)) if draw(one_in(4)) else None
        tables = {previous: draw(_alternatives(shape, share)) for previous in listed}
        if other is not None and other not in reachable:
            tables[other] = draw(_alternatives(shape, share))
        for previous, alternatives in tables.items():
            came_from = {f"prev_{name}": part for (name, _), part in zip(shape.values, previous, strict=True)}
            rows += [_row(shape, key, t, value, **came_from, p=p) for value, p in alternatives]
        outcomes = [_outcomes(tables[previous]) if previous in tables else [None] for previous in reachable]
        share //= max(map(len, outcomes))
        reached = dict.fromkeys(itertools.chain.from_iterable(outcomes))
        reachable = [nothing if value is None else value for value in reached]
    return rows


_KEY_ROWS: dict[str, Callable[..., st.SearchStrategy[list[Row]]]] = {
    "CERTAIN": _certain_rows,
    "INDEPENDENT": _independent_rows,
    "MARKOV": _markov_rows,
}


@st.composite
def _alternatives(draw: Draw, shape: Shape, share: int) -> list[tuple[tuple[Any, ...], float]]:
    """Values with probabilities that sum to 1 or less, with at most `share` outcomes.

    A value may be listed twice, a probability may be 0 or 1, and the values may include *nothing*.
    """
    values = _values(shape)
    if share < 2:
        return [(draw(values), 1.0)]
    sizes = [size for size in (1, 3, 2, 2) if size < share] or [1]
    weighted = draw(lists(st.tuples(values, st.sampled_from(WEIGHTS)), sizes))
    left_over = draw(st.sampled_from(LEFT_OVER))
    total = sum(weight for _, weight in weighted) + left_over
    return [(value, weight / total if total else 0.0) for value, weight in weighted]


def _outcomes(alternatives: Sequence[tuple[tuple[Any, ...], float]]) -> list[tuple[Any, ...] | None]:
    """The possible values; None is *nothing*."""
    listed = math.fsum(p for _, p in set(alternatives))
    left_over = [None] if listed < 1 - 1e-9 else []
    values = [None if _is_nothing(value) else value for value, p in alternatives if p > 0]
    return list(dict.fromkeys(values + left_over))


# ---------------------------------------------------------------- queries


@st.composite
def _queries(
    draw: Draw, class_: str, used: Sequence[Shape], rows: Rows, tables: Sequence[Table], any_group: bool, within: bool
) -> str:
    """The text of a query of this class, with one goal for each stream in `used`."""
    goals = draw(_goals(class_, used, rows, tables))
    text = draw(_patterns(class_, goals, tables, draw(_withins(used)) if within or draw(one_in(5)) else ""))
    groups = [*_exported_variables(goals)] if any_group else _independent_variables(goals)
    if groups and (any_group or draw(st.booleans())):
        text += f" GROUP BY {', '.join(draw(st.lists(st.sampled_from(groups), unique=True, min_size=1)))}"
    return draw(_with_threshold(text))


def _withins(used: Sequence[Shape]) -> st.SearchStrategy[str]:
    """`WITHIN d`, for the times of these streams."""
    return st.sampled_from(WITHIN[used[0].time_type]).map(lambda duration: f" WITHIN {duration}")


@st.composite
def _patterns(draw: Draw, class_: str, goals: Sequence[Goal], tables: Sequence[Table], within: str) -> str:
    """The goals with WITHIN and WHERE."""
    text = goals[0].text
    for count, goal in enumerate(goals[1:], start=1):
        if draw(one_in(8)):
            text = f"({text} WHERE {draw(_selections(class_, goals[:count], tables))})"
        text = " THEN ".join([text, *(f"NOT {guard.text}" for guard in goal.guards), goal.text])
    text = f"PATTERN {text}{within}"
    if draw(one_in(3)):
        text += f" WHERE {draw(_selections(class_, goals, tables))}"
    return text


@st.composite
def _with_threshold(draw: Draw, text: str) -> str:
    """The query, sometimes with THRESHOLD."""
    threshold = draw(st.sampled_from([None, 0.1, 1, 0.5, None, None]))
    return text if threshold is None else f"{text} THRESHOLD {threshold}"


#: Combinations of the queries a, b and c.
FORMULAS = (
    "a AND b", "a OR b", "NOT a", "a GIVEN b", "a AND NOT b", "NOT (a AND b) OR c", "NOT a GIVEN NOT b",
    "a GIVEN NOT b", "(a OR c) GIVEN b AND c", "NOT a AND NOT b AND NOT c", "a AND NOT a",
)  # fmt: skip


@st.composite
def combination_cases(
    draw: Draw, classes: Sequence[str] = CLASSES, most_worlds: int = 300, watermark: int | float | None = None
) -> Case:
    """A combination `q` of queries a, b and c over one or two streams; they are grouped by p0 if all of them can be."""
    declared = draw(_shapes(MODELS, draw(st.sampled_from([1, 2])), watermark))
    tables = draw(_tables())
    rows = draw(_rows(declared, 2, most_worlds))
    drawn = []
    for _ in "abc":
        class_ = draw(st.sampled_from([class_ for class_ in classes if class_ != SAFE]))
        used = draw(lists(st.sampled_from(declared), sizes=[1, 2, 2, 3]))
        goals = draw(_goals(class_, used, rows, tables))
        within = draw(_withins(used)) if draw(one_in(6)) else ""
        drawn.append((goals, draw(_patterns(class_, goals, tables, within))))
    grouped = all("p0" in _independent_variables(goals) for goals, _ in drawn) and not draw(one_in(4))
    group_by = " GROUP BY p0" if grouped else ""
    operands = [
        f"CREATE QUERY {name} AS {draw(_with_threshold(text + group_by))};"
        for name, (_, text) in zip("abc", drawn, strict=True)
    ]
    declarations = [*(shape.text() for shape in declared), *(table.text() for table in tables), *operands]
    return Case(
        workbook=workbook_of(declarations, draw(_with_threshold(draw(st.sampled_from(FORMULAS))))),
        query=QUERY,
        rows=rows,
        relations={table.name: list(table.rows) for table in tables},
    )


@st.composite
def _goals(draw: Draw, class_: str, used: Sequence[Shape], rows: Rows, tables: Sequence[Table]) -> list[Goal]:
    """One goal for each stream in `used`, with filters and Kleene plus."""
    shared = draw(_shared_positions(used if class_ == EXTENDED else used[:1])) if class_ in (EXTENDED, SAFE) else {}
    names = (f"x{number}" for number in itertools.count(1))
    bound: dict[str, str] = {}
    goals = []
    for shape in used:
        goal_shared = shared if class_ == EXTENDED or shape is used[0] else {}
        usable = bound if class_ == GENERAL else {}
        guards = ()
        if goals and draw(one_in(5)):
            guard_shape = draw(st.sampled_from(used)) if class_ in (REGULAR, GENERAL) else shape
            guard = draw(_goal(guard_shape, rows[guard_shape.name], goal_shared, usable, names))
            guards = (draw(_with_filter(guard, tables)),)
        goal = draw(_with_filter(draw(_goal(shape, rows[shape.name], goal_shared, usable, names)), tables))
        if draw(one_in(5)):
            others = used if class_ in (REGULAR, GENERAL) else [shape]
            goal = draw(_with_alternative(goal, others, rows, goal_shared, tables))
        goal = draw(_with_kleene(replace(goal, guards=guards), class_, set(shared.values()), bound, tables))
        bound.update(goal.exported)
        goals.append(goal)
    return goals


@st.composite
def _shared_positions(draw: Draw, used: Sequence[Shape]) -> dict[int, str]:
    """The key positions of all goals that have a shared variable, with its name; at least one."""
    positions = range(min(len(shape.keys) for shape in used))
    chosen = draw(st.lists(st.sampled_from(positions), unique=True, min_size=1))
    return {position: f"p{position}" for position in chosen}


@st.composite
def _goal(
    draw: Draw,
    shape: Shape,
    rows: Sequence[Row],
    shared: Mapping[int, str],
    bound: Mapping[str, str],
    names: Iterator[str],
) -> Goal:
    """A goal with a shared variable in each of the `shared` positions, and any term in the others.

    The other terms are `_`, a constant (mostly one that occurs in the rows), a new variable, a variable that the goal
    already has, or one of `bound`.
    """
    variables = {name: shape.keys[position][1] for position, name in shared.items()}
    terms = []
    for position, (column, type_) in enumerate(shape.columns):
        if position in shared:
            terms.append(shared[position])
            continue
        known = [name for name, known_type in {**bound, **variables}.items() if known_type == type_]
        kind = draw(st.sampled_from(["_", "new", "new", "constant", "known", "new", "new"]))
        if kind == "_":
            terms.append("_")
        elif kind == "constant":
            occurring = dict.fromkeys(row[column] for row in rows if row[column] is not None)
            terms.append(
                constant_text(draw(st.sampled_from([*occurring] * 4 + [DOMAIN[type_][-1]] + [*occurring] * 4)))
            )
        else:
            name = draw(st.sampled_from(known)) if kind == "known" and known else next(names)
            variables[name] = type_
            terms.append(name)
    return Goal(shape, (tuple(terms[: len(shape.keys)]),), variables, f"{shape.name}({', '.join(terms)})")


@st.composite
def _with_filter(draw: Draw, goal: Goal, tables: Sequence[Table]) -> Goal:
    """The goal, sometimes with a filter."""
    if not draw(one_in(6)):
        return goal
    return replace(goal, text=f"{goal.text}[{draw(_conditions(goal.variables, tables))}]")


@st.composite
def _with_alternative(
    draw: Draw, goal: Goal, shapes: Sequence[Shape], rows: Rows, shared: Mapping[int, str], tables: Sequence[Table]
) -> Goal:
    """The goal or another one with the same variables, in any columns of their types; the goal alone if none fits."""
    shape = draw(st.sampled_from(shapes))
    terms: list[str | None] = [shared.get(position) for position in range(len(shape.columns))]
    for name, type_ in goal.variables.items():
        columns = [
            position
            for position, (_, column_type) in enumerate(shape.columns)
            if terms[position] is None and column_type == type_
        ]
        if name not in terms:
            if not columns:
                return goal
            terms[draw(st.sampled_from(columns))] = name
    for position, (column, _) in enumerate(shape.columns):
        if terms[position] is None:
            occurring = dict.fromkeys(row[column] for row in rows[shape.name] if row[column] is not None)
            terms[position] = draw(st.sampled_from(["_", *map(constant_text, occurring)]))
    named = [term for term in terms if term is not None]
    other = Goal(shape, (tuple(named[: len(shape.keys)]),), goal.variables, f"{shape.name}({', '.join(named)})")
    text = f"({goal.text} OR {draw(_with_filter(other, tables)).text})"
    return replace(goal, keys=(*goal.keys, *other.keys), text=text)


@st.composite
def _with_kleene(
    draw: Draw, goal: Goal, class_: str, shared: set[str], bound: Mapping[str, str], tables: Sequence[Table]
) -> Goal:
    """The goal, in a third of the cases with a plus.

    The plus shares the variables bound earlier and the key variables that all goals share. In a general query it may
    share more variables of the goal, and its condition may use variables bound earlier.
    """
    if not draw(one_in(3)):
        return replace(goal, exported=goal.variables)
    needed = [name for name in goal.variables if name in bound or name in shared]
    others = [name for name in goal.variables if name not in needed]
    if class_ == GENERAL and others:
        needed += draw(st.lists(st.sampled_from(others), unique=True))
    if not needed and draw(st.booleans()):
        return replace(goal, text=f"{goal.text}+")
    usable = {**bound, **goal.variables} if class_ == GENERAL else goal.variables
    condition = "TRUE" if draw(st.booleans()) else draw(_conditions(usable, tables))
    exported = {name: goal.variables[name] for name in needed}
    return replace(goal, text=f"{goal.text}+<{', '.join(needed)} | {condition}>", exported=exported)


def _exported_variables(goals: Sequence[Goal]) -> dict[str, str]:
    """The variables that GROUP BY can name, with their types."""
    return {name: type_ for goal in goals for name, type_ in goal.exported.items()}


def _independent_variables(goals: Sequence[Goal]) -> list[str]:
    """The exported variables that are in the same key position of all goals."""
    keys = [terms for goal in goals for part in (goal, *goal.guards) for terms in part.keys]
    positions = range(min(map(len, keys)))
    common = [keys[0][position] for position in positions if len({terms[position] for terms in keys}) == 1]
    return [name for name in dict.fromkeys(common) if all(name in goal.exported for goal in goals)]


# ---------------------------------------------------------------- conditions


@st.composite
def _selections(draw: Draw, class_: str, goals: Sequence[Goal], tables: Sequence[Table]) -> str:
    """One or two conjuncts, each local to a goal; in a general query, over all exported variables."""
    conjuncts = []
    for _ in range(draw(st.sampled_from([1, 2, 1]))):
        if class_ == GENERAL:
            variables = {name: type_ for goal in goals for name, type_ in goal.exported.items()}
        else:
            variables = draw(st.sampled_from(goals)).exported
        conjuncts.append(draw(_conditions(variables, tables)))
    return " AND ".join(conjuncts)


@st.composite
def _conditions(draw: Draw, variables: Mapping[str, str], tables: Sequence[Table], depth: int = 2) -> str:
    """A condition on some of the variables, in parentheses if it needs them."""
    kind = draw(st.sampled_from(["atom", "OR", "NOT", "AND", "OR", "atom"])) if depth else "atom"
    if kind == "atom":
        return draw(_atoms(variables, tables))
    parts = [draw(_conditions(variables, tables, depth - 1)) for _ in range(1 if kind == "NOT" else 2)]
    return f"NOT ({parts[0]})" if kind == "NOT" else f"({f' {kind} '.join(parts)})"


@st.composite
def _atoms(draw: Draw, variables: Mapping[str, str], tables: Sequence[Table]) -> str:
    """A relation atom, a condition on one variable or a comparison of two; a constant if there are no variables."""
    usable = [table for table in tables if {type_ for _, type_ in table.columns} <= set(variables.values())]
    if usable and draw(one_in(3)):
        table = draw(st.sampled_from(usable))
        terms = [draw(_operands(variables, type_)) for _, type_ in table.columns]
        return f"{table.name}({', '.join(terms)})"
    if not variables:
        return draw(st.sampled_from(["TRUE", "1 < 2"]))
    name, type_ = draw(st.sampled_from(list(variables.items())))
    others = {other: other_type for other, other_type in variables.items() if other != name}
    kind = draw(st.sampled_from(["compare", "list", "null", "arithmetic", "compare", "compare"]))
    if kind == "null":
        return f"{name} IS {draw(st.sampled_from(['NOT ', '', 'NOT ']))}NULL"
    if kind == "list":
        items = draw(lists(st.sampled_from(DOMAIN[type_]), sizes=[1, 2, 3, 4]))
        return f"{name} {draw(st.sampled_from(['', 'NOT ']))}IN ({', '.join(map(constant_text, items))})"
    if kind == "arithmetic" and type_ == INTEGER:
        return draw(_sums(name, draw(_operands(others, INTEGER))))
    compare = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<>"]))
    return f"{name} {compare} {draw(_operands(others, type_))}"


def _operands(variables: Mapping[str, str], type_: str) -> st.SearchStrategy[str]:
    """A variable of this type, if there is one, or a constant."""
    fitting = [name for name, variable_type in variables.items() if variable_type == type_]
    return st.sampled_from(fitting * 3 + [constant_text(value) for value in DOMAIN[type_]])


def _sums(left: str, right: str) -> st.SearchStrategy[str]:
    """Conditions with arithmetic on two integers, including a division by zero."""
    return st.sampled_from(
        [
            f"{left} + 1 > {right}",
            f"{left} - {right} < 0",
            f"-{left} * 2 <= {right} - 3",
            f"{left} / 2 = 0.5",
            f"{left} / {right} >= 1",
            f"({left} - {right}) % 2 = -1",
            f"{left} % {right} = 0",
            f"ABS({left} - {right}) = 1",
            f"{left} BETWEEN 1 AND {right}",
        ]
    )
