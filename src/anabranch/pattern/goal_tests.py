"""The tests of events: under which conditions an event matches a goal, and at which goal each condition is tested."""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.binding.typed import (
    Constant,
    Operation,
    Reference,
    Typed,
    conjunction,
    conjuncts,
    references,
    with_references,
)
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.pattern.query import BoundGoal, BoundPattern

#: The owner of references to the values of the grouping variables, in conditions of a goal.
BINDING = "binding"


@dataclass(frozen=True, slots=True)
class GoalTest:
    """The conditions under which an event matches an alternative of a goal, and is accepted by it.

    Conditions refer to columns of the event: `Reference(None, <lower-case column>)`.

    Attributes
    ----------
    goal : int
        The number of the goal (0-based).
    stream : int
        The number of the stream.
    match, accept : Typed or None
        The condition for a match, and the conditions of WHERE and `+<V | cond>` on the chosen event.
    feasible : Typed or None
        The conjuncts of `match` that use only key columns: a key that fails them in every goal has no effect.
    joins : tuple of Typed
        The conditions that also use variables of other goals, on variables: `Reference(None, <variable>)`.
    given : tuple of Typed
        The conditions that also use values of the binding: `Reference(BINDING, <variable>)`.
    agrees : tuple of str
        The grouping variables that are bound before: an event matches only if it has the values of the binding.
    binds : tuple of str
        The grouping variables that this goal binds first: an event is accepted only if it has the values of the
        binding, but matches with any.
    variable_columns : dict of str to str
        The lower-case column that binds each variable of the goal.
    """

    goal: int
    stream: int
    match: Typed | None
    accept: Typed | None
    feasible: Typed | None
    joins: tuple[Typed, ...]
    given: tuple[Typed, ...]
    agrees: tuple[str, ...]
    binds: tuple[str, ...]
    variable_columns: dict[str, str]


# ---------------------------------------------------------------- where conditions are tested


@dataclass(frozen=True, slots=True)
class Place:
    """Where a condition of WHERE or of a `+` is tested: at the event of one goal; None if it joins several goals.

    `stated` is the goal at which the language tests it. Given a binding of the grouping variables, a condition on the
    variables of an earlier goal can be tested there: a partial result that fails it has no answer of this binding.
    """

    condition: Typed
    stated: int
    goal: int | None


def places_of(goals: tuple[BoundGoal, ...], chain: frozenset[str], bound: frozenset[str], early: bool) -> list[Place]:
    """The place of each condition; without `early`, no condition is tested before all its variables are bound."""
    places = []
    for stated, goal in enumerate(goals):
        for condition in conditions_of(goal):
            names = names_in(condition) - chain
            free = names - bound
            known = [set[str]().union(*(before.exported for before in goals[: number + 1])) for number in range(stated)]
            earlier = (
                number
                for number in range(stated)
                if free <= goals[number].exported and (early or names <= known[number])
            )
            found = stated if free <= goal.variables else next(earlier, None)
            places.append(Place(condition, stated, found))
    return places


def conditions_of(goal: BoundGoal) -> tuple[Typed, ...]:
    """The conditions on an event that are tested after it was chosen as a successor."""
    return (*goal.selections, *conjuncts(goal.step_condition))


def names_in(condition: Typed) -> set[str]:
    """The variables or columns of a condition."""
    return {name for _, name in references(condition)}


# ---------------------------------------------------------------- conditions on the columns of an event


def goal_test(
    number: int, alternative: BoundGoal, query: BoundPattern, bound: tuple[str, ...], places: list[Place]
) -> GoalTest:
    """Rewrite the conditions of a goal on its variables into conditions on the columns of an event."""
    goal, stream = query.goals[number], alternative.stream
    binding: dict[str, Reference] = {}
    match: list[Typed] = []
    for column, term in zip((*stream.keys, *stream.values), alternative.terms, strict=True):
        reference = Reference(None, column.name.lower(), column.type, span=term.span)
        if isinstance(term, nodes.Literal):
            match.append(_equal(reference, Constant(term.value, column.type, term.span)))
        elif isinstance(term, nodes.Variable) and term.name in binding:
            match.append(_equal(reference, binding[term.name]))
        elif isinstance(term, nodes.Variable):
            binding[term.name] = reference
    match += [on_columns(part, binding) for part in conjuncts(alternative.filter)]
    tested = [_of_event(place, goal, binding, bound) for place in places if place.goal == number]
    keys = {column.name.lower() for column in stream.keys}
    on_key = [part for part in match if names_in(part) <= keys]
    stream_names = [stream.name.lower() for stream in query.streams]
    before = set[str]().union(*(earlier.exported for earlier in query.goals[:number]))
    return GoalTest(
        goal=number,
        stream=stream_names.index(stream.name.lower()),
        match=conjunction(tuple(match)),
        accept=conjunction(tuple(part for part in tested if not _given(part))),
        feasible=conjunction(tuple(on_key)),
        joins=tuple(place.condition for place in places if place.goal is None and place.stated == number),
        given=tuple(part for part in tested if _given(part)),
        agrees=tuple(name for name in bound if name in goal.variables and name in before),
        binds=tuple(name for name in bound if name in goal.exported - before),
        variable_columns={name: reference.name for name, reference in binding.items()},
    )


def _of_event(place: Place, goal: BoundGoal, columns: dict[str, Reference], bound: tuple[str, ...]) -> Typed:
    """A condition on the columns of the event at its place, and on the values of the binding."""
    moved = place.goal != place.stated

    def resolved(reference: Reference) -> Reference:
        # In an earlier goal, a variable of the same name is another one, if the goal does not export it.
        hidden = moved and reference.name in bound and reference.name not in goal.exported
        if reference.name not in columns or hidden:
            return replace(reference, owner=BINDING)
        return replace(columns[reference.name], span=reference.span)

    return with_references(place.condition, resolved)


def _given(condition: Typed) -> bool:
    """Whether a condition uses values of the binding."""
    return any(owner == BINDING for owner, _ in references(condition))


def _equal(left: Typed, right: Typed) -> Operation:
    return Operation("=", (left, right), Type.BOOLEAN, left.span)


def on_columns(tree: Typed, columns: dict[str, Reference]) -> Typed:
    """Replace each variable by the column that binds it."""
    return with_references(tree, lambda reference: replace(columns[reference.name], span=reference.span))
