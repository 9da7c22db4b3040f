"""The oracle of RELATE: enumerates all possible orders of the events, and adds up those in which the query holds.

An entity is a sequence of point events, numbered from 0: even ones open a segment, the next one closes it. An event has
a time, or it is lost and has a window. A *world* is one order of the events of both entities. The probability of a
query is the total probability of the worlds in which it holds. Unlike the kernel, the oracle carries no state from
instant to instant, has no special cases for quantifiers or relations, and computes in fractions.

Interpretation of the definitions
---------------------------------
- The lost events of an entity are uniform on all times that are within their windows and in the order of the entity's
  events. If all events of a run have the same window, they are uniform order statistics in it. A window may reach
  beyond the recorded neighbours; the order then narrows it. The two entities are independent.
- The times of an entity strictly increase. So a tie is between an event of one entity and an event of the other, both
  recorded. A tie with a lost event has probability 0.
- The outer quantifier counts the segments of the first entity that have enough segments of the second: all of them
  (None), at least k, or from k to m (AT MOST, EXACTLY). ALL of no segments holds; AT LEAST k of fewer than k does not.
- Conditions on segments say which segments of each entity count, and which two segments may be related. Quantifiers are
  about the segments that count.
- An opening event without a closing one opens no segment, but it is an event in the order of the entity.

Enumeration of worlds
---------------------
Time is cut at all recorded times and all ends of windows. A lost event is in one of the *gaps* between cuts. For a
choice of gaps for the events of an entity, the volume of their times is the product of d^n / n! over the gaps, where d
is the length of the gap and n its number of events. Within a gap, the events of both entities are uniform and
independent except for the order of each entity, so all their interleavings are equally likely.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.untraced import untraced

Number = int | Fraction

#: ALL (None), at least so many, or the least and the most.
Quantifier = int | tuple[int, int] | None
F64 = npt.NDArray[np.float64]

#: Sampling gives up after this many rounds of draws.
MOST_DRAWS = 5_000

#: Each relation between the intervals [x, x_end] and [y, y_end]; arguments may be arrays.
RELATIONS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "PRECEDES": lambda x, x_end, y, y_end: x_end < y,
    "MEETS": lambda x, x_end, y, y_end: x_end == y,
    "OVERLAPS": lambda x, x_end, y, y_end: (x < y) & (y < x_end) & (x_end < y_end),
    "STARTS": lambda x, x_end, y, y_end: (x == y) & (x_end < y_end),
    "DURING": lambda x, x_end, y, y_end: (y < x) & (x_end < y_end),
    "FINISHES": lambda x, x_end, y, y_end: (y < x) & (x_end == y_end),
    "EQUALS": lambda x, x_end, y, y_end: (x == y) & (x_end == y_end),
    "PRECEDED BY": lambda x, x_end, y, y_end: y_end < x,
    "MET BY": lambda x, x_end, y, y_end: y_end == x,
    "OVERLAPPED BY": lambda x, x_end, y, y_end: (y < x) & (x < y_end) & (y_end < x_end),
    "STARTED BY": lambda x, x_end, y, y_end: (x == y) & (y_end < x_end),
    "CONTAINS": lambda x, x_end, y, y_end: (x < y) & (y_end < x_end),
    "FINISHED BY": lambda x, x_end, y, y_end: (x < y) & (x_end == y_end),
}


class NoWorld(ValueError):
    """An entity whose times and windows contradict each other."""


@dataclass(frozen=True, slots=True)
class Window:
    """The times between which a lost event lies."""

    lo: Fraction
    hi: Fraction


@dataclass(frozen=True, slots=True)
class Entity:
    """The point events of a segmented interval, each with its time or, if it is lost, its window."""

    events: tuple[Fraction | Window, ...]

    @property
    def segments(self) -> int:
        """The number of complete segments."""
        return len(self.events) // 2

    @property
    def cuts(self) -> set[Fraction]:
        """The recorded times and the ends of windows."""
        ends = [(event.lo, event.hi) if isinstance(event, Window) else (event,) for event in self.events]
        return set(itertools.chain.from_iterable(ends))

    @property
    def arrays(self) -> tuple[F64, F64, F64]:
        """The times (NaN if lost) and the two ends of the windows (both the time if recorded)."""
        lost = [isinstance(event, Window) for event in self.events]
        ends = [(event.lo, event.hi) if isinstance(event, Window) else (event, event) for event in self.events]
        lo, hi = np.array(ends, dtype=np.float64).reshape(-1, 2).T.copy()
        return np.where(lost, np.nan, lo), lo, hi


def entity(
    times: Sequence[Number | None],
    horizon: tuple[Number, Number] | None = None,
    windows: Mapping[int, tuple[Number, Number]] | None = None,
) -> Entity:
    """An entity from the times of its events, None for lost ones.

    A lost event has the window given for its position. Without one, it lies between its recorded neighbours, or between
    one of them and the horizon.
    """
    windows = windows or {}
    return Entity(
        tuple(
            Window(*map(Fraction, windows.get(i) or _default_window(times, i, horizon))) if t is None else Fraction(t)
            for i, t in enumerate(times)
        )
    )


def _default_window(
    times: Sequence[Number | None], i: int, horizon: tuple[Number, Number] | None
) -> tuple[Number, Number]:
    """The window of the lost event i by its recorded neighbours and the horizon."""
    before = [t for t in times[:i] if t is not None]
    after = [t for t in times[i + 1 :] if t is not None]
    if horizon is None:
        assert before and after, "a first or last event is lost, and there is no horizon"
        return before[-1], after[0]
    return before[-1] if before else horizon[0], after[0] if after else horizon[1]


# ---------------------------------------------------------------- worlds

#: The slot of each event among the cuts: 2c is the cut c, 2c + 1 is the gap between the cuts c and c + 1.
Slots = tuple[int, ...]

#: A slot, and within a gap the number of the event among all events in it. Ranks have the order of times.
Rank = tuple[int, int]


@dataclass(frozen=True, slots=True)
class World:
    """One order of all events: the ranks of each entity's events. Equal recorded times have equal ranks."""

    weight: Fraction
    a: tuple[Rank, ...]
    b: tuple[Rank, ...]


