"""Classifies PATTERN queries, with the reasons, and determines how their events are routed.

The classes are those of the Lahar paper, adapted to our model, in which the alternatives of one key exclude each other
and a MARKOV key depends on its previous value:

- *regular*: no variable is shared between goals; one automaton processes all events;
- *extended regular*: every shared variable is in a key position that all goals have in common, so each binding of
  these variables, a *chain*, has its own events and is independent of the other chains;
- *safe*: a variable is shared only within a prefix, and no key has events for both the prefix and the later goals;
- *unsafe*: anything else.

With GROUP BY, the class is that of the query for one binding of the grouping variables (`bindings.py`).

All classes stream. An automaton answers regular and extended regular queries, and unsafe ones that need only the last
values of a chain. Of all others, the chains are carried as sets of partial results (`chain.py`), exactly while these
are few, else in sampled worlds. Over an archive, safe queries are answered by their plan (`safe_plan.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from anabranch.binding.derived_streams import is_weighted
from anabranch.binding.per import PerEpisode, PerWindow
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
from anabranch.pattern.query import BoundCombination, BoundGoal, BoundPattern
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


@dataclass(frozen=True, slots=True)
class PatternAnalysis:
    """The class of a query, the reasons, and what the operator needs to run it.

    Attributes
    ----------
    chain : tuple of str
        The variables that identify a chain; empty if one chain has all events.
    chain_positions : tuple of tuple of int
        For each stream, the key position that holds each chain variable.
    bound : tuple of str
        The other grouping variables, in the order in which goals bind them. Each binding of them is a query of its own,
        over the same events.
    group_by : tuple of (str, int)
        The name of each grouping column, and its index in `chain`, continued by `bound`.
    single : bool
        Whether every chain has the events of exactly one key of one stream.
    plan : Project or None
        The safe plan of a safe query. If the query is unsafe only because one key may feed goals on both sides of the
        plan, its plan for data without such keys.
    tests : tuple of GoalTest
        One per alternative of each goal, in order. An event that matches any of them matches the goal.
    """

    query: BoundPattern
    classification: str
    why: tuple[str, ...]
    chain: tuple[str, ...]
    chain_positions: tuple[tuple[int, ...], ...]
    bound: tuple[str, ...]
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

    @property
    def absent(self) -> tuple[bool, ...]:
        """For each goal, whether it is that of a NOT."""
        return tuple(goal.absent for goal in self.query.goals)

    @property
    def previous(self) -> tuple[int, ...]:
        """For each goal, the last one before it that is not that of a NOT; -1 for the first."""
        previous, last = [], -1
        for number, absent in enumerate(self.absent):
            previous.append(last)
            last = last if absent else number
        return tuple(previous)

    @property
    def has_alternatives(self) -> bool:
        """Whether some goal is `(g1 OR g2)`."""
        return len(self.tests) > len(self.query.goals)

    def tests_of(self, goal: int) -> tuple[GoalTest, ...]:
        """The tests of the alternatives of a goal."""
        return tuple(test for test in self.tests if test.goal == goal)

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
    def weighted(self) -> bool:
        """Whether some stream is inferred by JOINT or LAG: an answer is given the readings up to its instant."""
        return any(is_weighted(stream) for stream in self.streams)

    @property
    def regular(self) -> bool:
        """Whether an automaton of fixed size reads the events of a chain, for one binding."""
        return self.classification in (REGULAR, EXTENDED)

    @property
    def late_conditions(self) -> bool:
        """Whether a condition compares an event with a grouping variable that a later goal binds."""
        known: set[str] = set()
        for test in self.tests:
            known |= set(test.binds)
            if any(owner == BINDING and name not in known for part in test.given for owner, name in references(part)):
                return True
        return False

    @property
    def by_automaton(self) -> bool:
        """Whether an automaton answers the query on a stream: its state does not grow with the number of rows."""
        if self.query.method == "SAMPLING" or self.counts_bindings or (self.query.within is not None and self.bound):
            return False
        return (self.regular and not self.late_conditions) or self.last_values

    def for_streams(self) -> PatternAnalysis:
        """The same query, where conditions are tested when all their variables have values.

        Over an archive, all bindings are known before an event is read, so a condition on variables that later goals
        bind is tested at the event. On a stream, partial results keep the values of the event instead.
        """
        return analyse(self.query, early=False) if self.late_conditions else self

    @property
    def last_values(self) -> bool:
        """Whether conditions that join goals need only the values of the last events of a chain.

        A result that keeps a value is ended by the next event that could make another one: every event that matches
        its goal also matches the next goal. A chain has at most one event at an instant, so each goal has at most one
        partial result, and a state has one value for each variable.
        """
        if self.classification != UNSAFE or self.bound or not self.single or self.streams[0].model is Model.CERTAIN:
            return False
        if self.query.within is not None or self.has_alternatives or any(self.absent):
            return False
        kept = self.kept
        for number, goal in enumerate(self.query.goals):
            if goal.kleene and kept[number].repeating:
                return False
            if kept[number].waiting:
                held, later = set(kept[number].waiting), self.tests[number + 1]
                always = set(conjuncts(later.match)) <= set(conjuncts(self.tests[number].match))
                if goal.kleene or not always or held & set(kept[number + 1].exposed):
                    return False
        return True

    @property
    def kept(self) -> tuple[Kept, ...]:
        """The variables of the partial results of each goal."""
        goals, fixed, kept = self.query.goals, self.fixed, []
        joined_at = [
            set[str]().union(*map(_names, self.tests_of(number)[0].joins)) for number in range(len(self.query.goals))
        ]
        used = [(goal.variables | joined) - fixed for goal, joined in zip(goals, joined_at, strict=True)]
        bound: set[str] = set()
        for number, (goal, joined) in enumerate(zip(goals, joined_at, strict=True)):
            used_later = set[str]().union(*used[number + 1 :]) if not goal.absent else set[str]()
            bound_after = bound | goal.exported
            # Fixed variables have the same value in all partial results; only conditions may need it.
            exposed = goal.variables & ((bound | used_later | set(goal.shared)) - fixed | joined)
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

    @property
    def counts_bindings(self) -> bool:
        """Whether PER counts for bindings of variables that are not keys of every goal."""
        return bool(self.bound) and isinstance(self.query.per, PerWindow | PerEpisode)

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
        # With WITHIN, the automaton grows with the instants within this time.
        return self.regular and (self.single or not self.markov) and self.query.within is None

    @property
    def by_weights(self) -> bool:
        """Whether the operators of live inputs also answer the query over an archive.

        The worlds of a stream that is inferred by JOINT or LAG cannot be sampled or enumerated: their probabilities
        change with every reading.
        """
        return (self.surely_exact or self.weighted) and not self.counts_bindings

    @property
    def takes_weighted(self) -> bool:
        """Whether it can be answered over a stream that is inferred by JOINT or LAG."""
        return self.by_automaton

    @property
    def objection(self) -> Finding | None:
        """Why the query is refused."""
        return self.weighted_objection

    @property
    def weighted_objection(self) -> Finding | None:
        """Why it is refused over a stream that is inferred by JOINT or LAG."""
        stream = next((stream for stream in self.streams if is_weighted(stream)), None)
        if stream is None or not isinstance(stream.source, nodes.InferredSource):
            return None
        reason = ""
        if self.query.method == "SAMPLING":
            reason = "cannot be sampled"
        elif isinstance(self.query.per, PerEpisode):
            reason = "has no episodes: each of its instants is given other readings"
        elif self.counts_bindings:
            reason = "cannot be counted for variables that are not keys of all goals"
        elif not self.takes_weighted:
            reason = f"cannot answer a query that is {self.classification}"
        if not reason:
            return None
        message = f"{stream.name} is inferred by METHOD {stream.source.method}, which {reason}"
        return Finding("not-supported", message, "use METHOD SMOOTH over an archive, or FILTER", self.query.span)

    @property
    def shares_last(self) -> bool:
        """Whether the bindings of the last goal share a chain: one MARKOV key feeds it, so one row ends a match."""
        last = self.query.goals[-1]
        last_is_plain = not last.kleene and not last.others and not self.late_conditions
        return self.regular and self.single and self.markov and last_is_plain

    @property
    def repeated(self) -> tuple[str, ...]:
        """The grouping variables of which each binding has a chain."""
        last = self.tests[-1].binds if self.shares_last else ()
        return tuple(name for name in self.bound if name not in last)

    @property
    def rebound(self) -> tuple[bool, ...]:
        """For each goal, whether it has a + whose first event binds a grouping variable for the further ones."""
        return tuple(
            goal.kleene and number > 0 and bool(self.tests_of(number)[0].binds)
            for number, goal in enumerate(self.query.goals)
        )

    @property
    def fixed(self) -> frozenset[str]:
        """The variables that have one value in all partial results of a binding, and need not be kept in them."""
        needed = {name for test in self.tests for condition in test.joins for name in _names(condition)}
        rebound = self.rebound
        needed |= {name for test in self.tests if rebound[test.goal] for name in test.binds}
        return frozenset({*self.chain, *self.bound} - (needed - set(self.chain)))


def analyse(query: BoundPattern, within: Collection[str] | None = None, early: bool = True) -> PatternAnalysis:
    """Analyse a bound query.

    With `within`, chains have only these of its variables. With `early`, conditions may be tested before all their
    variables have values.
    """
    if isinstance(query, BoundCombination):
        # The operands are analysed by this module.
        from anabranch.pattern.combining import analyse_combination

        return analyse_combination(query)
    if not isinstance(query.per, PerWindow):
        # Wildcards cannot be named by GROUP BY, so a window counts instants, not (key, instant).
        query = _name_lone_wildcards(query)
    goals = query.goals
    # The chain has every independent variable, not only the shared ones: this makes more and smaller chains.
    chain = tuple(name for name in variables_of(goals) if is_independent(goals, name))
    chain = chain if within is None else tuple(name for name in chain if name in within)
    grouped = {name for _, name in query.group_by} - set(chain)
    bound = tuple(name for name in _exported_in_order(goals) if name in grouped)
    places = _places(goals, frozenset(chain), frozenset(bound), early)
    classification, why, plan = _classify(query, chain, bound, places)
    columns = (*chain, *bound)
    return PatternAnalysis(
        query=query,
        classification=classification,
        why=tuple(why),
        chain=chain,
        chain_positions=tuple(common_positions(goals, stream, chain) for stream in query.streams),
        bound=bound,
        group_by=tuple((written, columns.index(name)) for written, name in query.group_by),
        single=len(query.streams) == 1 and len(chain) > 0 and _covers_key(goals, query.streams[0], chain),
        plan=plan,
        tests=tuple(
            _goal_test(number, alternative, query, bound, places)
            for number, goal in enumerate(goals)
            for alternative in goal.alternatives
        ),
    )


def _exported_in_order(goals: tuple[BoundGoal, ...]) -> list[str]:
    """The variables that goals export, by the first goal that does so."""
    return list(dict.fromkeys(name for goal in goals for name in variables_of((goal,)) if name in goal.exported))


def _name_lone_wildcards(query: BoundPattern) -> BoundPattern:
    """In a query of one goal without `+`, replace wildcards in key positions by variables: each key is then a chain."""
    if len(query.goals) != 1 or query.goals[0].kleene or query.goals[0].others:
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


def _classify(
    query: BoundPattern, independent: tuple[str, ...], bound: tuple[str, ...], places: list[_Place]
) -> tuple[str, list[str], Project | None]:
    """The class of the query for one binding of the grouping variables, the reasons, and the safe plan."""
    goals = query.goals
    binding = [f"each binding of {', '.join(bound)} is a query of its own"] if bound else []
    for place in places:
        if place.goal is None:
            names = ", ".join(sorted(_names(place.condition) - set(bound)))
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


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a condition of WHERE or of a `+` is tested: at the event of one goal; None if it joins several goals.

    `stated` is the goal at which the language tests it. Given a binding of the grouping variables, a condition on the
    variables of an earlier goal can be tested there: a partial result that fails it has no answer of this binding.
    """

    condition: Typed
    stated: int
    goal: int | None


