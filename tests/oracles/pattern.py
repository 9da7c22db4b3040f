"""The truth about a PATTERN query: enumerate every possible world, apply the definitions, add up.

A *world* is one certain history: a set of events. The probability of an answer is the total probability of
the worlds in which it holds. Inside a world a query is a set of *results*, each a binding of the exported
variables and a time, computed goal by goal as the definitions say (Lahar, section 2.2 and Figure 2, with
the words of the language reference). No automaton appears here, and no class of query is special.

How the definitions are read
----------------------------
Worlds

- Key by key. A CERTAIN row happens; several rows of one key and time are several events. An INDEPENDENT
  key has, at each of its instants, one of its alternatives or nothing. A MARKOV key goes from its value at
  its own last instant that has rows (before the first: nothing) along the rows with that `prev`.
- Mass that rows leave over is nothing's; where no row has the `prev` a key is at, it all is. An instant
  has rows also where every p is 0 or every value is nothing.
- A value is nothing where all its columns are NULL (and there is at least one). A value with some columns
  NULL is a value: it can match, but nothing equals its NULL part.
- A row given twice, all columns equal, is one row. Rows that differ in p alone are two: their p add up.

Queries

- (a) *Agree before choosing.* An event matches a goal, given a result, if it equals the goal's constants,
  gives each variable one value, passes the filter `[cond]`, and agrees with the result on the variables
  that are bound already. Equality is SQL's: NULL equals nothing, not even NULL.
- (b) *Choose, then select.* `q THEN g` pairs a result of q with the strictly later matches of least time,
  all of them. The WHERE conjuncts of a prefix are asked of what was paired: one that fails ends the result
  and no later match takes its place.
- (c) *Kleene.* The first unfolding takes a successor of each result of q (or any match, where the Kleene
  opens the query), each further one a successor of an unfolding before it. The condition is asked of each
  after it was chosen and may use its goal's variables and those bound earlier. V is shared by all
  unfoldings and exported; the other variables are forgotten after each. The results of all unfoldings
  together are the results of the Kleene.
- (d) *Sets.* Two ways to the same bindings at the same time are one result.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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

#: Mass below this is what adding floating-point numbers leaves over, not a possibility.
ROUNDING = 1e-12

#: How far the probabilities of one group may exceed 1 before its rows break their model.
EXCESS = 1e-6


class TooManyWorlds(Exception):
    """The case has more possible worlds than enumeration is meant for."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens in a world: one value per KEY column, then one per VALUE column, at t."""

    stream: str
    values: tuple[Value, ...]
    t: Time


@dataclass(frozen=True, slots=True)
class Result:
    """What a prefix of the query finds: values of the exported variables, and the time of its last event."""

    bindings: frozenset[tuple[str, Value]]
    t: Time


#: A possible history of one key, or of everything, with its probability.
History = tuple[tuple[Event, ...], float]
#: The value of a key at one instant: one item per VALUE column, or None for nothing.
Alternative = tuple[Value, ...] | None


# ---------------------------------------------------------------- the answer


def ask(
    workbook: str, query: str, rows: Mapping[str, Iterable[Row]], relations: Relations | None = None
) -> dict[Hashable, float]:
    """The probabilities of the answers to a query of a workbook; see `probabilities`."""
    return probabilities(bind_query(workbook, query), rows, relations)


def bind_query(workbook: str, query: str) -> BoundPattern:
    """The query of this name, bound; the workbook must be without fault."""
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
    """The probability of every answer that is possible; THRESHOLD is not applied.

    Parameters
    ----------
    query : BoundPattern
    rows : mapping from the name of a stream, as declared, to its rows
        A row has the columns of `Stream.columns`, by name as declared. Rows that break their model (a NULL
        key or time, probabilities that add up to more than 1) have no place here.
    relations : mapping from the name of a relation, as declared, to a set of tuples

    Returns
    -------
    dict
        From t, or from (t, value of each grouping variable) where there is a GROUP BY, to a probability
        above 0.

    Raises
    ------
    TooManyWorlds
        If there are more than `MOST_WORLDS`.
    """
    relations = relations or {}
    weights: dict[Hashable, list[float]] = defaultdict(list)
    matcher = Matcher(relations)
    for world, probability in worlds(query.streams, rows):
        for answer in {answer_of(query, result) for result in results(query.goals, world, matcher)}:
            weights[answer].append(probability)
    return {answer: math.fsum(parts) for answer, parts in weights.items()}


