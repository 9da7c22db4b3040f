"""Hypothesis strategies for RELATE: streams of entities as a workbook and rows, and the answers of the oracle.

Entities come from `strategies`, in whole numbers of a unit; rows have the type of the time column. A lost event is a
row without a time, or no row if the row would add no information. Some streams have DURATION and GAP; their entities
have one lost event, so that the oracle can integrate over those of a pair.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from tests.oracles import relate_durations
from tests.oracles.relate import Conditions, Entity, Quantifier, Window, distribution, enough
from tests.oracles.relate_durations import Law, Timed
from tests.relate.strategies import (
    COMMON,
    DEFAULT,
    DIFFERING,
    LATEST,
    entities,
    possible_relations,
    quantifiers,
    unions,
    written,
)
from tests.splits import Draw, Row, Rows

from anabranch.transport.interval_columns import ROLES

#: The key of an entity: a group, and a number in it.
Key = tuple[int, int]

#: The HORIZON of streams that have one, in units.
HORIZON = (-2, LATEST + 2)

_NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)

#: Types of time columns: the type, the length of a unit, and functions from units to a value and to a literal.
TIMES: dict[str, tuple[str, float, Callable[[int], Any], Callable[[int], str]]] = {
    "whole": ("INTEGER", 1, lambda n: n, str),
    "nanoseconds": ("INTEGER", 10**9, lambda n: 17 * 10**17 + n * 10**9, lambda n: str(17 * 10**17 + n * 10**9)),
    "tenths": ("DOUBLE", 0.1, lambda n: n * 0.1, lambda n: repr(n * 0.1)),
    "hours": (
        "TIMESTAMP", 3600, lambda n: _NEW_YEAR + timedelta(hours=n),
        lambda n: f"'{_NEW_YEAR + timedelta(hours=n):%Y-%m-%d %H:%M:%S}'",
    ),
}  # fmt: skip

#: WHERE clauses, and the same condition on two keys in Python.
CONDITIONS: dict[str, Callable[[Key, Key], bool]] = {
    "": lambda a, b: True,
    "WHERE a.k <= b.k": lambda a, b: a[1] <= b[1],
    "WHERE a.g = b.g": lambda a, b: a[0] == b[0],
    "WHERE b.g = a.g AND a.k <> b.k": lambda a, b: a[0] == b[0] and a[1] != b[1],
    "WHERE a.g = b.k": lambda a, b: a[0] == b[1],
    "WHERE a.g = 0 AND a.k + b.k > 0": lambda a, b: a[0] == 0 and a[1] + b[1] > 0,
}


#: The attribute of a segment: a number, None (NULL), or UNKNOWN if its opening event has no row.
Attribute = int | None | str
UNKNOWN = "unknown"


def _compared(test: Callable[[int, int], bool]) -> Callable[..., bool]:
    """A comparison of values, which is not satisfied if one of them is NULL."""
    return lambda x, y: x is not None and y is not None and test(x, y)


#: Conditions on attributes: the operands whose attributes they use, and the same condition on the key and the attribute
#: of both segments in Python. An attribute that is used is known.
SEGMENT_CONDITIONS: dict[str, tuple[str, Callable[[Key, Attribute, Key, Attribute], bool]]] = {
    "a.v = b.v": ("ab", lambda a, v, b, w: _compared(lambda x, y: x == y)(v, w)),
    "(a.v < b.v OR b.v IS NULL)": ("ab", lambda a, v, b, w: w is None or _compared(lambda x, y: x < y)(v, w)),
    "a.v + b.v <> a.k": ("ab", lambda a, v, b, w: _compared(lambda x, y: x + y != a[1])(v, w)),
    "a.v >= 1": ("a", lambda a, v, b, w: v is not None and v >= 1),
    "a.v <> b.k": ("a", lambda a, v, b, w: v is not None and v != b[1]),
    "b.v IS NOT NULL": ("b", lambda a, v, b, w: w is not None),
    "(b.v IS NULL OR b.v < 2)": ("b", lambda a, v, b, w: w is None or w < 2),
}

#: The distribution of the time from each event of an entity to the next.
EntityLaws = tuple[Law | None, ...]


@dataclass(frozen=True)
class _Times:
    """A distribution of DURATION or GAP; without a mean, rows have it in the column m."""

    k: int
    mean: float | None

    def written(self, unit: float) -> str:
        """The distribution in the language."""
        mean = "m" if self.mean is None else f"{self.mean * unit:g}"
        return f"EXPONENTIAL({mean})" if self.k == 1 else f"ERLANG({self.k}, {mean})"


#: What DURATION and GAP of a stream may be.
_LAWS = [
    (None, None),
    (_Times(1, 0.5), None),
    (_Times(3, 2.0), _Times(1, 1.0)),
    (None, _Times(2, None)),
    (_Times(2, None), _Times(1, None)),
]


@dataclass(frozen=True)
class Workload:
    """A query over one or two streams, their rows, and the entities of the rows."""

    workbook: str
    times: str
    rows: Rows
    first: dict[Key, Entity]
    second: dict[Key, Entity]
    laws: tuple[dict[Key, EntityLaws], dict[Key, EntityLaws]]
    same_stream: bool
    chosen: Callable[[Key, Key], bool]
    outer: Quantifier
    inner: Quantifier
    relations: frozenset[str]
    threshold: float
    attributes: tuple[dict[Key, list[Attribute]], dict[Key, list[Attribute]]]
    on_segments: tuple[str, ...]

    def distributions(self) -> dict[tuple[Key, Key], list[float]]:
        """The distribution of the number of satisfied segments of each pair, by the oracle."""
        return {
            (a, b): self._distribution(a, b)
            for a, b in itertools.product(self.first, self.second)
            if self.chosen(a, b) and not (self.same_stream and a == b)
        }

    def expected(self) -> dict[tuple[Key, Key], float]:
        """The answers of the oracle."""
        probabilities = {
            pair: sum(p for n, p in enumerate(weights) if enough(n, self.outer, len(weights) - 1))
            for pair, weights in self.distributions().items()
        }
        return {pair: p for pair, p in probabilities.items() if p > 0 and p >= self.threshold}

    def _distribution(self, a: Key, b: Key) -> list[float]:
        operands = [(self.first[a], self.laws[0].get(a)), (self.second[b], self.laws[1].get(b))]
        query = (self.inner, self.relations, self._conditions(a, b))
        if not any(laws for _, laws in operands):
            return [float(p) for p in distribution(self.first[a], self.second[b], *query)]
        timed = [
            Timed(entity, laws if laws is not None else (None,) * (len(entity.events) - 1)) for entity, laws in operands
        ]
        return relate_durations.distribution(*timed, *query)

    def _conditions(self, a: Key, b: Key) -> Conditions | None:
        if not self.on_segments:
            return None
        first, second = self.attributes[0][a], self.attributes[1][b]

        def satisfied(used: str, v: Attribute, w: Attribute) -> bool:
            parts = [SEGMENT_CONDITIONS[text] for text in self.on_segments]
            parts = [part for part in parts if part[0] == used]
            known = not ("a" in used and v == UNKNOWN) and not ("b" in used and w == UNKNOWN)
            return not parts or (known and all(test(a, v, b, w) for _, test in parts))

        return Conditions(
            tuple(satisfied("a", v, None) for v in first),
            tuple(satisfied("b", None, w) for w in second),
            tuple(tuple(satisfied("ab", v, w) for w in second) for v in first),
        )


@dataclass(frozen=True)
class _Clauses:
    """The clauses of a stream."""

    times: str
    horizon: bool
    window: bool
    length: bool
    role: bool
    duration: _Times | None = None
    gap: _Times | None = None

    def laws_of(self, entity: Entity, rows: list[Row]) -> EntityLaws:
        """The distribution of the time from each event of an entity to the next."""
        unit = TIMES[self.times][1]
        by_seq = {row["seq"]: row["m"] / unit for row in rows if row.get("m") is not None}
        laws: list[Law | None] = []
        for state in range(1, len(entity.events)):
            law = self.duration if state % 2 else self.gap
            opening = state if state % 2 else state - 1
            if law is None:
                laws.append(None)
            elif law.mean is not None:
                laws.append(Law(law.k, law.mean))
            else:
                laws.append(Law(law.k, by_seq.get(opening, sum(by_seq.values()) / len(by_seq))))
        return tuple(laws)

    def declared(self, name: str, watermark: float) -> str:
        """The CREATE STREAM statement."""
        kind, unit, _, text = TIMES[self.times]
        clauses = [
            f"CREATE STREAM {name} KEY (g INTEGER, k INTEGER) VALUE (u STRING, v INTEGER) TIME t {kind}",
            "MODEL INTERVALS ORDER seq",
            f"HORIZON [{text(HORIZON[0])}, {text(HORIZON[1])}]" if self.horizon else "",
            "WINDOW (lo, hi)" if self.window else "",
            "LENGTH n" if self.length else "",
            "ROLE what" if self.role else "",
            f"DURATION {self.duration.written(unit)}" if self.duration else "",
            f"GAP {self.gap.written(unit)}" if self.gap else "",
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
    watermark : the maximum delay of rows, in units
    timeout : whether the query has a TIMEOUT, which may end entities before their last event
    horizon : whether streams have a HORIZON or WINDOW; None draws it
    twice : whether there may be duplicate rows
    ends : whether every entity has a row with its LENGTH
    """
    times = draw(st.sampled_from(list(TIMES)))
    names = draw(st.sampled_from([("s",), ("s", "r")]))
    condition = draw(st.sampled_from(list(CONDITIONS)))
    on_segments = tuple(draw(st.lists(st.sampled_from(list(SEGMENT_CONDITIONS)), max_size=2, unique=True)))
    text, rows, drawn, laws, attributes = [], {}, [], [], []
    with_laws = draw(st.sampled_from([False, False, True]))
    for name in names:
        clauses = draw(_clauses(times, horizon, ends, with_laws))
        stream_entities = draw(_entities(clauses, 1 if with_laws else 2))
        drawn.append(stream_entities)
        by_entity = {key: draw(_rows(clauses, key, entity)) for key, entity in stream_entities.items()}
        has_laws = clauses.duration or clauses.gap
        attributes.append({key: _attributes(stream_entities[key], by_entity[key]) for key in by_entity})
        laws.append({key: clauses.laws_of(stream_entities[key], by_entity[key]) for key in by_entity if has_laws})
        rows[name] = [row for entity_rows in by_entity.values() for row in entity_rows]
        rows[name] += draw(st.lists(st.sampled_from(rows[name]), max_size=2)) if twice else []
        text.append(clauses.declared(name, watermark))
    first, second = drawn[0], drawn[-1]
    relations = draw(unions) | draw(_likely_relations(first, second))
    outer, inner = (draw(quantifiers(max(entity.segments for entity in side.values()))) for side in (first, second))
    threshold = draw(st.sampled_from([0.0, 0.5]))
    limit = f"TIMEOUT {draw(st.integers(1, 6)) * TIMES[times][1]:g}" if timeout else ""
    where = " AND ".join([condition.removeprefix("WHERE "), *on_segments] if condition else on_segments)
    count = draw(st.sampled_from(["", "COUNT"]))
    text.append(
        f"CREATE QUERY q AS RELATE {written(outer)} a ({' OR '.join(sorted(relations))}) {written(inner)} b "
        f"FROM {names[0]} AS a, {names[-1]} AS b {f'WHERE {where}' if where else ''} COMPLEMENT {count} "
        f"THRESHOLD {threshold} {limit};"
    )
    same = len(names) == 1
    return Workload(
        "\n".join(text), times, rows, first, second, (laws[0], laws[-1]), same, CONDITIONS[condition],
        outer, inner, relations, threshold, (attributes[0], attributes[-1]), on_segments,
    )  # fmt: skip