@dataclass(frozen=True, slots=True)
class Conditions:
    """Which segments of each entity count, and whether segment x of the first may be related to y of the second."""

    first: tuple[bool, ...]
    second: tuple[bool, ...]
    pairs: tuple[tuple[bool, ...], ...]


@untraced
def probability(
    a: Entity,
    b: Entity,
    outer: Quantifier,
    inner: Quantifier,
    relations: frozenset[str],
    conditions: Conditions | None = None,
) -> Fraction:
    """P[for `outer` segments of a there are `inner` segments of b to which one of the relations holds]."""
    return sum(
        (world.weight for world in worlds(a, b) if holds(world.a, world.b, outer, inner, relations, conditions)),
        start=Fraction(0),
    )


@untraced
def distribution(
    a: Entity, b: Entity, inner: Quantifier, relations: frozenset[str], conditions: Conditions | None = None
) -> list[Fraction]:
    """P[exactly n segments of a have `inner` segments of b to which a relation holds], for n from 0 on."""
    weights: Counter[int] = Counter()
    for world in worlds(a, b):
        satisfied, total = satisfied_segments(world.a, world.b, inner, relations, conditions)
        weights[satisfied] += world.weight
    return [Fraction(weights[n]) for n in range(total + 1)]


def worlds(a: Entity, b: Entity) -> Iterator[World]:
    """Every order of the events of both entities, with its probability; the probabilities add up to 1."""
    cuts = sorted(a.cuts | b.cuts)
    of_b = list(weighted_placements(b, cuts))
    for weight_a, slots_a in weighted_placements(a, cuts):
        for weight_b, slots_b in of_b:
            orders = list(interleavings(slots_a, slots_b))
            for ranks_a, ranks_b in orders:
                yield World(weight_a * weight_b / len(orders), ranks_a, ranks_b)


