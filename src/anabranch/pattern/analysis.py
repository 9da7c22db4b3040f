"""Classifies PATTERN queries, with the reasons, and determines how their events are routed.

The classes are those of the Lahar paper, adapted to our model, in which the alternatives of one key exclude each other
and a MARKOV key depends on its previous value:

- *regular*: no variable is shared between goals; one automaton processes all events;
- *extended regular*: every shared variable is in a key position that all goals have in common, so each binding of
  these variables, a *chain*, has its own events and is independent of the other chains;
- *safe*: a variable is shared only within a prefix, and no key has events for both the prefix and the later goals;
- *unsafe*: anything else.

Regular and extended regular queries can stream. The others run over archives: safe ones by their plan (`safe_plan.py`),
the rest by sets of partial results (`machine.py`), exactly if these are small, else by sampling.
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
from anabranch.plan import Sampling

REGULAR, EXTENDED, SAFE, UNSAFE = "regular", "extended regular", "safe", "unsafe"


@dataclass(frozen=True, slots=True)
class GoalTest:
    """The conditions under which an event matches a goal, and is accepted by it.

    Conditions refer to columns of the event: `Reference(None, <lower-case column>)`.

    Attributes
    ----------
    stream : int
        The number of the stream.
    match, accept : Typed or None
        The condition for a match, and the conditions of WHERE and `+<V | cond>` on the chosen event.
    feasible : Typed or None
        The conjuncts of `match` that use only key columns: a key that fails them in every goal has no effect.
    joins : tuple of Typed
        The conditions that also use variables of other goals, on variables: `Reference(None, <variable>)`.
    variable_columns : dict of str to str
        The lower-case column that binds each variable of the goal.
    """

    stream: int
    match: Typed | None
    accept: Typed | None
    feasible: Typed | None
    joins: tuple[Typed, ...]
    variable_columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class PatternAnalysis:
    """The class of a query, the reasons, and what the operator needs to run it.

    Attributes
    ----------
    chain : tuple of str
        The variables that identify a chain; empty if one chain has all events.
    chain_positions : tuple of tuple of int
        For each stream, the key position that holds each chain variable.
    group_by : tuple of (str, int)
        The name of each grouping column, and its index in `chain`.
    single : bool
        Whether every chain has the events of exactly one key of one stream.
    plan : Project or None
        The safe plan of a safe query.
    tests : tuple of GoalTest
        One per goal, in order.
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
        """The streams of the query, in the order of the stream numbers in `tests`."""
        return self.query.streams

    @property
    def kleene(self) -> tuple[bool, ...]:
        """For each goal, whether it has a `+`."""
        return tuple(goal.kleene for goal in self.query.goals)

    def needed(self, stream: int) -> Typed | None:
        """The condition that a key must satisfy to have an effect on any answer; None if every key can."""
        any_goal = disjunction([test.feasible for test in self.tests if test.stream == stream])
        return conjunction((*self._chain_conditions(stream), *([] if any_goal is None else [any_goal])))

    def _chain_conditions(self, stream: int) -> tuple[Typed, ...]:
        """The conditions on variables of the chain only, on key columns: a chain that fails them has no answer."""
        keys = self.streams[stream].keys
        columns = {
            name: Reference(None, keys[position].name.lower(), keys[position].type)
            for name, position in zip(self.chain, self.chain_positions[stream], strict=True)
        }
        conditions = (condition for goal in self.query.goals for condition in _conditions(goal))
        usable = (condition for condition in conditions if _names(condition) <= columns.keys())
        return tuple(_on_columns(condition, columns) for condition in usable if references(condition))

    @property
    def markov(self) -> bool:
        """Whether some stream is MARKOV."""
        return any(stream.model is Model.MARKOV for stream in self.streams)

    @property
    def can_stream(self) -> bool:
        """Whether the state does not grow with the number of rows."""
        return self.classification in (REGULAR, EXTENDED)

    @property
    def sampling(self) -> Sampling:
        """Groups are independent; without GROUP BY there is one answer per instant."""
        if not self.group_by:
            return Sampling()
        return Sampling(
            tuple(
                tuple(stream.keys[positions[index]].name for _, index in self.group_by)
                for stream, positions in zip(self.streams, self.chain_positions, strict=True)
            )
        )

    @property
    def surely_exact(self) -> bool:
        """Whether the answers are exact for data of any size."""
        return self.can_stream and (self.single or not self.markov)


def analyse(query: BoundPattern) -> PatternAnalysis:
    """Analyse a bound query."""
    query = _name_lone_wildcards(query)
    goals = query.goals
    # The chain has every independent variable, not only the shared ones: this makes more and smaller chains.
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
    """Report GROUP BY variables on which the query is not independent."""
    query, independent, findings = analysis.query, analysis.chain, []
    # Variables that begin with an underscore were added for wildcards of the query.
    choices = f" (here: {', '.join(name for name in independent if not name.startswith('_'))})" if independent else ""
    for written, name in query.group_by:
        if name not in independent:
            message = f"cannot GROUP BY {written}: the query is not independent on {written}"
            hint = f"group by variables that are in the same key position of every goal{choices}"
            findings.append(Finding("group-not-independent", message, hint, query.span))
    return findings


