"""Which safe plans can be computed from intervals of instants."""

from __future__ import annotations

from anabranch.catalog import Model
from anabranch.pattern.analysis import PatternAnalysis
from anabranch.pattern.classes import SAFE
from anabranch.pattern.safe_plan import Seq


def by_plan(analysis: PatternAnalysis, if_disjoint: bool = False) -> Seq | None:
    """The sequence that the safe plan of a chain computes; None without a plan, or if intervals are not enough.

    With `if_disjoint`, also a plan for data in which no key feeds both of its sides.
    """
    plan = analysis.plan if if_disjoint or analysis.classification == SAFE else None
    if plan is None or not isinstance(plan.part, Seq) or why_not_by_intervals(analysis) is not None:
        return None
    return plan.part


def why_not_by_intervals(analysis: PatternAnalysis, inner: bool = False) -> str | None:
    """Why a safe plan cannot be computed from intervals only; None if it can.

    The outermost sequence takes any goal, but all matches of a goal with `+` must be accepted. For a nested sequence,
    and for the probability of being true during an interval (`inner`), intervals are enough only if the stream of its
    goal is not MARKOV and all its matches are accepted.
    """
    part = analysis.plan.part if analysis.plan is not None else None
    while isinstance(part, Seq):
        goal, tests = analysis.query.goals[part.goal], analysis.tests_of(part.goal)
        if (inner or goal.kleene) and any(test.accept is not None or test.given or test.binds for test in tests):
            return f"goal {part.goal + 1} can match events that WHERE rejects"
        if inner and any(alternative.stream.model is Model.MARKOV for alternative in goal.alternatives):
            return f"goal {part.goal + 1} reads a MARKOV stream in the middle of the query"
        inner, part = True, part.head.part
    return None
