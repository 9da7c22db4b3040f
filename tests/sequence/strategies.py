"""Hypothesis strategies for SEQUENCE: a few readings, some of which are lost, and queries over them.

Some rows, the *models*, are events of the components in the order of the query, and most conditions are true for them:
so there are answers, and boundaries matter. Keys, tags, readers and times come from tiny domains, so that they are
often equal, and WITHIN is often a difference of times. Times are binary fractions, so every difference is exact. No
case depends on the last digits of a probability (`is_contested`).
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
from tests.oracles.sequence import BEST, EXPIRED, Candidate, candidates, reported

from anabranch.sequence.analysis import analyse
from anabranch.sequence.files import given_name
from anabranch.sequence.query import BoundDelay, BoundSequence

#: The file of EMPIRICAL delays, as named in the workbook.
DELAYS = "delays.csv"
#: The names of components; one of them is not in lower case.
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
#: Instants whose differences are rounded in doubles.
DECIMAL_INSTANTS = {INTEGER: INSTANTS[INTEGER]} | dict.fromkeys(
    (DOUBLE, TIMESTAMP), (0.1, 0.3, 0.4, 0.7, 1.1, 1.3, 2.1, 3.3)
)

DELAY_TEXTS = (
    "UNIFORM(0, 4)", "EXPONENTIAL(2)", "UNIFORM(1, 3)", "GAMMA(2, 1)", "EMPIRICAL", "NORMAL(2, 1)",
    "LOGNORMAL(0.5, 0.75)", "UNIFORM(0, 8)", "GAMMA(0.5, 2)", "EXPONENTIAL(0.5)", "NORMAL(-1, 2)", "GAMMA(1.5, 1)",
    "UNIFORM(0.5, 1)", "LOGNORMAL(1, 0.25)", "NORMAL(3, 0.25)",
)  # fmt: skip
#: EMPIRICAL delays; some are differences of times.
ATOMS = (1.0, 2.0, 0.5, 4.0, 1.0, 3.5, 0.25)
#: Probabilities of events; 0.3 and 0.7 do not sum to 1 in doubles if 0.3 is a sum.
CHANCES = (0.5, 0.75, 0.25, 1.0, 0.1, 0.3)
MISSES = (0.1, 0.3, 0.05, 0.2, 0.5)
THRESHOLDS = ("", "0", "0.001", "0.2", "", "0.05", "0.9")

#: An ENDING OPEN in which the first components may be missing or negative.
BOTH = "OPEN, both"

#: The most positive components that may be missing at once.
MOST_LOST = 3
#: The relative difference up to which a probability is near the threshold, or near another one.
NEAR = 1e-7


@dataclass(frozen=True)
class Case(cases.Case):
    """A query with its data and EMPIRICAL delays.

    Attributes
    ----------
    delays : dict from a component, in lower case, to its EMPIRICAL delays: the content of the file `DELAYS`
    """

    delays: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def delays_text(self) -> str:
        """The file of delays, as CSV."""
        lines = [f"{name},{delay}" for name, delays in self.delays.items() for delay in delays]
        return "\n".join(["component,delay", *lines]) + "\n"


@dataclass(frozen=True)
class Shape:
    """The declaration of a stream, and the domains of its rows."""

    name: str
    temp_type: str
    time_type: str
    instants: tuple[int | float, ...]
    watermark: int | float | None = None
    is_certain: bool = True

    def text(self) -> str:
        """The declaration."""
        model = "" if self.is_certain else " MODEL INDEPENDENT PROBABILITY chance"
        values = f"VALUE (tag STRING, reader STRING, temp {self.temp_type})"
        clauses = f"{self.time_type}{model}{watermark_of(self.watermark)}"
        return f"CREATE STREAM {self.name} KEY (id STRING) {values} TIME t {clauses};"

    def rows(self, instants: Sequence[int | float] = (), **fixed: Any) -> st.SearchStrategy[Row]:
        """A row, with fixed values for some columns."""
        drawn = {
            "id": st.sampled_from(KEYS),
            "tag": st.sampled_from(TAGS),
            "reader": st.sampled_from(READERS),
            "temp": st.sampled_from(TEMPS[self.temp_type]),
            "t": st.sampled_from([moment(instant, self.time_type) for instant in instants or self.instants]),
        }
        if not self.is_certain:
            drawn["chance"] = st.sampled_from(CHANCES)
        return st.fixed_dictionaries({**drawn, **{name: st.just(value) for name, value in fixed.items()}})


@dataclass(frozen=True)
class Component:
    """A component, and a row that can be its event."""

    name: str
    shape: Shape
    negative: bool
    model: Row
    miss: float = 0.0
    run: bool = False

    def text(self) -> str:
        """The component in the syntax of SEQUENCE."""
        return f"!{self.name}" if self.negative else f"{self.name}+" if self.run else self.name

    @property
    def is_always_read(self) -> bool:
        """Whether every match has exactly one event of it."""
        return not (self.negative or self.run or self.miss > 0)

    @property
    def may_be_missing(self) -> bool:
        """Whether it is a positive component that may be missing from a match."""
        return not self.negative and self.miss > 0


@dataclass(frozen=True)
class Given:
    """A delay WITH or WITHOUT other components."""

    component: str
    happened: bool
    others: tuple[str, ...]
    delay: str

    def text(self) -> str:
        """The item in the syntax of DELAY."""
        return f"{self.component} {'WITH' if self.happened else 'WITHOUT'} ({', '.join(self.others)}) {self.delay}"

    def name_in_file(self) -> str:
        """The name of the rows in the file of EMPIRICAL delays."""
        return given_name(self.component.lower(), self.happened, map(str.lower, self.others))


@dataclass(frozen=True)
class Style:
    """Options of queries; parameters of `sequence_cases`."""

    equalities: Sequence[str]
    laws: Sequence[str]
    logic: bool
    defaults: bool
    windowed: bool
    tables: tuple[str, ...]
    occurs: bool


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
    laws: Sequence[str] = DELAY_TEXTS,
    logic: bool = True,
    defaults: bool = True,
    tables: bool = True,
    windowed: bool = False,
    decimals: bool = False,
    watermark: int | float | None = None,
    occurs: bool = False,
    probabilities: bool = False,
    runs: bool = False,
) -> Case:
    """A query with data of at most 12 rows; with probabilities, of at most 8.

    Parameters
    ----------
    time_types : the types of time column to choose from, of `TIMES`
    most_components, most_streams : int
        All declared streams are used by the query.
    scorings : the choices: "", "JOINT", "POSTERIOR"
    endings : the choices: "", "OPEN", and BOTH for both ends open
    emits : the choices: "", "ALL", "BEST", "EXPIRED", "BEST, EXPIRED"; no EXPIRED with OPEN
    equalities : whether tags are equal in "all", "some" or "none" of the components: the choices
    laws : the choices of delays; EMPIRICAL delays are in `Case.delays`
    logic, defaults, tables : bool
        Whether conditions may have OR and NOT, defaults for missing components, and relations.
    windowed : bool
        Whether there is always a WITHIN; otherwise often, and whenever the language requires one.
    decimals : bool
        Whether times are tenths: then rounded differences of doubles can miss a bound.
    watermark : number or None
        The WATERMARK of every stream, in the unit of its time; None for no WATERMARK.
    occurs : bool
        Whether there is an OCCURS; then SCORING is POSTERIOR, and there is a WITHIN, which makes tables small.
    probabilities : bool
        Whether the events of some streams have probabilities; then conditions have no OR.
    runs : bool
        Whether some components are runs; there is no EXPIRED then, and with OPEN the first component is always read.
    """
    time_type = draw(st.sampled_from(time_types))
    instants = (DECIMAL_INSTANTS if decimals else INSTANTS)[time_type]
    shapes = [
        Shape(
            name,
            draw(st.sampled_from([INTEGER, DOUBLE])),
            time_type,
            instants,
            watermark,
            not probabilities or draw(one_in(4)),
        )
        for name in ("e", "f")[: draw(st.integers(1, most_streams))]
    ]
    relations = {"hall": [("r1",), ("r3",)]} if tables and draw(one_in(4)) else {}
    style = Style(equalities, laws, logic, defaults, windowed, tuple(relations), occurs)
    scoring, ending, emit = (draw(st.sampled_from(list(choices))) for choices in (scorings, endings, emits))
    ending = "" if EXPIRED in emit.lower() else ending
    components = draw(_components(shapes, most_components, ending, emit))
    if runs:
        components = draw(_with_runs(components, ending))
    rows = draw(_rows(components))
    if probabilities:
        rows = _possible(rows)
    query, used = draw(_queries(components, style, scoring, ending, emit))
    delays = {name: tuple(draw(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4))) for name in used}
    declarations = [shape.text() for shape in dict.fromkeys(component.shape for component in components)]
    declarations += [f"CREATE RELATION {name} (reader STRING);" for name in relations]
    case = Case(workbook_of(declarations, query), QUERY, rows, relations, delays)
    if runs:
        # Conditions that relate a run to another run, or to a negative, are refused.
        assume(analyse(bound_case(case)).objection() is None)
    assume(not is_contested(case))
    return case


def bound_case(case: Case) -> BoundSequence:
    """The bound query of a case, with its delays."""
    query: BoundSequence = bound_query(case.workbook, case.query)

    def with_atoms(name: str, delay: BoundDelay | None) -> BoundDelay | None:
        return replace(delay, atoms=case.delays[name]) if delay is not None and delay.law == "EMPIRICAL" else delay

    components = [
        replace(
            component,
            delay=with_atoms(component.name, component.delay),
            given=tuple(
                replace(law, delay=with_atoms(given_name(component.name, law.happened, law.components), law.delay))
                for law in component.given
            ),
        )
        for component in query.components
    ]
    return replace(query, components=tuple(components))


def is_contested(case: Case) -> bool:
    """Whether the answers would change if a probability were a little greater or smaller.

    If the threshold is a MISS, a probability that is equal to it is allowed: it is the probability of one loss.
    """
    query = bound_case(case)
    found = candidates(query, case.rows, case.relations)
    if BEST in query.emit and _nearly_tied(found):
        return True
    if query.threshold == 0:
        others = [NEAR]
    else:
        others = [query.threshold * (1 - NEAR)]
        if query.threshold not in {component.miss for component in query.components}:
            others.append(min(1.0, query.threshold * (1 + NEAR)))
    answers = _identities(query, found)
    changed = [replace(query, threshold=other) for other in others]
    return any(_identities(other, _found_with(other, case, found)) != answers for other in changed)


def _found_with(query: BoundSequence, case: Case, found: list[Candidate]) -> list[Candidate]:
    """The candidates for another threshold: only those of EXPIRED depend on it."""
    return candidates(query, case.rows, case.relations) if EXPIRED in query.emit else found


def _identities(query: BoundSequence, found: Sequence[Candidate]) -> list[str]:
    """What is reported, without probabilities."""
    return sorted(repr({**candidate.answer(query), "probability": None}) for candidate in reported(query, found))


def _nearly_tied(found: Sequence[Candidate]) -> bool:
    """Whether two candidates have almost the same probability."""
    return any(
        not math.isclose(low, high, rel_tol=1e-12) and math.isclose(low, high, rel_tol=NEAR)
        for low, high in itertools.pairwise(sorted(candidate.probability for candidate in found))
    )


# ---------------------------------------------------------------- components and rows


@st.composite
def _components(draw: Draw, shapes: Sequence[Shape], most: int, ending: str, emit: str) -> list[Component]:
    """Components with models: ascending times, the same tag, and readers."""
    count = draw(st.sampled_from([number for number in (3, 2, 3, 4, 4, 5) if number <= most]))
    names = [*NAMES[: count - 1], NAMES[-1]]
    signs = [draw(one_in(4)) for _ in names]
    if ending == "OPEN" or EXPIRED in emit.lower():
        signs[0] = False
    if all(signs):
        signs[count // 2] = False
    if not ending:
        signs[-1] = False
    instants = shapes[0].instants
    times = sorted(
        draw(st.lists(st.sampled_from(instants), min_size=count, max_size=count, unique=not draw(one_in(8))))
    )
    lost = 0
    components = []
    for index, (name, negative, instant) in enumerate(zip(names, signs, times, strict=True)):
        shape = draw(st.sampled_from(shapes))
        model = draw(shape.rows([instant], tag="g1", reader=f"r{draw(st.integers(1, 3))}"))
        is_trigger = (index == 0 and ending == "OPEN") or (index == count - 1 and not ending)
        miss = 0.0 if is_trigger or draw(one_in(3)) else draw(st.sampled_from([0.0, *MISSES]))
        lost += not negative and miss > 0
        components.append(Component(name, shape, negative, model, miss if negative or lost <= MOST_LOST else 0.0))
    return components


@st.composite
def _with_runs(draw: Draw, components: Sequence[Component], ending: str) -> list[Component]:
    """Some of the components as runs, where the language allows it."""
    chosen = list(components)
    numbers = range(1, len(chosen)) if ending else range(len(chosen) - 1)
    if not numbers:
        return chosen
    if ending:
        chosen[0] = replace(chosen[0], negative=False, miss=0.0)
    wanted = [number for number in numbers if draw(one_in(2))] or [draw(st.sampled_from(list(numbers)))]
    for number in wanted:
        beside = itertools.chain(
            itertools.takewhile(lambda component: not component.is_always_read, reversed(chosen[:number])),
            itertools.takewhile(lambda component: not component.is_always_read, chosen[number + 1 :]),
        )
        if all(chosen[number].shape.is_certain and not component.run for component in beside):
            chosen[number] = replace(chosen[number], negative=False, miss=0.0, run=True)
    return chosen


@st.composite
def _rows(draw: Draw, components: Sequence[Component]) -> Rows:
    """Most of the models, and a few more rows; some rows are repeated, and some have another value."""
    rows: Rows = {component.shape.name: [] for component in components}
    shapes = list(dict.fromkeys(component.shape for component in components))
    for component in components:
        if draw(one_in(6)) if component.negative else not draw(one_in(2 if component.miss > 0 else 12)):
            rows[component.shape.name].append(component.model)
        for _ in range(draw(st.integers(0, 3)) if component.run else 0):
            other = draw(component.shape.rows())
            changed = {name: other[name] for name in draw(st.sampled_from([["t"], ["t", "temp"], ["id"], ["t", "id"]]))}
            rows[component.shape.name].append({**component.model, **changed})
    for _ in range(draw(st.sampled_from([0, 2, 4, 6, 3, 5, 1]))):
        # Rows that differ from a model in one column, or in all.
        similar = draw(st.sampled_from(components))
        other = draw(similar.shape.rows())
        changed = draw(st.sampled_from(["t", "t", "tag", "id", "temp", "reader", "all"]))
        row = other if changed == "all" else {**similar.model, changed: other[changed]}
        rows[similar.shape.name].append(row)
    for shape in shapes:
        if rows[shape.name] and draw(one_in(4)):
            rows[shape.name].append(dict(draw(st.sampled_from(rows[shape.name]))))
        rows[shape.name] = draw(st.permutations(rows[shape.name]))
    return rows


def _possible(rows: Rows) -> Rows:
    """The first rows, so that there are few worlds; the probabilities of one key and time sum to at most 1."""
    possible: Rows = {}
    for name, stream_rows in rows.items():
        chosen = stream_rows[:5]
        distinct = {repr(row): row for row in chosen}.values()
        possible[name] = []
        for row in chosen:
            alternatives = [other for other in distinct if (other["id"], other["t"]) == (row["id"], row["t"])]
            is_possible = sum(other.get("chance", 0.0) for other in alternatives) <= 1
            possible[name].append(row if is_possible else {**row, "chance": 0.125})
    return possible


# ---------------------------------------------------------------- queries


@st.composite
def _queries(
    draw: Draw, components: Sequence[Component], style: Style, scoring: str, ending: str, emit: str
) -> tuple[str, list[str]]:
    """The text of a query, and the components whose delays are EMPIRICAL."""
    names = ", ".join(component.text() for component in components)
    operands = draw(operands_of([(component.shape.name, component.name) for component in components]))
    conjuncts = draw(_conjuncts(components, style))
    delays = {
        component.name: draw(_delays(component, style))
        for index, component in enumerate(components)
        if component.miss > 0 or (style.occurs and index > 0) or draw(one_in(6))
    }
    given = draw(_given(components, style)) if style.occurs else []
    needs_window = ending or EXPIRED in emit.lower() or components[0].negative or components[0].miss > 0 or style.occurs
    clauses = {
        "WHERE": " AND ".join(draw(st.permutations(conjuncts))),
        "MISS": ", ".join(f"{component.name} {component.miss}" for component in components if component.miss > 0),
        "OCCURS": ", ".join(draw(_occurs(components))) if style.occurs else "",
        "DELAY": ", ".join([*(f"{name} {delay}" for name, delay in delays.items()), *(law.text() for law in given)]),
        "WITHIN": draw(_windows(components)) if needs_window or style.windowed or not draw(one_in(4)) else "",
        "SCORING": "POSTERIOR" if style.occurs else scoring,
        "ENDING": "OPEN" if ending else "",
        "EMIT": emit,
        "THRESHOLD": draw(st.sampled_from(THRESHOLDS)),
    }
    written = draw(st.permutations([f" {word} {text}" for word, text in clauses.items() if text]))
    empirical = [name.lower() for name, delay in delays.items() if delay.startswith("EMPIRICAL")]
    empirical += [law.name_in_file() for law in given if law.delay.startswith("EMPIRICAL")]
    return f"SEQUENCE ({names}) FROM {operands}{''.join(written)}", empirical


@st.composite
def _occurs(draw: Draw, components: Sequence[Component]) -> list[str]:
    """The items of OCCURS: every component but the last has one, so that WITHOUT can name it."""
    chances = [0.5, 0.9, 0.2, 1, 0]
    return [f"{component.name} {draw(st.sampled_from(chances))}" for component in components[:-1] if not component.run]


@st.composite
def _given(draw: Draw, components: Sequence[Component], style: Style) -> list[Given]:
    """Laws WITH and WITHOUT other components."""
    given = []
    for index, component in enumerate(components[2:], 2):
        others = tuple(other.name for other in components[1:index] if not other.run)
        for happened in (True, False):
            for chosen in draw(st.sampled_from([[], [others], [others[-1:]], [others[:1]]])) if others else ():
                given.append(Given(component.name, happened, chosen, draw(_delays(component, style))))
    return given


@st.composite
def _delays(draw: Draw, component: Component, style: Style) -> str:
    """The distribution of a delay; for TIMESTAMPs sometimes with a unit."""
    law = draw(st.sampled_from(list(style.laws)))
    if law == "EMPIRICAL":
        return f"EMPIRICAL '{DELAYS}'"
    if component.shape.time_type == TIMESTAMP and law.startswith(("UNIFORM", "EXPONENTIAL")) and draw(one_in(3)):
        return law.replace(")", " SECONDS)")
    return law


@st.composite
def _windows(draw: Draw, components: Sequence[Component]) -> str:
    """The value of WITHIN: often the time from the first model, or another one, to the last."""
    last = seconds(components[-1].model)
    to_last = [round(last - seconds(component.model), 2) for component in components[:-1]]
    lengths = [length for length in (to_last[0], to_last[0], *to_last) if length > 0]
    return number_text(draw(st.sampled_from([*lengths, 4, 8, *lengths, 8, 2])))


# ---------------------------------------------------------------- conditions


@st.composite
def _conjuncts(draw: Draw, components: Sequence[Component], style: Style) -> list[str]:
    """Conditions on single components, equalities, and a few more."""
    conjuncts = [text for component in components if (text := draw(_condition_on(component, components, style)))]
    conjuncts += draw(_equalities(components, style))
    for _ in range(draw(st.sampled_from([0, 1, 0, 2]))):
        conjuncts.append(draw(_any_condition(components, style)))
    if style.logic and draw(one_in(4)):
        conjuncts.append(draw(_logical(components, style)))
    return conjuncts


@st.composite
def _condition_on(draw: Draw, component: Component, components: Sequence[Component], style: Style) -> str:
    """A condition on one component; sometimes empty if no other component has the same stream."""
    name, reader = component.name, component.model["reader"]
    has_own_stream = all(other is component or other.shape is not component.shape for other in components)
    texts = [f"{name}.reader = '{reader}'"] * 5
    texts += [f"{name}.reader IN ('{reader}', 'r1')", f"{name}.reader IS NOT NULL", f"{name}.tag = 'g1'"]
    if (component.model["temp"] or 0) >= 1:
        texts += [f"{name}.temp >= 1", f"{name}.temp IS NOT NULL"]
    if style.logic:
        texts += [
            f"({name}.reader = '{reader}' OR {name}.temp > 1)",
            f"NOT ({name}.tag = 'g2' OR {name}.reader IS NULL)",
        ]
    texts += [f"{table}({name}.reader)" for table in style.tables if reader != "r2"] * 6
    if component.may_be_missing and style.defaults:
        texts += [f"{name}.temp[2] >= 1", f"{name}.reader['{reader}'] = '{reader}'", f"{name}.temp[0] > 0"]
    return draw(st.sampled_from(["", *texts] if has_own_stream else texts))


@st.composite
def _equalities(draw: Draw, components: Sequence[Component], style: Style) -> list[str]:
    """Equalities of tags, along a tree of all or some components."""
    kind = draw(st.sampled_from(list(style.equalities)))
    least = {"all": len(components), "some": 2, "none": 0}[kind]
    chosen = list(components)
    if kind == "some":
        chosen = draw(st.lists(st.sampled_from(components), min_size=least, unique_by=lambda component: component.name))
    equalities = []
    for index, component in enumerate(chosen[1:] if kind != "none" else [], 1):
        other = chosen[draw(st.sampled_from([index - 1, draw(st.integers(0, index - 1))]))]
        columns = draw(st.sampled_from([("tag", "tag")] * 20 + [("reader", "reader"), ("tag", "reader"), ("id", "id")]))
        sides = [
            draw(_defaulted(one, column, components, 10 if style.defaults else 0))
            for one, column in zip(draw(st.permutations([other, component])), columns, strict=True)
        ]
        op = " = " if not (style.logic and draw(one_in(12))) else " <> "
        text = op.join(sides)
        equalities.append(f"NOT ({text})" if op == " <> " else text)
    return equalities


def _reference(component: Component, column: str, default: bool, others: Sequence[Component] = ()) -> str:
    """A column of a component; with a default if wanted and if the component may be missing.

    The default is a column of one of the others, if there are any.
    """
    values = {"tag": "'g1'", "reader": "'r1'", "id": "'a'", "temp": "1"}
    if not default or not component.may_be_missing or column not in values:
        return f"{component.name}.{column}"
    value = _reference(others[0], column, len(others) > 1, others[1:]) if others else values[column]
    return f"{component.name}.{column}[{value}]"


@st.composite
def _defaulted(draw: Draw, component: Component, column: str, components: Sequence[Component], often: int) -> str:
    """A column of a component, sometimes with a default: a constant, or a column of other components."""
    others = [
        other
        for other in components
        if not (other.negative or other.run or other is component)
        and (column != "temp" or other.shape.temp_type == component.shape.temp_type)
    ]  # fmt: skip
    chosen = draw(st.permutations(others))[: draw(st.integers(0, 3))] if draw(one_in(2)) else []
    return _reference(component, column, often > 0 and draw(one_in(often)), chosen)


_OPERATORS = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "<>": operator.ne,
    "=": operator.eq,
}

#: The columns and operators by which two components are compared.
_COMPARISONS = [
    ("temp", "<"), ("temp", "<="), ("temp", ">"), ("temp", "<>"), ("reader", "<>"), ("id", "<>"), ("tag", "<>"),
    ("id", "<="), ("id", ">"), ("temp", "="),
]  # fmt: skip


@st.composite
def _any_condition(draw: Draw, components: Sequence[Component], style: Style) -> str:
    """A condition on one, two or three components; usually true for the models."""
    chosen = draw(st.permutations(components))
    kind = draw(st.sampled_from(["two", "time", "two", "one", "three"]))
    if kind == "one" or len(chosen) < 2:
        return draw(_condition_on(chosen[0], components, style)) or "TRUE"
    if kind == "three" and len(chosen) > 2:
        u, v, w = (
            draw(_defaulted(component, "temp", components, 3 if style.defaults else 0)) for component in chosen[:3]
        )
        return f"{u} + {v} >= {w}"
    if kind == "time":
        return draw(_time_condition(chosen[0], chosen[1]))
    true = [
        (column, op)
        for column, op in _COMPARISONS
        if None not in (pair := [component.model[column] for component in chosen[:2]]) and _OPERATORS[op](*pair)
    ]
    column, op = draw(st.sampled_from(true if true and not draw(one_in(6)) else _COMPARISONS))
    u, v = (draw(_defaulted(component, column, components, 3 if style.defaults else 0)) for component in chosen[:2])
    texts = [f"{u} {op} {v}"] * 4
    if column == "temp":
        texts += [f"ABS({u} - {v}) <= 1", f"{u} + 0 = {v} + 0"]
    return draw(st.sampled_from(texts))


@st.composite
def _time_condition(draw: Draw, u: Component, v: Component) -> str:
    """A bound on a difference of times, often the difference of the models."""
    difference = round(seconds(v.model) - seconds(u.model), 2)
    bound = draw(st.sampled_from([number_text(difference), number_text(difference), "2", "1"]))
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
