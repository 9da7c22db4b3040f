"""Hypothesis strategies for CONSTRAIN: a few events in space and time, and figures to look for among them.

A case is workbook text and rows, so that it can be asked of any door of the package: the oracle, a kernel, a batch run,
a streaming run. Its streams have no FROM; the rows are bound to them by name.

Some rows are chosen to stand for the variables, and most bounds are laid around what is true of these *models*, often
touching it: so there are answers, and boundaries matter. Keys, values, times and places come from tiny domains, so that
they often tie. Times and the plane are grids of binary fractions, on which every sum, difference and distance that is
compared is exact, or far from its bound; on the globe no distance is within a millimetre of its bound. In a list of
choices the simplest stands first: a failing case shrinks towards it.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from tests.oracles.constrain import great_circle

Row = dict[str, Any]
Rows = dict[str, list[Row]]
Draw = Callable[[st.SearchStrategy[Any]], Any]

QUERY = "q"
#: One of them is not in lower case.
NAMES = ("u", "v", "W", "z")

STRING, INTEGER, DOUBLE, TIMESTAMP = "STRING", "INTEGER", "DOUBLE", "TIMESTAMP"
TIMES = (INTEGER, DOUBLE, TIMESTAMP)

#: Places on whole numbers, on quarters, in degrees on the globe, and none at all.
PLANE, QUARTERS, GLOBE, NOWHERE = "plane", "quarters", "globe", "nowhere"
SPACES = (PLANE, QUARTERS, GLOBE, PLANE, NOWHERE)

KEYS = {STRING: ("a", "b", "c", "d"), INTEGER: (1, 2, 3, 10)}
KINDS = ("A", "B", "A", "C", "B", None)
TEMPS = {INTEGER: (1, 2, 0, 3, -1, 2, None), DOUBLE: (1.0, 2.5, 0.0, 0.25, -1.5, 2.5, None)}
#: TIMESTAMPs are seconds after this; midnight, and another month, are two seconds away.
EPOCH = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)
INSTANTS = {
    INTEGER: (0, 1, 2, 3, 4, 5, 7, -2),
    DOUBLE: (0.0, 0.25, 0.5, 1.0, 1.25, 2.0, 3.5, -0.75),
    TIMESTAMP: (0.0, 1.0, 0.5, 2.0, 1.5, 3.0, 60.0, 120.5),
}
#: Instants whose differences are not what they look like in doubles.
DECIMAL_INSTANTS = {INTEGER: INSTANTS[INTEGER]} | dict.fromkeys(
    (DOUBLE, TIMESTAMP), (0.0, 0.1, 0.3, 0.7, 0.2, 0.4, 1.1, -0.6)
)
#: What the instants of a type are apart at least.
STEPS = {INTEGER: 1, DOUBLE: 0.25, TIMESTAMP: 0.5}

#: The coordinates that may be, by space. In the plane many distances are whole, as 5 is for sides of 3 and 4. On the
#: globe: in the middle of a map, around the antimeridian, around a pole.
COORDINATES = {
    PLANE: [((0.0, 3.0, 6.0), (0.0, 4.0)), ((0.0, 3.0, 1.0, 6.0), (0.0, 4.0, 1.0, 8.0))],
    QUARTERS: [((0.0, 0.75, 0.25, 1.5), (0.0, 1.0, -0.25))],
    GLOBE: [
        ((10.0, 10.25, 10.5, 11.0), (50.0, 50.25, 50.5)),
        ((179.75, 179.5, -180.0, -179.75), (0.0, 0.25, -0.25)),
        ((0.0, 90.0, 179.5, -120.0), (90.0, 89.75, 89.5)),
    ],
    NOWHERE: [((), ())],
}
#: Metres that have nothing to do with the events of a case, the last of them almost half of the equator.
METRES = (1, 20_000, 28_000, 111_000, 2_000_000, 20_015_000)

#: At most so many rows by the number of events of a solution, so that the oracle need not try too many choices.
MOST_ROWS = {1: 14, 2: 14, 3: 14, 4: 14, 5: 10, 6: 9}
#: Rows that are given again, or again with another value.
MOST_REPEATED = 2

MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}


@dataclass(frozen=True)
class Case:
    """A question and the data it is asked of.

    Attributes
    ----------
    workbook : str
        Declares the streams, the relations and one query.
    query : str
        The name of the query.
    rows : dict from the name of a stream to its rows, in no order of time
    relations : dict from the name of a relation to its rows
    """

    workbook: str
    query: str
    rows: Rows
    relations: dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Shape:
    """How a stream is declared, and from what its rows are drawn."""

    name: str
    key_type: str
    temp_type: str
    time_type: str
    instants: tuple[int | float, ...]
    space: str
    coordinates: tuple[tuple[float, ...], tuple[float, ...]]
    unknown_places: bool
    watermark: int | float | None = None

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns of a place."""
        return {GLOBE: ("lon", "lat"), NOWHERE: ()}.get(self.space, ("x", "y"))

    def text(self) -> str:
        """The declaration."""
        columns = f"KEY (id {self.key_type}) VALUE (kind STRING, temp {self.temp_type}) TIME t {self.time_type}"
        space = f" SPACE ({', '.join(self.axes)})" if self.axes else ""
        geodesic = " GEODESIC" if self.space == GLOBE else ""
        watermark = "" if self.watermark is None else f" WATERMARK {self.watermark}"
        return f"CREATE STREAM {self.name} {columns}{space}{geodesic}{watermark};"

    def rows(self) -> st.SearchStrategy[Row]:
        """A row; its values may be NULL, and its coordinates where that is allowed."""
        unknown = [None] if self.unknown_places else []
        return st.fixed_dictionaries(
            {
                "id": st.sampled_from(KEYS[self.key_type]),
                "kind": st.sampled_from(KINDS),
                "temp": st.sampled_from(TEMPS[self.temp_type]),
                "t": st.sampled_from([self.time(instant) for instant in self.instants]),
                **{
                    axis: st.sampled_from([*numbers * 6, *unknown])
                    for axis, numbers in zip(self.axes, self.coordinates, strict=False)
                },
            }
        )

    def time(self, instant: int | float) -> Any:
        """An instant as its column has it."""
        return EPOCH + timedelta(seconds=instant) if self.time_type == TIMESTAMP else instant


