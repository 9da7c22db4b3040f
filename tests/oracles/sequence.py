"""The truth about a SEQUENCE query: try every choice of events or none, and ask everything of each.

Nested loops, one per positive component, in the order of the query. What is asked of a choice is asked of it anew,
condition by condition (`tests/oracles/conditions.py`); a negative's event is looked for in all rows of its stream; a
gap is integrated numerically (`tests/oracles/gaps.py`). Nothing is tabulated, bounded, indexed or partitioned here.

How the definitions are read
----------------------------
- Events are those of `tests/oracles/events.py`: a row given twice is one event, and a row whose key or time is NULL
  or not finite is none.
- WHERE is brought to disjunctive normal form; NOT goes into comparisons, so `NOT x.a <> y.b` is an equality. What names
  one component alone is not taken apart: `n.reader IN ('a', 'b')` of a negative n means that neither must happen. A
  choice that several disjuncts find is one match, with the highest probability. Otherwise each disjunct stands for
  itself, in what continues a partial match too.
- Equalities of plain columns, those of one component and those with a default among them, fall into classes. All
  columns of a class that belong to the events at hand are equal, and none is NULL; a column that is alone may be NULL.
- Every other condition, and an equality with a default, is asked of the events at hand. Where it names a component
  without one, each such reference must have a default, or the condition is passed over. A negative is such a component
  unless an event of it is being asked about; but what names a negative alone is asked of its events alone.
- WITHIN is compared with differences of times, `t_last - t <= within`, at the head of a window too, never with sums.
- In a partial match, what names a component after the last observed one is not asked yet, though it has a default. The
  gap ahead of its first event, which is that of the first positive component, plays no part. To be reported as
  expired, its probability must reach the threshold with the negatives that are watched until the close, and without.
- Of the best ones, probabilities that differ by rounding alone are equal. An event is later than another by its time,
  then by its key and its other columns, NULL first.
- A negative without MISS that was not read did not happen: that is given, and has no part in the score of a gap.

Scores are right to about 1e-11, and 0 where they are 0. A probability that misses the threshold by 1e-12 of it reaches
it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from anabranch.binding.typed import Member, Operation, Reference, Typed, walk
from anabranch.language.types import Type
from anabranch.sequence.query import BoundComponent, BoundSequence
from tests.oracles.conditions import Relations, holds
from tests.oracles.events import NO_RELATIONS, Event, Rows, events_by_stream
from tests.oracles.gaps import POSTERIOR, gap_score, parts_of
from tests.untraced import untraced

#: `t`, `t_start`, `probability`, the row of each positive component by its label (None: missing), and `status` where
#: the query asks for what expired too.
Match = dict[str, Any]
#: The event of each component that has one, by its name in lower case.
Chosen = Mapping[str, Event]

MATCHED, EXPIRED = "matched", "expired"
BEST = "best"

#: By so much of it a probability may miss the threshold, or another one, and still be equal.
ROUNDING = 1e-12


# ---------------------------------------------------------------- matches


@untraced
def matches(query: BoundSequence, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Match]:
    """Every match, once, and what expired where the query asks for it.

    Parameters
    ----------
    query : BoundSequence
        Bound with the types of its sources, where there are times among their columns.
    rows : mapping from the name of a stream to its rows
        Times are numbers or datetimes (in UTC, where they do not say).
    relations : mapping from the name of a relation, as declared, to its rows
    """
    found = _at_threshold(query, candidates(query, rows, relations))
    if BEST in query.emit:
        found = _best(query, found)
    return [each.answer(query) for each in found]


@dataclass(frozen=True, eq=False)
class Found:
    """A choice of events that meets all conditions, whatever its probability.

    `weakest` is the lowest of the probabilities that are held against the threshold.
    """

    status: str
    chosen: Chosen
    probability: float
    weakest: float

    def key(self) -> Hashable:
        """What is the same choice has the same key."""
        return frozenset((name, id(event)) for name, event in self.chosen.items())

    def answer(self, query: BoundSequence) -> Match:
        """The choice as a row of answers."""
        positives = [component for component in query.components if not component.negative]
        events = [self.chosen[component.name] for component in positives if component.name in self.chosen]
        first, last = (event.row[event.stream.time.name] for event in (events[0], events[-1]))
        closes = query.ending_open or self.status == EXPIRED
        answer: Match = {
            "t": _later(first, query.within) if closes else last, "t_start": first, "probability": self.probability,
        }  # fmt: skip
        for component in positives:
            event = self.chosen.get(component.name)
            answer[component.label] = event and event.row
        return {**answer, "status": self.status} if EXPIRED in query.emit else answer


@untraced
def candidates(query: BoundSequence, rows: Rows, relations: Relations = NO_RELATIONS) -> list[Found]:
    """Every choice that meets all conditions with a probability above 0, each once; expired ones at the threshold."""
    events = events_by_stream(query.streams, rows)
    found: dict[Hashable, Found] = {}
    for literals in disjuncts(query.where):
        asking = Asking(with_rates(query, literals, relations), literals, events, relations)
        expired = asking.expired() if EXPIRED in query.emit else ()
        for each in itertools.chain(asking.matches(), expired):
            known = found.get(each.key())
            if known is None or each.probability > known.probability:
                found[each.key()] = each
    return list(found.values())


def _at_threshold(query: BoundSequence, found: Iterable[Found]) -> list[Found]:
    return [each for each in found if _reaches(each.weakest, query.threshold)]


def _reaches(probability: float, threshold: float) -> bool:
    return probability > 0 and probability >= threshold * (1 - ROUNDING)


def _best(query: BoundSequence, found: Iterable[Found]) -> list[Found]:
    """The best of each trigger: of the last event, or of the first one where the window opens with it."""
    best: dict[Hashable, Found] = {}
    for each in found:
        events = list(each.chosen.values())
        opens = query.ending_open or each.status == EXPIRED
        trigger = (each.status, id(events[0] if opens else events[-1]))
        if trigger not in best or _is_better(query, each, best[trigger]):
            best[trigger] = each
    return list(best.values())


def _is_better(query: BoundSequence, one: Found, other: Found) -> bool:
    """More probable; then fewer missing; then later, from the last component to the first."""
    if not math.isclose(one.probability, other.probability, rel_tol=ROUNDING):
        return one.probability > other.probability
    if len(one.chosen) != len(other.chosen):
        return len(one.chosen) > len(other.chosen)
    order = [
        [each.chosen[component.name].order if component.name in each.chosen else ()
         for component in reversed(query.components) if not component.negative]
        for each in (one, other)
    ]  # fmt: skip
    return order[0] > order[1]


def _later(time: Any, within: float | None) -> Any:
    assert within is not None
    return time + (within if isinstance(time, int | float) else timedelta(seconds=within))


def seconds(earlier: Event, later: Event) -> float:
    """The difference of the times of two events; in seconds for TIMESTAMPs."""
    apart = later.time - earlier.time
    return apart / 1e6 if later.stream.time.type is Type.TIMESTAMP else apart


# ---------------------------------------------------------------- rates


def with_rates(query: BoundSequence, literals: Sequence[Typed], relations: Relations) -> BoundSequence:
    """The query with the chances that MISS BY gives its components in a disjunct."""
    chances = [_rate(query, each, literals, relations) if each.miss is None else each.miss for each in query.components]
    components = [replace(each, miss=chance) for each, chance in zip(query.components, chances, strict=True)]
    return replace(query, components=tuple(components))


def _rate(query: BoundSequence, component: BoundComponent, literals: Sequence[Typed], relations: Relations) -> float:
    """The chance of the readers that the conditions on their column alone allow; 0 where none is listed."""
    assert query.rates is not None
    place = component.name, query.rates.column
    own = [each for each in literals if {(node.owner, node.name) for node in _references(each)} == {place}]
    listed = [
        chance
        for reader, chance in relations[query.rates.relation.name]
        if all(holds(each, {(component.name, 1): {query.rates.column: reader}}, relations) for each in own)
    ]
    if len(set(listed)) > 1:
        message = f"the readers of {component.label} have different rates"
        raise ValueError(message)
    return float(listed[0]) if listed else 0.0


# ---------------------------------------------------------------- one disjunct


class Asking:
    """The query as one of its disjuncts has it.

    Attributes
    ----------
    query : BoundSequence
    literals : the conditions that must hold together
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
        self.positives = [place for place, component in enumerate(query.components) if not component.negative]
        # That what is asked of an event alone is asked first changes nothing but the time this takes.
        self.fitting = {component.name: list(self._fitting(component)) for component in query.components}

    def _fitting(self, component: BoundComponent) -> Iterator[Event]:
        """The events of a component, by its own conditions."""
        own = [literal for literal in self.literals if _owners(literal) == {component.name}]
        for event in self.events[component.stream.name.lower()]:
            if all(self._holds(literal, {component.name: event}) for literal in own):
                yield event

    def matches(self) -> Iterator[Found]:
        """Every match with a probability above 0."""
        for chosen in self._chains({}, self.positives):
            if self._is_true(chosen) and not self._is_spoiled(chosen, self.query.components):
                probability = self._score(chosen, 0, len(self.names))
                if probability > 0:
                    yield Found(MATCHED, chosen, probability, probability)

    def _chains(self, chosen: Chosen, places: Sequence[int]) -> Iterator[Chosen]:
        """Every choice for these components in which times increase, and keep WITHIN; what may be missing may be."""
        if not places:
            yield chosen
            return
        component = self.query.components[places[0]]
        if component.miss:
            yield from self._chains(chosen, places[1:])
        for event in self.fitting[component.name]:
            if self._follows(event, chosen):
                yield from self._chains({**chosen, component.name: event}, places[1:])

    def _follows(self, event: Event, chosen: Chosen) -> bool:
        if not chosen:
            return True
        first, *_, last = [*chosen.values()] * 2
        return event.time > last.time and (self.query.within is None or seconds(first, event) <= self.query.within)

    # ------------------------------------------------------------ partial matches

    def expired(self) -> Iterator[Found]:
        """Every partial match that nothing continues, and that is open at the close."""
        first = self.names[self.positives[0]]
        for state in self.positives[:-1]:
            until = [place for place in self.positives if place <= state]
            for chosen in self._chains({}, until):
                if first not in chosen or self.names[state] not in chosen or not self._is_partial(chosen, state):
                    continue
                if not any(self._is_partial(*longer) for longer in self._continued(chosen, state)):
                    yield from self._open(chosen, state)

    def _is_partial(self, chosen: Chosen, state: int) -> bool:
        """Whether the chain up to a component is valid, and probable enough."""
        start = self.names.index(next(iter(chosen)))
        passed = self.query.components[start : state + 1]
        lost = [component for component in passed if not component.negative and component.name not in chosen]
        if any(component.miss == 0 for component in lost):
            return False
        undecided = {component.name for component in self.query.components[state + 1 :]}
        if not self._is_true(chosen, undecided) or self._is_spoiled(chosen, passed, undecided):
            return False
        return _reaches(self._score(chosen, start, state + 1), self.query.threshold)

    def _continued(self, chosen: Chosen, state: int) -> Iterator[tuple[Chosen, int]]:
        """The chain with one more event, of any later positive component."""
        for place, component in enumerate(self.query.components):
            if place > state and not component.negative:
                for event in self.fitting[component.name]:
                    if self._follows(event, chosen):
                        yield {**chosen, component.name: event}, place

    def _open(self, chosen: Chosen, state: int) -> Iterator[Found]:
        """The partial match, unless the negatives that come next say otherwise."""
        later = self.query.components[state + 1 :]
        watched = list(itertools.takewhile(lambda component: component.negative, later))
        undecided = {component.name for component in later if not component.negative}
        if self._is_spoiled(chosen, watched, undecided):
            return
        start = self.names.index(next(iter(chosen)))
        held = self._score(chosen, start, state + 1)
        probability = held * gap_score(parts_of(watched), self._to_close(chosen), self.query.scoring)
        if probability > 0:
            yield Found(EXPIRED, chosen, probability, min(held, probability))

    # ------------------------------------------------------------ conditions

    def _is_true(self, chosen: Chosen, undecided: Iterable[str] = ()) -> bool:
        """Whether the events of a choice meet the conditions."""
        return all(self._holds(literal, chosen, undecided) for literal in self.literals) and self._agree(chosen)

    def _holds(self, literal: Typed, at_hand: Chosen, undecided: Iterable[str] = ()) -> bool:
        """Whether a condition is true of the events at hand, or passed over."""
        if equality(literal) is not None and not any(node.default for node in _references(literal)):
            return True
        absent = _owners(literal) - at_hand.keys()
        if not absent.isdisjoint(undecided) or (absent and _owners(literal) <= self.negatives):
            return True
        if any(node.owner in absent and node.default is None for node in _references(literal)):
            return True
        bindings = {(name, 1): event.columns for name, event in at_hand.items()}
        return holds(with_defaults(literal, absent), bindings, self.relations)

    def _agree(self, at_hand: Chosen) -> bool:
        """Whether the columns of each class, of the events at hand, are equal."""
        for members in self.classes:
            values = [at_hand[owner].columns[name] for owner, name in members if owner in at_hand]
            if len(values) > 1 and not all(value is not None and value == values[0] for value in values):
                return False
        return True

    def _is_spoiled(self, chosen: Chosen, components: Iterable[BoundComponent], undecided: Iterable[str] = ()) -> bool:
        """Whether there is an event of one of these components where none must be.

        None of a negative must be there, and with SCORING POSTERIOR none of what is taken as missing.
        """
        for component in components:
            if component.negative or (self.query.scoring == POSTERIOR and component.name not in chosen):
                for event in self.fitting[component.name]:
                    if self._lies_in_gap(event, component, chosen) and self._fits(event, component, chosen, undecided):
                        return True
        return False

    def _lies_in_gap(self, event: Event, component: BoundComponent, chosen: Chosen) -> bool:
        place = self.names.index(component.name)
        before = [other for name, other in chosen.items() if self.names.index(name) < place]
        after = [other for name, other in chosen.items() if self.names.index(name) > place]
        first, *_, last = [*chosen.values()] * 2
        starts = before[-1].time < event.time if before else seconds(event, last) <= self._within
        ends = event.time < after[0].time if after else seconds(first, event) <= self._within
        return starts and ends

    def _fits(self, event: Event, component: BoundComponent, chosen: Chosen, undecided: Iterable[str]) -> bool:
        """Whether an event could stand for a component that has none."""
        at_hand = {**chosen, component.name: event}
        own = [literal for literal in self.literals if component.name in _owners(literal)]
        return all(self._holds(literal, at_hand, undecided) for literal in own) and self._agree(at_hand)

    # ------------------------------------------------------------ probability

    def _score(self, chosen: Chosen, start: int, end: int) -> float:
        """The product of the gaps among the components from `start` to `end`."""
        score = 1.0
        gap: list[BoundComponent] = []
        before: Event | None = None
        for component in self.query.components[start:end]:
            event = chosen.get(component.name)
            if event is None:
                gap.append(component)
                continue
            if gap:
                length = self._from_opening(chosen) if before is None else seconds(before, event)
                score *= gap_score(parts_of(gap), length, self.query.scoring)
            gap, before = [], event
        return score * gap_score(parts_of(gap), self._to_close(chosen), self.query.scoring) if gap else score

    def _from_opening(self, chosen: Chosen) -> float:
        """How long before the first event the window opened, so as to end with the last one."""
        first, *_, last = [*chosen.values()] * 2
        return self._within - seconds(first, last)

    def _to_close(self, chosen: Chosen) -> float:
        """How long after the last event the window closes that opened with the first one."""
        return self._from_opening(chosen)

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
        return [each for part in where.arguments for each in disjuncts(part)]
    if isinstance(where, Operation) and where.op == "and":
        ways = itertools.product(*(disjuncts(part) for part in where.arguments))
        return [tuple(itertools.chain.from_iterable(way)) for way in ways]
    if isinstance(where, Operation) and where.op == "not":
        inner = _denied(where.arguments[0])
        return [(inner,)] if isinstance(inner, Operation) and inner.op == "not" else disjuncts(inner)
    return [(where,)]


