"""The oracle of PATTERN: it enumerates every possible world, applies the definitions, and sums probabilities.

A *world* is one certain history: a set of events. The probability of an answer is the total probability of the worlds
in which it is true. In a world, a query is a set of *results*, each a binding of the exported variables and a time,
computed goal by goal by the definitions (Lahar, section 2.2 and Figure 2, in the words of the language reference).
There is no automaton, and no class of query is special.

Interpretation of the definitions
---------------------------------
Worlds

- A CERTAIN row happens; several rows of one key and time are several events. An INDEPENDENT key has, at each of its
  instants, one of its alternatives or *nothing*. A MARKOV key goes from its value at its previous instant with rows
  (before the first: *nothing*) along the rows with that `prev`.
- The probability that rows leave over goes to *nothing*; all of it if no row has the current value as `prev`. An
  instant has rows even if every p is 0 or every value is *nothing*.
- A value is *nothing* if it has columns and all of them are NULL. A value with some NULL columns is a value: it can
  match, but its NULL part is equal to nothing.
- Duplicates, equal in all columns, are one row. Rows that differ only in p are two rows: their p are added.

Queries

- (a) *Agree before choosing.* An event matches a goal, given a result, if it equals the goal's constants, gives each
  variable one value, passes the filter `[cond]`, and agrees with the result on the variables that are already bound.
  Equality is that of SQL: NULL equals nothing, not even NULL.
- (b) *Choose, then select.* `q THEN g` pairs a result of q with all matches of the earliest time strictly after it.
  The WHERE conjuncts of a prefix are tested on the pairs: a pair that fails is dropped, and no later match replaces it.
- (c) *Kleene.* The first unfolding takes a successor of each result of q (or any match, if the Kleene is the first
  goal); each further one takes a successor of the previous unfolding. The condition is tested on each successor after
  it was chosen; it may use the variables of its goal and those bound earlier. V is shared by all unfoldings and
  exported; the other variables are dropped after each. The results of the Kleene are those of all unfoldings.
- (d) *Sets.* Equal bindings at the same time are one result, even if they come about in several ways.
- (e) *NOT.* In `q THEN NOT g THEN h`, the successors of a result of q are chosen as without the NOT. Then a pair is
  dropped if an event that matches g, and agrees with the result on the variables that are already bound, is later than
  the result and earlier than the successor. Before `h+`, this concerns the first unfolding.
- (f) *OR.* The matches of `(g1 OR g2)` are those of g1 and those of g2. An event can match both, with other bindings.
- (g) *WITHIN.* Every result also has the time of its first event. The results of the query whose last event is later
  than that by more than d are dropped. Times and d are decimals, as they are written.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from anabranch.binding.binder import bind, declare
from anabranch.catalog import Catalog, Model, Stream
from anabranch.errors import WorkbookError
from anabranch.language import nodes
from anabranch.pattern.query import BoundGoal, BoundPattern
from tests.local import parsed
from tests.oracles.conditions import Bindings, Relations, Value, holds
from tests.untraced import untraced

Row = Mapping[str, Any]
Time = Any

MOST_WORLDS = 20_000

#: A probability below this is a rounding error of a sum, not a possibility.
ROUNDING = 1e-12

#: If the probabilities of one group sum to more than 1 by this, its rows violate their model.
EXCESS = 1e-6


class TooManyWorlds(Exception):
    """The case has too many possible worlds to enumerate."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a world: one value per KEY column, then one per VALUE column, at t."""

    stream: str
    values: tuple[Value, ...]
    t: Time


@dataclass(frozen=True, slots=True)
class Result:
    """A result of a prefix of the query: values of the exported variables, the times of its last and first events."""

    bindings: frozenset[tuple[str, Value]]
    t: Time
    began: Time


#: A possible history of one key, or of all keys, with its probability.
History = tuple[tuple[Event, ...], float]
#: The value of a key at one instant: one item per VALUE column, or None for *nothing*.
Alternative = tuple[Value, ...] | None


