"""Hypothesis strategies for the conditions of CONSTRAIN; most of them are true for the models of their variables."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from tests.cases import INTEGER, MIRRORED, TIMESTAMP, Draw, Row, constant_text, number_text, one_in, seconds
from tests.constrain.streams import AIR, GLOBE, NOWHERE, PLANE, SPACE, STEPS, Shape, Style, Variable
from tests.oracles.constrain import from_centre, great_circle

#: Distances in metres that are independent of the events of a case; the last is almost half of the equator.
METRES = (1, 20_000, 28_000, 111_000, 2_000_000, 20_015_000)


@st.composite
def conjuncts(draw: Draw, variables: Sequence[Variable], style: Style) -> list[str]:
    """Conditions that connect most variables to an earlier one, conditions on single variables, and a few more.

    Variables with NOT are connected to others without it, and no condition names two of them.
    """
    parts = []
    variables = sorted(variables, key=lambda variable: variable.negated)
    present = [variable for variable in variables if not variable.negated]
    for index, variable in enumerate(variables):
        if index and (style.connected or not draw(one_in(6))):
            other = draw(st.sampled_from(present[:index]))
            parts.append(draw(_windows(variable, other, style)))
            if not draw(one_in(3)):
                parts.append(draw(_spatial(variable, other, style)))
        if variable.count > 1:
            if style.connected or draw(st.booleans()):
                parts.append(draw(_spans(variable, variable, style, two_sided=True)))
            if draw(st.booleans()):
                parts.append(draw(_between(variable, variable, style)))
            if draw(one_in(3)):
                parts.append(draw(_twice(variable)))
        if draw(st.booleans()):
            parts.append(draw(_unary(variable, style)))
    for _ in range(draw(st.sampled_from([0, 1, 0, 2]))):
        parts.append(draw(_any_condition(variables, style)))
    if draw(one_in(3)):
        parts.append(draw(_logical(variables, style)))
    for name in style.tables:
        u, v = (draw(st.sampled_from(variables)).name for _ in range(2))
        parts.append(draw(st.sampled_from([f"{name}({u}.kind, {v}.kind)", f"{name}({u}.kind, 'A')", ""])))
    absent = [variable.name for variable in variables if variable.negated]
    return [part for part in parts if sum(bool(re.search(rf"\b{name}\b", part)) for name in absent) < 2]


@st.composite
def _any_condition(draw: Draw, variables: Sequence[Variable], style: Style) -> str:
    """A condition on one, two or three variables."""
    kind = draw(st.sampled_from(["one", "two", "two", "three"]))
    first = draw(st.sampled_from(variables))
    if kind == "one" or (len(variables) == 1 and first.count == 1):
        return draw(_unary(first, style))
    others = [variable for variable in variables if variable is not first or variable.count > 1]
    if kind == "three" and len(variables) > 2:
        return draw(_ternary(draw(st.permutations(variables))[:3]))
    return draw(_between(first, draw(st.sampled_from(others)), style))


@st.composite
def _logical(draw: Draw, variables: Sequence[Variable], style: Style) -> str:
    """Conditions under OR and NOT; a counted variable is named at most twice."""
    a = draw(_any_condition(variables, style)) or "TRUE"
    stray_styles = [replace(style, consistent=False, stray=stray) for stray in (2, 1)]
    b, c = (draw(_any_condition(variables, stray_style)) or "TRUE" for stray_style in stray_styles)
    texts = [f"({b} OR {a})", f"({b} AND {c} OR {a})", f"({a}) = TRUE", f"({a} OR NULL)"]
    if not style.consistent:
        texts += [f"NOT ({c})", f"NOT ({b} AND {c})", f"NOT ({c} OR NOT ({a}))", f"({b} OR {c})", f"NOT ({c})"]
    allowed = [text for text in texts if _is_allowed(text, variables)]
    return draw(st.sampled_from(allowed))


def _is_allowed(text: str, variables: Sequence[Variable]) -> bool:
    counted = [variable for variable in variables if variable.count > 1]
    return all(len(re.findall(rf"\b{variable.name}\b", text)) <= 2 for variable in counted)


# ---------------------------------------------------------------- bounds


def _pairs(u: Variable, v: Variable) -> Iterator[tuple[Row, Row]]:
    """The pairs of models to which a condition on u and v applies; every ordered pair if u is v."""
    return itertools.permutations(u.models, 2) if u is v else itertools.product(u.models, v.models)


@dataclass(frozen=True)
class Measure:
    """An expression to bound.

    Attributes
    ----------
    text : the expression
    values : its values for the models
    step : the distance between adjacent bounds, None for metres on the globe
    strangers : bounds that are independent of the models
    """

    text: str
    values: tuple[float, ...]
    step: float | None
    strangers: tuple[float, ...]

    def above(self, slack: float) -> float:
        """An upper bound, this many steps above the greatest value."""
        return self._moved(max(self.values, default=0.0), slack)

    def below(self, slack: float) -> float:
        """A lower bound, this many steps below the least value."""
        return self._moved(min(self.values, default=0.0), -slack, up=False)

    def _moved(self, value: float, slack: float, up: bool = True) -> float:
        if self.step is not None:
            return round(value + slack * self.step, 6)
        # Whole metres; never 0, which locations at a pole or on the antimeridian miss by a nanometre.
        moved = math.ceil(value + 0.001) if up else math.floor(value - 0.001)
        return round(moved + 10_000 * slack) if moved + 10_000 * slack > 0 else -1


@st.composite
def _intervals(draw: Draw, measure: Measure, kept: bool) -> tuple[float, float]:
    """The ends of an interval; it contains the values if `kept`."""
    slacks = st.sampled_from([0, 0, 1, 0, 2, 0.5])
    if kept:
        return measure.below(draw(slacks)), measure.above(draw(slacks))
    low, high = (draw(st.sampled_from(measure.strangers)) for _ in range(2))
    return (low, high) if draw(one_in(8)) else (min(low, high), max(low, high))


@st.composite
def _compared(draw: Draw, measure: Measure, kept: bool, ops: Sequence[str] = ("<=", "<", ">=", ">", "<>", "=")) -> str:
    """The measure compared with a bound, which the values satisfy if `kept`, often with equality."""
    op = draw(st.sampled_from(ops))
    slack = draw(st.sampled_from([0, 0, 1, 0, 2, 0.5]))
    if kept and op in ("<", ">"):
        slack = slack or 1
    if not kept and draw(st.booleans()):
        bound = draw(st.sampled_from(measure.strangers))
    elif op in ("<", "<="):
        bound = measure.above(slack)
    elif op in (">", ">="):
        bound = measure.below(slack)
    else:
        bound = measure.above(0 if op == "=" else slack)
    if kept and op == "=" and len(set(measure.values)) > 1:
        op = "<="
    amount = draw(_amounts(bound, measure))
    return f"{amount} {MIRRORED[op]} {measure.text}" if draw(one_in(4)) else f"{measure.text} {op} {amount}"


def _amounts(bound: float, measure: Measure) -> st.SearchStrategy[str]:
    """A bound as text; a bound on times may have a unit."""
    texts = [number_text(bound)]
    if "DISTANCE" not in measure.text and "temp" not in measure.text:
        texts += [number_text(bound), f"{number_text(bound)} SECONDS"]
        texts += [f"{number_text(bound / 60)} MINUTES"] if bound and bound % 30 == 0 else []
    return st.sampled_from(texts)


def _keeps(style: Style) -> st.SearchStrategy[bool]:
    """Whether the models satisfy a bound."""
    return st.integers(0, style.stray - 1).map(lambda number: number != style.stray // 2)


def _times_keep(style: Style) -> st.SearchStrategy[bool]:
    """Whether the models satisfy a bound on times."""
    return st.just(True) if style.consistent else _keeps(style)


# ---------------------------------------------------------------- times


def _difference(u: Variable, v: Variable, style: Style) -> Measure:
    values = tuple(seconds(a) - seconds(b) for a, b in _pairs(u, v))
    step = 0.1 if style.decimals and u.shape.time_type != INTEGER else STEPS[u.shape.time_type]
    return Measure(f"{u.name}.t - {v.name}.t", values, step, (0, 1, -1, 2, 5, -3, 60, 0.5))


@st.composite
def _spans(draw: Draw, u: Variable, v: Variable, style: Style, two_sided: bool = False) -> str:
    """A bound on the absolute difference of times; an upper bound if `two_sided`."""
    difference = _difference(u, v, style)
    text = draw(st.sampled_from([f"SPAN({u.name}, {v.name})", f"ABS({difference.text})"]))
    measure = Measure(text, tuple(map(abs, difference.values)), difference.step, (0, 1, 2, 5, 60, 0.5))
    ops = ("<=", "<") if two_sided else ("<=", "<", ">=", ">", "=")
    return draw(_compared(measure, draw(_times_keep(style)), ops))


@st.composite
def _windows(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """Bounds on a difference of times from both sides; sometimes another temporal condition if not `connected`."""
    difference = _difference(u, v, style)
    kind = draw(st.sampled_from(["in", "between", "two", "span"] if style.connected else ["in", "span", "any", "any"]))
    if kind == "any":
        return draw(_temporal(u, v, style))
    if kind == "span":
        return draw(_spans(u, v, style, two_sided=True))
    low, high = draw(_intervals(difference, draw(_times_keep(style))))
    ends = [draw(_amounts(end, difference)) for end in (low, high)]
    if kind == "two":
        return f"{difference.text} >= {ends[0]} AND {ends[1]} >= {difference.text}"
    return f"{difference.text} {'IN [{}, {}]' if kind == 'in' else 'BETWEEN {} AND {}'}".format(*ends)


@st.composite
def _temporal(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """Any condition on the times of two variables."""
    difference = _difference(u, v, style)
    kept = draw(_times_keep(style))
    kind = draw(st.sampled_from(["difference", "span", "order", "not in", "sum"]))
    if kind == "span":
        return draw(_spans(u, v, style))
    if kind == "order":
        ops = [op for op, true in _ORDERS.items() if not kept or all(map(true, difference.values))]
        if ops:
            return f"{u.name}.t {draw(st.sampled_from(ops))} {v.name}.t"
    if kind == "not in":
        low, high = draw(_intervals(difference, False))
        return f"{difference.text} NOT IN [{number_text(low)}, {number_text(high)}]"
    if kind == "sum" and u.shape.time_type != TIMESTAMP:
        return f"{u.name}.t <= {v.name}.t + {number_text(difference.above(draw(st.sampled_from([0, 1]))))}"
    return draw(_compared(difference, kept))


_ORDERS: dict[str, Callable[[float], bool]] = {
    "<": lambda d: d < 0, "<=": lambda d: d <= 0, "=": lambda d: d == 0, "<>": lambda d: d != 0,
    ">=": lambda d: d >= 0, ">": lambda d: d > 0,
}  # fmt: skip


# ---------------------------------------------------------------- locations


def _distance(a: Row, b: Row, shape: Shape) -> float | None:
    """The distance of two rows; None if a location is unknown."""
    one, other = (tuple(row[axis] for axis in shape.axes) for row in (a, b))
    if None in (*one, *other):
        return None
    if shape.space == AIR:
        one, other = from_centre(*one), from_centre(*other)
    return great_circle(*one, *other) if shape.space == GLOBE else math.dist(one, other)


@st.composite
def _spatial(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """A bound on a distance, which may be unsatisfiable; empty if one of the two variables has no locations."""
    if NOWHERE in (u.shape.space, v.shape.space):
        return ""
    distances = [_distance(a, b, u.shape) for a, b in _pairs(u, v)]
    known = tuple(distance for distance in distances if distance is not None)
    text = f"DISTANCE({u.name}, {v.name})"
    kept = draw(_keeps(style))
    if u.shape.space in (GLOBE, AIR):
        measure = Measure(text, known, None, METRES)
        return draw(_compared(measure, kept, ("<=", "<", ">=", ">", "<>")))
    # A distance that is not a multiple of the step is bounded by one that is.
    step = 1.0 if u.shape.space in (PLANE, SPACE) else 0.25
    up, down = (tuple(round_(d / step) * step for d in known) for round_ in (math.ceil, math.floor))
    op = draw(st.sampled_from(["<=", "<", ">=", ">", "<=", "in", "temp", "="]))
    if op == "temp" and u is not v and (not kept or _is_near(u, v)):
        return f"{text} <= {u.name}.temp"
    if op == "temp" or (op == "=" and kept and up != down):
        op = "<="
    strangers = (0, 1, 2, 0.25, 5)
    if op == "in":
        low, high = draw(_intervals(Measure(text, up + down, step, strangers), kept))
        return f"{text} IN [{number_text(low)}, {number_text(high)}]"
    return draw(_compared(Measure(text, down if op in (">", ">=") else up, step, strangers), kept, (op,)))


def _is_near(u: Variable, v: Variable) -> bool:
    """Whether the distance of the models is at most the temp of the first."""
    pairs = [(_distance(a, b, u.shape), a["temp"]) for a, b in _pairs(u, v)]
    return all(None not in pair and pair[0] <= pair[1] for pair in pairs)


def _polygons(shape: Shape) -> st.SearchStrategy[str]:
    """Polygons with corners at possible locations of events; on the globe only boxes."""
    (left, *_, right), (low, *_, high) = (sorted(numbers) for numbers in shape.coordinates[:2])
    inner_x, inner_y = (sorted(numbers)[1] for numbers in shape.coordinates[:2])
    box = f"({left} {low}, {inner_x} {low}, {inner_x} {high}, {left} {high}, {left} {low})"
    texts = [f"POLYGON({box})"]
    if shape.space not in (GLOBE, AIR):
        hole = f"({left} {low}, {right} {low}, {right} {high}, {left} {high}, {left} {low})"
        texts += [
            f"POLYGON(({left} {low}, {right} {low}, {left} {high}, {left} {low}))",
            f"POLYGON(({left - 1} {low - 1}, {right} {low - 1}, {right} {high + 1}, {left - 1} {high + 1}, "
            f"{left - 1} {low - 1}), {box})",
            f"POLYGON({hole})",
            f"POLYGON(({inner_x} {inner_y}, {inner_x + 1} {inner_y + 1}, {inner_x} {inner_y + 1}, "
            f"{inner_x} {inner_y}))",
        ]
    return st.sampled_from(texts)


# ---------------------------------------------------------------- other columns

#: Conditions on two variables, and whether they are true for two rows.
_PROPERTIES: dict[str, Callable[[Row, Row], bool]] = {
    "{u}.id = {v}.id": lambda a, b: a["id"] == b["id"],
    "{u}.id <> {v}.id": lambda a, b: a["id"] != b["id"],
    "{u}.kind = {v}.kind": lambda a, b: a["kind"] == b["kind"] and a["kind"] is not None,
    "{u}.kind <> {v}.kind": lambda a, b: None not in (a["kind"], b["kind"]) and a["kind"] != b["kind"],
    "{u}.temp = {v}.temp": lambda a, b: a["temp"] == b["temp"] and a["temp"] is not None,
    "{u}.temp < {v}.temp": lambda a, b: None not in (a["temp"], b["temp"]) and a["temp"] < b["temp"],
    "{u}.temp >= {v}.temp": lambda a, b: None not in (a["temp"], b["temp"]) and a["temp"] >= b["temp"],
    "{u}.temp + 1 <= {v}.temp": lambda a, b: None not in (a["temp"], b["temp"]) and a["temp"] + 1 <= b["temp"],
    "ABS({u}.temp - {v}.temp) <= 1.5": lambda a, b: (
        None not in (a["temp"], b["temp"]) and abs(a["temp"] - b["temp"]) <= 1.5
    ),
    "({u}.id < {v}.id) = TRUE": lambda a, b: a["id"] < b["id"],
}


@st.composite
def _between(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """A condition on two variables, or on two events of a counted variable."""
    kind = draw(st.sampled_from(["property", "spatial", "temporal", "property", "table"]))
    if kind == "temporal":
        return draw(_temporal(u, v, style))
    if kind == "spatial":
        return draw(_spatial(u, v, style))
    if kind == "table" and style.tables:
        return f"{draw(st.sampled_from(style.tables))}({u.name}.kind, {v.name}.kind)"
    true = [text for text, holds in _PROPERTIES.items() if all(holds(a, b) for a, b in _pairs(u, v))]
    texts = true if true and draw(_keeps(style)) else list(_PROPERTIES)
    return draw(st.sampled_from(texts)).format(u=u.name, v=v.name)


@st.composite
def _twice(draw: Draw, v: Variable) -> str:
    """A condition that names a counted variable twice and is not symmetric."""
    temps = [row["temp"] for row in v.models if row["temp"] is not None]
    difference = max(temps, default=1) - min(temps, default=0)
    texts = [
        f"{{0}}.temp - {{0}}.temp <= {number_text(difference)}", "{0}.temp <= {0}.temp", "{0}.id >= {0}.id",
        f"({{0}}.kind = 'A' OR {{0}}.temp >= {number_text(min(temps, default=0))})", "NOT ({0}.kind < {0}.kind)",
        "({0}.kind = 'A' OR {0}.kind = 'B')", "({0}.temp > 0 OR {0}.kind IS NOT NULL)",
    ]  # fmt: skip
    return draw(st.sampled_from(texts)).format(v.name)


@st.composite
def _unary(draw: Draw, u: Variable, style: Style) -> str:
    """A condition on one variable."""
    kind = draw(st.sampled_from(["column", "temp", "column", "within", "time"]))
    if kind == "temp":
        values = tuple(row["temp"] for row in u.models if row["temp"] is not None)
        measure = Measure(f"{u.name}.temp", values, 1, (0, 1, 2.5, -1))
        return draw(_compared(measure, draw(_keeps(style))))
    if kind == "within" and style.polygons and u.shape.axes:
        return f"{draw(st.sampled_from(['', 'NOT ']))}WITHIN({u.name}, '{draw(_polygons(u.shape))}')"
    column = "t" if kind == "time" else draw(st.sampled_from(["kind", "kind", "id", "temp", *u.shape.axes]))
    values = [row[column] for row in u.models]
    constant = draw(st.sampled_from(values))
    true = [
        text for text, holds in _TESTS.items() if None not in values and all(holds(value, constant) for value in values)
    ]
    true += ["IS NULL"] if set(values) == {None} else []
    kept = draw(_times_keep(style) if kind == "time" else _keeps(style))
    texts = true if true and kept else [*_TESTS, "IS NULL", "IS NOT NULL", "NOT IN ({}, NULL)"]
    text = draw(st.sampled_from(texts))
    return f"{u.name}.{column} {text.format('NULL' if constant is None else constant_text(constant))}"


#: Conditions on a column and a constant, and whether they are true for a value.
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "= {}": lambda value, constant: value == constant,
    "IN ({}, NULL)": lambda value, constant: value == constant,
    ">= {}": lambda value, constant: value >= constant,
    "<= {}": lambda value, constant: value <= constant,
    "> {}": lambda value, constant: value > constant,
    "<> {}": lambda value, constant: value != constant,
    "IS NOT NULL": lambda value, constant: True,
}


@st.composite
def _ternary(draw: Draw, variables: Sequence[Variable]) -> str:
    """A condition on three variables."""
    u, v, w = (variable.name for variable in variables)
    texts = [f"{u}.temp + {v}.temp >= {w}.temp", f"SPAN({u}, {v}) <= SPAN({w}, {v})", f"{u}.id IN ({v}.id, {w}.id)"]
    # In this plane, equal distances have the same sides, or are integers: they are equal as doubles too.
    if all(variable.shape.space == PLANE for variable in variables):
        texts += [f"DISTANCE({u}, {v}) < DISTANCE({w}, {v})", f"DISTANCE({u}, {v}) = DISTANCE({v}, {w})"]
    return draw(st.sampled_from(texts))
