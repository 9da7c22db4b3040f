"""What a PATTERN query is: its class, with the reason in words, and how its events are routed.

The classes are those of the Lahar paper, checked against the model that holds here (the alternatives of one key
exclude each other, and a Markov key remembers):

- *regular*: no variable is shared between goals; one automaton reads every event;
- *extended regular*: every shared variable sits in a key position that all goals have in common, so each
  binding of these variables, a *chain*, reads events of its own and is independent of the others;
- *safe*: a variable is shared by a prefix only, and no key can feed both that prefix and what follows;
- *unsafe*: anything else.

Regular and extended regular queries can stream. The others are answered over archives: safe ones by their plan
(`safe_plan.py`), the rest by the set of partial results (`machine.py`), exactly where that is small, else by sampling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from anabranch.binding.typed import (
    Constant,
    Operation,
    Reference,
    Typed,
    conjunction,
    conjuncts,
    disjunction,
    references,
    with_references,
)
from anabranch.catalog import Model, Stream
from anabranch.errors import Finding
from anabranch.language import nodes
from anabranch.language.types import Type
from anabranch.pattern.query import BoundGoal, BoundPattern
from anabranch.pattern.safe_plan import (
    Project,
    Seq,
    common_positions,
    compile_plan,
    is_independent,
    key_positions,
    shared_by,
    variables_of,
)

REGULAR, EXTENDED, SAFE, UNSAFE = "regular", "extended regular", "safe", "unsafe"


@dataclass(frozen=True, slots=True)
class GoalTest:
    """What makes an event of stream number `stream` match a goal, and be accepted by it.

    Conditions refer to columns of the event: `Reference(None, <lower-case column>)`.

    Attributes
    ----------
    feasible : Typed or None
        The part of `match` that asks of the key alone: a key that fails it in every goal can never take part.
    joins : tuple of Typed
        What is asked of a match beyond its own goal, on variables: `Reference(None, <variable>)`.
    places : dict from a variable of the goal to the lower-case column that binds it
    """

    stream: int
    match: Typed | None
    accept: Typed | None
    feasible: Typed | None
    joins: tuple[Typed, ...]
    places: dict[str, str]


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
    plan : Project or None
        The safe plan of a safe query.
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
    plan: Project | None
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
        any_goal = disjunction([test.feasible for test in self.tests if test.stream == stream])
        return conjunction((*self._of_chain(stream), *([] if any_goal is None else [any_goal])))

    def _of_chain(self, stream: int) -> tuple[Typed, ...]:
        """What WHERE asks of the chain's variables alone: a chain that fails it has no answer."""
        keys = self.streams[stream].keys
        place = {
            name: Reference(None, keys[position].name.lower(), keys[position].type)
            for name, position in zip(self.chain, self.chain_positions[stream], strict=True)
        }
        asked = (condition for goal in self.query.goals for condition in _conditions(goal))
        own = (each for each in asked if {name for _, name in references(each)} <= place.keys())
        return tuple(_on_columns(each, place) for each in own if references(each))

    @property
    def markov(self) -> bool:
        """Whether some stream remembers."""
        return any(stream.model is Model.MARKOV for stream in self.streams)

    @property
    def can_stream(self) -> bool:
        """Whether what it must remember does not grow with the past."""
        return self.classification in (REGULAR, EXTENDED)

    @property
    def surely_exact(self) -> bool:
        """Whether it can be answered exactly however large the data are, without looking at them."""
        return self.can_stream and (self.single or not self.markov)


def analyse(query: BoundPattern) -> PatternAnalysis:
    """Say what a query is."""
    query = _name_lone_wildcards(query)
    goals = query.goals
    # The chain takes every independent variable, not just the shared ones: more chains, each smaller.
    chain = tuple(name for name in variables_of(goals) if is_independent(goals, name))
    classification, why, plan = _classify(goals, chain)
    return PatternAnalysis(
        query=query,
        classification=classification,
        why=tuple(why),
        chain=chain,
        chain_positions=tuple(common_positions(goals, stream, chain) for stream in query.streams),
        group_by=tuple((written, chain.index(name)) for written, name in query.group_by if name in chain),
        single=len(query.streams) == 1 and len(chain) > 0 and _covers_key(goals, query.streams[0], chain),
        plan=plan,
        tests=tuple(_goal_test(goal, query.streams) for goal in goals),
    )