# ---------------------------------------------------------------- answers


def ask(
    workbook: str, query: str, rows: Mapping[str, Iterable[Row]], relations: Relations | None = None
) -> dict[Hashable, float]:
    """The probabilities of the answers to a query of a workbook; see `probabilities`."""
    return probabilities(bind_query(workbook, query), rows, relations)


def bind_query(workbook: str, query: str) -> BoundPattern:
    """The query of this name, bound; the workbook must have no errors."""
    catalog = Catalog()
    findings = declare(parsed(workbook), catalog)
    if findings:
        raise WorkbookError(findings, workbook)
    entry = catalog.query(query)
    assert entry is not None, f"no query {query}"
    bound = bind(entry, catalog)
    assert isinstance(bound, BoundPattern)
    return bound


@untraced
def probabilities(
    query: BoundPattern,
    rows: Mapping[str, Iterable[Row]],
    relations: Relations | None = None,
) -> dict[Hashable, float]:
    """The probability of every possible answer; THRESHOLD is not applied.

    Parameters
    ----------
    query : BoundPattern
    rows : mapping from the name of a stream, as declared, to its rows
        A row has the columns of `Stream.columns`, by name as declared. Rows must satisfy their model (no NULL key or
        time, no probabilities that sum to more than 1).
    relations : mapping from the name of a relation, as declared, to a set of tuples

    Returns
    -------
    dict
        From t, or with GROUP BY from (t, value of each grouping variable), to a probability above 0.

    Raises
    ------
    TooManyWorlds
        If there are more than `MOST_WORLDS`.
    """
    relations = relations or {}
    weights: dict[Hashable, list[float]] = defaultdict(list)
    matcher = Matcher(relations)
    for world, probability in worlds(query.streams, rows):
        for answer in {answer_of(query, result) for result in results(query, world, matcher)}:
            weights[answer].append(probability)
    return {answer: math.fsum(parts) for answer, parts in weights.items()}


def answer_of(query: BoundPattern, result: Result) -> Hashable:
    """The answer of a result: its time and, with GROUP BY, its group."""
    if not query.group_by:
        return result.t
    bindings = dict(result.bindings)
    return (result.t, *(bindings[variable] for _, variable in query.group_by))


def at_least(answers: Mapping[Hashable, float], threshold: float) -> dict[Hashable, float]:
    """The answers that THRESHOLD keeps."""
    return {answer: p for answer, p in answers.items() if p >= threshold and p > 0}


# ---------------------------------------------------------------- worlds


def worlds(streams: Iterable[Stream], rows: Mapping[str, Iterable[Row]]) -> Iterator[History]:
    """Every possible world with its probability; the keys of all streams are independent of each other."""
    choices = [
        list(histories(stream, key_rows))
        for stream in streams
        for key_rows in _grouped(_distinct(stream, rows.get(stream.name, ())), _names(stream.keys)).values()
    ]
    count = math.prod(len(choice) for choice in choices)
    if count > MOST_WORLDS:
        message = f"{count} possible worlds, at most {MOST_WORLDS} are enumerated"
        raise TooManyWorlds(message)
    for combination in itertools.product(*choices):
        events = itertools.chain.from_iterable(history for history, _ in combination)
        yield tuple(events), math.prod(probability for _, probability in combination)


def histories(stream: Stream, rows: Sequence[Row]) -> Iterator[History]:
    """Every possible history of one key with these rows, and its probability."""
    if stream.model is Model.CERTAIN:
        events = (_event(stream, row, _value(row, _names(stream.values))) for row in rows)
        yield tuple(event for event in events if event is not None), 1.0
        return
    instants = sorted(_grouped(rows, (stream.time.name,)).items())
    yield from _continued(stream, [key_rows for _, key_rows in instants], None)


