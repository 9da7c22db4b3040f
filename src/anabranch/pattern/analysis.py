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
from anabranch.binding.typed import Reference, Typed, conjunction, conjuncts, disjunction, references
from anabranch.catalog import Model, Stream
from anabranch.errors import Finding
from anabranch.language import nodes
from anabranch.pattern.classes import EXTENDED, REGULAR, UNSAFE, classify
from anabranch.pattern.goal_tests import BINDING, GoalTest, conditions_of, goal_test, names_in, on_columns, places_of
from anabranch.pattern.kept import Kept, kept_variables
from anabranch.pattern.query import BoundCombination, BoundGoal, BoundPattern
from anabranch.pattern.safe_plan import Project, common_positions, is_independent, variables_of
from anabranch.plan import Sampling


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
        conditions = (condition for goal in self.query.goals for condition in conditions_of(goal))
        usable = (condition for condition in conditions if names_in(condition) <= columns.keys())
        return tuple(on_columns(condition, columns) for condition in usable if references(condition))

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
        joined = [
            set[str]().union(*map(names_in, self.tests_of(number)[0].joins)) for number in range(len(self.kleene))
        ]
        return kept_variables(self.query.goals, joined, self.fixed)

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
        return self.bounded_objection or self.weighted_objection

    @property
    def bounded_objection(self) -> Finding | None:
        """Why it is refused over answers that depend on each other: their bounds need one automaton for one binding."""
        query = self.query
        if query.bounded is None:
            return None
        clauses = {"WITHIN": query.within, "METHOD SAMPLING": query.method == "SAMPLING", "EMIT EARLY": query.early}
        reason = next((f"{clause} cannot be bounded" for clause, stated in clauses.items() if stated), "")
        if isinstance(query, BoundCombination):
            reason = "combinations cannot be bounded"
        elif not reason and (not self.regular or self.bound):
            reason = f"a query that is {self.classification} cannot be bounded"
        elif not reason and self.markov:
            reason = "rows of MARKOV streams are not probabilities of events"
        if not reason:
            return None
        hint = "query the streams themselves in one PATTERN, or declare the answers with MODEL CERTAIN"
        return Finding("dependent-events", f"{query.bounded.why}, and {reason}", hint, query.span)

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
        needed = {name for test in self.tests for condition in test.joins for name in names_in(condition)}
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
    places = places_of(goals, frozenset(chain), frozenset(bound), early)
    classification, why, plan = classify(query, chain, bound, places)
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
            goal_test(number, alternative, query, bound, places)
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


def _covers_key(goals: tuple[BoundGoal, ...], stream: Stream, chain: tuple[str, ...]) -> bool:
    return set(common_positions(goals, stream, chain)) == set(range(len(stream.keys)))