@dataclass(frozen=True)
class Variable:
    """A variable, and its models: as many rows as it stands for, where there were enough rows of the case."""

    name: str
    shape: Shape
    count: int = 1
    models: tuple[Row, ...] = ()

    def text(self) -> str:
        """What stands after CONSTRAIN."""
        return self.name if self.count == 1 else f"{self.name}*{self.count}"


@dataclass(frozen=True)
class Style:
    """What conditions may be like; the parameters of `constrain_cases`.

    One condition of `stray` does not care what is true of the models.
    """

    consistent: bool
    connected: bool
    polygons: bool
    decimals: bool
    tables: tuple[str, ...]
    stray: int = 12


def _one_in(count: int) -> st.SearchStrategy[bool]:
    """True in about one of `count` draws; False is the simpler case."""
    return st.integers(0, count - 1).map(lambda number: number == 1)


def _lists(items: st.SearchStrategy[Any], sizes: Sequence[int]) -> st.SearchStrategy[list[Any]]:
    """Lists of one of these lengths; left to themselves, lists come out short."""
    return st.sampled_from(sizes).flatmap(lambda size: st.lists(items, min_size=size, max_size=size))


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
    unknown_places: bool = True,
    decimals: bool = False,
    watermark: int | float | None = None,
) -> Case:
    """A question with data that have at most 14 rows.

    Parameters
    ----------
    time_types : the types of time column to choose from, of `TIMES`
    spaces : the spaces to choose from, of `SPACES`
    most_variables, most_streams : int
        All streams that are declared are named by the query.
    counted : bool
        Whether a variable may stand for two or three events.
    consistent : bool
        Whether there are times that keep all temporal bounds, those of the models; else a few contradict each other.
    connected : bool
        Whether bounds of differences of times, from below and above, connect all events, as streaming needs it. Bounds
        that hold under OR or NOT alone do not count.
    polygons, tables : bool
        Whether conditions may have WITHIN, and relations.
    unknown_places : bool
        Whether coordinates may be NULL.
    decimals : bool
        Whether times are tenths: then differences of doubles miss bounds that they seem to touch.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None declares none.
    """
    time_type = draw(st.sampled_from(time_types))
    instants = (DECIMAL_INSTANTS if decimals else INSTANTS)[time_type]
    space = draw(st.sampled_from(spaces))
    coordinates = draw(st.sampled_from(COORDINATES[space]))
    key_type = draw(st.sampled_from([STRING, INTEGER]))
    shapes = []
    for name in ("e", "f")[: draw(st.integers(1, most_streams))]:
        temp_type = draw(st.sampled_from([INTEGER, DOUBLE]))
        here = NOWHERE if shapes and draw(_one_in(6)) else space
        shapes.append(
            Shape(name, key_type, temp_type, time_type, instants, here, coordinates, unknown_places, watermark)
        )
    named = draw(_variables(shapes, most_variables, counted))
    rows, variables = draw(_rows(named))
    relations = draw(_tables()) if tables and draw(_one_in(6)) else {}
    style = Style(consistent, connected, polygons, decimals, tuple(relations))
    declarations = [shape.text() for shape in dict.fromkeys(each.shape for each in variables)]
    declarations += [f"CREATE RELATION {name} (a STRING, b STRING);" for name in relations]
    question = draw(_questions(variables, style))
    workbook = "\n".join([*declarations, f"CREATE QUERY {QUERY} AS {question};"]) + "\n"
    return Case(workbook, QUERY, rows, relations)


