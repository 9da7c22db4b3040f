"""Conditions with OR as formulas: constraints on forms and conditions on rows, joined by AND and OR.

A *form* is a value or the difference of two, and a constraint allows it a set of numbers (`numbers.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from anabranch.monitor.alternatives import Form
from anabranch.monitor.numbers import ALL, Interval, Numbers, common, complement, joined

#: For each form the numbers that it may have; all numbers for any other form.
Allowed = dict[Form, Numbers]


@dataclass(frozen=True, slots=True)
class FormIn:
    """A form is one of some numbers."""

    form: Form
    numbers: Numbers


@dataclass(frozen=True, slots=True)
class RowTest:
    """The condition on rows with this number is true."""

    number: int


@dataclass(frozen=True, slots=True)
class Every:
    """All parts are true; TRUE if there are none."""

    parts: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class Some:
    """At least one part is true; FALSE if there are none."""

    parts: tuple[Formula, ...]


Formula = FormIn | RowTest | Every | Some
TRUE, FALSE = Every(()), Some(())


def replaced(formula: Formula, change: Callable[[FormIn | RowTest], Formula]) -> Formula:
    """A formula with other constraints and row tests; TRUE or FALSE if that is known without the others."""
    if isinstance(formula, FormIn | RowTest):
        return change(formula)
    neutral, decisive = (TRUE, FALSE) if isinstance(formula, Every) else (FALSE, TRUE)
    parts = dict.fromkeys(replaced(part, change) for part in formula.parts)
    if decisive in parts:
        return decisive
    others = tuple(part for part in parts if part != neutral)
    return others[0] if len(others) == 1 else type(formula)(others)


def merged(formula: Every | Some) -> Formula:
    """A formula in which the constraints on a form are one constraint."""
    numbers: Allowed = {}
    others: list[Formula] = []
    for part in formula.parts:
        if not isinstance(part, FormIn):
            others.append(part)
        elif isinstance(formula, Every):
            numbers[part.form] = common(numbers.get(part.form, ALL), part.numbers)
        else:
            numbers[part.form] = joined((*numbers.get(part.form, ()), *part.numbers))
    parts = (*(FormIn(form, allowed) for form, allowed in numbers.items()), *others)
    return parts[0] if len(parts) == 1 else type(formula)(parts)


def with_rows(formula: Formula, truths: Mapping[int, bool]) -> Formula:
    """A formula for rows of which it is known which tests are true."""
    return replaced(formula, lambda leaf: leaf if isinstance(leaf, FormIn) else TRUE if truths[leaf.number] else FALSE)


def mapped(formula: Formula, change: Callable[[Form, Numbers], Numbers]) -> Formula:
    """A formula with other numbers; a constraint that allows all or none is TRUE or FALSE."""

    def leaf(part: FormIn | RowTest) -> Formula:
        if isinstance(part, RowTest):
            return part
        numbers = change(part.form, part.numbers)
        return TRUE if numbers == ALL else FormIn(part.form, numbers) if numbers else FALSE

    return replaced(formula, leaf)


def negated(formula: Formula) -> Formula:
    """The formula that is true where this one, without row tests, is not."""
    if isinstance(formula, FormIn):
        return FormIn(formula.form, complement(formula.numbers))
    return (Some if isinstance(formula, Every) else Every)(tuple(map(negated, _parts(formula))))


def _parts(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a conjunction or disjunction."""
    if isinstance(formula, Every | Some):
        return formula.parts
    raise TypeError("the rows are not known")


def constraints_of(formula: Formula) -> Iterator[FormIn]:
    """The constraints of a formula."""
    if isinstance(formula, FormIn):
        yield formula
    elif not isinstance(formula, RowTest):
        for part in formula.parts:
            yield from constraints_of(part)


def conjuncts_of(formula: Formula) -> tuple[Formula, ...]:
    """The parts that must all be true."""
    return formula.parts if isinstance(formula, Every) else (formula,)


def possible(formula: Formula, form: Form) -> Numbers:
    """Numbers outside of which a form makes the formula false, as far as its parts tell."""
    if isinstance(formula, FormIn):
        return formula.numbers if formula.form == form else ALL
    if isinstance(formula, RowTest):
        return ALL
    numbers: Numbers = ALL if isinstance(formula, Every) else ()
    for part in formula.parts:
        own = possible(part, form)
        numbers = common(numbers, own) if isinstance(formula, Every) else joined((*numbers, *own))
    return numbers


def count_alternatives(formula: Formula) -> int:
    """An upper bound for the number of disjuncts of a formula."""
    if isinstance(formula, FormIn | RowTest):
        return 1
    counts = [count_alternatives(part) for part in formula.parts]
    return math.prod(counts) if isinstance(formula, Every) else sum(counts)


def disjuncts(formula: Formula) -> list[Allowed]:
    """A formula without row tests as alternatives, which may overlap; each is a conjunction of constraints."""
    if isinstance(formula, FormIn):
        return [{formula.form: formula.numbers}] if formula.numbers else []
    if isinstance(formula, Some):
        return _without_covered([allowed for part in formula.parts for allowed in disjuncts(part)])
    choices = product(*map(disjuncts, _parts(formula)))
    return _without_covered([allowed for choice in choices if all((allowed := both(choice)).values())])


def both(parts: Iterable[Allowed]) -> Allowed:
    """The conjunction of alternatives."""
    result: Allowed = {}
    for part in parts:
        for form, numbers in part.items():
            result[form] = common(result.get(form, ALL), numbers)
    return result


def _without_covered(alternatives: list[Allowed]) -> list[Allowed]:
    """The alternatives that are not part of another one."""
    kept: list[Allowed] = []
    for number, one in enumerate(alternatives):
        others = [*kept, *alternatives[number + 1 :]]
        if not any(_covers(other, one) for other in others):
            kept.append(one)
    return kept


def _covers(one: Allowed, other: Allowed) -> bool:
    return all(form in other and common(numbers, other[form]) == other[form] for form, numbers in one.items())


def exclusive(formula: Formula, forms: Sequence[Form]) -> Iterator[tuple[Allowed, Formula]]:
    """All cases of some forms that exclude each other, each with the formula that is left of the other forms.

    A case says for each form that matters in which numbers it is. Cases in which the formula is false are left out.
    """
    if formula == FALSE:
        return
    if not forms:
        yield {}, formula
        return
    form = forms[0]
    sets = dict.fromkeys(part.numbers for part in constraints_of(formula) if part.form == form)
    for numbers in _cases(sets):
        for allowed, rest in exclusive(_given(formula, form, numbers), forms[1:]):
            yield ({form: numbers} if sets else {}) | allowed, rest


def _given(formula: Formula, form: Form, numbers: Numbers) -> Formula:
    """What is left of a formula if a form is in some numbers, which each of its constraints allows or excludes."""

    def left(other: Form, own: Numbers) -> Numbers:
        if other != form:
            return own
        return ALL if common(own, numbers) == numbers else ()

    return mapped(formula, left)


def _cases(sets: Iterable[Numbers]) -> list[Numbers]:
    """The numbers, separated by which of some sets they are in."""
    cases = [ALL]
    for numbers in sets:
        cases = [part for case in cases for part in (common(case, numbers), common(case, complement(numbers))) if part]
    return cases


def violations(cell: Mapping[Form, Interval]) -> list[Allowed]:
    """For each bound of a cell, the numbers that violate it."""
    return [{form: (beyond,)} for form, interval in cell.items() for beyond in complement((interval,))]
