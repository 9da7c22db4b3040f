"""Hypothesis strategies for MONITOR: a few predictions of a few keys, and constraints that some of them meet.

A case is workbook text and rows, so that it can be asked of any door of the package: the oracle, a kernel, a batch run,
a streaming run. Its streams have no FROM; the rows are bound to them by name.

Some predictions are chosen to stand for the operands, and instants at which they apply, often the very first, or the
end that no longer counts. Most bounds are laid around what these *models* are predicted to be then, give or take their
errors, often touching it: so there are answers, and boundaries matter. Keys, times, values and rates come from tiny
domains, so that they often tie. Times and values are binary fractions, and the rates of a case are 0 or plus or minus
one power of two: so every corner of a region is a binary fraction too, and what touches does so in doubles. In a list
of choices the simplest stands first: a failing case shrinks towards it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

Row = dict[str, Any]
Rows = dict[str, list[Row]]
Relations = dict[str, list[tuple[Any, ...]]]
Draw = Callable[[st.SearchStrategy[Any]], Any]

QUERY = "q"
#: Operands, and value columns; one of each is not in lower case.
NAMES = ("a", "B")
VALUES = ("x", "y", "Z")

STRING, INTEGER, DOUBLE, TIMESTAMP = "STRING", "INTEGER", "DOUBLE", "TIMESTAMP"
TIMES = (INTEGER, DOUBLE, TIMESTAMP)

EXPECTED, MAY, MUST = "EXPECTED", "MAY", "MUST"
SEMANTICS = (EXPECTED, MAY, MUST)
COMPARATORS = ("<=", "<", ">=", ">", "<>", "=")
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}

KEYS = {STRING: ("a", "b", "c"), INTEGER: (1, 2, 10)}
ZONES = ("n", "s")
#: TIMESTAMPs are seconds after this; midnight, and another month, are two seconds away.
EPOCH = datetime(2026, 1, 31, 23, 59, 58, tzinfo=UTC)
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
    relations: Relations


@dataclass(frozen=True)
class Style:
    """What predictions and constraints may be like; the parameters of `monitor_cases`, and what was drawn from them."""

    comparators: tuple[str, ...]
    semantics: str
    shared: bool
    crossed: bool
    contradictions: bool
    unknown_values: bool
    decimals: bool
    scale: float
    key_type: str
    zones: bool
    time_type: str
    watermark: int | float | None


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
        watermark = "" if style.watermark is None else f" WATERMARK {style.watermark}"
        return (
            f"CREATE STREAM {self.name} KEY ({keys}) VALUE ({values}) TIME t {style.time_type} "
            f"MODEL PREDICTED ERROR {error} PERIOD {period}{watermark};"
        )

    def rows(self) -> st.SearchStrategy[Row]:
        """A row; its values may be NULL where that is allowed."""
        style = self.style
        numbers, rates = (DECIMAL_NUMBERS, DECIMAL_RATES) if style.decimals else (NUMBERS, RATES)
        columns: dict[str, st.SearchStrategy[Any]] = {"id": st.sampled_from(KEYS[style.key_type])}
        if style.zones:
            columns["zone"] = st.sampled_from(ZONES)
        columns["t"] = st.sampled_from([moment(instant, style.time_type) for instant in INSTANTS[style.time_type]])
        unknown = [None] if style.unknown_values else []
        for name, kind in zip(self.values, self.value_types, strict=True):
            own = [int(number) for number in numbers if number == int(number)] if kind == INTEGER else list(numbers)
            columns[name] = st.sampled_from([*own * 3, *unknown])
            columns[f"{name}_rate"] = st.sampled_from([*(rate * style.scale for rate in rates * 3), *unknown])
        return st.fixed_dictionaries(columns)

    def key(self, row: Row) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[name] for name in self.keys)


def moment(instant: int | float, time_type: str) -> Any:
    """An instant as its column has it."""
    return EPOCH + timedelta(seconds=instant) if time_type == TIMESTAMP else instant


def seconds(row: Row) -> int | float:
    """The time of a row as a number."""
    time = row["t"]
    return (time - EPOCH).total_seconds() if isinstance(time, datetime) else time


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


def _one_in(count: int) -> st.SearchStrategy[bool]:
    """True in about one of `count` draws; False is the simpler case."""
    return st.integers(0, count - 1).map(lambda number: number == 1)


# ---------------------------------------------------------------- cases


@st.composite
def monitor_cases(
    draw: Draw,
    time_types: Sequence[str] = TIMES,
    values: Sequence[int] = (1, 2, 1, 3),
    operands: Sequence[int] = (2, 1, 2),
    semantics: Sequence[str] = SEMANTICS,
    comparators: Sequence[str] = COMPARATORS,
    windows: Sequence[int | float] = WINDOWS,
    errors: Sequence[int | float] | None = None,
    most_streams: int = 2,
    most_rows: int = MOST_ROWS,
    shared: bool = True,
    crossed: bool = False,
    contradictions: bool = False,
    unknown_values: bool = False,
    tables: bool = True,
    thresholds: bool = True,
    decimals: bool = False,
    watermark: int | float | None = None,
    max_delay: int | float | None = None,
    every: int | float | None = None,
) -> Case:
    """A question with data that have at most `most_rows` rows.

    Parameters
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
    style = Style(
        tuple(comparators), draw(st.sampled_from(semantics)), shared, crossed, contradictions, unknown_values, decimals,
        1.0 if decimals else draw(st.sampled_from(SCALES)), draw(st.sampled_from([STRING, INTEGER])),
        draw(_one_in(6)), draw(st.sampled_from(time_types)), watermark,
    )  # fmt: skip
    relations = draw(_tables(style)) if tables and draw(_one_in(4)) else {}
    names = NAMES[: draw(st.sampled_from(operands))]
    count = draw(st.sampled_from(values))
    choices = errors if errors is not None else DECIMAL_ERRORS if decimals else ERRORS
    shapes = [draw(_shapes("e", style, count, choices))]
    if len(names) == 2 and most_streams > 1 and draw(_one_in(4)):
        shapes.append(draw(_shapes("f", style, count, choices)))
    within = draw(st.sampled_from(windows)) if len(names) == 2 else 0
    rows, asked = draw(_rows(shapes, names, within, most_rows))
    clauses = [draw(_windows(within, len(names))), draw(_meanings(style.semantics))]
    clauses += [f" MAX DELAY {max_delay}"] if max_delay is not None else []
    clauses += [f" EVERY {every}"] if every is not None else []
    clauses += [draw(st.sampled_from(["", "", " THRESHOLD 0.5", "", " THRESHOLD 1"]))] if thresholds else []
    question = draw(_questions(asked, style, relations)) + "".join(draw(st.permutations(clauses)))
    declarations = [shape.text() for shape in shapes]
    declarations += [f"CREATE RELATION {name} (a {style.key_type}, b {style.key_type});" for name in relations]
    workbook = "\n".join([*declarations, f"CREATE QUERY {QUERY} AS {question};"]) + "\n"
    return Case(workbook, QUERY, rows, relations)