def _name_lone_wildcards(query: BoundPattern) -> BoundPattern:
    """In a query of one goal without `+`, replace wildcards in key positions by variables: each key is then a chain."""
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
                names = ", ".join(sorted(_names(condition)))
                return UNSAFE, [f"a condition at goal {number} joins variables of different goals: {names}"], None
    shared = shared_by(goals)
    if not shared:
        return REGULAR, ["no variable is shared between goals"], None
    if set(shared) <= set(independent):
        return EXTENDED, [f"{name} is in the same key position of every goal" for name in shared], None
    reason = [f"{name} is shared, but {_why_dependent(goals, name)}" for name in shared if name not in independent]
    plan = compile_plan(goals)
    if isinstance(plan, str):
        return UNSAFE, [*reason, plan], None
    return SAFE, [*reason, "each such variable is only in a prefix that shares no key with the later goals"], plan


def _conditions(goal: BoundGoal) -> tuple[Typed, ...]:
    """The conditions on an event that are tested after it was chosen as a successor."""
    return (*goal.selections, *conjuncts(goal.step_condition))


def _names(condition: Typed) -> set[str]:
    """The variables or columns of a condition."""
    return {name for _, name in references(condition)}


def _is_local(condition: Typed, goal: BoundGoal) -> bool:
    return _names(condition) <= goal.variables


def _why_dependent(goals: tuple[BoundGoal, ...], name: str) -> str:
    for number, goal in enumerate(goals, start=1):
        if name not in goal.variables:
            return f"goal {number} does not have it"
        if goal.kleene and name not in goal.shared:
            return f"the + of goal {number} does not share it"
        if not key_positions(goal, name):
            return f"in goal {number} it is a value, not a key"
    return "goals of the same stream have it in different key positions"


def by_plan(analysis: PatternAnalysis) -> Seq | None:
    """The sequence that the safe plan of a chain computes; None without a plan, or if intervals are not enough."""
    plan = analysis.plan
    if plan is None or not isinstance(plan.part, Seq) or why_not_by_intervals(analysis) is not None:
        return None
    return plan.part


def why_not_by_intervals(analysis: PatternAnalysis) -> str | None:
    """Why a safe plan cannot be computed from intervals only; None if it can.

    The outermost sequence takes any goal, but all matches of a goal with `+` must be accepted. For a nested sequence,
    intervals are enough only if the stream of its goal is not MARKOV and all its matches are accepted.
    """
    part = analysis.plan.part if analysis.plan is not None else None
    inner = False
    while isinstance(part, Seq):
        goal, test = analysis.query.goals[part.goal], analysis.tests[part.goal]
        if (inner or goal.kleene) and test.accept is not None:
            return f"goal {part.goal + 1} can match events that WHERE rejects"
        if inner and goal.stream.model is Model.MARKOV:
            return f"goal {part.goal + 1} reads a MARKOV stream in the middle of the query"
        inner, part = True, part.head.part
    return None


# ---------------------------------------------------------------- routing and symbols


def _covers_key(goals: tuple[BoundGoal, ...], stream: Stream, chain: tuple[str, ...]) -> bool:
    return set(common_positions(goals, stream, chain)) == set(range(len(stream.keys)))


def _goal_test(goal: BoundGoal, streams: tuple[Stream, ...]) -> GoalTest:
    """Rewrite the conditions of a goal on its variables into conditions on the columns of an event."""
    binding: dict[str, Reference] = {}
    match: list[Typed] = []
    for column, term in zip((*goal.stream.keys, *goal.stream.values), goal.terms, strict=True):
        reference = Reference(None, column.name.lower(), column.type, span=term.span)
        if isinstance(term, nodes.Literal):
            match.append(_equal(reference, Constant(term.value, column.type, term.span)))
        elif isinstance(term, nodes.Variable) and term.name in binding:
            match.append(_equal(reference, binding[term.name]))
        elif isinstance(term, nodes.Variable):
            binding[term.name] = reference
    match += [_on_columns(part, binding) for part in conjuncts(goal.filter)]
    local = [part for part in _conditions(goal) if _is_local(part, goal)]
    keys = {column.name.lower() for column in goal.stream.keys}
    on_key = [part for part in match if _names(part) <= keys]
    stream_names = [stream.name.lower() for stream in streams]
    return GoalTest(
        stream=stream_names.index(goal.stream.name.lower()),
        match=conjunction(tuple(match)),
        accept=conjunction(tuple(_on_columns(part, binding) for part in local)),
        feasible=conjunction(tuple(on_key)),
        joins=tuple(part for part in _conditions(goal) if not _is_local(part, goal)),
        variable_columns={name: reference.name for name, reference in binding.items()},
    )


def _equal(left: Typed, right: Typed) -> Operation:
    return Operation("=", (left, right), Type.BOOLEAN, left.span)


def _on_columns(tree: Typed, columns: dict[str, Reference]) -> Typed:
    """Replace each variable by the column that binds it."""
    return with_references(tree, lambda reference: replace(columns[reference.name], span=reference.span))
