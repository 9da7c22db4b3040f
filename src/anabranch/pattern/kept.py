"""Which variables partial results keep: those that later goals, unfoldings and conditions use."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from anabranch.pattern.query import BoundGoal


@dataclass(frozen=True, slots=True)
class Kept:
    """The variables that partial results and matches of a goal have, each sorted.

    Attributes
    ----------
    exposed : the variables of the goal that other goals, unfoldings or join conditions use
    waiting : what a result that ends with the goal keeps while it waits for the next goal
    repeating : what it keeps to unfold the goal again, if it has a `+`
    """

    exposed: tuple[str, ...]
    waiting: tuple[str, ...]
    repeating: tuple[str, ...]


def kept_variables(goals: Sequence[BoundGoal], joined: Sequence[Set[str]], fixed: Set[str]) -> tuple[Kept, ...]:
    """The variables of the partial results of each goal.

    Parameters
    ----------
    goals : the goals of the query
    joined : for each goal, the variables of the conditions at it that also use other goals
    fixed : the variables that have the same value in all partial results; only conditions may need it
    """
    kept = []
    used = [(goal.variables | at_goal) - fixed for goal, at_goal in zip(goals, joined, strict=True)]
    bound: set[str] = set()
    for number, (goal, at_goal) in enumerate(zip(goals, joined, strict=True)):
        used_later = set[str]().union(*used[number + 1 :]) if not goal.absent else set[str]()
        bound_after = bound | goal.exported
        exposed = goal.variables & ((bound | used_later | set(goal.shared)) - fixed | at_goal)
        again = used[number] | set(goal.shared) if goal.kleene else set()
        kept.append(
            Kept(
                tuple(sorted(exposed)),
                tuple(sorted((bound_after - fixed) & used_later)),
                tuple(sorted((bound_after - fixed) & (used_later | again))),
            )
        )
        bound = bound_after
    return tuple(kept)
