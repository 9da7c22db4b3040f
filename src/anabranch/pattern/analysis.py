"""What a PATTERN query is: its class, with the reason in words, and how its events are routed.

The classes are those of the Lahar paper, checked against the model that holds here (the alternatives of one key
exclude each other, and a Markov key remembers):

- *regular*: no variable is shared between goals; one automaton reads every event;
- *extended regular*: every shared variable sits in a key position that all goals have in common, so each
  binding of these variables, a *chain*, reads events of its own and is independent of the others;
- *safe*: a variable is shared by a prefix only, and no key can feed both that prefix and what follows;
- *unsafe*: anything else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.catalog import Model, Stream
from anabranch.errors import Finding
from anabranch.language import nodes
from anabranch.language.bound import BoundGoal, BoundPattern
from anabranch.language.typed import (
    Constant,
    Member,
    Operation,
    Reference,
    Typed,
    conjunction,
    conjuncts,
    references,
)
from anabranch.language.types import Type

#: Columns of every answer; a grouping variable cannot have such a name.
RESULT_COLUMNS = ("t", "probability", "lower", "upper", "method")

REGULAR, EXTENDED, SAFE, UNSAFE = "regular", "extended regular", "safe", "unsafe"


@dataclass(frozen=True, slots=True)
class GoalTest:
    """What makes an event of stream number `stream` match a goal, and be accepted by it.

    Conditions refer to columns of the event: `Reference(None, <lower-case column>)`. `feasible` is the part of
    `match` that asks of
    the key alone: a key that fails it in every goal can never take part.
    """

    stream: int
    match: Typed | None
    accept: Typed | None
    feasible: Typed | None


@dataclass(frozen=True, slots=True)
class PatternAnalysis:
    """The class of a query, why, and what the operator needs to run it.

    Attributes
    ----------
    chain : tuple of str
        The variables that tell one chain from another; empty where one chain reads everything.
    chain_positions : tuple of tuple of int
        For each stream, the key position that holds each chain variable.
    group_by : tuple of (str, int)
        The name of each grouping column and its place in `chain`.
    single : bool
        Whether every chain is fed by exactly one key of one stream.
    tests : tuple of GoalTest
        One a goal, in order.
    """

    query: BoundPattern
    classification: str
    why: tuple[str, ...]
    chain: tuple[str, ...]
    chain_positions: tuple[tuple[int, ...], ...]
    group_by: tuple[tuple[str, int], ...]
    single: bool
    tests: tuple[GoalTest, ...]

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams of the query, in the order in which tests number them."""
        return self.query.streams

    @property
    def kleene(self) -> tuple[bool, ...]:
        """For each goal, whether it carries a `+`."""
        return tuple(goal.kleene for goal in self.query.goals)

    def needed(self, stream: int) -> Typed | None:
        """What a key of a stream must meet to take part in any answer; None where every key can."""
        parts = tuple(test.feasible for test in self.tests if test.stream == stream)
        conditions = tuple(part for part in parts if part is not None)
        if len(conditions) < len(parts):
            return None
        return conditions[0] if len(conditions) == 1 else Operation("or", conditions, Type.BOOLEAN)

    @property
    def markov(self) -> bool:
        """Whether some stream remembers."""
        return any(stream.model is Model.MARKOV for stream in self.streams)


def analyse(query: BoundPattern) -> tuple[PatternAnalysis, list[Finding]]:
    """Classify a query; the findings say what in it cannot be asked at all."""
    query = _name_lone_wildcards(query)
    goals = query.goals
    nonlocal_conditions = _nonlocal(goals)
    independent = [name for name in _variables(goals) if _independent(goals, name)]
    shared = _shared(goals)
    findings = _group_findings(query, independent)
    # The chain takes every independent variable, not just the shared ones: more chains, each smaller.
    chain = tuple(independent) if set(shared) <= set(independent) else ()
    classification, why = _classify(goals, shared, independent, nonlocal_conditions)
    analysis = PatternAnalysis(
        query=query,
        classification=classification,
        why=tuple(why),
        chain=chain,
        chain_positions=tuple(_positions(goals, stream, chain) for stream in query.streams),
        group_by=tuple((written, chain.index(name)) for written, name in query.group_by if name in chain),
        single=len(query.streams) == 1 and len(chain) > 0 and _covers_key(goals, query.streams[0], chain),
        tests=tuple(_goal_test(goal, query.streams) for goal in goals) if not nonlocal_conditions else (),
    )
    return analysis, findings


