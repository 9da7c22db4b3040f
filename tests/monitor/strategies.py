"""Hypothesis strategies for MONITOR: a few predictions of a few keys, and constraints that some of them satisfy.

One prediction per operand is chosen as its *model*, with an instant at which it applies, often the first or the
(excluded) last one. Most bounds are near the models' predicted values at these instants, plus or minus their errors,
and often equal to them, so that there are answers and contacts. Keys, times, values and rates come from small domains,
so that they often tie. Times and values are binary fractions, and the rates of a case are 0 or plus or minus one power
of two; or all are decimals, and doubles have rounding errors at every contact. With `equalities`, most regions are
segments and points.
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

#: Names of operands and value columns; one of each has an upper-case letter.
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
#: The values of a column; INTEGER columns only have the integers among them.
NUMBERS = (0.0, 1.0, 2.0, -1.0, 0.5, 3.0, -2.5)
RATES = (0.0, 1.0, -1.0, 1.0, -1.0)
#: Factors of the rates; a case has one.
SCALES = (1.0, 0.5, 2.0)
ERRORS = (0, 1, 0.5, 0, 4, 0.25, 2)
#: Decimal fractions, whose sums and corners have rounding errors in doubles.
DECIMAL_INSTANTS = {
    INTEGER: INSTANTS[INTEGER],
    DOUBLE: (0.0, 0.1, 0.7, 1.1, 2.2, 4.0, -0.3),
    TIMESTAMP: (0.0, 0.1, 0.7, 1.1, 2.2, 60.0),
}
DECIMAL_PERIODS = (4, 2.2, 0.3, 1.1)
DECIMAL_WINDOWS = (0, 0.3, 1, 2.2, 20)
DECIMAL_NUMBERS = (0.0, 0.1, 0.7, -1.3, 2.2, 3.0, 0.3)
DECIMAL_RATES = (0.0, 0.3, -0.7, 1.1, -1.9, 0.1)
DECIMAL_ERRORS = (0, 0.1, 0.3, 1, 0.7)

#: The most rows of a case, and the most duplicates among them.
MOST_ROWS = 10
MOST_REPEATED = 2


@dataclass(frozen=True)
class Options:
    """Options of the cases of a test.

    Attributes
    ----------
    time_types : types of the time column, from `TIMES`
    values : numbers of value columns, 1 to 3
    operands : numbers of operands, 1 and 2
    semantics : from `SEMANTICS`; the clause is sometimes omitted for EXPECTED
    comparators : from `COMPARATORS`; `=` is only used for values without error
    windows : values of WITHIN; None for `WINDOWS`, or `DECIMAL_WINDOWS` with decimals; the clause is sometimes omitted
        for 0
    errors : values of ERROR; None for `ERRORS`, or `DECIMAL_ERRORS` with decimals
    most_streams, most_rows : int
        The query uses all streams.
    shared : bool
        Whether a value that is compared with a constant may also be part of a difference.
    crossed : bool
        Whether a difference may have two columns with different names, each in no other difference.
    contradictions : bool
        Whether there may be two different predictions of one key and time.
    unknown_values : bool
        Whether values and rates may be NULL.
    tables, thresholds : bool
        Whether conditions on keys may use relations, and whether the query may have a THRESHOLD.
    levels : the query has one of these THRESHOLDs, if there are any
    decimals : bool
        Whether times, values, rates, errors and durations are tenths; corners then have rounding errors.
    equalities : bool
        Whether most values are exact, and half of their constraints are equalities.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None omits it.
    max_delay, every : number or None
        The MAX DELAY and EVERY of the query; None omits them.
    """

    time_types: Sequence[str] = TIMES
    values: Sequence[int] = (1, 2, 1, 3)
    operands: Sequence[int] = (2, 1, 2)
    semantics: Sequence[str] = SEMANTICS
    comparators: Sequence[str] = COMPARATORS
    windows: Sequence[int | float] | None = None
    errors: Sequence[int | float] | None = None
    most_streams: int = 2
    most_rows: int = MOST_ROWS
    shared: bool = True
    crossed: bool = False
    contradictions: bool = False
    unknown_values: bool = False
    tables: bool = True
    thresholds: bool = True
    levels: Sequence[float] = ()
    decimals: bool = False
    equalities: bool = False
    watermark: int | float | None = None
    max_delay: int | float | None = None
    every: int | float | None = None


@dataclass(frozen=True)
class Style:
    """The drawn properties of a case that all its streams and constraints share."""

    options: Options
    semantics: str
    scale: float
    key_type: str
    zones: bool
    time_type: str


@dataclass(frozen=True)
class Shape:
    """The declaration of a stream, from which its rows are drawn."""

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
        """The CREATE STREAM statement; equal errors are written once."""
        style = self.style
        keys = ", ".join(f"{name} {kind}" for name, kind in zip(self.keys, (style.key_type, STRING), strict=False))
        values = ", ".join(f"{name} {kind}" for name, kind in zip(self.values, self.value_types, strict=True))
        errors_by_column = ", ".join(f"{name} = {error}" for name, error in zip(self.values, self.errors, strict=True))
        error = f"{self.errors[0]}" if len(set(self.errors)) == 1 else f"({errors_by_column})"
        period = f"{self.period} SECONDS" if style.time_type == TIMESTAMP and self.period > 1 else f"{self.period}"
        return (
            f"CREATE STREAM {self.name} KEY ({keys}) VALUE ({values}) TIME t {style.time_type} "
            f"MODEL PREDICTED ERROR {error} PERIOD {period}{watermark_of(style.options.watermark)};"
        )

    def rows(self) -> st.SearchStrategy[Row]:
        """A row; its values may be NULL with `unknown_values`."""
        style = self.style
        numbers, rates = (DECIMAL_NUMBERS, DECIMAL_RATES) if style.options.decimals else (NUMBERS, RATES)
        columns: dict[str, st.SearchStrategy[Any]] = {"id": st.sampled_from(KEYS[style.key_type])}
        if style.zones:
            columns["zone"] = st.sampled_from(ZONES)
        instants = (DECIMAL_INSTANTS if style.options.decimals else INSTANTS)[style.time_type]
        columns["t"] = st.sampled_from([moment(instant, style.time_type) for instant in instants])
        nulls = [None] if style.options.unknown_values else []
        for name, kind in zip(self.values, self.value_types, strict=True):
            column_numbers = (
                [int(number) for number in numbers if number == int(number)] if kind == INTEGER else list(numbers)
            )
            columns[name] = st.sampled_from([*column_numbers * 3, *nulls])
            columns[f"{name}_rate"] = st.sampled_from([*(rate * style.scale for rate in rates * 3), *nulls])
        return st.fixed_dictionaries(columns)

    def key(self, row: Row) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[name] for name in self.keys)


@dataclass(frozen=True)
class Operand:
    """An operand, its model, and the instant near whose predictions bounds are drawn."""

    name: str
    shape: Shape
    model: Row
    end: float
    instant: float = 0.0

    def predicted(self, value: str) -> float | None:
        """The prediction of a column of the model; None if it is unknown."""
        at, rate = self.model[value], self.model[f"{value}_rate"]
        return None if at is None or rate is None else at + rate * (self.instant - seconds(self.model))

    def error(self, value: str) -> float:
        """The error of a column."""
        return self.shape.errors[self.shape.values.index(value)]


# ---------------------------------------------------------------- cases


@st.composite
def monitor_cases(draw: Draw, **changes: Any) -> Case:
    """A query with data; `changes` are attributes of `Options`."""
    options = Options(**changes)
    style = draw(_styles(options))
    relations = draw(_tables(style)) if options.tables and draw(one_in(4)) else {}
    names = NAMES[: draw(st.sampled_from(options.operands))]
    shapes = draw(_shapes(style, len(names)))
    windows = options.windows or (DECIMAL_WINDOWS if options.decimals else WINDOWS)
    within = draw(st.sampled_from(windows)) if len(names) == 2 else 0
    rows, operands = draw(_rows(shapes, names, within, options.most_rows))
    query = draw(_queries(operands, style, relations)) + draw(_clauses(style, within, len(names)))
    declarations = [shape.text() for shape in shapes]
    declarations += [f"CREATE RELATION {name} (a {style.key_type}, b {style.key_type});" for name in relations]
    return Case(workbook_of(declarations, query), QUERY, rows, relations)


@st.composite
def _styles(draw: Draw, options: Options) -> Style:
    return Style(
        options,
        draw(st.sampled_from(options.semantics)),
        1.0 if options.decimals else draw(st.sampled_from(SCALES)),
        draw(st.sampled_from([STRING, INTEGER])),
        draw(one_in(6)),
        draw(st.sampled_from(options.time_types)),
    )


@st.composite
def _shapes(draw: Draw, style: Style, operands: int) -> list[Shape]:
    """One stream, or sometimes one for each of two operands."""
    options = style.options
    count = draw(st.sampled_from(options.values))
    types = [DOUBLE] if options.decimals else [DOUBLE, DOUBLE, INTEGER]
    errors = options.errors if options.errors is not None else DECIMAL_ERRORS if options.decimals else ERRORS
    errors = (*(0 for _ in errors), *errors) if options.equalities else errors
    periods = DECIMAL_PERIODS if options.decimals else PERIODS
    has_two_streams = operands == 2 and options.most_streams > 1 and draw(one_in(4))
    shapes = []
    for name in ("e", "f") if has_two_streams else ("e",):
        kinds = tuple(draw(st.sampled_from(types)) for _ in range(count))
        amounts = tuple(draw(st.sampled_from(errors)) for _ in range(count))
        shapes.append(Shape(name, style, VALUES[:count], kinds, amounts, draw(st.sampled_from(periods))))
    return shapes


@st.composite
def _tables(draw: Draw, style: Style) -> Relations:
    """A relation between keys."""
    keys = st.sampled_from(KEYS[style.key_type])
    return {"near": draw(st.lists(st.tuples(keys, keys), min_size=4, max_size=9, unique=True))}


@st.composite
def _clauses(draw: Draw, style: Style, within: int | float, operands: int) -> str:
    """The clauses after WHERE, in any order."""
    options, meaning = style.options, f" SEMANTICS {style.semantics}"
    windows = ["", " WITHIN 0"] if not within and operands == 2 else [f" WITHIN {within}" if within else ""]
    clauses = [draw(st.sampled_from(windows))]
    clauses += [draw(st.sampled_from([meaning, meaning, ""] if style.semantics == EXPECTED else [meaning]))]
    clauses += [f" MAX DELAY {options.max_delay}"] if options.max_delay is not None else []
    clauses += [f" EVERY {options.every}"] if options.every is not None else []
    if options.levels:
        clauses += [f" THRESHOLD {draw(st.sampled_from(options.levels))}"]
    elif options.thresholds:
        clauses += [draw(st.sampled_from(["", "", " THRESHOLD 0.5", "", " THRESHOLD 1"]))]
    return "".join(draw(st.permutations(clauses)))


# ---------------------------------------------------------------- rows


@st.composite
def _rows(
    draw: Draw, shapes: Sequence[Shape], names: Sequence[str], within: float, most: int
) -> tuple[Rows, list[Operand]]:
    """Rows for each stream, and the operands with their models: rows of different keys, if there are some."""
    shapes_of_operands = [shapes[min(index, len(shapes) - 1)] for index in range(len(names))]
    sizes = [size for size in (2, 4, 6, 3, 8, 5, 7, 6, 4, 3, 5, 1, 8, 6, 4, 0, 5, 7) if size <= most - MOST_REPEATED]
    rows: Rows = {shape.name: [] for shape in shapes}
    for index in range(draw(st.sampled_from(sizes))):
        shape = shapes_of_operands[index % len(shapes_of_operands)]
        row = draw(shape.rows())
        if index == 1 and len(names) == 2 and rows[shape.name]:
            # At least two keys, whose predictions often have the same time.
            first = rows[shape.name][0]
            row["id"] = next(key for key in KEYS[shape.style.key_type] if key != first["id"])
            row["t"] = draw(st.sampled_from([row["t"], first["t"]]))
        if shape.style.options.contradictions or all(
            (shape.key(row), row["t"]) != (shape.key(other), other["t"]) for other in rows[shape.name]
        ):
            rows[shape.name].append(row)
    operands: list[Operand] = []
    for name, shape in zip(names, shapes_of_operands, strict=True):
        used_keys = [shape.key(operand.model) for operand in operands if operand.shape is shape]
        candidates = [row for row in rows[shape.name] if shape.key(row) not in used_keys]
        model = draw(st.sampled_from(candidates) if candidates else shape.rows())
        operands.append(Operand(name, shape, model, _end(shape, model, rows[shape.name])))
    for shape in shapes:
        if rows[shape.name]:
            rows[shape.name] += draw(st.lists(st.sampled_from(rows[shape.name]), max_size=MOST_REPEATED // len(shapes)))
        rows[shape.name] = draw(st.permutations([dict(row) for row in rows[shape.name]]))
    return rows, draw(_at_instants(operands, within))


def _end(shape: Shape, model: Row, rows: Sequence[Row]) -> float:
    """When a prediction ceases to apply."""
    later = [seconds(row) for row in rows if shape.key(row) == shape.key(model) and row["t"] > model["t"]]
    return min([seconds(model) + shape.period, *later])


@st.composite
def _at_instants(draw: Draw, operands: Sequence[Operand], within: float) -> list[Operand]:
    """The operands with comparable instants, if there are some: the first, the last or the middle one."""
    result: list[Operand] = []
    for index, operand in enumerate(operands):
        low, high = seconds(operand.model), operand.end
        # The instant of the first operand is near the second prediction, that of the second near the first instant.
        ranges = [(seconds(operands[1].model), operands[1].end)] if index == 0 and len(operands) == 2 else []
        ranges += [(other.instant, other.instant) for other in result]
        for start, end in ranges:
            low, high = min(max(low, start - within), high), max(min(high, end + within), low)
        instant = draw(st.sampled_from([low, (low + high) / 2, high]))
        result.append(Operand(operand.name, operand.shape, operand.model, operand.end, instant))
    return result


# ---------------------------------------------------------------- queries


@st.composite
def _queries(draw: Draw, operands: Sequence[Operand], style: Style, relations: Relations) -> str:
    """The text of a query without the clauses after WHERE."""
    names = ", ".join(operand.name for operand in operands)
    sources = draw(operands_of([(operand.shape.name, operand.name) for operand in operands]))
    parts = draw(_constraints(operands, style))
    if len(operands) == 2 and not draw(one_in(3)):
        parts.append(draw(_key_pairs(operands)))
    elif draw(one_in(3)):
        parts.append(draw(_single_keys(draw(st.sampled_from(operands)))))
    parts += [draw(_members(operands, name, pairs)) for name, pairs in relations.items()]
    return f"MONITOR {names} FROM {sources} WHERE {' AND '.join(draw(st.permutations(parts)))}"


@st.composite
def _key_pairs(draw: Draw, operands: Sequence[Operand]) -> str:
    """A condition on the keys of both operands, mostly true for the models."""
    first, second = (operand.model["id"] for operand in operands)
    a, b = (operand.name for operand in operands)
    texts = [f"{a}.id < {b}.id" if first < second else f"{b}.id <= {a}.id", f"{a}.id <> {b}.id"]
    texts += [
        f"{a}.id = {constant_text(first)} AND {b}.id = {constant_text(second)}",
        f"({a}.id > {b}.id OR {a}.id < {b}.id)",
    ]
    texts += [f"{a}.zone = {b}.zone"] if operands[0].shape.style.zones else []
    return draw(st.sampled_from(texts))


@st.composite
def _single_keys(draw: Draw, operand: Operand) -> str:
    """A condition on the key of one operand, mostly true for its model."""
    key, name = constant_text(operand.model["id"]), operand.name
    texts = [f"{name}.id = {key}", f"{name}.id IN ({key}, NULL)", f"NOT {name}.id > {key}", f"{name}.id <> {key}"]
    texts += [f"{name}.zone = '{operand.model['zone']}'"] if operand.shape.style.zones else []
    return draw(st.sampled_from(texts))


def _members(operands: Sequence[Operand], table: str, rows: Sequence[tuple[Any, ...]]) -> st.SearchStrategy[str]:
    """A condition on keys and a relation, mostly true for the models."""
    a, b, key = operands[0].name, operands[-1].name, constant_text(operands[0].model["id"])
    is_member = (operands[0].model["id"], operands[-1].model["id"]) in rows
    true = f"{'' if is_member else 'NOT '}{table}({a}.id, {b}.id)"
    return st.sampled_from([true, true, f"{table}({b}.id, {key})", f"({table}({b}.id, {a}.id) OR {a}.id = {key})"])


# ---------------------------------------------------------------- constraints


@dataclass(frozen=True)
class Form:
    """A value, or the ABS of a difference: its spellings, its predicted value, and the sum of its errors."""

    texts: tuple[str, ...]
    center: float
    error: float
    is_absolute: bool


@st.composite
def _constraints(draw: Draw, operands: Sequence[Operand], style: Style) -> list[str]:
    """Constraints on most columns; sometimes a form has two."""
    partners = VALUES[: len(operands[0].shape.values)]
    if style.options.crossed and draw(st.booleans()):
        partners = draw(st.permutations(partners))
    forms: list[Form] = []
    for value, partner in zip(operands[0].shape.values, partners, strict=True):
        alone = [_value(operand, column) for operand, column in zip(operands, (value, partner), strict=False)]
        if len(operands) == 1 or draw(one_in(5)):
            forms.append(draw(st.sampled_from(alone)))
            continue
        forms.append(_difference(*operands, value, partner))
        if style.options.shared and draw(one_in(3)):
            forms += [alone[0]] if draw(st.booleans()) else alone
    chosen = [form for form in forms if not draw(one_in(6))] or forms[:1]
    repeated = [form for form in chosen if draw(one_in(5))]
    return [draw(_compared(form, style)) for form in [*chosen, *repeated]]


def _value(operand: Operand, value: str) -> Form:
    return Form((f"{operand.name}.{value}",), operand.predicted(value) or 0.0, operand.error(value), False)


def _difference(first: Operand, second: Operand, value: str, partner: str) -> Form:
    a, b = f"{first.name}.{value}", f"{second.name}.{partner}"
    center = abs((first.predicted(value) or 0.0) - (second.predicted(partner) or 0.0))
    error = first.error(value) + second.error(partner)
    return Form((f"ABS({a} - {b})", f"ABS({a} - {b})", f"ABS({b} - {a})"), center, error, True)


@st.composite
def _compared(draw: Draw, form: Form, style: Style) -> str:
    """A form compared with a bound, which its prediction satisfies, touches, touches with its errors, or violates."""
    comparators = [op for op in style.options.comparators if op != "=" or not form.error]
    op = draw(st.sampled_from(comparators or ["<="]))
    if style.options.equalities and not form.error and draw(st.booleans()):
        op = "="
    slack = draw(st.sampled_from([0.0, 1.0, 0.5, form.error, 0.0, 2.0, -form.error, 0.5, -1.0, 1.0]))
    # Contacts of the other semantics are further inside for MUST, and further outside for MAY.
    slack += {EXPECTED: 0.0, MUST: form.error, MAY: -form.error if draw(st.booleans()) else 0.0}[style.semantics]
    if op in ("<>", "="):
        slack = slack if draw(one_in(3)) else 0.0
    bound = form.center - slack if op in (">", ">=") else form.center + slack
    if style.semantics == MUST and form.is_absolute and op in ("<", "<=") and draw(one_in(3)):
        bound = form.error  # only equal predictions must be so near
    if form.is_absolute and bound < 0 and not draw(one_in(6)):
        bound = -bound
    text, bound_text = draw(st.sampled_from(form.texts)), number_text(round(bound, 6))
    return f"{bound_text} {MIRRORED[op]} {text}" if draw(one_in(4)) else f"{text} {op} {bound_text}"
