"""Analyses MONITOR queries: the constrained values and differences, the allowed numbers, and the row conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from math import inf

from anabranch.binding.bound import BoundOperand
from anabranch.binding.equalities import merge_overlapping
from anabranch.binding.typed import MIRRORED, Operation, Reference, Typed, conjunction, of_event, references
from anabranch.errors import Finding
from anabranch.language.temporal import amount_of
from anabranch.language.types import Type
from anabranch.monitor.alternatives import Form
from anabranch.monitor.areas import Area, merged_areas, objection_to_areas, text_of
from anabranch.monitor.formulas import (
    Every,
    FormIn,
    Formula,
    RowTest,
    Some,
    conjuncts_of,
    constraints_of,
    count_alternatives,
    merged,
    negated,
    possible,
    with_rows,
)
from anabranch.monitor.numbers import Numbers, mirrored, satisfying
from anabranch.monitor.query import BoundArea, BoundConstraint, BoundMonitor, Combination, Junction, bound_of, error_of
from anabranch.plan import Sampling

EXPECTED, MAY, MUST = "EXPECTED", "MAY", "MUST"

#: The most uncertain values (uniform, and normal) that are integrated jointly; each further value takes about ten times
#: as long. If differences connect the values like a tree, each takes about as long as the first.
MOST_TOGETHER, MOST_NORMAL, MOST_IN_TREE = 4, 3, 8

#: The most alternatives of a condition with OR: for MUST, each combination of what excludes them is a polygon.
MOST_ALTERNATIVES = 16

#: A value: the number of its operand, and its columns in lower case with their factors. Most have one column, times 1.
#: Without columns, it is the instant of the operand.
Value = tuple[int, tuple[tuple[str, float], ...]]
#: Two operands, the smaller number first.
Pair = tuple[int, int]


@dataclass(frozen=True)
class MonitorAnalysis:
    """The analysis of a MONITOR query.

    Attributes
    ----------
    values : tuple of Value
        The values in constraints.
    forms : tuple of (Form, Numbers)
        For each constrained value or difference, the numbers that satisfy all its constraints.
    areas : tuple of Area
        The areas in which locations, or differences of locations, must be.
    formula : Formula or None
        The condition on values, if it has OR. The numbers of a form are then those that no part of it excludes.
    row_tests : tuple of Typed
        The conditions on rows that are in the formula.
    windows : tuple of (Pair, float)
        For each pair of operands that are compared, how far apart their instants may be. If that also depends on the
        alternatives of OR, the formula has constraints on the differences of instants.
    """

    query: BoundMonitor
    values: tuple[Value, ...]
    forms: tuple[tuple[Form, Numbers], ...]
    areas: tuple[Area, ...] = ()
    formula: Formula | None = None
    row_tests: tuple[Typed, ...] = ()
    windows: tuple[tuple[Pair, float], ...] = ()

    @property
    def operands(self) -> tuple[BoundOperand, ...]:
        """The names of the query, each with its stream."""
        return self.query.operands

    @property
    def one_instant(self) -> bool:
        """Whether all values are compared at the same instant."""
        return self.window == 0

    @property
    def window(self) -> float:
        """How far apart any two instants that are compared may be."""
        return max((window for _, window in self.windows), default=0.0)

    @property
    def dims(self) -> int:
        """The number of instants that vary independently."""
        return 1 if self.one_instant else len(self.operands)

    @property
    def sampling(self) -> Sampling:
        """The predictions of an answer are valid at instants that are at most WITHIN apart."""
        periods = (stream.declaration.period for stream in self.query.streams)
        longest = max((float(amount_of(period)) for period in periods if period is not None), default=0.0)
        return Sampling(window=longest + self.window)

    @property
    def accelerated(self) -> list[str]:
        """The columns of constrained values whose source has accelerations, each once."""
        names = []
        for operand, columns in self.values:
            known = {column.name.lower() for column in self.operands[operand].stream.accelerations}
            names += [name for name, _ in columns if f"{name}_accel" in known]
        return list(dict.fromkeys(names))

    @cached_property
    def connected_columns(self) -> list[frozenset[tuple[int, str]]]:
        """The groups of columns with errors that are connected by constraints; each group is integrated jointly."""
        return merge_overlapping(
            set().union(*(self.uncertain_columns(value) for value in form if value >= 0)) for form, _ in self.forms
        )

    def is_tree(self, columns: Set[tuple[int, str]]) -> bool:
        """Whether differences connect the values of a group of columns like a tree: `a.x - b.x`, `b.x - c.x`."""
        values = [value for value in range(len(self.values)) if self.uncertain_columns(value) & columns]
        differences = [form for form in self.forms_of(columns) if set(form) <= set(values)]
        return len(differences) == len(values) - 1

    def forms_of(self, columns: Set[tuple[int, str]]) -> list[Form]:
        """The forms with any of these columns."""
        return [
            form
            for form, _ in self.forms
            if any(self.uncertain_columns(value) & columns for value in form if value >= 0)
        ]

    def uncertain_columns(self, value: int) -> set[tuple[int, str]]:
        """The columns of a value that have an error, each with the number of its operand."""
        operand, columns = self.values[value]
        return {(operand, name) for name, _ in columns if error_of(self.operands[operand].stream, name) > 0}

    def error_of(self, form: Form) -> float:
        """How far a form can be from its prediction; infinite if each row has its own error."""
        values = [self.values[value] for value in form if value >= 0]
        return sum(
            abs(factor) * error_of(self.operands[operand].stream, name)
            for operand, columns in values
            for name, factor in columns
        )

    def text_of(self, form: Form) -> str:
        """A form as a query states it: `a.x + 2 * a.y - b.x`."""
        text = ""
        for sign, value in zip((1, -1), form, strict=True):
            operand, columns = self.values[value] if value >= 0 else (0, ())
            for name, factor in columns:
                text += f" {'-' if sign * factor < 0 else '+'} " if text else "-" if factor < 0 else ""
                text += f"{abs(factor):g} * " if abs(factor) != 1 else ""
                text += f"{self.operands[operand].label}.{name}"
        return text

    def is_of_instants(self, form: Form) -> bool:
        """Whether a form is the difference of two instants."""
        return not self.values[form[0]][1]

    @cached_property
    def formula_of_best_rows(self) -> Formula:
        """The condition on values if all conditions on rows that OR joins with constraints are true."""
        return with_rows(Every(self.conjuncts), dict.fromkeys(range(len(self.row_tests)), True))

    @property
    def conjuncts(self) -> tuple[Formula, ...]:
        """The conditions on values that must all hold."""
        if self.formula is None:
            return tuple(FormIn(*item) for item in self.forms)
        return conjuncts_of(self.formula)

    @cached_property
    def alternatives(self) -> bool:
        """Whether the numbers that satisfy some form are several intervals."""
        return any(len(numbers) > 1 for _, numbers in self.forms)

    # ------------------------------------------------------------ rows

    def own_conditions(self, operand: int) -> Typed | None:
        """The conditions on the rows of one operand only, on its columns; None if there are none."""
        name = self.operands[operand].name
        return conjunction(tuple(of_event(part) for part in self.query.row_conditions if _owners(part) == {name}))

    @cached_property
    def shared_conditions(self) -> tuple[Typed, ...]:
        """The conditions on the rows of several operands, or without columns."""
        return tuple(part for part in self.query.row_conditions if len(_owners(part)) != 1)

    @cached_property
    def comparisons(self) -> tuple[tuple[Reference, str, Reference], ...]:
        """The shared conditions that compare two key columns of the same type; they are evaluated on ranks."""
        comparisons = map(self._comparison, self.shared_conditions)
        return tuple(comparison for comparison in comparisons if comparison is not None)

    @cached_property
    def other_conditions(self) -> tuple[Typed, ...]:
        """The shared conditions that are evaluated for each combination of predictions."""
        return tuple(part for part in self.shared_conditions if self._comparison(part) is None)

    def _comparison(self, part: Typed) -> tuple[Reference, str, Reference] | None:
        if not isinstance(part, Operation) or part.op not in MIRRORED:
            return None
        left, right = part.arguments
        if not (isinstance(left, Reference) and isinstance(right, Reference)) or left.type is not right.type:
            return None
        if left.type is Type.UNKNOWN or not (self._is_key(left) and self._is_key(right)):
            return None
        return left, part.op, right

    def _is_key(self, reference: Reference) -> bool:
        stream = self.operands[self.operand_number(reference.owner)].stream
        return reference.name in {column.name.lower() for column in stream.keys}

    def operand_number(self, name: str | None) -> int:
        """The number of an operand, by its name."""
        return [operand.name for operand in self.operands].index(name or "")

    @cached_property
    def equated(self) -> tuple[str, ...] | None:
        """For each operand a key column, such that WHERE equates all of them; None if there are none.

        Rows are routed by these columns. For two operands of the same stream they must be the same column, because a
        row goes to one bucket.
        """
        pairs = (
            {(self.operand_number(column.owner), column.name) for column in (left, right)}
            for left, op, right in self.comparisons
            if op == "="
        )
        for equal_columns in merge_overlapping(pairs):
            columns = dict(sorted(equal_columns, reverse=True))
            by_stream = {(self.operands[number].stream.name.lower(), name) for number, name in columns.items()}
            streams = {stream for stream, _ in by_stream}
            if len(columns) == len(self.operands) and len(streams) == len(by_stream):
                return tuple(columns[number] for number in range(len(columns)))
        return None


class _Analyser:
    """Turns the constraints of a query into formulas, and numbers the values in them."""

    def __init__(self, query: BoundMonitor) -> None:
        self.query = query
        self.names = [operand.name for operand in query.operands]
        self.values: list[Value] = []
        self.row_tests: list[Typed] = []
        #: For each pair of operands that are compared, the windows of the constraints between them.
        self.windows: dict[Pair, set[float]] = {}
        in_junctions = (part for junction in query.junctions for part in junction.constraints)
        for constraint in chain[BoundConstraint | BoundArea](query.constraints, in_junctions, query.areas):
            if (pair := self.pair_of(constraint)) is not None:
                self.windows.setdefault(pair, set()).add(self.window_of(constraint))
        if len(self.names) == 2 and not self.windows:
            self.windows[0, 1] = {query.within}

    def window_of(self, constraint: BoundConstraint | BoundArea) -> float:
        """The window of a constraint: its own, or that of the query."""
        return self.query.within if constraint.window is None else constraint.window

    def pair_of(self, constraint: BoundConstraint | BoundArea) -> Pair | None:
        """The two operands that a constraint compares; None if it is about one."""
        owners = sorted({self.names.index(value.owner or "") for value in constraint.values})
        return (owners[0], owners[1]) if len(owners) == 2 else None

    def number_of(self, value: Value) -> int:
        """The number of a value."""
        if value not in self.values:
            self.values.append(value)
        return self.values.index(value)

    def number_of_sum(self, combination: Combination) -> int:
        """The number of a sum of values of one operand."""
        return self.number_of((self.names.index(combination.owner), combination.columns))

    def form_in(self, constraint: BoundConstraint) -> FormIn:
        """A constraint, without its window."""
        plus = self.number_of_sum(constraint.plus)
        minus = None if constraint.minus is None else self.number_of_sum(constraint.minus)
        return FormIn(*_form(constraint, plus, minus))

    def in_window(self, constraint: BoundConstraint | BoundArea) -> tuple[FormIn, ...]:
        """The window of a constraint, if it is smaller than that of another one on the same operands."""
        pair, window = self.pair_of(constraint), self.window_of(constraint)
        if pair is None or window == max(self.windows[pair]):
            return ()
        return (FormIn(self.instants(pair), satisfying("<=", window, absolute=True)),)

    def instants(self, pair: Pair) -> Form:
        """The difference of the instants of two operands."""
        return _in_order((self.number_of((pair[0], ())), self.number_of((pair[1], ()))))

    def formula_of(self, part: BoundConstraint | Junction | Typed) -> Formula:
        """A condition on values and rows as a formula."""
        if isinstance(part, Junction):
            parts = [self.formula_of(inner) for inner in part.parts]
            if part.op == "or":
                return merged(Some(tuple(parts)))
            return merged(Every(tuple(inner for own in parts for inner in conjuncts_of(own))))
        if isinstance(part, BoundConstraint):
            return merged(Every((self.form_in(part), *self.in_window(part))))
        self.row_tests.append(part)
        return RowTest(len(self.row_tests) - 1)


def analyse(query: BoundMonitor) -> MonitorAnalysis:
    """Analyse a bound query."""
    analyser = _Analyser(query)
    junctions = [analyser.formula_of(junction) for junction in query.junctions]
    constraints = [analyser.form_in(constraint) for constraint in query.constraints]
    areas = merged_areas((_forms_of(area, analyser.number_of_sum), area) for area in query.areas)
    if all(isinstance(part, FormIn) for part in junctions):
        allowed = conjuncts_of(merged(Every((*constraints, *junctions))))
        forms = tuple((part.form, part.numbers) for part in allowed if isinstance(part, FormIn))
        windows = tuple((pair, min(windows)) for pair, windows in analyser.windows.items())
        return MonitorAnalysis(query, tuple(analyser.values), forms, areas, windows=windows)
    required = chain[BoundConstraint | BoundArea](query.constraints, query.areas)
    smaller = [part for constraint in required for part in analyser.in_window(constraint)]
    formula = merged(Every((*constraints, *smaller, *junctions)))
    numbers = {part.form: possible(formula, part.form) for part in constraints_of(formula)}
    windows = tuple((pair, min(max(own), _apart(pair, numbers, analyser))) for pair, own in analyser.windows.items())
    return MonitorAnalysis(
        query, tuple(analyser.values), tuple(numbers.items()), areas, formula, tuple(analyser.row_tests), windows
    )


def _apart(pair: Pair, numbers: Mapping[Form, Numbers], analyser: _Analyser) -> float:
    """How far apart the instants of two operands may be, as far as the numbers of forms tell."""
    values = {(operand, ()) for operand in pair}
    own = (own for (u, v), own in numbers.items() if {analyser.values[u], analyser.values[v]} == values)
    return min((reach(intervals)[1] for intervals in own), default=inf)


def _forms_of(area: BoundArea, number_of: Callable[[Combination], int]) -> tuple[Form, Form]:
    """The x and the y that must be in an area."""
    others: tuple[Reference | None, ...] = area.other or (None, None)
    x, y = (
        (number_of(Combination(((one, 1.0),))), -1 if other is None else number_of(Combination(((other, 1.0),))))
        for one, other in zip(area.one, others, strict=True)
    )
    return _in_order(x), _in_order(y)


def _in_order(form: Form) -> Form:
    """A form or its negative, with the smaller number first; distances are the same for both."""
    return form if form[1] < 0 or form[0] < form[1] else (form[1], form[0])


def _form(constraint: BoundConstraint, plus: int, minus: int | None) -> tuple[Form, Numbers]:
    """The form of a constraint, with its values in order, and the numbers that satisfy it."""
    numbers = satisfying(constraint.op, constraint.bound, constraint.absolute)
    if minus is None:
        return (plus, -1), numbers
    if plus < minus:
        return (plus, minus), numbers
    return (minus, plus), mirrored(numbers)


def _owners(part: Typed) -> set[str | None]:
    return {owner for owner, _ in references(part)}


def objection(analysis: MonitorAnalysis) -> Finding | None:
    """Why a query cannot run; None if it can."""
    query = analysis.query
    if analysis.dims > 2 and query.semantics == MAY and analysis.alternatives:
        semantics = f"SEMANTICS MAY over {len(query.operands)} names"
        message = (
            f"{query.name}: {semantics} does not support constraints that allow two intervals, such as ABS(...) > 5"
        )
        hint = "use <= or <, SEMANTICS EXPECTED or WITHIN 0, or write a query for each pair"
        return Finding("not-supported", message, hint, query.span)
    refused = _objection_to_formula(analysis) or objection_to_areas(analysis) or _objection_to_accelerations(analysis)
    if refused is not None or query.semantics == MUST:
        return refused
    is_normal = any(error.normal is not None for stream in query.streams for error in stream.errors)
    for columns in analysis.connected_columns:
        is_tree = analysis.is_tree(columns)
        most = MOST_IN_TREE if is_tree else MOST_NORMAL if is_normal else MOST_TOGETHER
        if len(columns) > most:
            kind = "normal errors" if is_normal else "errors"
            values = f"{len(columns)} values with {kind} that constraints connect{'' if is_tree else ' in a cycle'}"
            message = f"{query.name} has {values} (at most {most} are allowed)"
            hint = "use fewer values, or SEMANTICS MUST"
            return Finding("not-supported", message, hint, query.span)
    return _objection_to_expressions(analysis)


def _objection_to_formula(analysis: MonitorAnalysis) -> Finding | None:
    """Why a condition with OR cannot be answered."""
    query = analysis.query
    if analysis.formula is None:
        return None
    if analysis.areas:
        message = f"{query.name}: {text_of(analysis.areas[0], analysis)} cannot be combined with OR over constraints"
        return Finding("not-supported", message, "write a query for each alternative of OR", query.areas[0].span)
    if analysis.dims > 2:
        message = f"{query.name}: OR over {len(query.operands)} names needs WITHIN 0"
        return Finding("not-supported", message, "use WITHIN 0, or write a query for each pair", query.span)
    count = count_alternatives(analysis.formula_of_best_rows)
    if query.semantics == MUST:
        count = max(count, count_alternatives(negated(analysis.formula_of_best_rows)))
    if count > MOST_ALTERNATIVES:
        message = f"{query.name}: OR leaves {count} alternatives (at most {MOST_ALTERNATIVES} are allowed)"
        return Finding("not-supported", message, "write several queries", query.span)
    return None


def _objection_to_accelerations(analysis: MonitorAnalysis) -> Finding | None:
    """Why accelerated values cannot be compared; which values are is known when the sources have been opened."""
    query, accelerated = analysis.query, analysis.accelerated
    if not accelerated:
        return None
    if analysis.dims > 1:
        message = f"{query.name}: {accelerated[0]} is accelerated, so it can be compared at the same instant only"
        return Finding(
            "not-supported", message, f"use WITHIN 0, or a source without {accelerated[0]}_accel", query.span
        )
    if query.nearest is not None:
        message = f"{query.name}: {accelerated[0]} is accelerated, which NEAREST does not support"
        return Finding(
            "not-supported", message, f"remove NEAREST, or use a source without {accelerated[0]}_accel", query.span
        )
    if any(area.is_scaled for area in analysis.areas):
        message = f"{query.name}: {accelerated[0]} is accelerated, which DISTANCE on the globe does not support"
        hint = f"use a SPACE in the plane, or a source without {accelerated[0]}_accel"
        return Finding("not-supported", message, hint, query.span)
    return None


def _objection_to_expressions(analysis: MonitorAnalysis) -> Finding | None:
    """Why the probability of an expression of several values cannot be computed."""
    query = analysis.query
    columns = [analysis.uncertain_columns(value) for value in range(len(analysis.values))]
    texts = [analysis.text_of((value, -1)) for value in range(len(analysis.values))]
    for one, other in combinations(range(len(columns)), 2):
        for operand, name in sorted(columns[one] & columns[other]):
            label = f"{analysis.operands[operand].label}.{name}"
            expressions = f"{texts[one]} and {texts[other]}"
            message = f"{query.name}: {label} has an error and is in two different expressions, {expressions}"
            hint = "constrain the same expression twice, write a query for each, or use SEMANTICS MUST"
            return Finding("not-supported", message, hint, query.span)
    for form, _ in analysis.forms:
        own_columns = [columns[value] for value in form if value >= 0]
        if all(len(names) <= 1 for names in own_columns):
            continue
        connected = next(group for group in analysis.connected_columns if any(group & names for names in own_columns))
        bounds = [bound_of(analysis.operands[operand].stream, name) for operand, name in connected]
        if any(bound is not None and (bound.source or bound.normal) for bound in bounds):
            text = analysis.text_of(form)
            message = f"{query.name}: {text} has several errors, and some are normal or different in each row"
            hint = "declare uniform errors that are numbers, or use SEMANTICS MUST"
            return Finding("not-supported", message, hint, query.span)
    return None


def reach(numbers: Numbers) -> tuple[float, float]:
    """The ends of the smallest interval around a set of numbers."""
    lows, highs = [interval.low for interval in numbers], [interval.high for interval in numbers]
    return min(lows, default=inf), max(highs, default=-inf)