def _attributes(entity: Entity, rows: list[Row]) -> list[Attribute]:
    """The attribute of each segment: that of the row of its opening event."""
    by_seq = {row["seq"]: row["v"] for row in rows}
    return [by_seq.get(2 * number + 1, UNKNOWN) for number in range(entity.segments)]


@st.composite
def _likely_relations(draw: Draw, first: dict[Key, Entity], second: dict[Key, Entity]) -> frozenset[str]:
    """A relation that some pair may have; with random relations only, there would be few answers."""
    a, b = draw(st.sampled_from(list(first.values()))), draw(st.sampled_from(list(second.values())))
    return draw(st.sampled_from((*possible_relations(a, b), frozenset())))


@st.composite
def _clauses(draw: Draw, times: str, horizon: bool | None, ends: bool, with_laws: bool) -> _Clauses:
    window = horizon is not False and draw(st.booleans())
    duration, gap = draw(st.sampled_from(_LAWS)) if with_laws else (None, None)
    return _Clauses(
        times,
        horizon=horizon is not False and (draw(st.booleans()) or (horizon is True and not window)),
        window=window,
        length=ends or draw(st.booleans()),
        role=draw(st.booleans()),
        duration=duration,
        gap=gap,
    )


@st.composite
def _entities(draw: Draw, clauses: _Clauses, most_lost: int) -> dict[Key, Entity]:
    """Entities whose windows can be expressed by the clauses of their stream."""
    key = st.tuples(st.integers(0, 1), st.integers(0, 2))
    keys = draw(st.lists(key, min_size=2, max_size=3, unique=True))
    kind = draw(st.sampled_from([COMMON, DIFFERING])) if clauses.window else DEFAULT
    wide = clauses.window and draw(st.booleans())
    return {drawn_key: draw(_entity(clauses, kind, wide, most_lost)) for drawn_key in keys}