def objections(analysis: PatternAnalysis) -> list[Finding]:
    """What stands against a query: a GROUP BY that means nothing."""
    query, independent, findings = analysis.query, analysis.chain, []
    choices = f" (here: {', '.join(name for name in independent if not name.startswith('_'))})" if independent else ""
    for written, name in query.group_by:
        if name not in independent:
            message = f"GROUP BY {written}: the query is not independent on {written}"
            hint = f"group by variables that stand in the same key position of every goal{choices}"
            findings.append(Finding("group-not-independent", message, hint, query.span))
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


def _classify(goals: tuple[BoundGoal, ...], independent: tuple[str, ...]) -> tuple[str, list[str], Project | None]:
    for number, goal in enumerate(goals, start=1):
        for condition in _conditions(goal):
            if not _is_local(condition, goal):
                names = ", ".join(sorted({name for _, name in references(condition)}))
                return UNSAFE, [f"a condition joins {names}, which goal {number} does not bind alone"], None
    shared = shared_by(goals)
    if not shared:
        return REGULAR, ["no variable is shared between goals"], None
    if set(shared) <= set(independent):
        return EXTENDED, [f"{name} stands in the same key position of every goal" for name in shared], None
    reason = [f"{name} is shared, but {_why_dependent(goals, name)}" for name in shared if name not in independent]
    plan = compile_plan(goals)
    if isinstance(plan, str):
        return UNSAFE, [*reason, plan], None
    return SAFE, [*reason, "each such variable is confined to a prefix that shares no key with what follows"], plan


def _conditions(goal: BoundGoal) -> tuple[Typed, ...]:
    """What is asked of an event after it was chosen."""
    return (*goal.selections, *conjuncts(goal.step_condition))


def _is_local(condition: Typed, goal: BoundGoal) -> bool:
    return {name for _, name in references(condition)} <= goal.variables


def _why_dependent(goals: tuple[BoundGoal, ...], name: str) -> str:
    for number, goal in enumerate(goals, start=1):
        if name not in goal.variables:
            return f"goal {number} does not have it"
        if goal.kleene and name not in goal.shared:
            return f"the + of goal {number} does not share it"
        if not key_positions(goal, name):
            return f"in goal {number} it is a value, not a key"
    return "goals of one stream have it in different key positions"


def by_plan(analysis: PatternAnalysis) -> Seq | None:
    """What the safe plan of a chain has to compute, where there is a plan and intervals suffice for it."""
    plan = analysis.plan
    if plan is None or not isinstance(plan.part, Seq) or why_not_by_intervals(analysis) is not None:
        return None
    return plan.part


def why_not_by_intervals(analysis: PatternAnalysis) -> str | None:
    """Why a safe plan cannot be computed from intervals alone; None where it can.

    The outermost sequence takes any goal, but where the goal has a `+` its matches must all be accepted. For a sequence
    within another, intervals suffice only where its goal does not remember and all its matches are accepted.
    """
    part = analysis.plan.part if analysis.plan is not None else None
    inner = False
    while isinstance(part, Seq):
        goal, test = analysis.query.goals[part.goal], analysis.tests[part.goal]
        if (inner or goal.kleene) and test.accept is not None:
            return f"goal {part.goal + 1} can match without being accepted by WHERE"
        if inner and goal.stream.model is Model.MARKOV:
            return f"goal {part.goal + 1} asks a MARKOV stream in the middle of the query"
        inner, part = True, part.head.part
    return None


# ---------------------------------------------------------------- routing and symbols


def _covers_key(goals: tuple[BoundGoal, ...], stream: Stream, chain: tuple[str, ...]) -> bool:
    return set(common_positions(goals, stream, chain)) == set(range(len(stream.keys)))


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
    own = [part for part in _conditions(goal) if _is_local(part, goal)]
    keys = {column.name.lower() for column in goal.stream.keys}
    on_key = [part for part in demands if {name for _, name in references(part)} <= keys]
    numbers = [stream.name.lower() for stream in streams]
    return GoalTest(
        stream=numbers.index(goal.stream.name.lower()),
        match=conjunction(tuple(demands)),
        accept=conjunction(tuple(_on_columns(part, place) for part in own)),
        feasible=conjunction(tuple(on_key)),
        joins=tuple(part for part in _conditions(goal) if not _is_local(part, goal)),
        places={name: here.name for name, here in place.items()},
    )


def _equal(left: Typed, right: Typed) -> Operation:
    return Operation("=", (left, right), Type.BOOLEAN, left.span)


def _on_columns(tree: Typed, place: dict[str, Reference]) -> Typed:
    return with_references(tree, lambda reference: replace(place[reference.name], span=reference.span))