def _group_findings(query: BoundPattern, independent: list[str]) -> list[Finding]:
    """What is wrong with the GROUP BY."""
    findings = []
    choices = f" (here: {', '.join(name for name in independent if not name.startswith('_'))})" if independent else ""
    for written, name in query.group_by:
        if name not in independent:
            message = f"GROUP BY {written}: the query is not independent on {written}"
            hint = f"group by variables that stand in the same key position of every goal{choices}"
            findings.append(Finding("group-not-independent", message, hint, query.span))
        elif name in RESULT_COLUMNS:
            message = f"GROUP BY {written}: every answer has a column {name} already"
            findings.append(Finding("group-name", message, "give the variable another name", query.span))
    return findings


def _name_lone_wildcards(query: BoundPattern) -> BoundPattern:
    """In a query of one plain goal each key is a chain of its own, also where nobody named it."""
    if len(query.goals) != 1 or query.goals[0].kleene:
        return query
    goal = query.goals[0]
    terms = tuple(
        nodes.Variable(f"_{position}", span=term.span)
        if isinstance(term, nodes.Wildcard) and position < len(goal.stream.keys)
        else term
        for position, term in enumerate(goal.terms)
    )
    return replace(query, goals=(replace(goal, terms=terms),))


# ---------------------------------------------------------------- the class


def _variables(goals: tuple[BoundGoal, ...]) -> list[str]:
    """Every variable, in order of first appearance."""
    found: dict[str, None] = {}
    for goal in goals:
        for term in goal.terms:
            if isinstance(term, nodes.Variable):
                found[term.name] = None
    return list(found)


def _shared(goals: tuple[BoundGoal, ...]) -> list[str]:
    """The variables that join goals, or the unfoldings of a Kleene plus."""
    count = {name: sum(name in goal.variables for goal in goals) for name in _variables(goals)}
    return [name for name in count if count[name] > 1 or any(name in goal.shared for goal in goals)]


def _key_positions(goal: BoundGoal, name: str) -> set[int]:
    return {
        position
        for position, term in enumerate(goal.key_terms)
        if isinstance(term, nodes.Variable) and term.name == name
    }


def _independent(goals: tuple[BoundGoal, ...], name: str) -> bool:
    """Syntactic independence: different values of the variable read different keys.

    It must be in a key position of every goal, at a place that all goals of one stream have in common,
    and stay the same over the unfoldings of a Kleene plus.
    """
    places: dict[str, set[int]] = {}
    for goal in goals:
        if goal.kleene and name not in goal.shared:
            return False
        here = _key_positions(goal, name)
        stream = goal.stream.name.lower()
        places[stream] = places[stream] & here if stream in places else here
    return all(places.values())


def _nonlocal(goals: tuple[BoundGoal, ...]) -> list[tuple[int, Typed]]:
    """Conditions that need variables of more than one goal, with the number of the goal they apply at."""
    found = []
    for number, goal in enumerate(goals):
        for condition in (*goal.selections, *conjuncts(goal.step_condition)):
            if not {name for _, name in references(condition)} <= goal.variables:
                found.append((number, condition))
    return found


def _classify(
    goals: tuple[BoundGoal, ...],
    shared: list[str],
    independent: list[str],
    nonlocal_conditions: list[tuple[int, Typed]],
) -> tuple[str, list[str]]:
    if nonlocal_conditions:
        number, condition = nonlocal_conditions[0]
        names = ", ".join(sorted({name for _, name in references(condition)}))
        return UNSAFE, [f"a condition joins {names}, which goal {number + 1} does not bind alone"]
    if not shared:
        return REGULAR, ["no variable is shared between goals"]
    if set(shared) <= set(independent):
        return EXTENDED, [f"{name} stands in the same key position of every goal" for name in shared]
    reason = [f"{name} is shared, but {_why_dependent(goals, name)}" for name in shared if name not in independent]
    refusal = _why_unsafe(goals, frozenset())
    if refusal is None:
        return SAFE, [*reason, "each such variable is confined to a prefix that shares no key with what follows"]
    return UNSAFE, [*reason, refusal]