def _denied(tree: Typed) -> Typed:
    """NOT of a condition, one level further in; NOT of what cannot be taken apart stays."""
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
    return {node.owner for node in _references(tree) if node.owner is not None}


def equality(literal: Typed) -> tuple[Reference, Reference] | None:
    """The two columns of an equality of plain columns."""
    if isinstance(literal, Operation) and literal.op == "=":
        left, right = literal.arguments
        if isinstance(left, Reference) and isinstance(right, Reference):
            return left, right
    return None


def classes_of(literals: Iterable[Typed]) -> list[set[tuple[str, str]]]:
    """The classes of columns that equalities, taken together, make equal."""
    classes: list[set[tuple[str, str]]] = []
    for pair in filter(None, map(equality, literals)):
        joined = {(node.owner or "", node.name) for node in pair}
        apart = [each for each in classes if each.isdisjoint(joined)]
        classes = [*apart, joined.union(*(each for each in classes if each not in apart))]
    return classes


def with_defaults(tree: Typed, absent: Collection[str]) -> Typed:
    """The tree with the defaults of its references to absent components."""
    if isinstance(tree, Reference) and tree.owner in absent:
        assert tree.default is not None
        return tree.default
    if isinstance(tree, Operation | Member):
        return replace(tree, arguments=tuple(with_defaults(part, absent) for part in tree.arguments))
    return tree