def weighted_placements(entity: Entity, cuts: Sequence[Fraction]) -> Iterator[tuple[Fraction, Slots]]:
    """The possible slots of an entity's events, with the probability of each combination."""
    weighted = [(volume(slots, cuts), slots) for slots in placements(entity, cuts)]
    total = sum((weight for weight, _ in weighted), start=Fraction(0))
    if not total:
        message = f"no times fit all of {entity}"
        raise NoWorld(message)
    return ((weight / total, slots) for weight, slots in weighted)


def placements(entity: Entity, cuts: Sequence[Fraction]) -> Iterator[Slots]:
    """The possible slots of an entity's events: within their windows, and in order."""

    def extended(slots: Slots) -> Iterator[Slots]:
        if len(slots) == len(entity.events):
            yield slots
            return
        for slot in possible_slots(entity.events[len(slots)], cuts):
            together = slot % 2 == 1 and slots[-1:] == (slot,)
            if not slots or slots[-1] < slot or together:
                yield from extended((*slots, slot))

    return extended(())


def possible_slots(event: Fraction | Window, cuts: Sequence[Fraction]) -> list[int]:
    """The cut of a recorded event; the gaps within the window of a lost one."""
    if not isinstance(event, Window):
        return [2 * cuts.index(event)]
    return [2 * c + 1 for c in range(len(cuts) - 1) if event.lo <= cuts[c] and cuts[c + 1] <= event.hi]


