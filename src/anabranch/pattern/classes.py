"""The classes of queries, and why a query belongs to one; `analysis.py` describes them."""

from __future__ import annotations

from anabranch.pattern.goal_tests import Place, names_in
from anabranch.pattern.query import BoundGoal, BoundPattern
from anabranch.pattern.safe_plan import Project, compile_plan, key_positions, shared_by

REGULAR, EXTENDED, SAFE, UNSAFE = "regular", "extended regular", "safe", "unsafe"


def classify(
    query: BoundPattern, independent: tuple[str, ...], bound: tuple[str, ...], places: list[Place]
) -> tuple[str, list[str], Project | None]:
    """The class of the query for one binding of the grouping variables, the reasons, and the safe plan."""
    goals = query.goals
    binding = [f"each binding of {', '.join(bound)} is a query of its own"] if bound else []
    for place in places:
        if place.goal is None:
            names = ", ".join(sorted(names_in(place.condition) - set(bound)))
            joined = f"a condition at goal {place.stated + 1} joins variables of different goals: {names}"
            return UNSAFE, [*binding, joined], None
    shared = [name for name in shared_by(goals) if name not in bound]
    if not shared:
        return REGULAR, [*binding, f"no {'other ' if bound else ''}variable is shared between goals"], None
    if set(shared) <= set(independent):
        return EXTENDED, [*binding, *(f"{name} is in the same key position of every goal" for name in shared)], None
    reason = [f"{name} is shared, but {_why_dependent(goals, name)}" for name in shared if name not in independent]
    if query.within is not None:
        timeless = "a safe plan does not know when a result began, but WITHIN needs it"
        return UNSAFE, [*binding, *reason, timeless], None
    plan = compile_plan(goals, frozenset(bound))
    if isinstance(plan, str):
        if_disjoint = compile_plan(goals, frozenset(bound), assume_disjoint=True)
        return UNSAFE, [*binding, *reason, plan], None if isinstance(if_disjoint, str) else if_disjoint
    prefix = "each such variable is only in a prefix that shares no key with the later goals"
    return SAFE, [*binding, *reason, prefix], plan


def _why_dependent(goals: tuple[BoundGoal, ...], name: str) -> str:
    for number, goal in enumerate(goals, start=1):
        if name not in goal.variables:
            return f"goal {number} does not have it"
        if goal.kleene and name not in goal.shared:
            return f"the + of goal {number} does not share it"
        if not all(key_positions(alternative, name) for alternative in goal.alternatives):
            return f"in goal {number} it is a value, not a key"
    return "goals of the same stream have it in different key positions"