def _why_dependent(goals: tuple[BoundGoal, ...], name: str) -> str:
    for number, goal in enumerate(goals, start=1):
        if name not in goal.variables:
            return f"goal {number} does not have it"
        if goal.kleene and name not in goal.shared:
            return f"the + of goal {number} does not share it"
        if not _key_positions(goal, name):
            return f"in goal {number} it is a value, not a key"
    return "goals of one stream have it in different key positions"


def _why_unsafe(goals: tuple[BoundGoal, ...], fixed: frozenset[str]) -> str | None:
    """Why this prefix has no safe plan once the `fixed` variables are given; None where it has one."""
    fixed |= {name for name in _variables(goals) if _independent(goals, name)}
    if not set(_shared(goals)) - fixed:
        return None
    head, last = goals[:-1], goals[-1]
    number = len(goals)
    if not head:
        return f"goal {number} repeats a value by its +"
    for name in sorted(last.variables - fixed):
        if any(name in goal.variables for goal in head):
            return f"{name} joins goal {number} to an earlier one, not as a common key"
    for earlier, goal in enumerate(head, start=1):
        if goal.stream.name.lower() == last.stream.name.lower() and not _distinct_constants(goal, last):
            return f"one key of {last.stream.name} can feed both goal {earlier} and goal {number}"
    return _why_unsafe(head, fixed)


def _distinct_constants(first: BoundGoal, second: BoundGoal) -> bool:
    return any(
        isinstance(one, nodes.Literal) and isinstance(other, nodes.Literal) and one.value != other.value
        for one, other in zip(first.key_terms, second.key_terms, strict=True)
    )


# ---------------------------------------------------------------- routing and symbols


def _positions(goals: tuple[BoundGoal, ...], stream: Stream, chain: tuple[str, ...]) -> tuple[int, ...]:
    """Where each chain variable stands in the key of `stream`: the first place all its goals have in common."""
    own = [goal for goal in goals if goal.stream.name.lower() == stream.name.lower()]
    return tuple(min(set.intersection(*(_key_positions(goal, name) for goal in own))) for name in chain)


def _covers_key(goals: tuple[BoundGoal, ...], stream: Stream, chain: tuple[str, ...]) -> bool:
    return set(_positions(goals, stream, chain)) == set(range(len(stream.keys)))


def _goal_test(goal: BoundGoal, streams: tuple[Stream, ...]) -> GoalTest:
    """Rewrite what a goal asks of its variables into conditions on the columns of an event."""
    columns = (*goal.stream.keys, *goal.stream.values)
    place: dict[str, Reference] = {}
    demands: list[Typed] = []
    for column, term in zip(columns, goal.terms, strict=True):
        here = Reference(None, column.name.lower(), column.type, span=term.span)
        if isinstance(term, nodes.Literal):
            demands.append(_equal(here, Constant(term.value, column.type, term.span)))
        elif isinstance(term, nodes.Variable) and term.name in place:
            demands.append(_equal(here, place[term.name]))
        elif isinstance(term, nodes.Variable):
            place[term.name] = here
    demands += [_on_columns(part, place) for part in conjuncts(goal.filter)]
    accept = [_on_columns(part, place) for part in (*goal.selections, *conjuncts(goal.step_condition))]
    keys = {column.name.lower() for column in goal.stream.keys}
    on_key = [part for part in demands if {name for _, name in references(part)} <= keys]
    numbers = [stream.name.lower() for stream in streams]
    return GoalTest(
        stream=numbers.index(goal.stream.name.lower()),
        match=conjunction(tuple(demands)),
        accept=conjunction(tuple(accept)),
        feasible=conjunction(tuple(on_key)),
    )


def _equal(left: Typed, right: Typed) -> Operation:
    return Operation("=", (left, right), Type.BOOLEAN, left.span)


def _on_columns(tree: Typed, place: dict[str, Reference]) -> Typed:
    if isinstance(tree, Reference):
        return replace(place[tree.name], span=tree.span)
    if isinstance(tree, Operation | Member):
        return replace(tree, arguments=tuple(_on_columns(part, place) for part in tree.arguments))
    return tree
