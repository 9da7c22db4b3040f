"""Hypothesis strategies for RELATE: small random pairs of entities with lost events, and queries about them.

Every entity is drawn completely, then some of its events are lost. The windows contain the lost times, so there is
always a possible world. Times come from a small domain, so that recorded events of the two entities often tie, and ends
of windows often coincide with them. The first element of a list of alternatives is the simplest one, because failing
cases shrink towards it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from tests.oracles.relate import Entity, Quantifier, entity, related, segments, worlds

from anabranch.relate.query import COMPOSITE, SIMPLE

Draw = Callable[[st.SearchStrategy[Any]], Any]

#: Every lost event lies between its recorded neighbours, or between one of them and the horizon.
DEFAULT = "default"
#: Consecutive lost events have the same window, which may be narrower than that.
COMMON = "common"
#: Every lost event may have its own window; the windows of neighbours may overlap.
DIFFERING = "differing"
WINDOWS = (DEFAULT, COMMON, DIFFERING)

#: All times are whole multiples of one of these units; some of them are not binary fractions.
UNITS = (Fraction(1), Fraction(1, 2), Fraction(1, 3), Fraction(7, 10))

#: The last time of an event, in units; horizons and windows may be up to two units wider, and begin at -2.
LATEST = 9
MOST_SEGMENTS = 3
MOST_LOST = 5


@dataclass(frozen=True)
class Case:
    """Two entities and a query: quantifiers and a union of simple relations."""

    a: Entity
    b: Entity
    outer: Quantifier
    inner: Quantifier
    relations: frozenset[str]

    @property
    def mask(self) -> int:
        """The relations as bits, in the order of SIMPLE."""
        return sum(1 << i for i, relation in enumerate(SIMPLE) if relation in self.relations)


@st.composite
def cases(
    draw: Draw, windows: str = DIFFERING, most_lost: int = MOST_LOST, wide: bool = False, limits: bool = True
) -> Case:
    """Two entities and a query about them.

    Parameters
    ----------
    windows : str
        DEFAULT, COMMON or DIFFERING.
    most_lost : int
        The most lost events of both entities together.
    wide : bool
        Whether a window may reach beyond the recorded neighbours; the order of events then narrows it.
    limits : bool
        Whether a quantifier may be AT MOST or EXACTLY.
    """
    unit = draw(st.sampled_from(UNITS))
    first = draw(entities(unit, windows, draw(st.integers(0, most_lost)), wide))
    lost = sum(not isinstance(event, Fraction) for event in first.events)
    second = draw(entities(unit, windows, most_lost - lost, wide))
    a, b = (second, first) if draw(st.booleans()) else (first, second)
    relations = draw(unions) | draw(st.sampled_from((*possible_relations(a, b), frozenset())))
    outer, inner = (draw(quantifiers(entity.segments, limits)) for entity in (a, b))
    return Case(a, b, outer, inner, relations)


def possible_relations(a: Entity, b: Entity) -> list[frozenset[str]]:
    """Relations that hold in some world; with random relations only, most answers would be 0."""
    world = next(worlds(a, b))
    pairs = [(x, y) for x in segments(world.a) for y in segments(world.b)]
    return [alone for alone in (frozenset({name}) for name in SIMPLE) if any(related(x, y, alone) for x, y in pairs)]


@st.composite
def entities(
    draw: Draw,
    unit: Fraction = Fraction(1),
    windows: str = DIFFERING,
    most_lost: int = MOST_LOST,
    wide: bool = False,
    horizon: tuple[int, int] | None = None,
) -> Entity:
    """An entity with some lost events; its horizon is drawn if none is given."""
    count = 2 * draw(st.sampled_from(range(1, MOST_SEGMENTS + 1)))
    truth = sorted(draw(st.sets(st.integers(0, LATEST), min_size=count, max_size=count)))
    # A flag for each event, not a set of lost events: Hypothesis draws small sets.
    flags = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    candidates = [i for i, is_lost in enumerate(flags) if is_lost]
    skipped = draw(st.integers(0, max(0, len(candidates) - most_lost)))
    lost = set(candidates[skipped : skipped + most_lost])
    times = [None if i in lost else t for i, t in enumerate(truth)]
    horizon = horizon or (truth[0] - draw(st.integers(1, 2)), truth[-1] + draw(st.integers(1, 2)))
    chosen_windows = {
        i: window
        for run in runs(lost)
        for i, window in draw(run_windows([truth[i] for i in run], run, _bounds(times, run, horizon), windows, wide))
    }
    return entity(
        [None if t is None else t * unit for t in times],
        (horizon[0] * unit, horizon[1] * unit),
        {i: (lo * unit, hi * unit) for i, (lo, hi) in chosen_windows.items()},
    )


def runs(lost: set[int]) -> list[list[int]]:
    """The lost positions, grouped into runs of consecutive positions."""
    groups: list[list[int]] = []
    for i in sorted(lost):
        if groups and groups[-1][-1] == i - 1:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _bounds(times: list[int | None], run: list[int], horizon: tuple[int, int]) -> tuple[int, int]:
    """The recorded times around a run, or the horizon."""
    before = times[run[0] - 1] if run[0] > 0 else None
    after = times[run[-1] + 1] if run[-1] + 1 < len(times) else None
    return horizon[0] if before is None else before, horizon[1] if after is None else after


@st.composite
def run_windows(
    draw: Draw, truth: list[int], run: list[int], bounds: tuple[int, int], windows: str, wide: bool
) -> list[tuple[int, tuple[int, int]]]:
    """Windows for some of the events of a run; the others have the default window."""
    least, most = (-2, LATEST + 2) if wide else bounds
    if windows == COMMON and draw(st.booleans()):
        window = (draw(st.integers(least, truth[0] - 1)), draw(st.integers(truth[-1] + 1, most)))
        return [(i, window) for i in run]
    if windows == DIFFERING:
        narrowed = [pair for pair in zip(run, truth, strict=True) if draw(st.booleans())]
        return [(i, (draw(st.integers(least, t - 1)), draw(st.integers(t + 1, most)))) for i, t in narrowed]
    return []


def quantifiers(segments: int, limits: bool = True) -> st.SearchStrategy[Quantifier]:
    """SOME, ALL, and other counts; rarely more than there are segments, which no AT LEAST satisfies."""
    numbers = range(segments + 1) if limits else ()
    at_most, exactly = [(0, n) for n in numbers], [(n, n) for n in numbers]
    return st.sampled_from([*3 * (1, None, *range(2, segments + 1)), segments + 1, *at_most, *exactly])


def written(quantifier: Quantifier) -> str:
    """A quantifier in the language."""
    if not isinstance(quantifier, tuple):
        return "ALL" if quantifier is None else f"AT LEAST {quantifier}"
    least, most = quantifier
    return f"{'EXACTLY' if least else 'AT MOST'} {most}"


#: A random union, a composite relation, or a single relation.
unions = st.one_of(
    st.lists(st.booleans(), min_size=len(SIMPLE), max_size=len(SIMPLE))
    .filter(any)
    .map(lambda chosen: [relation for relation, is_in in zip(SIMPLE, chosen, strict=True) if is_in]),
    st.sampled_from(list(COMPOSITE.values())),
    st.sampled_from(SIMPLE).map(lambda relation: (relation,)),
).map(frozenset)