@st.composite
def _variables(draw: Draw, shapes: Sequence[Shape], most: int, counted: bool) -> list[Variable]:
    """The variables, each over one of the streams; a solution has at most six events."""
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
def _tables(draw: Draw) -> dict[str, list[tuple[Any, ...]]]:
    """A relation between kinds."""
    pairs = st.tuples(st.sampled_from(["A", "B", "C"]), st.sampled_from(["A", "B", "C"]))
    return {"goes": list(dict.fromkeys(draw(_lists(pairs, sizes=[9, 3, 12, 0, 9]))))}


# ---------------------------------------------------------------- rows


@st.composite
def _rows(draw: Draw, variables: Sequence[Variable]) -> tuple[Rows, list[Variable]]:
    """Rows for each stream, and the variables with their models.

    A model is one of the rows where there are enough, else a row that is not there. Some rows are given twice, and some
    again with another value.
    """
    needed = sum(variable.count for variable in variables)
    shapes = list(dict.fromkeys(variable.shape for variable in variables))
    most = MOST_ROWS[needed] - MOST_REPEATED
    sizes = [min(most, needed + more) for more in (1, 3, 5, 8, 12, 2, 12, 4, 6, 10, 12, 5)]
    size = draw(st.sampled_from([*sizes, 0, *sizes[:6], needed - 1]))
    used = [variable.shape for variable in variables for _ in range(variable.count)]
    rows: Rows = {shape.name: [] for shape in shapes}
    for place in range(size):
        shape = used[place] if place < needed else draw(st.sampled_from(shapes))
        rows[shape.name].append(draw(shape.rows()))
    taken: list[Row] = []
    modelled = []
    for variable in variables:
        models = []
        for _ in range(variable.count):
            free = [row for row in rows[variable.shape.name] if row not in taken]
            models.append(draw(st.sampled_from(free) if free else variable.shape.rows()))
            taken.append(models[-1])
        modelled.append(Variable(variable.name, variable.shape, variable.count, tuple(models)))
    for shape in shapes:
        if rows[shape.name]:
            again = draw(st.lists(st.sampled_from(rows[shape.name]), max_size=MOST_REPEATED // len(shapes)))
            rows[shape.name] += [
                {**row, "temp": draw(st.sampled_from(TEMPS[shape.temp_type]))} if draw(_one_in(3)) else dict(row)
                for row in again
            ]
    return rows, modelled


def seconds(row: Row) -> int | float:
    """The time of a row as conditions compare it."""
    time = row["t"]
    return (time - EPOCH).total_seconds() if isinstance(time, datetime) else time


# ---------------------------------------------------------------- questions


@st.composite
def _questions(draw: Draw, variables: Sequence[Variable], style: Style) -> str:
    """The text of a question."""
    names = ", ".join(variable.text() for variable in variables)
    shapes = {variable.shape.name for variable in variables}
    if len(shapes) == 1 and not draw(_one_in(4)):
        operands = variables[0].shape.name
    else:
        operands = ", ".join(f"{variable.shape.name} AS {variable.name}" for variable in variables)
    parts = [part for part in draw(_conjuncts(variables, style)) if part]
    where = f" WHERE {' AND '.join(draw(st.permutations(parts)))}" if parts else ""
    threshold = draw(st.sampled_from(["", "", " THRESHOLD 1", " THRESHOLD 0.5", ""]))
    return f"CONSTRAIN {names} FROM {operands}{where}{threshold}"


@st.composite
def _conjuncts(draw: Draw, variables: Sequence[Variable], style: Style) -> list[str]:
    """Conditions that connect most variables to one before, ask something of some, and a few more."""
    parts = []
    for place, variable in enumerate(variables):
        if place and (style.connected or not draw(_one_in(6))):
            other = variables[draw(st.integers(0, place - 1))]
            parts.append(draw(_windows(variable, other, style)))
            if not draw(_one_in(3)):
                parts.append(draw(_spatial(variable, other, style)))
        if variable.count > 1:
            if style.connected or draw(st.booleans()):
                parts.append(draw(_spans(variable, variable, style, two_sided=True)))
            if draw(st.booleans()):
                parts.append(draw(_between(variable, variable, style)))
            if draw(_one_in(3)):
                parts.append(draw(_twice(variable)))
        if draw(st.booleans()):
            parts.append(draw(_unary(variable, style)))
    for _ in range(draw(st.sampled_from([0, 1, 0, 2]))):
        parts.append(draw(_any_condition(variables, style)))
    if draw(_one_in(3)):
        parts.append(draw(_logical(variables, style)))
    for name in style.tables:
        u, v = (draw(st.sampled_from(variables)).name for _ in range(2))
        parts.append(draw(st.sampled_from([f"{name}({u}.kind, {v}.kind)", f"{name}({u}.kind, 'A')", ""])))
    return parts


@st.composite
def _any_condition(draw: Draw, variables: Sequence[Variable], style: Style) -> str:
    """A condition about one, two or three variables."""
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
    astray = [replace(style, consistent=False, stray=stray) for stray in (2, 1)]
    b, c = (draw(_any_condition(variables, each)) or "TRUE" for each in astray)
    texts = [f"({b} OR {a})", f"({b} AND {c} OR {a})", f"({a}) = TRUE", f"({a} OR NULL)"]
    if not style.consistent:
        texts += [f"NOT ({c})", f"NOT ({b} AND {c})", f"NOT ({c} OR NOT ({a}))", f"({b} OR {c})", f"NOT ({c})"]
    allowed = [text for text in texts if _is_allowed(text, variables)]
    return draw(st.sampled_from(allowed))


def _is_allowed(text: str, variables: Sequence[Variable]) -> bool:
    return all(len(re.findall(rf"\b{each.name}\b", text)) <= 2 for each in variables if each.count > 1)


# ---------------------------------------------------------------- bounds


def _pairs(u: Variable, v: Variable) -> Iterator[tuple[Row, Row]]:
    """The models that a condition about u and v is asked of; every ordered pair where they are one variable."""
    return itertools.permutations(u.models, 2) if u is v else itertools.product(u.models, v.models)


@dataclass(frozen=True)
class Measure:
    """Something to bound: its text, its values among the models, and what the bounds may be.

    `step` is the distance of neighbouring bounds, None for metres on the globe.
    """

    text: str
    values: tuple[float, ...]
    step: float | None
    strangers: tuple[float, ...]

    def above(self, slack: float) -> float:
        """A bound that the greatest value is below by some steps."""
        return self._moved(max(self.values, default=0.0), slack)

    def below(self, slack: float) -> float:
        """A bound that the least value is above by some steps."""
        return self._moved(min(self.values, default=0.0), -slack, up=False)

    def _moved(self, value: float, slack: float, up: bool = True) -> float:
        if self.step is not None:
            return round(value + slack * self.step, 6)
        # Whole metres; never 0, which places at a pole or on the antimeridian miss by a nanometre.
        moved = math.ceil(value + 0.001) if up else math.floor(value - 0.001)
        return round(moved + 10_000 * slack) if moved + 10_000 * slack > 0 else -1


@st.composite
def _intervals(draw: Draw, measure: Measure, kept: bool) -> tuple[float, float]:
    """Two ends, around the values where they are to be kept."""
    slacks = st.sampled_from([0, 0, 1, 0, 2, 0.5])
    if kept:
        return measure.below(draw(slacks)), measure.above(draw(slacks))
    low, high = (draw(st.sampled_from(measure.strangers)) for _ in range(2))
    return (low, high) if draw(_one_in(8)) else (min(low, high), max(low, high))


@st.composite
def _compared(draw: Draw, measure: Measure, kept: bool, ops: Sequence[str] = ("<=", "<", ">=", ">", "<>", "=")) -> str:
    """The measure against one bound: one that the values touch or keep, or any."""
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
    shown = draw(_amounts(bound, measure))
    return f"{shown} {MIRRORED[op]} {measure.text}" if draw(_one_in(4)) else f"{measure.text} {op} {shown}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _amounts(bound: float, measure: Measure) -> st.SearchStrategy[str]:
    """A bound as text; one of time may have a unit."""
    shown = [_number(bound)]
    if "DISTANCE" not in measure.text and "temp" not in measure.text:
        shown += [_number(bound), f"{_number(bound)} SECONDS"]
        shown += [f"{_number(bound / 60)} MINUTES"] if bound and bound % 30 == 0 else []
    return st.sampled_from(shown)


def _keeps(style: Style) -> st.SearchStrategy[bool]:
    """Whether the models keep a bound."""
    return st.integers(0, style.stray - 1).map(lambda number: number != style.stray // 2)


def _times_keep(style: Style) -> st.SearchStrategy[bool]:
    """Whether the models keep a bound of times."""
    return st.just(True) if style.consistent else _keeps(style)


# ---------------------------------------------------------------- times


def _difference(u: Variable, v: Variable, style: Style) -> Measure:
    values = tuple(seconds(a) - seconds(b) for a, b in _pairs(u, v))
    step = 0.1 if style.decimals and u.shape.time_type != INTEGER else STEPS[u.shape.time_type]
    return Measure(f"{u.name}.t - {v.name}.t", values, step, (0, 1, -1, 2, 5, -3, 60, 0.5))


@st.composite
def _spans(draw: Draw, u: Variable, v: Variable, style: Style, two_sided: bool = False) -> str:
    """A bound of the absolute difference of times; from above, where the difference is to be bounded on both sides."""
    difference = _difference(u, v, style)
    text = draw(st.sampled_from([f"SPAN({u.name}, {v.name})", f"ABS({difference.text})"]))
    measure = Measure(text, tuple(map(abs, difference.values)), difference.step, (0, 1, 2, 5, 60, 0.5))
    ops = ("<=", "<") if two_sided else ("<=", "<", ">=", ">", "=")
    return draw(_compared(measure, draw(_times_keep(style)), ops))


@st.composite
def _windows(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """A bound from both sides; where the style asks for none, sometimes another temporal condition."""
    difference = _difference(u, v, style)
    kind = draw(st.sampled_from(["in", "between", "two", "span"] if style.connected else ["in", "span", "any", "any"]))
    if kind == "any":
        return draw(_temporal(u, v, style))
    if kind == "span":
        return draw(_spans(u, v, style, two_sided=True))
    low, high = draw(_intervals(difference, draw(_times_keep(style))))
    shown = [draw(_amounts(end, difference)) for end in (low, high)]
    if kind == "two":
        return f"{difference.text} >= {shown[0]} AND {shown[1]} >= {difference.text}"
    return f"{difference.text} {'IN [{}, {}]' if kind == 'in' else 'BETWEEN {} AND {}'}".format(*shown)


@st.composite
def _temporal(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """Any condition about the times of two variables."""
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
        return f"{difference.text} NOT IN [{_number(low)}, {_number(high)}]"
    if kind == "sum" and u.shape.time_type != TIMESTAMP:
        return f"{u.name}.t <= {v.name}.t + {_number(difference.above(draw(st.sampled_from([0, 1]))))}"
    return draw(_compared(difference, kept))


_ORDERS: dict[str, Callable[[float], bool]] = {
    "<": lambda d: d < 0, "<=": lambda d: d <= 0, "=": lambda d: d == 0, "<>": lambda d: d != 0,
    ">=": lambda d: d >= 0, ">": lambda d: d > 0,
}  # fmt: skip


# ---------------------------------------------------------------- places


def _apart(a: Row, b: Row, shape: Shape) -> float | None:
    """The distance of two rows, None where a place is not known."""
    places = [tuple(row[axis] for axis in shape.axes) for row in (a, b)]
    if None in itertools.chain(*places):
        return None
    return great_circle(*places[0], *places[1]) if shape.space == GLOBE else math.dist(*places)


@st.composite
def _spatial(draw: Draw, u: Variable, v: Variable, style: Style) -> str:
    """A bound of a distance; nothing where one of the two is nowhere. It need not be one that distances can keep."""
    if NOWHERE in (u.shape.space, v.shape.space):
        return ""
    apart = [_apart(a, b, u.shape) for a, b in _pairs(u, v)]
    known = tuple(d for d in apart if d is not None)
    text = f"DISTANCE({u.name}, {v.name})"
    kept = draw(_keeps(style))
    if u.shape.space == GLOBE:
        measure = Measure(text, known, None, METRES)
        return draw(_compared(measure, kept, ("<=", "<", ">=", ">", "<>")))
    # A distance that is no multiple of the step is bounded by one that is.
    step = 1.0 if u.shape.space == PLANE else 0.25
    up, down = (tuple(round_(d / step) * step for d in known) for round_ in (math.ceil, math.floor))
    op = draw(st.sampled_from(["<=", "<", ">=", ">", "<=", "in", "temp", "="]))
    if op == "temp" and u is not v and (not kept or _is_near(u, v)):
        return f"{text} <= {u.name}.temp"
    if op == "temp" or (op == "=" and kept and up != down):
        op = "<="
    strangers = (0, 1, 2, 0.25, 5)
    if op == "in":
        low, high = draw(_intervals(Measure(text, up + down, step, strangers), kept))
        return f"{text} IN [{_number(low)}, {_number(high)}]"
    return draw(_compared(Measure(text, down if op in (">", ">=") else up, step, strangers), kept, (op,)))


def _is_near(u: Variable, v: Variable) -> bool:
    """Whether the models are no further apart than the temp of the first."""
    apart = [(_apart(a, b, u.shape), a["temp"]) for a, b in _pairs(u, v)]
    return all(None not in pair and pair[0] <= pair[1] for pair in apart)


def _polygons(shape: Shape) -> st.SearchStrategy[str]:
    """Polygons with corners where events can be; on the globe boxes alone."""
    (left, *_, right), (low, *_, high) = (sorted(numbers) for numbers in shape.coordinates)
    inner_x, inner_y = (sorted(numbers)[1] for numbers in shape.coordinates)
    box = f"({left} {low}, {inner_x} {low}, {inner_x} {high}, {left} {high}, {left} {low})"
    found = [f"POLYGON({box})"]
    if shape.space != GLOBE:
        hole = f"({left} {low}, {right} {low}, {right} {high}, {left} {high}, {left} {low})"
        found += [
            f"POLYGON(({left} {low}, {right} {low}, {left} {high}, {left} {low}))",
            f"POLYGON(({left - 1} {low - 1}, {right} {low - 1}, {right} {high + 1}, {left - 1} {high + 1}, "
            f"{left - 1} {low - 1}), {box})",
            f"POLYGON({hole})",
            f"POLYGON(({inner_x} {inner_y}, {inner_x + 1} {inner_y + 1}, {inner_x} {inner_y + 1}, "
            f"{inner_x} {inner_y}))",
        ]
    return st.sampled_from(found)


# ---------------------------------------------------------------- other properties

#: Conditions about two variables, and when they are true of two rows.
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
    """A condition about two variables, or twice about a counted one."""
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
    """A condition that names a counted variable twice, and is not the same in both orders."""
    temps = [row["temp"] for row in v.models if row["temp"] is not None]
    apart = max(temps, default=1) - min(temps, default=0)
    texts = [
        f"{{0}}.temp - {{0}}.temp <= {_number(apart)}", "{0}.temp <= {0}.temp", "{0}.id >= {0}.id",
        f"({{0}}.kind = 'A' OR {{0}}.temp >= {_number(min(temps, default=0))})", "NOT ({0}.kind < {0}.kind)",
        "({0}.kind = 'A' OR {0}.kind = 'B')", "({0}.temp > 0 OR {0}.kind IS NOT NULL)",
    ]  # fmt: skip
    return draw(st.sampled_from(texts)).format(v.name)


@st.composite
def _unary(draw: Draw, u: Variable, style: Style) -> str:
    """A condition about one variable."""
    kind = draw(st.sampled_from(["column", "temp", "column", "within", "time"]))
    if kind == "temp":
        values = tuple(row["temp"] for row in u.models if row["temp"] is not None)
        measure = Measure(f"{u.name}.temp", values, 1, (0, 1, 2.5, -1))
        return draw(_compared(measure, draw(_keeps(style))))
    if kind == "within" and style.polygons and u.shape.axes:
        return f"{draw(st.sampled_from(['', 'NOT ']))}WITHIN({u.name}, '{draw(_polygons(u.shape))}')"
    column = "t" if kind == "time" else draw(st.sampled_from(["kind", "kind", "id", "temp", *u.shape.axes]))
    values = [row[column] for row in u.models]
    own = draw(st.sampled_from(values))
    true = [text for text, holds in _TESTS.items() if None not in values and all(holds(each, own) for each in values)]
    true += ["IS NULL"] if set(values) == {None} else []
    kept = draw(_times_keep(style) if kind == "time" else _keeps(style))
    texts = true if true and kept else [*_TESTS, "IS NULL", "IS NOT NULL", "NOT IN ({}, NULL)"]
    return f"{u.name}.{column} {draw(st.sampled_from(texts)).format('NULL' if own is None else _constant(own))}"


#: Conditions about one column and a constant, and when they are true of a value.
_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "= {}": lambda value, own: value == own,
    "IN ({}, NULL)": lambda value, own: value == own,
    ">= {}": lambda value, own: value >= own,
    "<= {}": lambda value, own: value <= own,
    "> {}": lambda value, own: value > own,
    "<> {}": lambda value, own: value != own,
    "IS NOT NULL": lambda value, own: True,
}


def _constant(value: Any) -> str:
    """A value of a row as a literal."""
    if isinstance(value, datetime):
        return f"'{value:%Y-%m-%d %H:%M:%S.%f}'"
    return f"'{value}'" if isinstance(value, str) else _number(value)


@st.composite
def _ternary(draw: Draw, variables: Sequence[Variable]) -> str:
    """A condition about three variables."""
    u, v, w = (variable.name for variable in variables)
    texts = [f"{u}.temp + {v}.temp >= {w}.temp", f"SPAN({u}, {v}) <= SPAN({w}, {v})", f"{u}.id IN ({v}.id, {w}.id)"]
    # In this plane, distances that are equal have the same sides, or are whole: they are equal in doubles too.
    if all(variable.shape.space == PLANE for variable in variables):
        texts += [f"DISTANCE({u}, {v}) < DISTANCE({w}, {v})", f"DISTANCE({u}, {v}) = DISTANCE({v}, {w})"]
    return draw(st.sampled_from(texts))