def _continued(stream: Stream, instants: Sequence[Sequence[Row]], previous: Alternative) -> Iterator[History]:
    """Every possible history over the remaining instants, from the value `previous`."""
    if not instants:
        yield (), 1.0
        return
    for value, probability in alternatives(stream, instants[0], previous):
        event = _event(stream, instants[0][0], value)
        for later, probability_later in _continued(stream, instants[1:], value):
            yield (later if event is None else (event, *later)), probability * probability_later


def alternatives(stream: Stream, rows: Sequence[Row], previous: Alternative) -> list[tuple[Alternative, float]]:
    """The values of a key at the instant of `rows`, each with its probability given the previous value.

    The rows of an INDEPENDENT stream apply after any previous value; those of a MARKOV stream after their `prev`.
    """
    if stream.model is Model.MARKOV:
        rows = [row for row in rows if _value(row, _names(stream.previous)) == previous]
    parts: dict[Alternative, list[float]] = defaultdict(list)
    for row in rows:
        parts[_value(row, _names(stream.values))].append(row[stream.probability])
    listed = math.fsum(itertools.chain.from_iterable(parts.values()))
    if listed > 1 + EXCESS:
        message = f"the probabilities of one group of {stream.name} sum to {listed}"
        raise ValueError(message)
    parts[None].append(1 - listed)
    masses = {value: math.fsum(probabilities_) for value, probabilities_ in parts.items()}
    return [(value, mass) for value, mass in masses.items() if mass > ROUNDING]


def _value(row: Row, columns: Sequence[str]) -> Alternative:
    """The value of these columns of a row; *nothing* if there are columns and all of them are NULL."""
    value = tuple(row[column] for column in columns)
    return None if value and all(part is None for part in value) else value


def _event(stream: Stream, row: Row, value: Alternative) -> Event | None:
    """The event of the row's key and time with this value; None for *nothing*."""
    if value is None:
        return None
    key = tuple(row[column] for column in _names(stream.keys))
    return Event(stream.name, key + value, row[stream.time.name])


def _distinct(stream: Stream, rows: Iterable[Row]) -> list[Row]:
    """The rows without duplicates."""
    columns = _names(stream.columns)
    return list({tuple(row[column] for column in columns): row for row in rows}.values())


def _grouped(rows: Iterable[Row], columns: Sequence[str]) -> dict[Any, list[Row]]:
    """The rows by their values in these columns, in the order of appearance."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


def _names(columns: Iterable[Any]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


# ---------------------------------------------------------------- a query in a world


class Matcher:
    """The bindings of an event in a goal, computed once for all worlds that have the event."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self._known: dict[tuple[int, Event], Bindings | None] = {}

    def bindings(self, goal: BoundGoal, event: Event) -> Bindings | None:
        """The bindings with which the event matches the goal without regard to other goals; None if it does not."""
        if (id(goal), event) not in self._known:
            self._known[id(goal), event] = self._match(goal, event)
        return self._known[id(goal), event]

    def matches(self, goal: BoundGoal, world: Sequence[Event]) -> list[tuple[Bindings, Time]]:
        """The bindings and times of all matches of the alternatives of a goal."""
        return [
            (match, event.t)
            for event in world
            for alternative in goal.alternatives
            if (match := self.bindings(alternative, event)) is not None
        ]

    def _match(self, goal: BoundGoal, event: Event) -> Bindings | None:
        """The bindings if constants are equal, each variable has one value, and the filter holds."""
        if event.stream != goal.stream.name:
            return None
        bindings: dict[str, Value] = {}
        for term, value in zip(goal.terms, event.values, strict=True):
            if isinstance(term, nodes.Literal) and not equal(term.value, value):
                return None
            if isinstance(term, nodes.Variable):
                if term.name in bindings and not equal(bindings[term.name], value):
                    return None
                bindings[term.name] = value
        return bindings if holds(goal.filter, bindings, self.relations) else None


