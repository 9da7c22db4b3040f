"""Hypothesis strategies for MONITOR: a few predictions of a few keys, and constraints that some of them meet.

Some predictions are chosen to stand for the operands, and instants at which they apply, often the very first, or the
end that no longer counts. Most bounds are laid around what these *models* are predicted to be then, give or take their
errors, often touching it: so there are answers, and boundaries matter. Keys, times, values and rates come from tiny
domains, so that they often tie. Times and values are binary fractions, and the rates of a case are 0 or plus or minus
one power of two: so every corner of a region is a binary fraction too, and what touches does so in doubles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from tests.cases import (
    DOUBLE,
    INTEGER,
    MIRRORED,
    QUERY,
    STRING,
    TIMES,
    TIMESTAMP,
    Case,
    Draw,
    Relations,
    Row,
    Rows,
    constant_text,
    moment,
    number_text,
    one_in,
    operands_of,
    seconds,
    watermark_of,
    workbook_of,
)

#: Operands, and value columns; one of each is not in lower case.
NAMES = ("a", "B")
VALUES = ("x", "y", "Z")

EXPECTED, MAY, MUST = "EXPECTED", "MAY", "MUST"
SEMANTICS = (EXPECTED, MAY, MUST)
COMPARATORS = ("<=", "<", ">=", ">", "<>", "=")

KEYS = {STRING: ("a", "b", "c"), INTEGER: (1, 2, 10)}
ZONES = ("n", "s")
INSTANTS = {
    INTEGER: (0, 1, 2, 4, 3, 6, -2),
    DOUBLE: (0.0, 1.0, 0.5, 2.0, 1.25, 4.0, -0.75),
    TIMESTAMP: (0.0, 1.0, 0.5, 2.0, 1.5, 4.0, 60.0),
}
PERIODS = (4, 2, 8, 1.5, 0.5)
WINDOWS = (0, 1, 0, 2, 0.5, 20)
#: The numbers of a column; those of a column of integers are whole.
NUMBERS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.5)
RATES = (0.0, 1.0, -1.0, 1.0, -1.0)
#: What the rates of a case are multiplied by.
SCALES = (1.0, 0.5, 2.0)
ERRORS = (0, 1, 0.5, 0, 4, 0.25, 2)
#: Numbers whose sums and corners are not what they look like in doubles.
DECIMAL_NUMBERS = (0.0, 0.1, 0.7, -1.3, 2.2, 3.0, 0.3)
DECIMAL_RATES = (0.0, 0.3, -0.7, 1.1, -1.9, 0.1)
DECIMAL_ERRORS = (0, 0.1, 0.3, 1, 0.7)

#: At most so many rows; some of them are given again.
MOST_ROWS = 10
MOST_REPEATED = 2


@dataclass(frozen=True)
class Choices:
    """What the cases of a test may be like.

    Attributes
    ----------
    time_types : the types of time column to choose from, of `TIMES`
    values : the numbers of value columns to choose from, 1 to 3
    operands : the numbers of operands to choose from, 1 and 2
    semantics : what to choose from, of `SEMANTICS`; EXPECTED is sometimes left unwritten
    comparators : what to choose from, of `COMPARATORS`; `=` is used for what has no error alone
    windows : what WITHIN is chosen from; 0 is sometimes left unwritten
    errors : what ERROR is chosen from; None for `ERRORS`, or with decimals `DECIMAL_ERRORS`
    most_streams, most_rows : int
        All streams that are declared are named by the query.
    shared : bool
        Whether a value that is compared with a constant may also be part of a difference.
    crossed : bool
        Whether a difference may be of two columns of different names, each in no other difference.
    contradictions : bool
        Whether there may be two different predictions of one key and time.
    unknown_values : bool
        Whether values and rates may be NULL.
    tables, thresholds : bool
        Whether conditions on keys may have relations, and the query a THRESHOLD.
    decimals : bool
        Whether values, rates and errors are tenths: then corners are rounded in doubles, and what should touch misses.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None declares none.
    max_delay, every : number or None
        The MAX DELAY and EVERY of the query; None writes none.
    """

    time_types: Sequence[str] = TIMES
    values: Sequence[int] = (1, 2, 1, 3)
    operands: Sequence[int] = (2, 1, 2)
    semantics: Sequence[str] = SEMANTICS
    comparators: Sequence[str] = COMPARATORS
    windows: Sequence[int | float] = WINDOWS
    errors: Sequence[int | float] | None = None
    most_streams: int = 2
    most_rows: int = MOST_ROWS
    shared: bool = True
    crossed: bool = False
    contradictions: bool = False
    unknown_values: bool = False
    tables: bool = True
    thresholds: bool = True
    decimals: bool = False
    watermark: int | float | None = None
    max_delay: int | float | None = None
    every: int | float | None = None


@dataclass(frozen=True)
class Style:
    """What the predictions and constraints of a case are like, of what they may be."""

    allowed: Choices
    semantics: str
    scale: float
    key_type: str
    zones: bool
    time_type: str


@dataclass(frozen=True)
class Shape:
    """How a stream is declared, and from what its rows are drawn."""

    name: str
    style: Style
    values: tuple[str, ...]
    value_types: tuple[str, ...]
    errors: tuple[int | float, ...]
    period: int | float

    @property
    def keys(self) -> tuple[str, ...]:
        """The key columns."""
        return ("id", "zone") if self.style.zones else ("id",)

    def text(self) -> str:
        """The declaration; errors that are all the same are written once."""
        style = self.style
        keys = ", ".join(f"{name} {kind}" for name, kind in zip(self.keys, (style.key_type, STRING), strict=False))
        values = ", ".join(f"{name} {kind}" for name, kind in zip(self.values, self.value_types, strict=True))
        apart = ", ".join(f"{name} = {error}" for name, error in zip(self.values, self.errors, strict=True))
        error = f"{self.errors[0]}" if len(set(self.errors)) == 1 else f"({apart})"
        period = f"{self.period} SECONDS" if style.time_type == TIMESTAMP and self.period > 1 else f"{self.period}"
        return (
            f"CREATE STREAM {self.name} KEY ({keys}) VALUE ({values}) TIME t {style.time_type} "
            f"MODEL PREDICTED ERROR {error} PERIOD {period}{watermark_of(style.allowed.watermark)};"
        )

    def rows(self) -> st.SearchStrategy[Row]:
        """A row; its values may be NULL where that is allowed."""
        style = self.style
        numbers, rates = (DECIMAL_NUMBERS, DECIMAL_RATES) if style.allowed.decimals else (NUMBERS, RATES)
        columns: dict[str, st.SearchStrategy[Any]] = {"id": st.sampled_from(KEYS[style.key_type])}
        if style.zones:
            columns["zone"] = st.sampled_from(ZONES)
        columns["t"] = st.sampled_from([moment(instant, style.time_type) for instant in INSTANTS[style.time_type]])
        unknown = [None] if style.allowed.unknown_values else []
        for name, kind in zip(self.values, self.value_types, strict=True):
            own = [int(number) for number in numbers if number == int(number)] if kind == INTEGER else list(numbers)
            columns[name] = st.sampled_from([*own * 3, *unknown])
            columns[f"{name}_rate"] = st.sampled_from([*(rate * style.scale for rate in rates * 3), *unknown])
        return st.fixed_dictionaries(columns)

    def key(self, row: Row) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[name] for name in self.keys)


@dataclass(frozen=True)
class Operand:
    """An operand, its model, and the instant at which constraints look at it."""

    name: str
    shape: Shape
    model: Row
    end: float
    instant: float = 0.0

    def predicted(self, value: str) -> float | None:
        """What a column of the model is predicted to be; None where that is not known."""
        at, rate = self.model[value], self.model[f"{value}_rate"]
        return None if at is None or rate is None else at + rate * (self.instant - seconds(self.model))

    def error(self, value: str) -> float:
        """The error of a column."""
        return self.shape.errors[self.shape.values.index(value)]


# ---------------------------------------------------------------- cases


@st.composite
def monitor_cases(draw: Draw, **choices: Any) -> Case:
    """A query with data; what it may be like is said as in `Choices`."""
    allowed = Choices(**choices)
    style = draw(_styles(allowed))
    relations = draw(_tables(style)) if allowed.tables and draw(one_in(4)) else {}
    names = NAMES[: draw(st.sampled_from(allowed.operands))]
    shapes = draw(_shapes(style, len(names)))
    within = draw(st.sampled_from(allowed.windows)) if len(names) == 2 else 0
    rows, asked = draw(_rows(shapes, names, within, allowed.most_rows))
    query = draw(_queries(asked, style, relations)) + draw(_clauses(style, within, len(names)))
    declarations = [shape.text() for shape in shapes]
    declarations += [f"CREATE RELATION {name} (a {style.key_type}, b {style.key_type});" for name in relations]
    return Case(workbook_of(declarations, query), QUERY, rows, relations)


@st.composite
def _styles(draw: Draw, allowed: Choices) -> Style:
    return Style(
        allowed,
        draw(st.sampled_from(allowed.semantics)),
        1.0 if allowed.decimals else draw(st.sampled_from(SCALES)),
        draw(st.sampled_from([STRING, INTEGER])),
        draw(one_in(6)),
        draw(st.sampled_from(allowed.time_types)),
    )


@st.composite
def _shapes(draw: Draw, style: Style, operands: int) -> list[Shape]:
    """One stream, or sometimes one for each of two operands."""
    allowed = style.allowed
    count = draw(st.sampled_from(allowed.values))
    types = [DOUBLE] if allowed.decimals else [DOUBLE, DOUBLE, INTEGER]
    errors = allowed.errors if allowed.errors is not None else DECIMAL_ERRORS if allowed.decimals else ERRORS
    two = operands == 2 and allowed.most_streams > 1 and draw(one_in(4))
    shapes = []
    for name in ("e", "f") if two else ("e",):
        kinds = tuple(draw(st.sampled_from(types)) for _ in range(count))
        amounts = tuple(draw(st.sampled_from(errors)) for _ in range(count))
        shapes.append(Shape(name, style, VALUES[:count], kinds, amounts, draw(st.sampled_from(PERIODS))))
    return shapes


@st.composite
def _tables(draw: Draw, style: Style) -> Relations:
    """A relation between keys."""
    keys = st.sampled_from(KEYS[style.key_type])
    return {"near": draw(st.lists(st.tuples(keys, keys), min_size=4, max_size=9, unique=True))}


@st.composite
def _clauses(draw: Draw, style: Style, within: int | float, operands: int) -> str:
    """The clauses after WHERE, in any order."""
    allowed, meaning = style.allowed, f" SEMANTICS {style.semantics}"
    windows = ["", " WITHIN 0"] if not within and operands == 2 else [f" WITHIN {within}" if within else ""]
    clauses = [draw(st.sampled_from(windows))]
    clauses += [draw(st.sampled_from([meaning, meaning, ""] if style.semantics == EXPECTED else [meaning]))]
    clauses += [f" MAX DELAY {allowed.max_delay}"] if allowed.max_delay is not None else []
    clauses += [f" EVERY {allowed.every}"] if allowed.every is not None else []
    clauses += [draw(st.sampled_from(["", "", " THRESHOLD 0.5", "", " THRESHOLD 1"]))] if allowed.thresholds else []
    return "".join(draw(st.permutations(clauses)))


# ---------------------------------------------------------------- rows


@st.composite
def _rows(
    draw: Draw, shapes: Sequence[Shape], names: Sequence[str], within: float, most: int
) -> tuple[Rows, list[Operand]]:
    """Rows for each stream, and the operands with their models: rows of different keys, where there are such."""
    own = [shapes[min(place, len(shapes) - 1)] for place in range(len(names))]
    sizes = [size for size in (2, 4, 6, 3, 8, 5, 7, 6, 4, 3, 5, 1, 8, 6, 4, 0, 5, 7) if size <= most - MOST_REPEATED]
    rows: Rows = {shape.name: [] for shape in shapes}
    for place in range(draw(st.sampled_from(sizes))):
        shape = own[place % len(own)]
        row = draw(shape.rows())
        if place == 1 and len(names) == 2 and rows[shape.name]:
            # Two keys at least, of whose predictions one is in time for the other.
            first = rows[shape.name][0]
            row["id"] = next(key for key in KEYS[shape.style.key_type] if key != first["id"])
            row["t"] = draw(st.sampled_from([row["t"], first["t"]]))
        if shape.style.allowed.contradictions or all(
            (shape.key(row), row["t"]) != (shape.key(other), other["t"]) for other in rows[shape.name]
        ):
            rows[shape.name].append(row)
    asked: list[Operand] = []
    for name, shape in zip(names, own, strict=True):
        taken = [shape.key(each.model) for each in asked if each.shape is shape]
        free = [row for row in rows[shape.name] if shape.key(row) not in taken]
        model = draw(st.sampled_from(free) if free else shape.rows())
        asked.append(Operand(name, shape, model, _end(shape, model, rows[shape.name])))
    for shape in shapes:
        if rows[shape.name]:
            rows[shape.name] += draw(st.lists(st.sampled_from(rows[shape.name]), max_size=MOST_REPEATED // len(shapes)))
        rows[shape.name] = draw(st.permutations([dict(row) for row in rows[shape.name]]))
    return rows, draw(_at_instants(asked, within))


def _end(shape: Shape, model: Row, rows: Sequence[Row]) -> float:
    """When a prediction no longer applies."""
    later = [seconds(row) for row in rows if shape.key(row) == shape.key(model) and row["t"] > model["t"]]
    return min([seconds(model) + shape.period, *later])


@st.composite
def _at_instants(draw: Draw, asked: Sequence[Operand], within: float) -> list[Operand]:
    """The operands at instants that are comparable, where there are such: the first or last, or in the middle."""
    found: list[Operand] = []
    for place, operand in enumerate(asked):
        low, high = seconds(operand.model), operand.end
        # The first of two is to be near the second, and the second near the instant of the first.
        near = [(seconds(asked[1].model), asked[1].end)] if place == 0 and len(asked) == 2 else []
        near += [(each.instant, each.instant) for each in found]
        for start, end in near:
            low, high = min(max(low, start - within), high), max(min(high, end + within), low)
        instant = draw(st.sampled_from([low, (low + high) / 2, high]))
        found.append(Operand(operand.name, operand.shape, operand.model, operand.end, instant))
    return found


# ---------------------------------------------------------------- queries


@st.composite
def _queries(draw: Draw, asked: Sequence[Operand], style: Style, relations: Relations) -> str:
    """The text of a query, but for its clauses."""
    names = ", ".join(operand.name for operand in asked)
    operands = draw(operands_of([(operand.shape.name, operand.name) for operand in asked]))
    parts = draw(_constraints(asked, style))
    if len(asked) == 2 and not draw(one_in(3)):
        parts.append(draw(_key_pairs(asked)))
    elif draw(one_in(3)):
        parts.append(draw(_single_keys(draw(st.sampled_from(asked)))))
    parts += [draw(_members(asked, name, pairs)) for name, pairs in relations.items()]
    return f"MONITOR {names} FROM {operands} WHERE {' AND '.join(draw(st.permutations(parts)))}"


@st.composite
def _key_pairs(draw: Draw, asked: Sequence[Operand]) -> str:
    """A condition about the keys of both operands, mostly true of the models."""
    first, second = (operand.model["id"] for operand in asked)
    a, b = (operand.name for operand in asked)
    texts = [f"{a}.id < {b}.id" if first < second else f"{b}.id <= {a}.id", f"{a}.id <> {b}.id"]
    texts += [
        f"{a}.id = {constant_text(first)} AND {b}.id = {constant_text(second)}",
        f"({a}.id > {b}.id OR {a}.id < {b}.id)",
    ]
    texts += [f"{a}.zone = {b}.zone"] if asked[0].shape.style.zones else []
    return draw(st.sampled_from(texts))


@st.composite
def _single_keys(draw: Draw, operand: Operand) -> str:
    """A condition about the key of one operand, mostly true of its model."""
    own, name = constant_text(operand.model["id"]), operand.name
    texts = [f"{name}.id = {own}", f"{name}.id IN ({own}, NULL)", f"NOT {name}.id > {own}", f"{name}.id <> {own}"]
    texts += [f"{name}.zone = '{operand.model['zone']}'"] if operand.shape.style.zones else []
    return draw(st.sampled_from(texts))


def _members(asked: Sequence[Operand], table: str, rows: Sequence[tuple[Any, ...]]) -> st.SearchStrategy[str]:
    """A condition about keys and a relation, mostly true of the models."""
    a, b, own = asked[0].name, asked[-1].name, constant_text(asked[0].model["id"])
    is_member = (asked[0].model["id"], asked[-1].model["id"]) in rows
    true = f"{'' if is_member else 'NOT '}{table}({a}.id, {b}.id)"
    return st.sampled_from([true, true, f"{table}({b}.id, {own})", f"({table}({b}.id, {a}.id) OR {a}.id = {own})"])


# ---------------------------------------------------------------- constraints


@dataclass(frozen=True)
class Form:
    """Something to bound: a value, or a difference under ABS, what it is predicted to be, and its errors together."""

    texts: tuple[str, ...]
    center: float
    error: float
    is_absolute: bool


@st.composite
def _constraints(draw: Draw, asked: Sequence[Operand], style: Style) -> list[str]:
    """Constraints on most columns, now and then two on one form."""
    partners = VALUES[: len(asked[0].shape.values)]
    if style.allowed.crossed and draw(st.booleans()):
        partners = draw(st.permutations(partners))
    forms: list[Form] = []
    for value, partner in zip(asked[0].shape.values, partners, strict=True):
        alone = [_value(operand, own) for operand, own in zip(asked, (value, partner), strict=False)]
        if len(asked) == 1 or draw(one_in(5)):
            forms.append(draw(st.sampled_from(alone)))
            continue
        forms.append(_difference(*asked, value, partner))
        if style.allowed.shared and draw(one_in(3)):
            forms += [alone[0]] if draw(st.booleans()) else alone
    kept = [form for form in forms if not draw(one_in(6))] or forms[:1]
    again = [form for form in kept if draw(one_in(5))]
    return [draw(_compared(form, style)) for form in [*kept, *again]]


def _value(operand: Operand, value: str) -> Form:
    return Form((f"{operand.name}.{value}",), operand.predicted(value) or 0.0, operand.error(value), False)


def _difference(first: Operand, second: Operand, value: str, partner: str) -> Form:
    a, b = f"{first.name}.{value}", f"{second.name}.{partner}"
    center = abs((first.predicted(value) or 0.0) - (second.predicted(partner) or 0.0))
    error = first.error(value) + second.error(partner)
    return Form((f"ABS({a} - {b})", f"ABS({a} - {b})", f"ABS({b} - {a})"), center, error, True)


@st.composite
def _compared(draw: Draw, form: Form, style: Style) -> str:
    """The form against a bound: one that its prediction keeps, touches, touches with its errors, or misses."""
    allowed = [op for op in style.allowed.comparators if op != "=" or not form.error]
    op = draw(st.sampled_from(allowed or ["<="]))
    slack = draw(st.sampled_from([0.0, 1.0, 0.5, form.error, 0.0, 2.0, -form.error, 0.5, -1.0, 1.0]))
    # Where the semantics touch: further inside for MUST, further outside for MAY.
    slack += {EXPECTED: 0.0, MUST: form.error, MAY: -form.error if draw(st.booleans()) else 0.0}[style.semantics]
    if op in ("<>", "="):
        slack = slack if draw(one_in(3)) else 0.0
    bound = form.center - slack if op in (">", ">=") else form.center + slack
    if form.is_absolute and bound < 0 and not draw(one_in(6)):
        bound = -bound
    text, shown = draw(st.sampled_from(form.texts)), number_text(round(bound, 6))
    return f"{shown} {MIRRORED[op]} {text}" if draw(one_in(4)) else f"{text} {op} {shown}"