def answer_of(query: BoundPattern, result: Result) -> Hashable:
    """The row of the answer that a result stands for: its time, and its group where there are groups."""
    if not query.group_by:
        return result.t
    bindings = dict(result.bindings)
    return (result.t, *(bindings[variable] for _, variable in query.group_by))


def at_least(answers: Mapping[Hashable, float], threshold: float) -> dict[Hashable, float]:
    """The answers that THRESHOLD keeps."""
    return {answer: p for answer, p in answers.items() if p >= threshold and p > 0}


# ---------------------------------------------------------------- worlds


def worlds(streams: Iterable[Stream], rows: Mapping[str, Iterable[Row]]) -> Iterator[History]:
    """Every possible world with its probability: the keys of all streams are independent of each other."""
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
    """Every possible history of one key, given its rows, with its probability."""
    if stream.model is Model.CERTAIN:
        events = (_event(stream, row, _value(row, _names(stream.values))) for row in rows)
        yield tuple(event for event in events if event is not None), 1.0
        return
    instants = sorted(_grouped(rows, (stream.time.name,)).items())
    yield from _continued(stream, [key_rows for _, key_rows in instants], None)


def _continued(stream: Stream, instants: Sequence[Sequence[Row]], previous: Alternative) -> Iterator[History]:
    """Every way through the instants that remain, from the value `previous`."""
    if not instants:
        yield (), 1.0
        return
    for value, probability in alternatives(stream, instants[0], previous):
        event = _event(stream, instants[0][0], value)
        for later, probability_later in _continued(stream, instants[1:], value):
            yield (later if event is None else (event, *later)), probability * probability_later


def alternatives(stream: Stream, rows: Sequence[Row], previous: Alternative) -> list[tuple[Alternative, float]]:
    """The values of a key at the instant of `rows`, each with its probability given the value before.

    The rows of an INDEPENDENT stream hold whatever was before; those of a MARKOV stream say after what.
    """
    if stream.model is Model.MARKOV:
        rows = [row for row in rows if _value(row, _names(stream.previous)) == previous]
    parts: dict[Alternative, list[float]] = defaultdict(list)
    for row in rows:
        parts[_value(row, _names(stream.values))].append(row[stream.probability])
    listed = math.fsum(itertools.chain.from_iterable(parts.values()))
    if listed > 1 + EXCESS:
        message = f"the probabilities of one group of {stream.name} add up to {listed}"
        raise ValueError(message)
    parts[None].append(1 - listed)
    masses = {value: math.fsum(probabilities_) for value, probabilities_ in parts.items()}
    return [(value, mass) for value, mass in masses.items() if mass > ROUNDING]


def _value(row: Row, columns: Sequence[str]) -> Alternative:
    """The value that these columns of a row hold; nothing where all of them, at least one, are NULL."""
    value = tuple(row[column] for column in columns)
    return None if value and all(part is None for part in value) else value


def _event(stream: Stream, row: Row, value: Alternative) -> Event | None:
    """The event of the row's key and time with this value; None for nothing."""
    if value is None:
        return None
    key = tuple(row[column] for column in _names(stream.keys))
    return Event(stream.name, key + value, row[stream.time.name])


def _distinct(stream: Stream, rows: Iterable[Row]) -> list[Row]:
    """The rows, each once."""
    columns = _names(stream.columns)
    return list({tuple(row[column] for column in columns): row for row in rows}.values())


