"""Which goals a variable joins, and the safe plan of a query: a tree of reg, seq and projection.

A *regular* part (`Reg`) is read by an automaton for each binding of its variables. `Seq` puts a goal after a part that
shares no key with it, so both are independent. `Project` says that some binding of its variables holds; the bindings
are independent. Selections apply at the goals they belong to.

The precondition of `Seq` is stricter than the Lahar paper's: it does not suffice that no event matches both sides,
because the alternatives of one key exclude each other and a Markov key remembers. No *key* may feed both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.pattern.query import BoundGoal

Goals = tuple[BoundGoal, ...]


@dataclass(frozen=True, slots=True)
class Reg:
    """The first `goals` goals of the query, which share nothing once the projected variables are given."""

    goals: int


@dataclass(frozen=True, slots=True)
class Seq:
    """A part of the query, then goal number `goal` (0-based)."""

    head: Project
    goal: int


@dataclass(frozen=True, slots=True)
class Project:
    """A part of the query, for some binding of the variables, if there are any."""

    variables: tuple[str, ...]
    part: Reg | Seq


def compile_plan(goals: Goals, fixed: frozenset[str] = frozenset()) -> Project | str:
    """The safe plan of these goals once the `fixed` variables are given, or why there is none, in words."""
    independent = tuple(name for name in variables_of(goals) if name not in fixed and is_independent(goals, name))
    given = fixed.union(independent)
    part: Reg | Seq
    if set(shared_by(goals)) <= given:
        part = Reg(len(goals))
    else:
        refusal = _why_no_seq(goals, given)
        if refusal is not None:
            return refusal
        head = compile_plan(goals[:-1], given)
        if isinstance(head, str):
            return head
        part = Seq(head, len(goals) - 1)
    return Project(independent, part)


def _why_no_seq(goals: Goals, given: frozenset[str]) -> str | None:
    """Why the last goal cannot be put after the others; None where it can."""
    head, last = goals[:-1], goals[-1]
    number = len(goals)
    repeated = sorted(set(last.shared) - given)
    if repeated:
        return f"the + of goal {number} repeats {repeated[0]}"
    for name in sorted(last.variables - given):
        if any(name in goal.variables for goal in head):
            return f"{name} joins goal {number} to an earlier one, not as a common key"
    for earlier, goal in enumerate(head, start=1):
        if goal.stream.name.lower() == last.stream.name.lower() and not _distinct_constants(goal, last):
            return f"one key of {last.stream.name} can feed both goal {earlier} and goal {number}"
    return None


def _distinct_constants(first: BoundGoal, second: BoundGoal) -> bool:
    return any(
        isinstance(one, nodes.Literal) and isinstance(other, nodes.Literal) and one.value != other.value
        for one, other in zip(first.key_terms, second.key_terms, strict=True)
    )


# ---------------------------------------------------------------- variables


def variables_of(goals: Goals) -> list[str]:
    """Every variable, in order of first appearance."""
    names = (term.name for goal in goals for term in goal.terms if isinstance(term, nodes.Variable))
    return list(dict.fromkeys(names))


def shared_by(goals: Goals) -> list[str]:
    """The variables that join goals, or the unfoldings of a Kleene plus."""
    count = {name: sum(name in goal.variables for goal in goals) for name in variables_of(goals)}
    return [name for name in count if count[name] > 1 or any(name in goal.shared for goal in goals)]


def key_positions(goal: BoundGoal, name: str) -> set[int]:
    """Where a variable stands among the key terms of a goal."""
    return {
        position
        for position, term in enumerate(goal.key_terms)
        if isinstance(term, nodes.Variable) and term.name == name
    }


def common_positions(goals: Goals, stream: Stream, names: Iterable[str]) -> tuple[int, ...]:
    """Where each variable stands in the key of `stream`: the first place all its goals have in common."""
    own = [goal for goal in goals if goal.stream.name.lower() == stream.name.lower()]
    return tuple(min(set.intersection(*(key_positions(goal, name) for goal in own))) for name in names)


def is_independent(goals: Goals, name: str) -> bool:
    """Syntactic independence: different values of the variable read different keys.

    It must be in a key position of every goal, at a place that all goals of one stream have in common, and stay the
    same over the unfoldings of a Kleene plus.
    """
    places: dict[str, set[int]] = {}
    for goal in goals:
        if goal.kleene and name not in goal.shared:
            return False
        here = key_positions(goal, name)
        stream = goal.stream.name.lower()
        places[stream] = places[stream] & here if stream in places else here
    return all(places.values())