@st.composite
def _shapes(draw: Draw, name: str, style: Style, count: int, errors: Sequence[int | float]) -> Shape:
    types = [DOUBLE] if style.decimals else [DOUBLE, DOUBLE, INTEGER]
    kinds = tuple(draw(st.sampled_from(types)) for _ in range(count))
    amounts = tuple(draw(st.sampled_from(errors)) for _ in range(count))
    return Shape(name, style, VALUES[:count], kinds, amounts, draw(st.sampled_from(PERIODS)))


@st.composite
def _tables(draw: Draw, style: Style) -> Relations:
    """A relation between keys."""
    keys = st.sampled_from(KEYS[style.key_type])
    return {"near": draw(st.lists(st.tuples(keys, keys), min_size=4, max_size=9, unique=True))}


def _windows(within: int | float, operands: int) -> st.SearchStrategy[str]:
    return st.sampled_from(
        ["", " WITHIN 0"] if not within and operands == 2 else [f" WITHIN {within}" if within else ""]
    )


def _meanings(semantics: str) -> st.SearchStrategy[str]:
    written = f" SEMANTICS {semantics}"
    return st.sampled_from([written, written, ""] if semantics == EXPECTED else [written])


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
        if shape.style.contradictions or all(
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


# ---------------------------------------------------------------- questions


@st.composite
def _questions(draw: Draw, asked: Sequence[Operand], style: Style, relations: Relations) -> str:
    """The text of a question, but for its clauses."""
    names = ", ".join(operand.name for operand in asked)
    streams = {operand.shape.name for operand in asked}
    if len(streams) == 1 and draw(_one_in(4)):
        operands = asked[0].shape.name
    else:
        operands = ", ".join(f"{operand.shape.name} AS {operand.name}" for operand in asked)
    parts = draw(_constraints(asked, style))
    if len(asked) == 2 and not draw(_one_in(3)):
        parts.append(draw(_key_pairs(asked)))
    elif draw(_one_in(3)):
        parts.append(draw(_single_keys(draw(st.sampled_from(asked)))))
    parts += [draw(_members(asked, name, pairs)) for name, pairs in relations.items()]
    return f"MONITOR {names} FROM {operands} WHERE {' AND '.join(draw(st.permutations(parts)))}"


@st.composite
def _key_pairs(draw: Draw, asked: Sequence[Operand]) -> str:
    """A condition about the keys of both operands, mostly true of the models."""
    first, second = (operand.model["id"] for operand in asked)
    a, b = (operand.name for operand in asked)
    texts = [f"{a}.id < {b}.id" if first < second else f"{b}.id <= {a}.id", f"{a}.id <> {b}.id"]
    texts += [f"{a}.id = {_constant(first)} AND {b}.id = {_constant(second)}", f"({a}.id > {b}.id OR {a}.id < {b}.id)"]
    texts += [f"{a}.zone = {b}.zone"] if asked[0].shape.style.zones else []
    return draw(st.sampled_from(texts))


@st.composite
def _single_keys(draw: Draw, operand: Operand) -> str:
    """A condition about the key of one operand, mostly true of its model."""
    own, name = _constant(operand.model["id"]), operand.name
    texts = [f"{name}.id = {own}", f"{name}.id IN ({own}, NULL)", f"NOT {name}.id > {own}", f"{name}.id <> {own}"]
    texts += [f"{name}.zone = '{operand.model['zone']}'"] if operand.shape.style.zones else []
    return draw(st.sampled_from(texts))


def _members(asked: Sequence[Operand], table: str, rows: Sequence[tuple[Any, ...]]) -> st.SearchStrategy[str]:
    """A condition about keys and a relation, mostly true of the models."""
    a, b, own = asked[0].name, asked[-1].name, _constant(asked[0].model["id"])
    is_member = (asked[0].model["id"], asked[-1].model["id"]) in rows
    true = f"{'' if is_member else 'NOT '}{table}({a}.id, {b}.id)"
    return st.sampled_from([true, true, f"{table}({b}.id, {own})", f"({table}({b}.id, {a}.id) OR {a}.id = {own})"])


def _constant(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


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
    if style.crossed and draw(st.booleans()):
        partners = draw(st.permutations(partners))
    forms: list[Form] = []
    for value, partner in zip(asked[0].shape.values, partners, strict=True):
        alone = [_value(operand, own) for operand, own in zip(asked, (value, partner), strict=False)]
        if len(asked) == 1 or draw(_one_in(5)):
            forms.append(draw(st.sampled_from(alone)))
            continue
        forms.append(_difference(*asked, value, partner))
        if style.shared and draw(_one_in(3)):
            forms += [alone[0]] if draw(st.booleans()) else alone
    kept = [form for form in forms if not draw(_one_in(6))] or forms[:1]
    again = [form for form in kept if draw(_one_in(5))]
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
    allowed = [op for op in style.comparators if op != "=" or not form.error]
    op = draw(st.sampled_from(allowed or ["<="]))
    slack = draw(st.sampled_from([0.0, 1.0, 0.5, form.error, 0.0, 2.0, -form.error, 0.5, -1.0, 1.0]))
    # Where the semantics touch: further inside for MUST, further outside for MAY.
    slack += {EXPECTED: 0.0, MUST: form.error, MAY: -form.error if draw(st.booleans()) else 0.0}[style.semantics]
    if op in ("<>", "="):
        slack = slack if draw(_one_in(3)) else 0.0
    bound = form.center - slack if op in (">", ">=") else form.center + slack
    if form.is_absolute and bound < 0 and not draw(_one_in(6)):
        bound = -bound
    text, shown = draw(st.sampled_from(form.texts)), _number(round(bound, 6))
    return f"{shown} {MIRRORED[op]} {text}" if draw(_one_in(4)) else f"{text} {op} {shown}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)