def _places(goals: tuple[BoundGoal, ...], chain: frozenset[str], bound: frozenset[str], early: bool) -> list[_Place]:
    """The place of each condition; without `early`, no condition is tested before all its variables are bound."""
    places = []
    for stated, goal in enumerate(goals):
        for condition in _conditions(goal):
            names = _names(condition) - chain
            free = names - bound
            known = [set[str]().union(*(before.exported for before in goals[: number + 1])) for number in range(stated)]
            earlier = (
                number
                for number in range(stated)
                if free <= goals[number].exported and (early or names <= known[number])
            )
            found = stated if free <= goal.variables else next(earlier, None)
            places.append(_Place(condition, stated, found))
    return places


def _conditions(goal: BoundGoal) -> tuple[Typed, ...]:
    """The conditions on an event that are tested after it was chosen as a successor."""
    return (*goal.selections, *conjuncts(goal.step_condition))


def _names(condition: Typed) -> set[str]:
    """The variables or columns of a condition."""
    return {name for _, name in references(condition)}


def _why_dependent(goals: tuple[BoundGoal, ...], name: str) -> str:
    for number, goal in enumerate(goals, start=1):
        if name not in goal.variables:
            return f"goal {number} does not have it"
        if goal.kleene and name not in goal.shared:
            return f"the + of goal {number} does not share it"
        if not all(key_positions(alternative, name) for alternative in goal.alternatives):
            return f"in goal {number} it is a value, not a key"
    return "goals of the same stream have it in different key positions"


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


# ---------------------------------------------------------------- routing and symbols


def _covers_key(goals: tuple[BoundGoal, ...], stream: Stream, chain: tuple[str, ...]) -> bool:
    return set(common_positions(goals, stream, chain)) == set(range(len(stream.keys)))


def _goal_test(
    number: int, alternative: BoundGoal, query: BoundPattern, bound: tuple[str, ...], places: list[_Place]
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
    match += [_on_columns(part, binding) for part in conjuncts(alternative.filter)]
    tested = [_of_event(place, goal, binding, bound) for place in places if place.goal == number]
    keys = {column.name.lower() for column in stream.keys}
    on_key = [part for part in match if _names(part) <= keys]
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


def _of_event(place: _Place, goal: BoundGoal, columns: dict[str, Reference], bound: tuple[str, ...]) -> Typed:
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


def _on_columns(tree: Typed, columns: dict[str, Reference]) -> Typed:
    """Replace each variable by the column that binds it."""
    return with_references(tree, lambda reference: replace(columns[reference.name], span=reference.span))