def _grouped(rows: Iterable[Row], columns: Sequence[str]) -> dict[Any, list[Row]]:
    """The rows by their values in these columns, in order of appearance."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


def _names(columns: Iterable[Any]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


# ---------------------------------------------------------------- a query in a world


class Matcher:
    """What an event binds in a goal, worked out once however many worlds the event is in."""

    def __init__(self, relations: Relations) -> None:
        self.relations = relations
        self._known: dict[tuple[int, Event], Bindings | None] = {}

    def bindings(self, goal: BoundGoal, event: Event) -> Bindings | None:
        """The bindings with which the event matches the goal taken alone; None where it does not."""
        if (id(goal), event) not in self._known:
            self._known[id(goal), event] = self._match(goal, event)
        return self._known[id(goal), event]

    def _match(self, goal: BoundGoal, event: Event) -> Bindings | None:
        """Constants are equal, a variable has one value, and the filter holds."""
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


def results(goals: Sequence[BoundGoal], world: Sequence[Event], matcher: Matcher) -> set[Result]:
    """The results of the query in this world: from prefix to prefix, a goal at a time."""
    found: set[Result] | None = None
    for goal in goals:
        paired = unfoldings(found, goal, world, matcher) if goal.kleene else unfold(found, goal, world, matcher)
        found = {result for result in paired if selected(result, goal, matcher.relations)}
    return found or set()


def unfoldings(found: set[Result] | None, goal: BoundGoal, world: Sequence[Event], matcher: Matcher) -> set[Result]:
    """`q THEN g+<V | cond>`: one unfolding of g after q, or one more after that, and so on; their union.

    Times grow from each unfolding to the next, so there comes one that is empty.
    """
    together: set[Result] = set()
    latest = unfold(found, goal, world, matcher)
    while latest:
        together |= latest
        latest = unfold(latest, goal, world, matcher)
    return together


def unfold(found: set[Result] | None, goal: BoundGoal, world: Sequence[Event], matcher: Matcher) -> set[Result]:
    """`q THEN g`, and one unfolding of a Kleene: every result of q with each of its successors.

    `found` is None at the start of the query, where every match is a result. The condition of a Kleene is
    asked of the pair, then the variables that the goal does not export are forgotten.
    """
    matches = [(match, event.t) for event in world if (match := matcher.bindings(goal, event)) is not None]
    pairs: Iterable[tuple[Bindings, Bindings, Time]]
    if found is None:
        pairs = (({}, match, t) for match, t in matches)
    else:
        pairs = (
            (dict(result.bindings), match, t) for result in found for match, t in immediate_successors(result, matches)
        )
    return {
        Result(frozenset({**before, **_exported(goal, match)}.items()), t)
        for before, match, t in pairs
        if holds(goal.step_condition, {**before, **match}, matcher.relations)
    }


def immediate_successors(result: Result, matches: Iterable[tuple[Bindings, Time]]) -> list[tuple[Bindings, Time]]:
    """Of the matches strictly after the result that agree with it, those of least time."""
    bindings = dict(result.bindings)
    later = [(match, t) for match, t in matches if t > result.t and agree(bindings, match)]
    first = min((t for _, t in later), default=None)
    return [(match, t) for match, t in later if t == first]


def agree(earlier: Bindings, match: Bindings) -> bool:
    """Whether a match gives the variables that are bound already the values they have."""
    return all(equal(earlier[name], value) for name, value in match.items() if name in earlier)


def equal(left: Value, right: Value) -> bool:
    """SQL's `=`: NULL equals nothing."""
    return left is not None and right is not None and left == right


def selected(result: Result, goal: BoundGoal, relations: Relations) -> bool:
    """Whether the WHERE conjuncts of the prefix that ends with this goal hold of the result."""
    bindings = dict(result.bindings)
    return all(holds(condition, bindings, relations) for condition in goal.selections)


def _exported(goal: BoundGoal, match: Bindings) -> Bindings:
    """The part of a match that later goals see."""
    return {name: value for name, value in match.items() if name in goal.exported}
