"""The oracle of SEQUENCE: tries every choice of an event, or none, for each component, and evaluates all conditions.

There is one nested loop per positive component, in the order of the query. All conditions are evaluated for every
choice, one by one (`tests/oracles/conditions.py`). Events of negatives are searched in all rows of their stream. If
events have probabilities, all this is done in every possible world. Gaps
are integrated numerically (`tests/oracles/gaps.py`). There are no tables, bounds, indexes or partitions.

How the definitions are interpreted
-----------------------------------
- Events are those of `tests/oracles/events.py`: duplicate rows are one event, and a row whose key or time is NULL or
  not finite is not an event.
- WHERE is converted to disjunctive normal form. NOT is moved into comparisons, so `NOT x.a <> y.b` is an equality. A
  condition on one component is not split: `n.reader IN ('a', 'b')` for a negative n means that neither must happen. A
  choice that several disjuncts find is one match, with the highest probability. Otherwise the disjuncts are
  independent, also for the continuation of partial matches.
- Equalities of plain columns, including those within one component and those with a default, form classes. All columns
  of a class that belong to the bound events are equal, and none is NULL. A class with one such column may be NULL.
- Every other condition, and an equality with a default, is evaluated for the bound events. If it names a component
  without an event, each such reference must have a default; otherwise the condition is skipped. A default that is a
  column of another component is used if that component has an event, and otherwise its own default. A negative has no
  event unless one of its events is being tested. A condition on a negative alone is only evaluated for its events.
- WITHIN is compared with differences of times, `t_last - t <= within`, also at the head of a window, never with sums.
  DOUBLE times are decimals, as they were written.
- In a partial match, conditions on a component after the last observed one are not evaluated, even if it has a default.
  The gap before its first event, which is that of the first positive component, is ignored. To be reported as expired,
  its probability must reach the threshold with and without the negatives that apply until the window closes.
- With probabilities, the answers are found in every possible world separately, and their probabilities are averaged.
  EMIT and THRESHOLD apply to the averages.
- EMIT NEXT keeps one candidate that reaches the threshold for each first event and its component. A match is preferred
  to an expired sequence, then the smallest `t`, then the fewest missing events, then the earliest events, component by
  component; a missing event comes last.
- For EMIT BEST, probabilities that differ only by rounding are equal. Events are ordered by time, then by key and the
  other columns, NULL first.
- With ENDING OPEN, the first components may be missing or negative too. The gap before the first event then begins
  WITHIN before the last event, and the gap after the last event ends WITHIN after the first one.
- A negative without MISS that was not read did not happen: it has no effect on the score of a gap.
- A run (`y+`) is not chosen: it is every event of its component that fits between the observed single events around
  it, as an event of a negative would; there must be one. At the ends it reaches as far as the window. Gaps and
  negatives next to it end at its first event and begin at its last one. Of runs with the same single events in several
  disjuncts, those with the same first event, last event and count are one answer. With probabilities, matches with the
  same single events are one answer, whatever the runs of the worlds: its run has the events that can be in it.
- With OCCURS, a gap between two observed events is scored by its length (`tests/oracles/occurrence.py`). A gap at an
  end of the window has the joint score.

Scores are accurate to about 1e-11, and exactly 0 if they are 0. A probability that is below the threshold by a relative
1e-12 reaches it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from anabranch.binding.typed import Member, Operation, Reference, Typed, walk
from anabranch.catalog import Model
from anabranch.language.types import Type
from anabranch.sequence.query import BoundComponent, BoundSequence
from tests.oracles.conditions import Relations, holds
from tests.oracles.events import NO_RELATIONS, Event, Rows, as_written, events_by_stream
from tests.oracles.gaps import JOINT, POSTERIOR, gap_score, parts_of
from tests.oracles.occurrence import occurrence_score
from tests.untraced import untraced

#: `t`, `t_start`, `probability`, the row of each positive component by its label (None: missing), and `status` with
#: EMIT EXPIRED and EMIT EARLY.
Match = dict[str, Any]
#: The events of components, by the name of the component in lower case.
Chosen = Mapping[str, Event]

MATCHED, EXPIRED = "matched", "expired"
BEST, NEXT, EARLY = "best", "next", "early"

#: The relative difference up to which probabilities are equal.
ROUNDING = 1e-12


# ---------------------------------------------------------------- matches


@untraced
def matches(query: BoundSequence, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Match]:
    """Every match, and with EMIT EXPIRED the expired sequences.

    Parameters
    ----------
    query : BoundSequence
        Bound with the types of its sources if there are times among their columns.
    rows : mapping from the name of a stream to its rows
        Times are numbers or datetimes (in UTC if they have no time zone).
    relations : mapping from the name of a relation, as declared, to its rows
    """
    return [candidate.answer(query) for candidate in reported(query, candidates(query, rows, relations))]


def reported(query: BoundSequence, found: Iterable[Candidate]) -> list[Candidate]:
    """The candidates that THRESHOLD and EMIT leave."""
    chosen = [candidate for candidate in found if _reaches(candidate.weakest, query.threshold)]
    if BEST in query.emit:
        chosen = _best(query, chosen)
    if NEXT in query.emit:
        chosen = _next(query, chosen)
    return chosen


@dataclass(frozen=True, eq=False)
class Candidate:
    """A choice of events that satisfies all conditions, with any probability.

    `weakest` is the lowest of the probabilities that are compared with the threshold. `runs` are the events of each run
    in order.
    """

    status: str
    chosen: Chosen
    probability: float
    weakest: float
    runs: Mapping[str, Sequence[Event]] = field(default_factory=dict)

    def key(self, with_runs: bool = True) -> Hashable:
        """Identifies the choice; a run is identified by what is reported of it."""
        runs = {(name, len(run), id(run[0]), id(run[-1])) for name, run in self.runs.items()} if with_runs else set()
        return frozenset((name, id(event)) for name, event in self.chosen.items()) | runs

    def ends(self, query: BoundSequence) -> list[tuple[str, Event | None, Event | None]]:
        """For each positive component its name, and its event twice, or the first and the last event of its run."""
        ends = []
        for component in query.components:
            if not component.negative:
                event = self.chosen.get(component.name)
                run = self.runs.get(component.name, [event])
                ends.append((component.name, run[0], run[-1]))
        return ends

    def answer(self, query: BoundSequence) -> Match:
        """The choice as a row of answers."""
        positives = [component for component in query.components if not component.negative]
        ends = [(first, last) for _, first, last in self.ends(query) if first and last]
        first, last = (event.row[event.stream.time.name] for event in (ends[0][0], ends[-1][1]))
        closes = query.ending_open or self.status == EXPIRED
        answer: Match = {
            "t": _later(first, query.within) if closes else last, "t_start": first, "probability": self.probability,
        }  # fmt: skip
        for component in positives:
            event, run = self.chosen.get(component.name), self.runs.get(component.name)
            answer[component.label] = event and event.row
            if run is not None:
                answer[component.label] = {"count": len(run), "first": run[0].row, "last": run[-1].row}
        return {**answer, "status": self.status} if {EXPIRED, EARLY} & query.emit else answer


@untraced
def candidates(query: BoundSequence, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Candidate]:
    """Every choice that satisfies all conditions with a probability above 0; expired ones only above the threshold.

    The probability is the expected one: the sum over all worlds of the probability of the world, times that of the
    choice among the events of the world.
    """
    expected: dict[Hashable, Candidate] = {}
    for weight, events in worlds(events_by_stream(query.streams, rows)):
        for candidate in _candidates_in(query, events, relations):
            key = candidate.key(not query.has_probabilities)
            known = expected.get(key)
            before = 0.0 if known is None else known.probability
            total = candidate.probability if weight == 1 else before + float(weight) * candidate.probability
            weakest = candidate.weakest if weight == 1 else total
            runs = candidate.runs if known is None else _united(known.runs, candidate.runs)
            expected[key] = replace(candidate, probability=total, weakest=weakest, runs=runs)
    return list(expected.values())


def _united(one: Mapping[str, Sequence[Event]], other: Mapping[str, Sequence[Event]]) -> dict[str, list[Event]]:
    """The events of the runs of two worlds, in order."""
    both = {name: {id(event): event for event in (*one[name], *other[name])} for name in one}
    return {name: sorted(events.values(), key=lambda event: event.order) for name, events in both.items()}


def worlds(events: Mapping[str, Sequence[Event]]) -> Iterator[tuple[Fraction, dict[str, list[Event]]]]:
    """Every world with a probability above 0, and the events that happen in it.

    The events of an INDEPENDENT stream with the same key and time exclude each other; all else is independent. A row
    in which every value is NULL is no event.
    """
    instances: dict[Hashable, list[Event]] = {}
    for name, stream_events in events.items():
        for event in stream_events:
            is_certain = event.stream.model is Model.CERTAIN
            keys = tuple(event.columns[column.name.lower()] for column in event.stream.keys)
            instances.setdefault((name, id(event)) if is_certain else (name, keys, event.time), []).append(event)
    choices = [list(_outcomes(alternatives)) for alternatives in instances.values()]
    for world in itertools.product(*choices):
        weight = math.prod((chance for chance, _ in world), start=Fraction(1))
        happened = [event for _, event in world if event is not None]
        yield weight, {name: [event for event in happened if event.stream.name.lower() == name] for name in events}


def _outcomes(alternatives: Sequence[Event]) -> Iterator[tuple[Fraction, Event | None]]:
    """Each event that can happen at one instance, or None for no event, with its probability."""
    left = Fraction(1)
    for event in alternatives:
        if event.stream.model is Model.CERTAIN:
            yield Fraction(1), event
            return
        chance = Fraction(as_written(event.columns[event.stream.probability.lower()]))
        values = [event.columns[column.name.lower()] for column in event.stream.values]
        is_event = not values or any(value is not None for value in values)
        if is_event and chance > 0:
            left -= chance
            yield chance, event
    if left > 0:
        yield left, None


def _candidates_in(
    query: BoundSequence, events: Mapping[str, Sequence[Event]], relations: Relations
) -> Iterable[Candidate]:
    """The candidates among certain events."""
    by_key: dict[Hashable, Candidate] = {}
    for literals in disjuncts(query.where):
        search = DisjunctSearch(with_rates(query, literals, relations), literals, events, relations)
        expired = search.expired() if EXPIRED in query.emit else ()
        for candidate in itertools.chain(search.matches(), expired):
            known = by_key.get(candidate.key())
            if known is None or candidate.probability > known.probability:
                by_key[candidate.key()] = candidate
    return by_key.values()


def _reaches(probability: float, threshold: float) -> bool:
    return probability > 0 and probability >= threshold * (1 - ROUNDING)


def _best(query: BoundSequence, found: Iterable[Candidate]) -> list[Candidate]:
    """The best candidate of each trigger: of the last event, or of the first one if the window opens with it.

    With both ends open, one event as two different components is two triggers.
    """
    best: dict[Hashable, Candidate] = {}
    for candidate in found:
        opens = query.ending_open or candidate.status == EXPIRED
        # With an open ending, a match begins with a single event; otherwise it ends with one.
        name, event = list(candidate.chosen.items())[0 if opens else -1]
        trigger = (candidate.status, name, id(event))
        if trigger not in best or _is_better(query, candidate, best[trigger]):
            best[trigger] = candidate
    return list(best.values())


def _is_better(query: BoundSequence, one: Candidate, other: Candidate) -> bool:
    """Whether a candidate is more probable; then has fewer missing events; then is later, from the last event on."""
    if not math.isclose(one.probability, other.probability, rel_tol=ROUNDING):
        return one.probability > other.probability
    if len(one.chosen) != len(other.chosen):
        return len(one.chosen) > len(other.chosen)
    order = [
        [
            *(event.order if event else () for _, first, last in reversed(candidate.ends(query))
              for event in (last, first)),
            *(len(run) for run in candidate.runs.values()),
        ]
        for candidate in (one, other)
    ]  # fmt: skip
    return order[0] > order[1]


def _next(query: BoundSequence, found: Iterable[Candidate]) -> list[Candidate]:
    """The first candidate of each first event: a match if there is one, else the first expired sequence."""
    first: dict[Hashable, Candidate] = {}
    for candidate in found:
        name, event = next((name, event) for name, event, _ in candidate.ends(query) if event)
        known = first.get((name, id(event)))
        if known is None or _order_of(query, candidate) < _order_of(query, known):
            first[name, id(event)] = candidate
    return list(first.values())


def _order_of(query: BoundSequence, candidate: Candidate) -> tuple[Any, ...]:
    """Sorts candidates with the same first event: by their end, by missing events, then by their events."""
    events = [event for _, *ends in candidate.ends(query) for event in ends]
    by_event = [(event is None, event.order if event else ()) for event in events]
    counts = [len(run) for run in candidate.runs.values()]
    return candidate.status != MATCHED, candidate.answer(query)["t"], events.count(None), by_event, counts


def _later(time: Any, within: float | None) -> Any:
    assert within is not None
    return time + (within if isinstance(time, int | float) else timedelta(seconds=within))


def seconds(earlier: Event, later: Event) -> float:
    """The difference of the times of two events; in seconds for TIMESTAMPs."""
    difference = later.time - earlier.time
    return difference / 1e6 if later.stream.time.type is Type.TIMESTAMP else float(difference)


# ---------------------------------------------------------------- rates


def with_rates(query: BoundSequence, literals: Sequence[Typed], relations: Relations) -> BoundSequence:
    """The query with the loss probabilities of MISS BY for a disjunct."""
    components = [
        replace(component, miss=_rate(query, component, literals, relations)) if component.miss is None else component
        for component in query.components
    ]
    return replace(query, components=tuple(components))


def _rate(query: BoundSequence, component: BoundComponent, literals: Sequence[Typed], relations: Relations) -> float:
    """The loss probability of the readers that satisfy the conditions on their column; 0 if there are none."""
    assert query.rates is not None
    reader_column = component.name, query.rates.column
    on_reader = [
        literal for literal in literals if {(node.owner, node.name) for node in _references(literal)} == {reader_column}
    ]
    listed = [
        probability
        for reader, probability in relations[query.rates.relation.name]
        if all(holds(literal, {(component.name, 1): {query.rates.column: reader}}, relations) for literal in on_reader)
    ]
    if len(set(listed)) > 1:
        message = f"the readers of {component.label} have different rates"
        raise ValueError(message)
    return float(listed[0]) if listed else 0.0


# ---------------------------------------------------------------- one disjunct


class DisjunctSearch:
    """The search for the matches of one disjunct.

    Attributes
    ----------
    query : BoundSequence
    literals : the conditions of the disjunct
    classes : the classes of equal columns, as sets of (component, column)
    events : dict from the name of a stream, in lower case, to its events
    relations : mapping from the name of a relation to its rows
    """

    def __init__(
        self,
        query: BoundSequence,
        literals: Sequence[Typed],
        events: Mapping[str, Sequence[Event]],
        relations: Relations,
    ) -> None:
        self.query = query
        self.literals = literals
        self.classes = classes_of(literals)
        self.events = events
        self.relations = relations
        self.names = [component.name for component in query.components]
        self.negatives = {component.name for component in query.components if component.negative}
        self.positives = [
            index for index, component in enumerate(query.components) if not (component.negative or component.run)
        ]
        self.runs = [component for component in query.components if component.run]
        # Conditions on one component are evaluated first only to save time.
        self.fitting = {component.name: list(self._fitting(component)) for component in query.components}

    def _fitting(self, component: BoundComponent) -> Iterator[Event]:
        """The events that satisfy the conditions on a component alone."""
        on_component = [literal for literal in self.literals if _owners(literal) == {component.name}]
        for event in self.events[component.stream.name.lower()]:
            if all(self._holds(literal, {component.name: event}) for literal in on_component):
                yield event

    def matches(self) -> Iterator[Candidate]:
        """Every match with a probability above 0."""
        for chosen in filter(None, self._chains({}, self.positives)):
            runs = {component.name: self._run(component, chosen) for component in self.runs}
            if not all(runs.values()) or not self._is_true(chosen):
                continue
            if not self._is_violated(chosen, self.query.components, runs=runs):
                probability = self._score(chosen, 0, len(self.names), runs)
                if probability > 0:
                    yield Candidate(MATCHED, chosen, probability, probability, runs)

    def _run(self, component: BoundComponent, chosen: Chosen) -> list[Event]:
        """Every event that fits a run between the chosen single events around it."""
        return [
            event
            for event in self.fitting[component.name]
            if self._lies_in_gap(event, component, self._ends(chosen, {})) and self._fits(event, component, chosen, ())
        ]

    def _ends(self, chosen: Chosen, runs: Mapping[str, Sequence[Event]]) -> list[tuple[int, Event, Event]]:
        """The number of each component with an event, in order, and its event twice, or the ends of its run."""
        events = {**{name: [event] for name, event in chosen.items()}, **runs}
        return [(number, events[name][0], events[name][-1]) for number, name in enumerate(self.names) if name in events]

    def _chains(self, chosen: Chosen, numbers: Sequence[int]) -> Iterator[Chosen]:
        """Every choice for these components with ascending times within WITHIN; components with MISS may be missing."""
        if not numbers:
            yield chosen
            return
        component = self.query.components[numbers[0]]
        if component.miss:
            yield from self._chains(chosen, numbers[1:])
        for event in self.fitting[component.name]:
            if self._follows(event, chosen):
                yield from self._chains({**chosen, component.name: event}, numbers[1:])

    def _follows(self, event: Event, chosen: Chosen) -> bool:
        if not chosen:
            return True
        first, *_, last = [*chosen.values()] * 2
        return event.time > last.time and (self.query.within is None or seconds(first, event) <= self.query.within)

    # ------------------------------------------------------------ partial matches

    # `state` is the number of the last observed component of a partial match.

    def expired(self) -> Iterator[Candidate]:
        """Every partial match that no event continues, and that is still possible when the window closes."""
        first = self.names[self.positives[0]]
        for state in self.positives[:-1]:
            until = [number for number in self.positives if number <= state]
            for chosen in self._chains({}, until):
                if first not in chosen or self.names[state] not in chosen or not self._is_partial(chosen, state):
                    continue
                if not any(self._is_partial(*longer) for longer in self._continued(chosen, state)):
                    yield from self._open(chosen, state)

    def _is_partial(self, chosen: Chosen, state: int) -> bool:
        """Whether the chain up to a component satisfies the conditions and reaches the threshold."""
        start = self.names.index(next(iter(chosen)))
        passed = self.query.components[start : state + 1]
        lost = [component for component in passed if not component.negative and component.name not in chosen]
        if any(component.miss == 0 for component in lost):
            return False
        undecided = {component.name for component in self.query.components[state + 1 :]}
        if not self._is_true(chosen, undecided) or self._is_violated(chosen, passed, undecided):
            return False
        return _reaches(self._score(chosen, start, state + 1), self.query.threshold)

    def _continued(self, chosen: Chosen, state: int) -> Iterator[tuple[Chosen, int]]:
        """The chain with one more event, of any later positive component."""
        for number, component in enumerate(self.query.components):
            if number > state and not component.negative:
                for event in self.fitting[component.name]:
                    if self._follows(event, chosen):
                        yield {**chosen, component.name: event}, number

    def _open(self, chosen: Chosen, state: int) -> Iterator[Candidate]:
        """The partial match, unless one of the next negatives has happened."""
        later = self.query.components[state + 1 :]
        watched = list(itertools.takewhile(lambda component: component.negative, later))
        undecided = {component.name for component in later if not component.negative}
        if self._is_violated(chosen, watched, undecided):
            return
        start = self.names.index(next(iter(chosen)))
        until_state = self._score(chosen, start, state + 1)
        probability = until_state * self._at_an_end(watched, self._rest(self._ends(chosen, {})))
        if probability > 0:
            yield Candidate(EXPIRED, chosen, probability, min(until_state, probability))

    # ------------------------------------------------------------ conditions

    def _is_true(self, chosen: Chosen, undecided: Iterable[str] = ()) -> bool:
        """Whether the events of a choice satisfy the conditions."""
        return all(self._holds(literal, chosen, undecided) for literal in self.literals) and self._agree(chosen)

    def _holds(self, literal: Typed, bound: Chosen, undecided: Iterable[str] = ()) -> bool:
        """Whether a condition is true for the bound events, or skipped."""
        if equality(literal) is not None and not any(node.default for node in _references(literal)):
            return True
        absent = _owners(literal) - bound.keys()
        if not absent.isdisjoint(undecided) or (absent and _owners(literal) <= self.negatives):
            return True
        if any(_is_unknown(node, absent) for node in _references(literal)):
            return True
        bindings = {(name, 1): event.columns for name, event in bound.items()}
        return holds(with_defaults(literal, absent), bindings, self.relations)

    def _agree(self, bound: Chosen) -> bool:
        """Whether the columns of each class are equal in the bound events."""
        for members in self.classes:
            values = [bound[owner].columns[name] for owner, name in members if owner in bound]
            if len(values) > 1 and not all(value is not None and value == values[0] for value in values):
                return False
        return True

    def _is_violated(
        self, chosen: Chosen, components: Iterable[BoundComponent], undecided: Iterable[str] = (),
        runs: Mapping[str, Sequence[Event]] = MappingProxyType({}),
    ) -> bool:  # fmt: skip
        """Whether there is an event that must not exist.

        It is an event of a negative, or with SCORING POSTERIOR of a component that is missing from the match.
        """
        ends = self._ends(chosen, runs)
        present = {*chosen, *runs}
        for component in components:
            if component.negative or (self.query.scoring == POSTERIOR and component.name not in present):
                for event in self.fitting[component.name]:
                    if self._lies_in_gap(event, component, ends) and self._fits(event, component, chosen, undecided):
                        return True
        return False

    def _lies_in_gap(self, event: Event, component: BoundComponent, ends: Sequence[tuple[int, Event, Event]]) -> bool:
        number = self.names.index(component.name)
        before = [last for other, _, last in ends if other < number]
        after = [first for other, first, _ in ends if other > number]
        first, last = ends[0][1], ends[-1][2]
        starts = before[-1].time < event.time if before else seconds(event, last) <= self._within
        ends = event.time < after[0].time if after else seconds(first, event) <= self._within
        return starts and ends

    def _fits(self, event: Event, component: BoundComponent, chosen: Chosen, undecided: Iterable[str]) -> bool:
        """Whether an event satisfies the conditions on a component that has no event in the choice."""
        bound = {**chosen, component.name: event}
        on_component = [literal for literal in self.literals if component.name in _owners(literal)]
        return all(self._holds(literal, bound, undecided) for literal in on_component) and self._agree(bound)

    # ------------------------------------------------------------ probability

    def _score(
        self, chosen: Chosen, start: int, end: int, runs: Mapping[str, Sequence[Event]] = MappingProxyType({})
    ) -> float:
        """The product of the scores of the gaps among the components from `start` to `end`."""
        ends = self._ends(chosen, runs)
        by_number = {number: (first, last) for number, first, last in ends}
        score = 1.0
        gap: list[BoundComponent] = []
        before: Event | None = None
        for number, component in enumerate(self.query.components[start:end], start):
            if number not in by_number:
                gap.append(component)
                continue
            event, last = by_number[number]
            if gap and before is None:
                score *= self._at_an_end(gap, self._rest(ends))
            elif gap and self.query.has_occurs:
                score *= occurrence_score(gap, component, seconds(before, event))
            elif gap:
                score *= gap_score(parts_of(gap), seconds(before, event), self.query.scoring)
            gap, before = [], last
        return score * self._at_an_end(gap, self._rest(ends)) if gap else score

    def _at_an_end(self, gap: Sequence[BoundComponent], length: float) -> float:
        """The score of a gap at the beginning or the end of the window."""
        return gap_score(parts_of(gap), length, JOINT if self.query.has_occurs else self.query.scoring)

    def _rest(self, ends: Sequence[tuple[int, Event, Event]]) -> float:
        """The part of the window before the first event, if it ends with the last; or after the last one."""
        return float(as_written(float(self._within)) - as_written(float(seconds(ends[0][1], ends[-1][2]))))

    @property
    def _within(self) -> float:
        assert self.query.within is not None
        return self.query.within


# ---------------------------------------------------------------- normal forms

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def disjuncts(where: Typed | None) -> list[tuple[Typed, ...]]:
    """The disjunctive normal form: the literals of each disjunct."""
    if where is None:
        return [()]
    if isinstance(where, Operation) and where.op == "or" and len(_owners(where)) != 1:
        return [disjunct for part in where.arguments for disjunct in disjuncts(part)]
    if isinstance(where, Operation) and where.op == "and":
        choices = itertools.product(*(disjuncts(part) for part in where.arguments))
        return [tuple(itertools.chain.from_iterable(choice)) for choice in choices]
    if isinstance(where, Operation) and where.op == "not":
        inner = _negation(where.arguments[0])
        return [(inner,)] if isinstance(inner, Operation) and inner.op == "not" else disjuncts(inner)
    return [(where,)]


def _negation(tree: Typed) -> Typed:
    """The negation of a condition, with NOT moved one level further in if possible."""
    if isinstance(tree, Operation):
        if tree.op == "not":
            return tree.arguments[0]
        if tree.op in ("and", "or"):
            parts = tuple(Operation("not", (part,), Type.BOOLEAN) for part in tree.arguments)
            return Operation("or" if tree.op == "and" else "and", parts, Type.BOOLEAN)
        if tree.op in _OPPOSITE:
            return replace(tree, op=_OPPOSITE[tree.op])
    return Operation("not", (tree,), Type.BOOLEAN)


def _references(tree: Typed) -> list[Reference]:
    return [node for node in walk(tree) if isinstance(node, Reference)]


def _owners(tree: Typed) -> set[str]:
    """The components in a condition, and in its defaults."""
    owners: set[str] = set()
    for node in _references(tree):
        column: Any = node
        while isinstance(column, Reference):
            owners.add(column.owner or "")
            column = column.default
    return owners


def _is_unknown(column: Any, absent: Collection[str]) -> bool:
    """Whether a column has no value: its component has no event, and it has no default, or one that is unknown."""
    return column is None or (
        isinstance(column, Reference) and column.owner in absent and _is_unknown(column.default, absent)
    )


def equality(literal: Typed) -> tuple[Reference, Reference] | None:
    """The two columns of an equality of plain columns."""
    if isinstance(literal, Operation) and literal.op == "=":
        left, right = literal.arguments
        if isinstance(left, Reference) and isinstance(right, Reference):
            return left, right
    return None


def classes_of(literals: Iterable[Typed]) -> list[set[tuple[str, str]]]:
    """The classes of columns that are equal by the equalities together."""
    classes: list[set[tuple[str, str]]] = []
    for pair in filter(None, map(equality, literals)):
        merged = {(node.owner or "", node.name) for node in pair}
        disjoint = [columns for columns in classes if columns.isdisjoint(merged)]
        classes = [*disjoint, merged.union(*(columns for columns in classes if columns not in disjoint))]
    return classes


def with_defaults(tree: Typed, absent: Collection[str]) -> Typed:
    """The tree with references to absent components replaced by their defaults."""
    if isinstance(tree, Reference) and tree.owner in absent:
        assert tree.default is not None
        return with_defaults(tree.default, absent)
    if isinstance(tree, Operation | Member):
        return replace(tree, arguments=tuple(with_defaults(part, absent) for part in tree.arguments))
    return tree
