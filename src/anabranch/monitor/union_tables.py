"""A condition with OR as input of the kernel.

Whether a constraint on exact values holds depends on the instant alone. So the instants are divided by these
constraints, and there are tables for each part, with a condition on the uncertain values that is left there. Its
matching instants are a union of cells, and its probability is the sum over cases that exclude each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from anabranch.monitor.alternatives import Form, all_choices, closed_choices
from anabranch.monitor.analysis import EXPECTED, MAY, MUST, MonitorAnalysis
from anabranch.monitor.formulas import (
    FALSE,
    Allowed,
    Formula,
    both,
    disjuncts,
    exclusive,
    mapped,
    negated,
    violations,
)
from anabranch.monitor.numbers import Interval, Numbers, essential
from anabranch.monitor.tables import ErrorParts, Tables, assembled, form_groups

#: One interval for each form that a cell constrains.
Cell = dict[Form, Interval]


def union_tables(
    analysis: MonitorAnalysis, formula: Formula, columns: Sequence[int], parts: Sequence[ErrorParts],
    uncertain: Sequence[bool],
) -> list[Tables]:  # fmt: skip
    """The tables of a condition with OR; the parameters are those of `make_tables`."""
    forms = [form for form, _ in analysis.forms]
    exact_forms = [form for form in forms if not any(uncertain[value] for value in form if value >= 0)]
    other_forms = [form for form in forms if form not in exact_forms]
    tables = []
    for exact, rest in exclusive(formula, exact_forms):
        probable = mapped(rest, lambda _, numbers: essential(numbers))
        if probable == FALSE:
            continue
        for exact_cell in all_choices(exact):
            cells = list(_cells(rest, probable, exact_cell, analysis.query.semantics))
            choices = [] if analysis.query.semantics == MUST else [case for case, _ in exclusive(probable, other_forms)]
            if cells:
                tables.append(_tables(analysis, columns, parts, uncertain, cells, choices))
    return tables


def _cells(rest: Formula, probable: Formula, exact: Cell, semantics: str) -> Iterator[Cell]:
    """The cells of predicted forms that match, where the exact forms are in a cell."""
    own: Allowed = {form: (interval,) for form, interval in exact.items()}
    if semantics in (EXPECTED, MAY):
        choices = all_choices if semantics == EXPECTED else closed_choices
        for allowed in disjuncts(rest if semantics == EXPECTED else probable):
            yield from choices(own | allowed)
        return
    # All is certain if its negation is not possible: each cell of the negation is missed by some bound.
    missed = [
        [bound for bound in violations(cell) if not bound.keys() & exact.keys()]
        for allowed in disjuncts(mapped(negated(probable), lambda _, numbers: essential(numbers)))
        for cell in closed_choices(own | allowed)
    ]
    certain = (both((own, *choice)) for choice in product(*missed))
    for cell in dict.fromkeys(tuple(cell.items()) for cell in certain if all(cell.values())):
        yield from all_choices(dict(cell))


def _tables(
    analysis: MonitorAnalysis, columns: Sequence[int], parts: Sequence[ErrorParts], uncertain: Sequence[bool],
    cells: Sequence[Cell], choices: Sequence[Allowed],
) -> Tables:  # fmt: skip
    """The tables of some cells and of cases that exclude each other.

    Each case has its own copy of the forms that it constrains, and a group without forms separates it from the next.
    """
    forms: list[Form] = []
    sets: list[Numbers] = []
    groups: list[set[int]] = []
    for case in choices:
        if groups:
            groups.append(set())
        begin, case_forms = len(forms), list(case)
        forms += case_forms
        sets += [essential(numbers) for numbers in case.values()]
        groups += [{begin + case_forms.index(form) for form in group} for group in form_groups(case_forms, uncertain)]
    forms += [form for form in dict.fromkeys(form for cell in cells for form in cell) if form not in forms]
    members = [[index in group for index in range(len(forms))] for group in groups]
    return assembled(analysis, columns, parts, uncertain, forms, cells, sets, members)
