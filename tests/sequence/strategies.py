"""Hypothesis strategies for SEQUENCE: a few readings, of which some were lost, and what to look for among them.

Some rows are made to stand for the components, in the order of the query, and most conditions are true of these
*models*: so there are answers, and boundaries matter. Keys, tags, readers and times come from tiny domains, so that
they often tie, and WITHIN is often a difference of times. Times are binary fractions, on which every difference is
exact. No case depends on the last digits of a probability (`is_contested`).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st
from tests import cases
from tests.cases import (
    DOUBLE,
    INTEGER,
    QUERY,
    TIMES,
    TIMESTAMP,
    Draw,
    Row,
    Rows,
    moment,
    number_text,
    one_in,
    operands_of,
    seconds,
    watermark_of,
    workbook_of,
)
from tests.local import bound_query
from tests.oracles.sequence import BEST, EXPIRED, candidates, matches

from anabranch.sequence.query import BoundSequence

#: The file of EMPIRICAL delays, as the workbook names it.
DELAYS = "delays.csv"
#: Components in order; one of them is not in lower case.
NAMES = ("x", "y", "W", "v", "z")

KEYS = ("a", "b", "c", "d")
TAGS = ("g1", "g2", "g1", None)
READERS = ("r1", "r2", "r3", "r1", None)
TEMPS = {INTEGER: (1, 2, 0, 3, None), DOUBLE: (1.0, 2.5, 0.0, 0.25, None)}
INSTANTS = {
    INTEGER: (0, 1, 2, 3, 4, 5, 6, 8),
    DOUBLE: (0.0, 0.5, 1.0, 1.25, 2.0, 3.5, 4.0, 6.0),
    TIMESTAMP: (0.0, 0.5, 1.0, 2.0, 2.25, 3.0, 4.0, 7.5),
}
#: Instants whose differences are not what they look like in doubles.
DECIMAL_INSTANTS = {INTEGER: INSTANTS[INTEGER]} | dict.fromkeys(
    (DOUBLE, TIMESTAMP), (0.1, 0.3, 0.4, 0.7, 1.1, 1.3, 2.1, 3.3)
)

LAWS = (
    "UNIFORM(0, 4)", "EXPONENTIAL(2)", "UNIFORM(1, 3)", "GAMMA(2, 1)", "EMPIRICAL", "NORMAL(2, 1)",
    "LOGNORMAL(0.5, 0.75)", "UNIFORM(0, 8)", "GAMMA(0.5, 2)", "EXPONENTIAL(0.5)", "NORMAL(-1, 2)", "GAMMA(1.5, 1)",
    "UNIFORM(0.5, 1)", "LOGNORMAL(1, 0.25)", "NORMAL(3, 0.25)",
)  # fmt: skip
#: Delays that were seen; differences of times are among them.
ATOMS = (1.0, 2.0, 0.5, 4.0, 1.0, 3.5, 0.25)
MISSES = (0.1, 0.3, 0.05, 0.2, 0.5)
THRESHOLDS = ("", "0", "0.001", "0.2", "", "0.05", "0.9")

#: So many positive components may be missing at once.
MOST_LOST = 3
#: By so much of it, a probability is near the threshold, or another one.
NEAR = 1e-7


@dataclass(frozen=True)
class Case(cases.Case):
    """A query and the data it is asked of, EMPIRICAL delays among them.

    Attributes
    ----------
    delays : dict from a component, in lower case, to its EMPIRICAL delays: what the file `DELAYS` holds
    """

    delays: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def delays_text(self) -> str:
        """The file of delays, as CSV."""
        lines = [f"{name},{delay}" for name, delays in self.delays.items() for delay in delays]
        return "\n".join(["component,delay", *lines]) + "\n"


@dataclass(frozen=True)
class Shape:
    """How a stream is declared, and from what its rows are drawn."""

    name: str
    temp_type: str
    time_type: str
    instants: tuple[int | float, ...]
    watermark: int | float | None = None

    def text(self) -> str:
        """The declaration."""
        values = f"VALUE (tag STRING, reader STRING, temp {self.temp_type})"
        return (
            f"CREATE STREAM {self.name} KEY (id STRING) {values} TIME t {self.time_type}{watermark_of(self.watermark)};"
        )

    def rows(self, instants: Sequence[int | float] = (), **fixed: Any) -> st.SearchStrategy[Row]:
        """A row; what is fixed is as given."""
        drawn = {
            "id": st.sampled_from(KEYS),
            "tag": st.sampled_from(TAGS),
            "reader": st.sampled_from(READERS),
            "temp": st.sampled_from(TEMPS[self.temp_type]),
            "t": st.sampled_from([moment(instant, self.time_type) for instant in instants or self.instants]),
        }
        return st.fixed_dictionaries({**drawn, **{name: st.just(value) for name, value in fixed.items()}})


@dataclass(frozen=True)
class Component:
    """A component, and a row that would be one of its events."""

    name: str
    shape: Shape
    negative: bool
    model: Row
    miss: float = 0.0

    def text(self) -> str:
        """What stands between the brackets."""
        return f"!{self.name}" if self.negative else self.name

    @property
    def may_lack(self) -> bool:
        """Whether a match may be without it, as one of its positive components."""
        return not self.negative and self.miss > 0


@dataclass(frozen=True)
class Style:
    """What a query may be like; parameters of `sequence_cases`."""

    equalities: Sequence[str]
    laws: Sequence[str]
    logic: bool
    defaults: bool
    windowed: bool
    tables: tuple[str, ...]


# ---------------------------------------------------------------- cases


@st.composite
def sequence_cases(
    draw: Draw,
    time_types: Sequence[str] = TIMES,
    most_components: int = 5,
    most_streams: int = 2,
    scorings: Sequence[str] = ("",),
    endings: Sequence[str] = ("",),
    emits: Sequence[str] = ("",),
    equalities: Sequence[str] = ("all", "some", "all", "none"),
    laws: Sequence[str] = LAWS,
    logic: bool = True,
    defaults: bool = True,
    tables: bool = True,
    windowed: bool = False,
    decimals: bool = False,
    watermark: int | float | None = None,
) -> Case:
    """A query with data that have at most 12 rows.

    Parameters
    ----------
    time_types : the types of time column to choose from, of `TIMES`
    most_components, most_streams : int
        All streams that are declared are named by the query.
    scorings : what to choose from: "", "JOINT", "POSTERIOR"
    endings : what to choose from: "", "OPEN"
    emits : what to choose from: "", "ALL", "BEST", "EXPIRED", "BEST, EXPIRED"; no EXPIRED with OPEN
    equalities : whether tags are equal in "all" components, "some", or "none", to choose from
    laws : the laws of delays to choose from; EMPIRICAL ones are in `Case.delays`
    logic, defaults, tables : bool
        Whether conditions may have OR and NOT, values for what is missing, and relations.
    windowed : bool
        Whether there is always a WITHIN; else only where the language asks for one, and often.
    decimals : bool
        Whether times are tenths: then differences of doubles miss bounds that they seem to touch.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None declares none.
    """
    time_type = draw(st.sampled_from(time_types))
    instants = (DECIMAL_INSTANTS if decimals else INSTANTS)[time_type]
    shapes = [
        Shape(name, draw(st.sampled_from([INTEGER, DOUBLE])), time_type, instants, watermark)
        for name in ("e", "f")[: draw(st.integers(1, most_streams))]
    ]
    relations = {"hall": [("r1",), ("r3",)]} if tables and draw(one_in(4)) else {}
    style = Style(equalities, laws, logic, defaults, windowed, tuple(relations))
    scoring, ending, emit = (draw(st.sampled_from(list(each))) for each in (scorings, endings, emits))
    ending = "" if EXPIRED in emit.lower() else ending
    components = draw(_components(shapes, most_components, ending, emit))
    rows = draw(_rows(components))
    delays = {
        each.name.lower(): tuple(draw(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4))) for each in components
    }
    query, used = draw(_queries(components, style, scoring, ending, emit))
    declarations = [shape.text() for shape in dict.fromkeys(each.shape for each in components)]
    declarations += [f"CREATE RELATION {name} (reader STRING);" for name in relations]
    case = Case(workbook_of(declarations, query), QUERY, rows, relations, {name: delays[name] for name in used})
    assume(not is_contested(case))
    return case


def bound_case(case: Case) -> BoundSequence:
    """The bound query of a case, with its delays."""
    query: BoundSequence = bound_query(case.workbook, case.query)
    components = [
        replace(each, delay=replace(each.delay, atoms=case.delays[each.name]))
        if each.delay is not None and each.delay.law == "EMPIRICAL"
        else each
        for each in query.components
    ]
    return replace(query, components=tuple(components))


def is_contested(case: Case) -> bool:
    """Whether other answers would be right if a probability were a little greater or smaller.

    Where the threshold is a MISS, a probability that is equal to it is fine: that is the chance of a loss alone.
    """
    query = bound_case(case)
    answers = _identities(query, case)
    if BEST in query.emit and _nearly_tied(query, case):
        return True
    if query.threshold == 0:
        return _identities(replace(query, threshold=NEAR), case) != answers
    others = [query.threshold * (1 - NEAR)]
    if query.threshold not in {component.miss for component in query.components}:
        others.append(min(1.0, query.threshold * (1 + NEAR)))
    return any(_identities(replace(query, threshold=other), case) != answers for other in others)


def _identities(query: BoundSequence, case: Case) -> list[Any]:
    found = matches(query, case.rows, case.relations)
    return sorted(repr({**match, "probability": None}) for match in found)


def _nearly_tied(query: BoundSequence, case: Case) -> bool:
    """Whether two choices are almost alike in probability, but not quite."""
    chances = sorted(each.probability for each in candidates(query, case.rows, case.relations))
    return any(
        not math.isclose(low, high, rel_tol=1e-12) and math.isclose(low, high, rel_tol=NEAR)
        for low, high in itertools.pairwise(chances)
    )


# ---------------------------------------------------------------- components and rows


@st.composite
def _components(draw: Draw, shapes: Sequence[Shape], most: int, ending: str, emit: str) -> list[Component]:
    """Components with rows that fit: times that increase, one tag, and readers."""
    count = draw(st.sampled_from([number for number in (3, 2, 3, 4, 4, 5) if number <= most]))
    names = [*NAMES[: count - 1], NAMES[-1]]
    signs = [draw(one_in(4)) for _ in names]
    if ending or EXPIRED in emit.lower():
        signs[0] = False
    if not ending:
        signs[-1] = False
    instants = shapes[0].instants
    times = sorted(
        draw(st.lists(st.sampled_from(instants), min_size=count, max_size=count, unique=not draw(one_in(8))))
    )
    lost = 0
    components = []
    for place, (name, negative, instant) in enumerate(zip(names, signs, times, strict=True)):
        shape = draw(st.sampled_from(shapes))
        model = draw(shape.rows([instant], tag="g1", reader=f"r{draw(st.integers(1, 3))}"))
        always = (place == 0 and ending) or (place == count - 1 and not ending)
        miss = 0.0 if always or draw(one_in(3)) else draw(st.sampled_from([0.0, *MISSES]))
        lost += not negative and miss > 0
        components.append(Component(name, shape, negative, model, miss if negative or lost <= MOST_LOST else 0.0))
    return components


@st.composite
def _rows(draw: Draw, components: Sequence[Component]) -> Rows:
    """Most of the models, and a few more rows; some are given twice, and some again with another value."""
    rows: Rows = {each.shape.name: [] for each in components}
    shapes = list(dict.fromkeys(each.shape for each in components))
    for each in components:
        if draw(one_in(6)) if each.negative else not draw(one_in(2 if each.miss > 0 else 12)):
            rows[each.shape.name].append(each.model)
    for _ in range(draw(st.sampled_from([0, 2, 4, 6, 3, 5, 1]))):
        # Others like the models, but for one thing, and rows that are like nothing.
        like = draw(st.sampled_from(components))
        other = draw(like.shape.rows())
        changed = draw(st.sampled_from(["t", "t", "tag", "id", "temp", "reader", "all"]))
        row = other if changed == "all" else {**like.model, changed: other[changed]}
        rows[like.shape.name].append(row)
    for shape in shapes:
        if rows[shape.name] and draw(one_in(4)):
            rows[shape.name].append(dict(draw(st.sampled_from(rows[shape.name]))))
        rows[shape.name] = draw(st.permutations(rows[shape.name]))
    return rows


# ---------------------------------------------------------------- queries


@st.composite
def _queries(
    draw: Draw, components: Sequence[Component], style: Style, scoring: str, ending: str, emit: str
) -> tuple[str, list[str]]:
    """The text of a query, and the components whose delays are EMPIRICAL."""
    names = ", ".join(each.text() for each in components)
    operands = draw(operands_of([(each.shape.name, each.name) for each in components]))
    parts = draw(_conjuncts(components, style))
    laws = {
        each.name: draw(_laws(each, style)) for each in components if each.miss > 0 or draw(one_in(6))
    }  # fmt: skip
    needs_window = ending or EXPIRED in emit.lower() or components[0].negative or components[0].miss > 0
    clauses = {
        "WHERE": " AND ".join(draw(st.permutations(parts))),
        "MISS": ", ".join(f"{each.name} {each.miss}" for each in components if each.miss > 0),
        "DELAY": ", ".join(f"{name} {law}" for name, law in laws.items()),
        "WITHIN": draw(_windows(components)) if needs_window or style.windowed or not draw(one_in(4)) else "",
        "SCORING": scoring,
        "ENDING": ending,
        "EMIT": emit,
        "THRESHOLD": draw(st.sampled_from(THRESHOLDS)),
    }
    written = draw(st.permutations([f" {word} {text}" for word, text in clauses.items() if text]))
    used = [name.lower() for name, law in laws.items() if law.startswith("EMPIRICAL")]
    return f"SEQUENCE ({names}) FROM {operands}{''.join(written)}", used


@st.composite
def _laws(draw: Draw, component: Component, style: Style) -> str:
    """A law; where times are TIMESTAMPs, sometimes with a unit."""
    law = draw(st.sampled_from(list(style.laws)))
    if law == "EMPIRICAL":
        return f"EMPIRICAL '{DELAYS}'"
    if component.shape.time_type == TIMESTAMP and law.startswith(("UNIFORM", "EXPONENTIAL")) and draw(one_in(3)):
        return law.replace(")", " SECONDS)")
    return law


@st.composite
def _windows(draw: Draw, components: Sequence[Component]) -> str:
    """WITHIN: often as long as it takes from the first model, or another one, to the last."""
    last = seconds(components[-1].model)
    own = [round(last - seconds(each.model), 2) for each in components[:-1]]
    lengths = [length for length in (own[0], own[0], *own) if length > 0]
    return number_text(draw(st.sampled_from([*lengths, 4, 8, *lengths, 8, 2])))


# ---------------------------------------------------------------- conditions


@st.composite
def _conjuncts(draw: Draw, components: Sequence[Component], style: Style) -> list[str]:
    """Own conditions, equalities, and a few more."""
    parts = [text for each in components if (text := draw(_own(each, components, style)))]
    parts += draw(_equalities(components, style))
    for _ in range(draw(st.sampled_from([0, 1, 0, 2]))):
        parts.append(draw(_any_condition(components, style)))
    if style.logic and draw(one_in(4)):
        parts.append(draw(_logical(components, style)))
    return parts


@st.composite
def _own(draw: Draw, component: Component, components: Sequence[Component], style: Style) -> str:
    """What makes a row an event of the component; nothing, sometimes, where its stream is its own."""
    name, reader = component.name, component.model["reader"]
    alone = all(each is component or each.shape is not component.shape for each in components)
    texts = [f"{name}.reader = '{reader}'"] * 5
    texts += [f"{name}.reader IN ('{reader}', 'r1')", f"{name}.reader IS NOT NULL", f"{name}.tag = 'g1'"]
    if (component.model["temp"] or 0) >= 1:
        texts += [f"{name}.temp >= 1", f"{name}.temp IS NOT NULL"]
    if style.logic:
        texts += [
            f"({name}.reader = '{reader}' OR {name}.temp > 1)",
            f"NOT ({name}.tag = 'g2' OR {name}.reader IS NULL)",
        ]
    texts += [f"{each}({name}.reader)" for each in style.tables if reader != "r2"] * 6
    if component.may_lack and style.defaults:
        texts += [f"{name}.temp[2] >= 1", f"{name}.reader['{reader}'] = '{reader}'", f"{name}.temp[0] > 0"]
    return draw(st.sampled_from(["", *texts] if alone else texts))


@st.composite
def _equalities(draw: Draw, components: Sequence[Component], style: Style) -> list[str]:
    """Equal tags, along a tree of all or some components."""
    kind = draw(st.sampled_from(list(style.equalities)))
    least = {"all": len(components), "some": 2, "none": 0}[kind]
    among = list(components)
    if kind == "some":
        among = draw(st.lists(st.sampled_from(components), min_size=least, unique_by=lambda each: each.name))
    parts = []
    for place, each in enumerate(among[1:] if kind != "none" else [], 1):
        other = among[draw(st.sampled_from([place - 1, draw(st.integers(0, place - 1))]))]
        columns = draw(st.sampled_from([("tag", "tag")] * 20 + [("reader", "reader"), ("tag", "reader"), ("id", "id")]))
        sides = [
            _reference(one, column, draw(one_in(10)) and style.defaults)
            for one, column in zip(draw(st.permutations([other, each])), columns, strict=True)
        ]
        op = " = " if not (style.logic and draw(one_in(12))) else " <> "
        text = op.join(sides)
        parts.append(f"NOT ({text})" if op == " <> " else text)
    return parts


def _reference(component: Component, column: str, default: bool) -> str:
    """A column, with a value for where the component is missing if that is asked, and can be."""
    values = {"tag": "'g1'", "reader": "'r1'", "id": "'a'", "temp": "1"}
    given = f"[{values[column]}]" if default and component.may_lack and column in values else ""
    return f"{component.name}.{column}{given}"


_OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
    "=": operator.eq,
}

#: What two components may be compared by.
_COMPARISONS = [
    ("temp", "<"), ("temp", "<="), ("temp", ">"), ("temp", "<>"), ("reader", "<>"), ("id", "<>"), ("tag", "<>"),
    ("id", "<="), ("id", ">"), ("temp", "="),
]  # fmt: skip


@st.composite
def _any_condition(draw: Draw, components: Sequence[Component], style: Style) -> str:
    """A condition about one, two or three components; most are true of the models."""
    chosen = draw(st.permutations(components))
    kind = draw(st.sampled_from(["two", "time", "two", "one", "three"]))
    if kind == "one" or len(chosen) < 2:
        return draw(_own(chosen[0], components, style)) or "TRUE"
    if kind == "three" and len(chosen) > 2:
        u, v, w = (_reference(each, "temp", style.defaults and draw(one_in(3))) for each in chosen[:3])
        return f"{u} + {v} >= {w}"
    if kind == "time":
        return draw(_time_condition(chosen[0], chosen[1]))
    true = [
        (column, op)
        for column, op in _COMPARISONS
        if None not in (pair := [each.model[column] for each in chosen[:2]]) and _OPERATORS[op](*pair)
    ]
    column, op = draw(st.sampled_from(true if true and not draw(one_in(6)) else _COMPARISONS))
    u, v = (_reference(each, column, style.defaults and draw(one_in(3))) for each in chosen[:2])
    texts = [f"{u} {op} {v}"] * 4
    if column == "temp":
        texts += [f"ABS({u} - {v}) <= 1", f"{u} + 0 = {v} + 0"]
    return draw(st.sampled_from(texts))


@st.composite
def _time_condition(draw: Draw, u: Component, v: Component) -> str:
    """A bound for a difference of times, which the models often touch."""
    apart = round(seconds(v.model) - seconds(u.model), 2)
    bound = draw(st.sampled_from([number_text(apart), number_text(apart), "2", "1"]))
    op = draw(st.sampled_from(["<=", ">=", "<=", ">=", "<", ">"]))
    texts = [f"{v.name}.t - {u.name}.t {op} {bound}"] * 3
    texts += [f"{v.name}.t {op} {u.name}.t + {bound}", f"{v.name}.t {op} {u.name}.t", f"{v.name}.t <> {u.name}.t"]
    return draw(st.sampled_from(texts))


@st.composite
def _logical(draw: Draw, components: Sequence[Component], style: Style) -> str:
    """Conditions under OR and NOT."""
    a, b, c = (draw(_any_condition(components, style)) for _ in range(3))
    texts = [f"({a} OR {b})", f"({a} AND {b} OR {c})", f"NOT ({a} AND {b})", f"NOT (NOT ({a}) OR NOT ({b}))"]
    texts += [f"({a} OR NULL)", f"NOT (NOT ({a}))", f"({a} OR {components[-1].name}.tag IS NULL)", f"NOT ({a})"]
    return draw(st.sampled_from(texts))
