"""Hypothesis strategies for CONSTRAIN: a few events in space and time, and queries over them.

Some rows, the *models*, are events of the variables. Most bounds hold for them, often with equality: so there are
answers, and boundaries matter. Keys, values, times and locations come from tiny domains, so that they are often equal.
Times and planar coordinates are binary fractions: every sum, difference and distance that is compared is exact, or far
from its bound. On the globe no distance is within a millimetre of its bound.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from tests.cases import (
    DOUBLE,
    INTEGER,
    QUERY,
    STRING,
    TIMES,
    Case,
    Draw,
    Relations,
    Row,
    Rows,
    lists,
    one_in,
    operands_of,
    workbook_of,
)
from tests.constrain.conditions import conjuncts
from tests.constrain.streams import (
    COORDINATES,
    DECIMAL_INSTANTS,
    INSTANTS,
    NOWHERE,
    SPACES,
    TEMPS,
    Shape,
    Style,
    Variable,
)

#: The names of variables; one of them is not in lower case.
NAMES = ("u", "v", "W", "z")

#: The most rows by the number of events of a solution, so that the oracle has not too many choices to try.
MOST_ROWS = {1: 14, 2: 14, 3: 14, 4: 14, 5: 10, 6: 9}
#: The most rows that are repeated, or repeated with another value.
MOST_REPEATED = 2


# ---------------------------------------------------------------- cases


@st.composite
def constrain_cases(
    draw: Draw,
    time_types: Sequence[str] = TIMES,
    spaces: Sequence[str] = SPACES,
    most_variables: int = 4,
    most_streams: int = 2,
    counted: bool = True,
    consistent: bool = False,
    connected: bool = False,
    polygons: bool = True,
    tables: bool = True,
    unknown_locations: bool = True,
    decimals: bool = False,
    negated: bool = False,
    growing: bool = False,
    watermark: int | float | None = None,
) -> Case:
    """A query with data of at most 14 rows.

    Parameters
    ----------
    time_types : the types of time column to choose from, of `TIMES`
    spaces : the spaces to choose from, of `SPACES`
    most_variables, most_streams : int
        All declared streams are used by the query.
    counted : bool
        Whether a variable may have two or three events.
    consistent : bool
        Whether the models satisfy all temporal bounds; otherwise a few bounds contradict each other.
    connected : bool
        Whether bounds on differences of times, from below and above, connect all events, as streaming requires. Bounds
        under OR or NOT do not count.
    polygons, tables : bool
        Whether conditions may have WITHIN, and relations.
    unknown_locations : bool
        Whether coordinates may be NULL.
    decimals : bool
        Whether times are tenths: then rounded differences of doubles can miss a bound.
    negated : bool
        Whether variables have NOT: one or two of at least two.
    growing : bool
        Whether a variable has AT LEAST.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None for no WATERMARK.
    """
    time_type = draw(st.sampled_from(time_types))
    instants = (DECIMAL_INSTANTS if decimals else INSTANTS)[time_type]
    shapes = draw(_shapes(time_type, instants, spaces, most_streams, unknown_locations, watermark))
    without_models = draw(_variables(shapes, most_variables, counted))
    if growing:
        without_models = draw(_with_at_least(without_models))
    if negated:
        without_models = draw(_with_not(without_models))
    rows, variables = draw(_rows(without_models))
    relations = draw(_tables()) if tables and draw(one_in(6)) else {}
    style = Style(consistent, connected, polygons, decimals, tuple(relations))
    declarations = [shape.text() for shape in dict.fromkeys(variable.shape for variable in variables)]
    declarations += [f"CREATE RELATION {name} (a STRING, b STRING);" for name in relations]
    query = draw(_queries(variables, style))
    return Case(workbook_of(declarations, query), QUERY, rows, relations)


@st.composite
def uncertain_cases(draw: Draw, most_rows: int = 7, **options: Any) -> Case:
    """A case over INDEPENDENT streams, sometimes with a CERTAIN one; there are few rows, because worlds are many."""
    case = draw(constrain_cases(**options))
    rows, left = {}, most_rows
    for name, stream_rows in case.rows.items():
        rows[name] = stream_rows[:left]
        left -= len(rows[name])
    workbook, uncertain = case.workbook, [*rows][: draw(st.sampled_from([2, 2, 1]))]
    for name in uncertain:
        workbook = re.sub(rf"(CREATE STREAM {name} .*? TIME t \w+)", r"\1 PROBABILITY p MODEL INDEPENDENT", workbook)
        rows[name] = draw(_with_probabilities(rows[name]))
    return replace(case, workbook=workbook, rows=rows)


@st.composite
def _with_probabilities(draw: Draw, rows: Sequence[Row]) -> list[Row]:
    """The rows with a column p; equal rows have the same p, and those of one key and time at most 1 in all."""
    alternatives: dict[Any, list[Row]] = {}
    for row in rows:
        group = alternatives.setdefault((row["id"], row["t"]), [])
        group += [] if row in group else [row]
    chances = [
        (row, draw(st.sampled_from([0.5, 0.25, 1.0, 0.875, 0.1, 0.0])) / len(group))
        for group in alternatives.values()
        for row in group
    ]
    return [{**row, "p": next(p for other, p in chances if other == row)} for row in rows]


@st.composite
def _shapes(
    draw: Draw,
    time_type: str,
    instants: tuple[int | float, ...],
    spaces: Sequence[str],
    most: int,
    unknown_locations: bool,
    watermark: int | float | None,
) -> list[Shape]:
    """The streams; the second may have no locations."""
    space = draw(st.sampled_from(spaces))
    coordinates = draw(st.sampled_from(COORDINATES[space]))
    key_type = draw(st.sampled_from([STRING, INTEGER]))
    shapes = []
    for name in ("e", "f")[: draw(st.integers(1, most))]:
        temp_type = draw(st.sampled_from([INTEGER, DOUBLE]))
        own_space = NOWHERE if shapes and draw(one_in(6)) else space
        shapes.append(
            Shape(name, key_type, temp_type, time_type, instants, own_space, coordinates, unknown_locations, watermark)
        )
    return shapes


@st.composite
def _variables(draw: Draw, shapes: Sequence[Shape], most: int, counted: bool) -> list[Variable]:
    """Variables over the streams, without models; a solution has at most six events."""
    count = draw(st.sampled_from([number for number in (2, 1, 3, 2, 3, 4, 4) if number <= most]))
    free = max(MOST_ROWS) - count
    variables = []
    for name in NAMES[:count]:
        number = draw(st.sampled_from([1, 1, 2, 1, 3, 1])) if counted else 1
        number = number if number - 1 <= free else 1
        free -= number - 1
        variables.append(Variable(name, draw(st.sampled_from(shapes)), number))
    return variables


@st.composite
def _with_at_least(draw: Draw, variables: list[Variable]) -> list[Variable]:
    """Two variables at most, of which the first has AT LEAST, with two or three models; a set may have fewer events."""
    first, *others = variables[:2]
    count = draw(st.sampled_from([2, 3]))
    least = draw(st.sampled_from([2, 1, 3, 2]))
    return [replace(first, count=count, least=least), *(replace(other, count=1) for other in others)]


@st.composite
def _with_not(draw: Draw, variables: list[Variable]) -> list[Variable]:
    """The variables, of which the last one or two have NOT; there is one more if there is only one."""
    if len(variables) == 1:
        variables = [*variables, Variable(NAMES[1], variables[0].shape)]
    count = draw(st.sampled_from([1, 1, 2])) if len(variables) > 2 else 1
    present, absent = variables[:-count], variables[-count:]
    absent = [replace(variable, count=1, negated=True) for variable in absent]
    return draw(st.permutations([*present, *absent]))


@st.composite
def _tables(draw: Draw) -> Relations:
    """A relation between kinds."""
    pairs = st.tuples(st.sampled_from(["A", "B", "C"]), st.sampled_from(["A", "B", "C"]))
    return {"goes": list(dict.fromkeys(draw(lists(pairs, sizes=[9, 3, 12, 0, 9]))))}


# ---------------------------------------------------------------- rows


@st.composite
def _rows(draw: Draw, variables: Sequence[Variable]) -> tuple[Rows, list[Variable]]:
    """Rows for each stream, and the variables with their models.

    A model is one of the rows if there are enough of them, else another row. Some rows are repeated, some of them with
    another value.
    """
    needed = sum(variable.count for variable in variables)
    shapes = list(dict.fromkeys(variable.shape for variable in variables))
    # The oracle tries sets of every size for AT LEAST.
    most = MOST_ROWS[6 if any(variable.least for variable in variables) else needed] - MOST_REPEATED
    sizes = [min(most, needed + more) for more in (1, 3, 5, 8, 12, 2, 12, 4, 6, 10, 12, 5)]
    size = draw(st.sampled_from([*sizes, 0, *sizes[:6], needed - 1]))
    used = [variable.shape for variable in variables for _ in range(variable.count)]
    rows: Rows = {shape.name: [] for shape in shapes}
    for index in range(size):
        shape = used[index] if index < needed else draw(st.sampled_from(shapes))
        rows[shape.name].append(draw(shape.rows()))
    taken: list[Row] = []
    modelled = []
    for variable in variables:
        models = []
        for _ in range(variable.count):
            free = [row for row in rows[variable.shape.name] if row not in taken]
            models.append(draw(st.sampled_from(free) if free else variable.shape.rows()))
            taken.append(models[-1])
        modelled.append(replace(variable, models=tuple(models)))
    for shape in shapes:
        if rows[shape.name]:
            repeated = draw(st.lists(st.sampled_from(rows[shape.name]), max_size=MOST_REPEATED // len(shapes)))
            rows[shape.name] += [
                {**row, "temp": draw(st.sampled_from(TEMPS[shape.temp_type]))} if draw(one_in(3)) else dict(row)
                for row in repeated
            ]
    return rows, modelled


# ---------------------------------------------------------------- queries


@st.composite
def _queries(draw: Draw, variables: Sequence[Variable], style: Style) -> str:
    """The text of a query."""
    names = ", ".join(variable.text() for variable in variables)
    operands = draw(operands_of([(variable.shape.name, variable.name) for variable in variables]))
    parts = [part for part in draw(conjuncts(variables, style)) if part]
    where = f" WHERE {' AND '.join(draw(st.permutations(parts)))}" if parts else ""
    threshold = draw(st.sampled_from(["", "", " THRESHOLD 1", " THRESHOLD 0.5", ""]))
    return f"CONSTRAIN {names} FROM {operands}{where}{threshold}"
