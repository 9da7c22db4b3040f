"""Finds the variables that join goals, and compiles the safe plan of a query: a tree of reg, seq and projection.

A *regular* part (`Reg`) is run by one automaton per binding of its variables. `Seq` adds a goal after a part that has
no key in common with it, so both are independent. `Project` is true if its part is true for some binding of its
variables; the bindings are independent. Selections are applied at their goals.

The precondition of `Seq` is stricter than in the Lahar paper: it is not enough that no event matches both sides,
because the alternatives of one key exclude each other, and a Markov key depends on its past. No *key* may feed both.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from anabranch.binding.constants import contradictory
from anabranch.binding.typed import Constant, Operation, Reference, Typed, conjuncts, references, with_references
from anabranch.catalog import Stream
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.pattern.query import BoundGoal

Goals = tuple[BoundGoal, ...]


@dataclass(frozen=True, slots=True)
class Reg:
    """The first `goals` goals of the query, which share no variables except the projected ones."""

    goals: int


@dataclass(frozen=True, slots=True)
class Seq:
    """A part of the query, followed by the goal with index `goal` (0-based)."""

    head: Project
    goal: int


@dataclass(frozen=True, slots=True)
class Project:
    """A part of the query for some binding of the variables; `variables` may be empty."""

    variables: tuple[str, ...]
    part: Reg | Seq


def compile_plan(goals: Goals, fixed: frozenset[str] = frozenset(), assume_disjoint: bool = False) -> Project | str:
    """The safe plan of these goals for given values of the `fixed` variables, or the reason why there is none.

    With `assume_disjoint`, no key feeds both sides of a `Seq`, as far as the query allows it: the data must show it.
    """
    independent = tuple(name for name in variables_of(goals) if name not in fixed and is_independent(goals, name))
    now_fixed = fixed.union(independent)
    part: Reg | Seq
    if set(shared_by(goals)) <= now_fixed:
        part = Reg(len(goals))
    else:
        refusal = _why_no_seq(goals, now_fixed) or (None if assume_disjoint else _why_not_disjoint(goals))
        if refusal is not None:
            return refusal
        head = compile_plan(goals[:-1], now_fixed, assume_disjoint)
        if isinstance(head, str):
            return head
        part = Seq(head, len(goals) - 1)
    return Project(independent, part)


def _why_no_seq(goals: Goals, fixed: frozenset[str]) -> str | None:
    """Why the last goal cannot be a `Seq` after the other goals; None if it can."""
    head, last = goals[:-1], goals[-1]
    number = len(goals)
    if head and head[-1].absent:
        return f"goal {number - 1} is a NOT before the last goal, so the times of both decide"
    repeated = sorted(set(last.shared) - fixed)
    if repeated:
        return f"the + of goal {number} repeats {repeated[0]}"
    for name in sorted(last.variables - fixed):
        if any(name in goal.variables for goal in head):
            return f"{name} joins goal {number} to an earlier one, not as a common key"
    return None


def _why_not_disjoint(goals: Goals) -> str | None:
    """Why one key may have events for the last goal and for an earlier one; None if that is impossible."""
    head = goals[:-1]
    for number, goal in enumerate(head):
        for alternative, last in itertools.product(goal.alternatives, goals[-1].alternatives):
            if alternative.stream.name.lower() != last.stream.name.lower():
                continue
            of_head = (*_match_conditions(alternative), *_result_conditions(head, number, alternative))
            if not contradictory((*of_head, *_match_conditions(last))):
                return f"one key of {last.stream.name} can feed both goal {number + 1} and goal {len(goals)}"
    return None


def _key_columns(goal: BoundGoal) -> dict[str, Reference]:
    """The key column of each variable that has one."""
    columns: dict[str, Reference] = {}
    for column, term in zip(goal.stream.keys, goal.key_terms, strict=True):
        if isinstance(term, nodes.Variable):
            columns.setdefault(term.name, Reference(None, column.name.lower(), column.type))
    return columns


def _match_conditions(goal: BoundGoal) -> list[Typed]:
    """The conditions on the key columns of every event that matches a goal."""
    columns = _key_columns(goal)
    constants: list[Typed] = [
        Operation(
            "=", (Reference(None, column.name.lower(), column.type), Constant(term.value, column.type)), Type.BOOLEAN
        )
        for column, term in zip(goal.stream.keys, goal.key_terms, strict=True)
        if isinstance(term, nodes.Literal)
    ]
    return constants + _on_columns(conjuncts(goal.filter), columns)


def _result_conditions(goals: Goals, number: int, alternative: BoundGoal) -> list[Typed]:
    """The conditions on the key columns of every event at an alternative that can have an effect on all `goals`.

    An event has an effect only on results with its values of the variables that are bound before. So it has none if a
    condition of any goal excludes these values. The same is true at the first goal, which ends no other result, and for
    variables on which all goals are independent.
    """
    goal = goals[number]
    before = set[str]().union(*(earlier.exported for earlier in goals[:number]))
    columns = {
        name: column
        for name, column in _key_columns(alternative).items()
        if name in goal.exported and (number == 0 or name in before or is_independent(goals, name))
    }
    conditions: list[Typed] = []
    for other in goals:
        # Which alternative of another goal is matched is not known.
        if other.others:
            conditions += _on_columns(other.selections, columns)
            continue
        exported = {name: column for name, column in columns.items() if name in other.exported}
        conditions += _on_columns(conjuncts(other.filter), exported) + _on_columns(other.selections, columns)
    return conditions


def _on_columns(conditions: Iterable[Typed], columns: dict[str, Reference]) -> list[Typed]:
    """The conditions that use only variables with a column, on the columns."""
    usable = (condition for condition in conditions if _names(condition) <= columns.keys())
    return [with_references(condition, lambda reference: columns[reference.name]) for condition in usable]


def _names(condition: Typed) -> set[str]:
    return {name for _, name in references(condition)}


# ---------------------------------------------------------------- variables


def variables_of(goals: Goals) -> list[str]:
    """Every variable, in the order of first appearance."""
    names = (term.name for goal in goals for term in goal.terms if isinstance(term, nodes.Variable))
    return list(dict.fromkeys(names))


def _alternatives(goals: Goals) -> Iterator[BoundGoal]:
    """The alternatives of all goals."""
    return (alternative for goal in goals for alternative in goal.alternatives)


def shared_by(goals: Goals) -> list[str]:
    """The variables that join goals, or unfoldings of a Kleene plus.

    A variable of a NOT that no earlier goal exports is free, and joins nothing.
    """
    exported = set[str]().union(*(goal.exported for goal in goals))
    joining = [goal.variables & exported if goal.absent else goal.variables for goal in goals]
    count = {name: sum(name in names for names in joining) for name in variables_of(goals)}
    return [name for name in count if count[name] > 1 or any(name in goal.shared for goal in goals)]


def key_positions(goal: BoundGoal, name: str) -> set[int]:
    """The key positions of a goal that have the variable."""
    return {
        position
        for position, term in enumerate(goal.key_terms)
        if isinstance(term, nodes.Variable) and term.name == name
    }


def common_positions(goals: Goals, stream: Stream, names: Iterable[str]) -> tuple[int, ...]:
    """The key position of each variable in `stream`: the first one that all goals of the stream have in common."""
    stream_goals = [goal for goal in _alternatives(goals) if goal.stream.name.lower() == stream.name.lower()]
    return tuple(min(set.intersection(*(key_positions(goal, name) for goal in stream_goals))) for name in names)


def is_independent(goals: Goals, name: str) -> bool:
    """Whether the goals are syntactically independent on a variable: different values of it read different keys.

    It must be in a key position of every goal, in the same position for all goals of one stream, and shared by the
    unfoldings of a Kleene plus.
    """
    common: dict[str, set[int]] = {}
    if any(goal.kleene and name not in goal.shared for goal in goals):
        return False
    for goal in _alternatives(goals):
        positions = key_positions(goal, name)
        stream = goal.stream.name.lower()
        common[stream] = common[stream] & positions if stream in common else positions
    return all(common.values())