def _entity(clauses: _Clauses, kind: str, wide: bool, most_lost: int) -> st.SearchStrategy[Entity]:
    drawn = entities(windows=kind, most_lost=most_lost, wide=wide, horizon=HORIZON if clauses.horizon else None)
    if clauses.horizon or clauses.window:
        return drawn
    return drawn.filter(
        lambda entity: not any(isinstance(event, Window) for event in (entity.events[0], entity.events[-1]))
    )


@st.composite
def _rows(draw: Draw, clauses: _Clauses, key: Key, entity: Entity) -> list[Row]:
    """The rows of an entity: at least one, and all rows that add information."""
    instant = TIMES[clauses.times][2]
    last = len(entity.events)
    rows = []
    for seq, event in enumerate(entity.events, start=1):
        lost, implied = isinstance(event, Window), _implied(clauses, entity, seq - 1)
        # A lost event needs a row only for its window, or because it is the last one and there is no LENGTH.
        may_be_omitted = lost and event == implied and (seq < last or clauses.length)
        if may_be_omitted and draw(st.booleans()):
            continue
        row = {"g": key[0], "k": key[1], "seq": seq, "t": None if lost else instant(int(event))}
        row |= {"u": "x", "v": draw(st.sampled_from([0, 1, 2, None])), "at": _arrival(entity, seq - 1)}
        if lost and (event != implied or (clauses.window and draw(st.booleans()))):
            row |= {"lo": instant(int(event.lo)), "hi": instant(int(event.hi))}
        if clauses.role and draw(st.booleans()):
            row["what"] = ROLES[0] if seq == 1 else ROLES[3] if seq == last else ROLES[1 + seq % 2]
        rows.append(row)
    if not rows:
        rows.append({"g": key[0], "k": key[1], "seq": last, "t": None, "u": "x", "v": 0, "at": 0})
    if any(law is not None and law.mean is None for law in (clauses.duration, clauses.gap)):
        unit = TIMES[clauses.times][1]
        for index, row in enumerate(rows):  # one row has a mean; the others may have one
            mean = draw(st.sampled_from([0.5, 2.0, 3.0] if index == 0 else [None, 0.5, 2.0, 3.0]))
            row["m"] = None if mean is None else mean * unit
    rows_with_length = draw(st.sets(st.sampled_from(range(len(rows))), min_size=1)) if clauses.length else ()
    return [row | ({"n": last} if index in rows_with_length else {}) for index, row in enumerate(rows)]


