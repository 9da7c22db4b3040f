"""Hypothesis strategies for RELATE: streams of entities as a workbook and rows, and what the oracle says of them.

Entities come from `strategies`, in whole numbers of some unit; rows say the same in the type of the time column. A lost
event is a row without a time, or no row where it would say nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from tests.oracles.relate import Entity, Window, probability
from tests.relate.strategies import (
    COMMON,
    DEFAULT,
    DIFFERING,
    LATEST,
    entities,
    possible_relations,
    quantifiers,
    unions,
)
from tests.splits import Draw, Row, Rows

from anabranch.transport.interval_columns import ROLES

#: The key of an entity: a group, and a number in it.
Key = tuple[int, int]

#: What every entity of a stream with HORIZON lies within, in units.
HORIZON = (-2, LATEST + 2)

_NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

#: How a number of units is written: the type of the time column, the unit, and one instant as a value and as a text.
TIMES: dict[str, tuple[str, float, Callable[[int], Any], Callable[[int], str]]] = {
    "whole": ("INTEGER", 1, lambda n: n, str),
    "nanoseconds": ("INTEGER", 10**9, lambda n: 17 * 10**17 + n * 10**9, lambda n: str(17 * 10**17 + n * 10**9)),
    "tenths": ("DOUBLE", 0.1, lambda n: n * 0.1, lambda n: repr(n * 0.1)),
    "hours": (
        "TIMESTAMP", 3600, lambda n: _NEW_YEAR + timedelta(hours=n),
        lambda n: f"'{_NEW_YEAR + timedelta(hours=n):%Y-%m-%d %H:%M:%S}'",
    ),
}  # fmt: skip

#: WHERE, and what it says of two keys.
CONDITIONS: dict[str, Callable[[Key, Key], bool]] = {
    "": lambda a, b: True,
    "WHERE a.k <= b.k": lambda a, b: a[1] <= b[1],
    "WHERE a.g = b.g": lambda a, b: a[0] == b[0],
    "WHERE b.g = a.g AND a.k <> b.k": lambda a, b: a[0] == b[0] and a[1] != b[1],
    "WHERE a.g = b.k": lambda a, b: a[0] == b[1],
    "WHERE a.g = 0 AND a.k + b.k > 0": lambda a, b: a[0] == 0 and a[1] + b[1] > 0,
}


@dataclass(frozen=True)
class Workload:
    """A query over one stream or two, their rows, and the entities that the rows tell of."""

    workbook: str
    times: str
    rows: Rows
    first: dict[Key, Entity]
    second: dict[Key, Entity]
    same_stream: bool
    chosen: Callable[[Key, Key], bool]
    outer: int | None
    inner: int | None
    relations: frozenset[str]
    threshold: float

    def expected(self) -> dict[tuple[Key, Key], float]:
        """The answers, by the enumeration of worlds."""
        pairs = [
            (a, b)
            for a, b in itertools.product(self.first, self.second)
            if self.chosen(a, b) and not (self.same_stream and a == b)
        ]
        query = (self.outer, self.inner, self.relations)
        found = {(a, b): float(probability(self.first[a], self.second[b], *query)) for a, b in pairs}
        return {pair: p for pair, p in found.items() if p > 0 and p >= self.threshold}


@dataclass(frozen=True)
class _Clauses:
    """What a stream declares."""

    times: str
    horizon: bool
    window: bool
    length: bool
    role: bool

    def declared(self, name: str, watermark: float) -> str:
        """The stream as a statement."""
        kind, unit, _, text = TIMES[self.times]
        clauses = [
            f"CREATE STREAM {name} KEY (g INTEGER, k INTEGER) TIME t {kind} MODEL INTERVALS ORDER seq",
            f"HORIZON [{text(HORIZON[0])}, {text(HORIZON[1])}]" if self.horizon else "",
            "WINDOW (lo, hi)" if self.window else "",
            "LENGTH n" if self.length else "",
            "ROLE what" if self.role else "",
            f"WATERMARK {watermark * unit:g};" if watermark else ";",
        ]
        return " ".join(filter(None, clauses))


@st.composite
def workloads(
    draw: Draw,
    watermark: int = 0,
    timeout: bool = False,
    horizon: bool | None = None,
    twice: bool = True,
    ends: bool = False,
) -> Workload:
    """A query and its data.

    Parameters
    ----------
    watermark : how late rows may come, in units
    timeout : whether the query has a TIMEOUT, which may end entities before their last event
    horizon : whether streams have a HORIZON or WINDOW; None for either
    twice : whether some rows may be there twice
    ends : whether some row of every entity says how many events it has
    """
    times = draw(st.sampled_from(list(TIMES)))
    names = draw(st.sampled_from([("s",), ("s", "r")]))
    condition = draw(st.sampled_from(list(CONDITIONS)))
    text, rows, known = [], {}, []
    for name in names:
        clauses = draw(_clauses(times, horizon, ends))
        own = draw(_entities(clauses))
        known.append(own)
        rows[name] = [row for key, each in own.items() for row in draw(_rows(clauses, key, each))]
        rows[name] += draw(st.lists(st.sampled_from(rows[name]), max_size=2)) if twice else []
        text.append(clauses.declared(name, watermark))
    relations = draw(unions) | draw(_likely_relations(known[0], known[-1]))
    outer, inner = (draw(quantifiers(max(each.segments for each in own.values()))) for own in (known[0], known[-1]))
    threshold = draw(st.sampled_from([0.0, 0.5]))
    limit = f"TIMEOUT {draw(st.integers(1, 6)) * TIMES[times][1]:g}" if timeout else ""
    text.append(
        f"CREATE QUERY q AS RELATE {_quantified(outer, 'a')} ({' OR '.join(sorted(relations))}) "
        f"{_quantified(inner, 'b')} FROM {names[0]} AS a, {names[-1]} AS b {condition} COMPLEMENT "
        f"THRESHOLD {threshold} {limit};"
    )
    same = len(names) == 1
    chosen = CONDITIONS[condition]
    return Workload("\n".join(text), times, rows, known[0], known[-1], same, chosen, outer, inner, relations, threshold)


@st.composite
def _likely_relations(draw: Draw, first: dict[Key, Entity], second: dict[Key, Entity]) -> frozenset[str]:
    """A relation that some pair may have: with drawn ones alone, there are few answers."""
    a, b = draw(st.sampled_from(list(first.values()))), draw(st.sampled_from(list(second.values())))
    return draw(st.sampled_from((*possible_relations(a, b), frozenset())))


def _quantified(at_least: int | None, name: str) -> str:
    return f"ALL {name}" if at_least is None else f"AT LEAST {at_least} {name}"


@st.composite
def _clauses(draw: Draw, times: str, horizon: bool | None, ends: bool) -> _Clauses:
    window = horizon is not False and draw(st.booleans())
    return _Clauses(
        times,
        horizon=horizon is not False and (draw(st.booleans()) or (horizon is True and not window)),
        window=window,
        length=ends or draw(st.booleans()),
        role=draw(st.booleans()),
    )


@st.composite
def _entities(draw: Draw, clauses: _Clauses) -> dict[Key, Entity]:
    """Entities whose windows can be told by the clauses of their stream."""
    key = st.tuples(st.integers(0, 1), st.integers(0, 2))
    keys = draw(st.lists(key, min_size=2, max_size=3, unique=True))
    kind = draw(st.sampled_from([COMMON, DIFFERING])) if clauses.window else DEFAULT
    wide = clauses.window and draw(st.booleans())
    return {each: draw(_entity(clauses, kind, wide)) for each in keys}


def _entity(clauses: _Clauses, kind: str, wide: bool) -> st.SearchStrategy[Entity]:
    found = entities(windows=kind, most_lost=2, wide=wide, horizon=HORIZON if clauses.horizon else None)
    if clauses.horizon or clauses.window:
        return found
    return found.filter(lambda each: not any(isinstance(event, Window) for event in (each.events[0], each.events[-1])))


@st.composite
def _rows(draw: Draw, clauses: _Clauses, key: Key, entity: Entity) -> list[Row]:
    """The rows of an entity: at least one, and every one that says what is not known without it."""
    instant = TIMES[clauses.times][2]
    last = len(entity.events)
    rows = []
    for seq, event in enumerate(entity.events, start=1):
        lost, implied = isinstance(event, Window), _implied(clauses, entity, seq - 1)
        # What is lost may have no row, but where it says when, or that there was such an event.
        silent = lost and event == implied and (seq < last or clauses.length)
        if silent and draw(st.booleans()):
            continue
        row = {"g": key[0], "k": key[1], "seq": seq, "t": None if lost else instant(int(event))}
        row["at"] = _arrives(entity, seq - 1)
        if lost and (event != implied or (clauses.window and draw(st.booleans()))):
            row |= {"lo": instant(int(event.lo)), "hi": instant(int(event.hi))}
        if clauses.role and draw(st.booleans()):
            row["what"] = ROLES[0] if seq == 1 else ROLES[3] if seq == last else ROLES[1 + seq % 2]
        rows.append(row)
    if not rows:
        rows.append({"g": key[0], "k": key[1], "seq": last, "t": None, "at": 0})
    told = draw(st.sets(st.sampled_from(range(len(rows))), min_size=1)) if clauses.length else ()
    return [row | ({"n": last} if place in told else {}) for place, row in enumerate(rows)]


def _implied(clauses: _Clauses, entity: Entity, place: int) -> Window | None:
    """The window of an event if no row says more of it."""
    recorded = [None if isinstance(event, Window) else event for event in entity.events]
    before = [t for t in recorded[:place] if t is not None]
    after = [t for t in recorded[place + 1 :] if t is not None]
    ends = HORIZON if clauses.horizon else (None, None)
    lo, hi = before[-1] if before else ends[0], after[0] if after else ends[1]
    return None if lo is None or hi is None else Window(lo, hi)


def _arrives(entity: Entity, place: int) -> int:
    """About when a row comes, in units: at its time, or after the recorded event ahead of it."""
    recorded = [(abs(i - place), i > place, e) for i, e in enumerate(entity.events) if not isinstance(e, Window)]
    ahead = [event for distance, behind, event in sorted(recorded) if not behind]
    return int((ahead or [event for *_, event in sorted(recorded)] or [0])[0])


# ---------------------------------------------------------------- arrival


def clock(row: Row) -> int:
    """About when a row comes."""
    return row["at"]


def arrivals(rows: Rows) -> dict[str, list[list[Row]]]:
    """The rows that must come together, stream by stream: a recorded event, and what was lost after it.

    A TIMEOUT can tell of a row without a time only by what it came with.
    """
    together: dict[str, list[list[Row]]] = {}
    for name, own in rows.items():
        ordered = sorted(own, key=lambda row: (row["g"], row["k"], row["at"], row["t"] is None))
        groups = itertools.groupby(ordered, key=lambda row: (row["g"], row["k"], row["at"]))
        together[name] = [list(group) for _, group in groups]
    return together


def arrived(batches: list[dict[str, list[list[Row]]]]) -> list[Rows]:
    """The rows of micro-batches of `arrivals`."""
    return [{name: [*itertools.chain.from_iterable(own)] for name, own in batch.items()} for batch in batches]