def results(query: BoundPattern, world: Sequence[Event], matcher: Matcher) -> set[Result]:
    """The results of the query in this world, computed goal by goal."""
    prefix: set[Result] | None = None
    guards: list[BoundGoal] = []
    for goal in query.goals:
        if goal.absent:
            guards.append(goal)
            continue
        step = unfoldings if goal.kleene else unfold
        paired = step(prefix, goal, world, matcher, guards)
        prefix = {result for result in paired if selected(result, goal, matcher.relations)}
        guards = []
    return {result for result in prefix or set() if within(result, query.within)}


def within(result: Result, longest: float | None) -> bool:
    """Whether the last event is at most `longest` later than the first one."""
    return longest is None or Fraction(str(result.t)) - Fraction(str(result.began)) <= Fraction(str(longest))


def unfoldings(
    prefix: set[Result] | None,
    goal: BoundGoal,
    world: Sequence[Event],
    matcher: Matcher,
    guards: Sequence[BoundGoal],
) -> set[Result]:
    """`q THEN g+<V | cond>`: the union of one unfolding of g after q, of another one after that, and so on.

    Times increase from each unfolding to the next, so one of them is empty.
    """
    union: set[Result] = set()
    latest = unfold(prefix, goal, world, matcher, guards)
    while latest:
        union |= latest
        latest = unfold(latest, goal, world, matcher)
    return union


def unfold(
    prefix: set[Result] | None,
    goal: BoundGoal,
    world: Sequence[Event],
    matcher: Matcher,
    guards: Sequence[BoundGoal] = (),
) -> set[Result]:
    """`q THEN g`, or one unfolding of a Kleene: every result of q with each of its successors.

    `guards` has the goals of NOT between q and g.
    `prefix` has the results of q; it is None at the start of the query, where every match is a result. The condition of
    a Kleene is tested on the pair, then the variables that the goal does not export are dropped.
    """
    matches = matcher.matches(goal, world)
    pairs: Iterable[tuple[Bindings, Bindings, Time, Time]]
    if prefix is None:
        pairs = (({}, match, t, t) for match, t in matches)
    else:
        pairs = (
            (dict(result.bindings), match, t, result.began)
            for result in prefix
            for match, t in immediate_successors(result, matches)
            if not any(between(result, t, matcher.matches(guard, world)) for guard in guards)
        )
    return {
        Result(frozenset({**before, **_exported(goal, match)}.items()), t, began)
        for before, match, t, began in pairs
        if holds(goal.step_condition, {**before, **match}, matcher.relations)
    }


def between(result: Result, end: Time, matches: Iterable[tuple[Bindings, Time]]) -> bool:
    """Whether a match that agrees with a result is strictly between the result and a later time."""
    return any(result.t < t < end and agree(dict(result.bindings), match) for match, t in matches)


def immediate_successors(result: Result, matches: Iterable[tuple[Bindings, Time]]) -> list[tuple[Bindings, Time]]:
    """The matches of the earliest time among those strictly after the result that agree with it."""
    bindings = dict(result.bindings)
    later = [(match, t) for match, t in matches if t > result.t and agree(bindings, match)]
    first = min((t for _, t in later), default=None)
    return [(match, t) for match, t in later if t == first]


def agree(earlier: Bindings, match: Bindings) -> bool:
    """Whether a match has the same values for the variables that are already bound."""
    return all(equal(earlier[name], value) for name, value in match.items() if name in earlier)


def equal(left: Value, right: Value) -> bool:
    """SQL's `=`: NULL equals nothing."""
    return left is not None and right is not None and left == right


def selected(result: Result, goal: BoundGoal, relations: Relations) -> bool:
    """Whether the WHERE conjuncts of the prefix that ends with this goal hold for the result."""
    bindings = dict(result.bindings)
    return all(holds(condition, bindings, relations) for condition in goal.selections)


def _exported(goal: BoundGoal, match: Bindings) -> Bindings:
    """The part of a match that later goals can use."""
    return {name: value for name, value in match.items() if name in goal.exported}