def _implied(clauses: _Clauses, entity: Entity, index: int) -> Window | None:
    """The default window of an event, from its recorded neighbours and the horizon."""
    recorded = [None if isinstance(event, Window) else event for event in entity.events]
    before = [t for t in recorded[:index] if t is not None]
    after = [t for t in recorded[index + 1 :] if t is not None]
    ends = HORIZON if clauses.horizon else (None, None)
    lo, hi = before[-1] if before else ends[0], after[0] if after else ends[1]
    return None if lo is None or hi is None else Window(lo, hi)


def _arrival(entity: Entity, index: int) -> int:
    """The approximate arrival time of a row, in units: its time, or that of the recorded event before it."""
    recorded = [(abs(i - index), i > index, e) for i, e in enumerate(entity.events) if not isinstance(e, Window)]
    before = [event for distance, is_later, event in sorted(recorded) if not is_later]
    return int((before or [event for *_, event in sorted(recorded)] or [0])[0])


# ---------------------------------------------------------------- arrival


def clock(row: Row) -> int:
    """The approximate arrival time of a row."""
    return row["at"]


def arrivals(rows: Rows) -> dict[str, list[list[Row]]]:
    """Groups of rows that must arrive together, by stream: a recorded event, and the lost events after it.

    With a TIMEOUT, the rows that arrive with a row without a time decide whether it is late.
    """
    together: dict[str, list[list[Row]]] = {}
    for name, stream_rows in rows.items():
        ordered = sorted(stream_rows, key=lambda row: (row["g"], row["k"], row["at"], row["t"] is None))
        groups = itertools.groupby(ordered, key=lambda row: (row["g"], row["k"], row["at"]))
        together[name] = [list(group) for _, group in groups]
    return together


def ungrouped(batches: list[dict[str, list[list[Row]]]]) -> list[Rows]:
    """Micro-batches of `arrivals` as micro-batches of rows."""
    return [{name: [*itertools.chain.from_iterable(groups)] for name, groups in batch.items()} for batch in batches]