def volume(slots: Slots, cuts: Sequence[Fraction]) -> Fraction:
    """The volume of the times of lost events in these slots: the product of d^n / n! over the gaps."""
    inside = Counter(slot // 2 for slot in slots if slot % 2)
    factors = ((cuts[c + 1] - cuts[c]) ** n / math.factorial(n) for c, n in inside.items())
    return math.prod(factors, start=Fraction(1))


def interleavings(slots_a: Slots, slots_b: Slots) -> Iterator[tuple[tuple[Rank, ...], tuple[Rank, ...]]]:
    """The ranks of both entities' events, for every order of the events of each gap."""
    gaps = sorted({slot for slot in (*slots_a, *slots_b) if slot % 2})
    # For each gap, every choice of numbers for the events of a; the events of b have the other numbers.
    choices = [
        list(itertools.combinations(range(slots_a.count(gap) + slots_b.count(gap)), slots_a.count(gap))) for gap in gaps
    ]
    for chosen in itertools.product(*choices):
        numbers_a = dict(zip(gaps, map(list, chosen), strict=True))
        numbers_b = {
            gap: [n for n in range(len(numbers) + slots_b.count(gap)) if n not in numbers]
            for gap, numbers in numbers_a.items()
        }
        yield _ranks(slots_a, numbers_a), _ranks(slots_b, numbers_b)


def _ranks(slots: Slots, numbers: dict[int, list[int]]) -> tuple[Rank, ...]:
    """Each slot with the next number of its gap."""
    following = {gap: iter(gap_numbers) for gap, gap_numbers in numbers.items()}
    return tuple((slot, next(following[slot]) if slot % 2 else 0) for slot in slots)


# ---------------------------------------------------------------- queries in a world


def holds(
    a: Sequence[Any],
    b: Sequence[Any],
    outer: Quantifier,
    inner: Quantifier,
    relations: frozenset[str],
    conditions: Conditions | None = None,
) -> bool:
    """Whether the query holds for entities whose events all have a time (or a rank)."""
    satisfied, total = satisfied_segments(a, b, inner, relations, conditions)
    return enough(satisfied, outer, total)


def satisfied_segments(
    a: Sequence[Any], b: Sequence[Any], inner: Quantifier, relations: frozenset[str], conditions: Conditions | None
) -> tuple[int, int]:
    """How many segments of a have `inner` segments of b to which a relation holds, and how many count."""
    first, second = segments(a), segments(b)
    if conditions is None:
        conditions = Conditions((True,) * len(first), (True,) * len(second), ((True,) * len(second),) * len(first))
    satisfied = 0
    for i, x in enumerate(first):
        if conditions.first[i]:
            count = sum(
                conditions.second[j] and conditions.pairs[i][j] and related(x, y, relations)
                for j, y in enumerate(second)
            )
            satisfied += bool(enough(count, inner, sum(conditions.second)))
    return satisfied, sum(conditions.first)


def segments(events: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The opening and closing events in pairs."""
    return list(zip(events[::2], events[1::2], strict=False))


def related(x: tuple[Any, Any], y: tuple[Any, Any], relations: frozenset[str]) -> bool:
    """Whether one of the relations holds between two intervals."""
    return any(RELATIONS[relation](*x, *y) for relation in relations)


def enough(count: Any, quantifier: Quantifier, total: int) -> Any:
    """Whether `count` of `total` segments satisfy a quantifier; `count` may be an array."""
    if quantifier is None:
        return count == total
    least, most = quantifier if isinstance(quantifier, tuple) else (quantifier, total)
    return (least <= count) & (count <= most)


# ---------------------------------------------------------------- sampling


def sampled(
    a: Entity,
    b: Entity,
    outer: Quantifier,
    inner: Quantifier,
    relations: frozenset[str],
    draws: int = 100_000,
    seed: int = 0,
) -> float:
    """An estimate of `probability` from random times, without cuts, gaps or orders.

    Its standard error is at most 0.5 / sqrt(draws).
    """
    random = np.random.default_rng(seed)
    times_a, times_b = (list(sample_times(operand, draws, random)) for operand in (a, b))
    satisfied = np.zeros(draws, dtype=int)
    for x in segments(times_a):
        count = np.zeros(draws, dtype=int)
        for y in segments(times_b):
            count += np.any([RELATIONS[relation](*x, *y) for relation in sorted(relations)], axis=0)
        satisfied += enough(count, inner, b.segments)
    return float(np.mean(enough(satisfied, outer, a.segments)))


def sample_times(entity: Entity, draws: int, random: np.random.Generator) -> F64:
    """Random times of an entity's events, one column per draw."""
    times, lo, hi = entity.arrays
    sampled_times = np.empty((len(times), draws))
    for lost, positions in itertools.groupby(range(len(times)), key=lambda i: bool(np.isnan(times[i]))):
        run = list(positions)
        if not lost:
            sampled_times[run] = times[run, None]
            continue
        first, last = run[0], run[-1]
        after = times[first - 1] if first > 0 else -np.inf
        before = times[last + 1] if last + 1 < len(times) else np.inf
        sampled_times[run] = _sample_run(np.maximum(lo[run], after), np.minimum(hi[run], before), draws, random)
    return sampled_times


def _sample_run(lo: F64, hi: F64, draws: int, random: np.random.Generator) -> F64:
    """Times of consecutive lost events: sorted if all have the same window, otherwise drawn until they are in order."""
    if np.all(lo == lo[0]) and np.all(hi == hi[0]):
        return np.sort(random.uniform(lo[0], hi[0], (len(lo), draws)), axis=0)
    kept, tried = np.empty((len(lo), 0)), 0
    while kept.shape[1] < draws:
        times = random.uniform(lo[:, None], hi[:, None], (len(lo), draws))
        kept = np.hstack([kept, times[:, np.all(np.diff(times, axis=0) > 0, axis=0)]])
        tried += 1
        if tried > MOST_DRAWS:
            message = "almost no draws from the windows are in order"
            raise NoWorld(message)
    return kept[:, :draws]
