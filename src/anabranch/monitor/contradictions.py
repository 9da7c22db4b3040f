"""Queries that have no answers whatever the data are, because their constraints contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from anabranch.errors import Finding
from anabranch.monitor.alternatives import Form, closed_choices
from anabranch.monitor.analysis import MOST_ALTERNATIVES, MUST, MonitorAnalysis, analyse
from anabranch.monitor.areas import contradiction_of_areas
from anabranch.monitor.formulas import count_alternatives, disjuncts, mapped
from anabranch.monitor.numbers import Numbers, essential
from anabranch.monitor.query import BoundConstraint

#: A MUST bound that is the sum of decimal errors may be too small by a rounding error.
_ROUNDING = 1e-12


def contradiction(analysis: MonitorAnalysis) -> Finding | None:
    """Why no values satisfy the constraints of a query; None if some may."""
    query = analysis.query
    if query.junctions:
        return _contradiction_of_formula(analysis) or contradiction_of_areas(analysis)
    if any(constraint.bound is None for constraint in query.constraints):
        return None
    for with_errors in (False, True):
        if not _is_consistent(analysis, with_errors):
            needed = _irreducible(analysis, with_errors)
            texts = ", ".join(_text(analysis, constraint) for constraint in needed)
            reason, hint = "the constraints contradict each other", "relax or remove one of them"
            if with_errors:
                reason, hint = "a single number has probability 0, because the values have errors", "allow a range"
            elif len(needed) == 1:
                reason, hint = "no values satisfy a constraint", "change or remove it"
            return Finding("contradiction", f"{query.name}: {reason}: {texts}", hint, needed[-1].span)
    never = _never_certain(analysis) if query.semantics == MUST else None
    return never or contradiction_of_areas(analysis)


def _contradiction_of_formula(analysis: MonitorAnalysis) -> Finding | None:
    """The same for a condition with OR: all its alternatives are contradictory. Too many of them are not tried."""
    formula = analysis.formula_of_best_rows
    if count_alternatives(formula) > MOST_ALTERNATIVES:
        return None
    probable = mapped(
        formula, lambda form, numbers: essential(numbers) if 0 < analysis.error_of(form) < inf else numbers
    )
    for condition in (formula, probable):
        if not any(True for allowed in disjuncts(condition) for _ in closed_choices(allowed)):
            reason = "no values satisfy WHERE" if condition is formula else "WHERE has probability 0"
            message = f"{analysis.query.name}: {reason}, because its alternatives contradict themselves"
            return Finding("contradiction", message, "relax or remove some of the constraints", analysis.query.span)
    return None


def _is_consistent(analysis: MonitorAnalysis, with_errors: bool) -> bool:
    """Whether some true values satisfy all constraints; with errors, other values than single numbers."""
    allowed = {
        form: essential(numbers) if with_errors and 0 < analysis.error_of(form) < inf else numbers
        for form, numbers in analysis.forms
    }
    return any(True for _ in closed_choices(allowed))


def _irreducible(analysis: MonitorAnalysis, with_errors: bool) -> Sequence[BoundConstraint]:
    """Constraints that contradict each other, and do not without any one of them."""
    needed = list(analysis.query.constraints)
    for constraint in analysis.query.constraints:
        others = [other for other in needed if other is not constraint]
        if others and not _is_consistent(analyse(replace(analysis.query, constraints=tuple(others))), with_errors):
            needed = others
    return needed


def _never_certain(analysis: MonitorAnalysis) -> Finding | None:
    """A form that must be in a range that is narrower than its errors."""
    query = analysis.query
    for form, numbers in analysis.forms:
        error = analysis.error_of(form)
        if 0 < error < inf and _width(numbers) < 2 * error * (1 - _ROUNDING):
            constraint = next(c for c in query.constraints if _is_about(analysis, c, form))
            message = (
                f"{query.name}: {_text(analysis, constraint)} is never certain (SEMANTICS MUST): the true value may be "
                f"{error:g} off, in both directions"
            )
            return Finding("contradiction", message, "allow a wider range, or use SEMANTICS MAY", constraint.span)
    return None


def _width(numbers: Numbers) -> float:
    return max((interval.high - interval.low for interval in essential(numbers)), default=0.0)


def _is_about(analysis: MonitorAnalysis, constraint: BoundConstraint, form: Form) -> bool:
    sides = [side for side in (constraint.plus, constraint.minus) if side is not None]
    values = {(analysis.operand_number(side.owner), side.columns) for side in sides}
    return values == {analysis.values[value] for value in form if value >= 0}


def _text(analysis: MonitorAnalysis, constraint: BoundConstraint) -> str:
    """A constraint as a query states it."""
    sides = [side for side in (constraint.plus, constraint.minus) if side is not None]
    numbers = [analysis.values.index((analysis.operand_number(side.owner), side.columns)) for side in sides]
    terms = analysis.text_of((numbers[0], numbers[1] if len(numbers) > 1 else -1))
    return f"{f'ABS({terms})' if constraint.absolute else terms} {constraint.op} {constraint.bound:g}"
