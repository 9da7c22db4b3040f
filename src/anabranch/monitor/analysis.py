"""What a MONITOR query asks: values, forms of them, the numbers its constraints leave, and what is asked of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

from anabranch.binding.bound import BoundOperand
from anabranch.binding.typed import Operation, Reference, Typed, conjunction, references, with_references
from anabranch.errors import Finding
from anabranch.language.types import Type
from anabranch.monitor.numbers import ALL, Numbers, common, mirrored, satisfying
from anabranch.monitor.query import BoundConstraint, BoundMonitor, error_of

EXPECTED, MAY, MUST = "EXPECTED", "MAY", "MUST"

#: So many truths are integrated over jointly at most; with each more, it takes some ten times as long.
MOST_TOGETHER, MOST_NORMAL = 4, 3

#: A value: the number of its operand, and its column in lower case.
Value = tuple[int, str]
#: A value by its number, or two of which the second is subtracted from the first; -1 where there is no second.
Form = tuple[int, int]


@dataclass(frozen=True)
class MonitorAnalysis:
    """A MONITOR query taken apart.

    Attributes
    ----------
    values : the values that constraints name
    forms : the numbers that constraints leave for each form
    """

    query: BoundMonitor
    values: tuple[Value, ...]
    forms: tuple[tuple[Form, Numbers], ...]

    @property
    def operands(self) -> tuple[BoundOperand, ...]:
        """The names of the query, each with its stream."""
        return self.query.operands

    @property
    def one_instant(self) -> bool:
        """Whether all values are compared at the same instant."""
        return len(self.operands) == 1 or self.query.within == 0

    @property
    def dims(self) -> int:
        """How many instants there are to choose."""
        return 1 if self.one_instant else len(self.operands)

    @cached_property
    def links(self) -> frozenset[tuple[int, int]]:
        """The pairs of operands, the smaller number first, between which the window holds."""
        if len(self.operands) == 2:
            return frozenset({(0, 1)})
        pairs = ((self.values[u][0], self.values[v][0]) for (u, v), _ in self.forms if v >= 0)
        return frozenset((min(pair), max(pair)) for pair in pairs if pair[0] != pair[1])

    @cached_property
    def together(self) -> list[set[int]]:
        """The values with errors that hang together by constraints: their truths are integrated over jointly."""
        groups: list[set[int]] = []
        for form, _ in self.forms:
            own = {value for value in form if value >= 0 and self._is_uncertain(value)}
            for group in [group for group in groups if group & own]:
                groups.remove(group)
                own |= group
            groups.append(own)
        return groups

    def _is_uncertain(self, value: int) -> bool:
        operand, column = self.values[value]
        return error_of(self.operands[operand].stream, column) > 0

    @cached_property
    def alternatives(self) -> bool:
        """Whether the matching predictions of some form are not one interval."""
        return any(len(numbers) > 1 for _, numbers in self.forms)

    # ------------------------------------------------------------ rows

    def own_conditions(self, operand: int) -> Typed | None:
        """What is asked of the rows of one operand alone, on its columns; None where nothing is."""
        name = self.operands[operand].name
        own = [part for part in self.query.row_conditions if _owners(part) == {name}]
        return conjunction(tuple(with_references(part, lambda each: replace(each, owner=None)) for part in own))

    @cached_property
    def shared_conditions(self) -> tuple[Typed, ...]:
        """What is asked of the rows of several operands together, or of none."""
        return tuple(part for part in self.query.row_conditions if len(_owners(part)) != 1)

    @cached_property
    def comparisons(self) -> tuple[tuple[Reference, str, Reference], ...]:
        """The shared conditions that compare two key columns of one type: they are decided on ranks."""
        return tuple(found for part in self.shared_conditions if (found := self._comparison(part)) is not None)

    @cached_property
    def other_conditions(self) -> tuple[Typed, ...]:
        """The shared conditions that must be asked of each choice of predictions."""
        return tuple(part for part in self.shared_conditions if self._comparison(part) is None)

    def _comparison(self, part: Typed) -> tuple[Reference, str, Reference] | None:
        if not isinstance(part, Operation) or part.op not in ("<", "<=", ">", ">=", "=", "<>"):
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
        """For each operand a key column, all of which WHERE asks to be equal; None where there are none.

        Rows go by these columns. Where two operands are of one stream they must be the same column, for a row goes to
        one place.
        """
        classes: list[set[tuple[int, str]]] = []
        for left, op, right in self.comparisons:
            if op != "=":
                continue
            pair = {(self.operand_number(each.owner), each.name) for each in (left, right)}
            touched = [each for each in classes if each & pair]
            classes = [each for each in classes if each not in touched] + [pair.union(*touched)]
        for found in classes:
            columns = dict(sorted(found, reverse=True))
            by_stream = {(self.operands[number].stream.name.lower(), name) for number, name in columns.items()}
            streams = {stream for stream, _ in by_stream}
            if len(columns) == len(self.operands) and len(streams) == len(by_stream):
                return tuple(columns[number] for number in range(len(columns)))
        return None


def analyse(query: BoundMonitor) -> MonitorAnalysis:
    """Take a query apart."""
    names = [operand.name for operand in query.operands]
    values: list[Value] = []
    left: dict[Form, Numbers] = {}

    def number_of(reference: Reference) -> int:
        value = (names.index(reference.owner or ""), reference.name)
        if value not in values:
            values.append(value)
        return values.index(value)

    for constraint in query.constraints:
        plus = number_of(constraint.plus)
        minus = None if constraint.minus is None else number_of(constraint.minus)
        form, numbers = _form(constraint, plus, minus)
        left[form] = common(left.get(form, ALL), numbers)
    return MonitorAnalysis(query, tuple(values), tuple(left.items()))


def _form(constraint: BoundConstraint, plus: int, minus: int | None) -> tuple[Form, Numbers]:
    """The form of a constraint, its values in order, and the numbers that satisfy it."""
    numbers = satisfying(constraint.op, constraint.bound, constraint.absolute)
    if minus is None:
        return (plus, -1), numbers
    if plus < minus:
        return (plus, minus), numbers
    return (minus, plus), mirrored(numbers)


def _owners(part: Typed) -> set[str | None]:
    return {owner for owner, _ in references(part)}


def objection(analysis: MonitorAnalysis) -> Finding | None:
    """Why a query that is well-formed cannot be answered; None where it can."""
    query = analysis.query
    if analysis.dims > 2 and query.semantics == MAY and analysis.alternatives:
        message = f"{query.name} asks MAY of {len(query.operands)} names with a comparison that leaves two intervals"
        hint = "use <= or <, SEMANTICS EXPECTED, WITHIN 0, or ask about pairs"
        return Finding("not-supported", message, hint, query.span)
    together = max(map(len, analysis.together), default=0)
    is_normal = any(error.normal is not None for stream in query.streams for error in stream.errors)
    if query.semantics != MUST and together > (MOST_NORMAL if is_normal else MOST_TOGETHER):
        kind = "normal errors" if is_normal else "errors"
        message = (
            f"{query.name} has {together} values with {kind} that hang together by constraints, which takes too long"
        )
        hint = f"ask about {MOST_NORMAL if is_normal else MOST_TOGETHER} at most, or use SEMANTICS MUST"
        return Finding("not-supported", message, hint, query.span)
    return None


def reach(numbers: Numbers) -> tuple[float, float]:
    """The ends of the smallest interval around a set of numbers."""
    return (min((each.low for each in numbers), default=inf), max((each.high for each in numbers), default=-inf))
