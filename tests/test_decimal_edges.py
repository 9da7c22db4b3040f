"""Thresholds and windows include their ends, for the numbers that the user wrote, in all kinds.

Decimals decide what is inside: every probability, time and duration has few digits, and is computed exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import prod
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.constrain.local import ConstrainRun
from tests.drawn import examples
from tests.local import local_job
from tests.monitor.local import MonitorRun
from tests.pattern.local import LocalRun as PatternRun
from tests.relate.local import RelateRun
from tests.sequence.local import SequenceRun
from tests.splits import splits

#: The first of the times of a case: decimals are rounded differently near 0 and far from it.
ORIGINS = [Decimal(text) for text in ("0", "1", "-0.6", "8.25", "1000", "86400.1", "-1048576.3", "1700000000.7")]
TENTHS = st.integers(0, 30).map(lambda number: Decimal(number) / 10)
BELOW_ONE = st.integers(1, 99).map(lambda number: Decimal(number) / 100)
HUNDREDTHS = st.integers(1, 100).map(lambda number: Decimal(number) / 100)


def times(size: int) -> st.SearchStrategy[list[Decimal]]:
    """Times on tenths, from any origin."""
    offsets = st.lists(TENTHS, min_size=size, max_size=size, unique=True).map(sorted)
    return st.tuples(st.sampled_from(ORIGINS), offsets).map(lambda drawn: [drawn[0] + offset for offset in drawn[1]])


def run_of(run: Any, rows: Sequence[dict[str, Any]], data: st.DataObject | None) -> Any:
    """Run over all rows of the stream `s` at once, or over a drawn split."""
    run.run([{"s": list(rows)}] if data is None else data.draw(splits({"s": list(rows)})))
    return run


# ---------------------------------------------------------------- thresholds


@pytest.mark.parametrize("live", [False, True])
@examples(25)
@given(st.data(), st.lists(st.tuples(HUNDREDTHS, HUNDREDTHS), min_size=1, max_size=3))
def test_pattern_thresholds(live: bool, data: st.DataObject, keys: list[tuple[Decimal, Decimal]]) -> None:
    """Each key is at x or at y, or elsewhere; keys are independent."""
    keys = [(x, min(y, 1 - x)) for x, y in keys]
    truth = 1 - prod(1 - x - y for x, y in keys)
    threshold = data.draw(st.sampled_from([truth, truth + Decimal("1e-6"), truth.quantize(Decimal("0.01"))]))
    workbook = (
        "CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT PROBABILITY p;\n"
        f"CREATE QUERY q AS PATTERN s(k, v)[v = 'x' OR v = 'y'] THRESHOLD {min(threshold, Decimal(1)):f};"
    )
    rows = [
        {"k": str(number), "v": value, "t": 1, "p": float(p)}
        for number, pair in enumerate(keys)
        for value, p in zip("xy", pair, strict=True)
    ]
    run = run_of(PatternRun(local_job(workbook, "q", live=live)), rows, data if live else None)
    assert bool(run.answers()) == (truth >= min(threshold, Decimal(1)))


@pytest.mark.parametrize("group_by", ["", " GROUP BY k"])
@pytest.mark.parametrize("p", [[0.25], [0.7, 0.1]])
def test_a_probability_reaches_the_threshold_that_it_equals(p: list[float], group_by: str) -> None:
    workbook = (
        "CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT PROBABILITY p;\n"
        f"CREATE QUERY q AS PATTERN s(k, v)[v <> 'z']{group_by} THRESHOLD {sum(map(Decimal, map(str, p)))};"
    )
    rows = [{"k": "a", "v": value, "t": 1, "p": part} for value, part in zip("xy", p, strict=False)]
    assert len(run_of(PatternRun(local_job(workbook, "q")), rows, None).answers()) == 1


@examples(25)
@given(st.data(), st.integers(1, 60), st.integers(1, 60))
def test_relate_thresholds(data: st.DataObject, before: int, after: int) -> None:
    """The lost end of a is anywhere between its start and the horizon, so it is before b with a known probability."""
    share = Decimal(before) / (before + after)
    if share != share.quantize(Decimal("1e-6")):
        return
    threshold = data.draw(st.sampled_from([share, share + Decimal("1e-6"), share - Decimal("1e-6")]))
    start, unit = data.draw(st.sampled_from([Decimal("0.1"), Decimal("8.3")])), Decimal("0.1")
    middle, end = start + before * unit, start + (before + after) * unit
    workbook = (
        "CREATE STREAM s KEY (k STRING) TIME t DOUBLE MODEL INTERVALS ORDER seq LENGTH n "
        f"HORIZON [{start}, {end}];\n"
        "CREATE QUERY q AS RELATE ALL a PRECEDES ALL b FROM s AS a, s AS b "
        f"WHERE a.k = 'a' AND b.k = 'b' THRESHOLD {max(threshold, Decimal(0)):f};"
    )
    rows = [
        {"k": "a", "seq": 1, "n": 2, "t": float(start)},
        {"k": "b", "seq": 1, "n": 2, "t": float(middle)},
        {"k": "b", "seq": 2, "n": 2, "t": float(end)},
    ]
    run = RelateRun(local_job(workbook, "q"))
    run.step({"s": rows}, end=True)
    assert bool(run.answers()) == (share >= threshold)


@examples(25)
@given(st.data(), BELOW_ONE, BELOW_ONE)
def test_sequence_thresholds(data: st.DataObject, y: Decimal, z: Decimal) -> None:
    """Both readings between u and w are lost; their delays have certainly passed."""
    threshold = data.draw(st.sampled_from([y * z, y * z + Decimal("1e-6"), (y * z).quantize(Decimal("0.01"))]))
    workbook = (
        "CREATE STREAM s KEY (k STRING) VALUE (v STRING) TIME t DOUBLE;\n"
        "CREATE QUERY q AS SEQUENCE (u, y, z, w) FROM s WHERE u.v = 'u' AND y.v = 'y' AND z.v = 'z' AND w.v = 'w' "
        f"MISS y {y}, z {z} DELAY y UNIFORM(0, 0.1), z UNIFORM(0, 0.1) WITHIN 0.4 THRESHOLD {threshold:f};"
    )
    rows = [{"k": "a", "v": "u", "t": 0.1}, {"k": "a", "v": "w", "t": 0.4}]
    run = run_of(SequenceRun(local_job(workbook, "q")), rows, data)
    assert bool(run.answers()) == (y * z >= threshold)


@examples(25)
@given(st.data(), st.sampled_from(ORIGINS), TENTHS, TENTHS)
def test_monitor_thresholds(data: st.DataObject, x: Decimal, below: Decimal, error: Decimal) -> None:
    """The position of a car is uniform within its error; it is at most a bound with the probability of a part of it."""
    error = max(error, Decimal("0.1"))
    bound = x - error + min(below, 2 * error)
    truth = (bound - x + error) / (2 * error)
    threshold = data.draw(st.sampled_from([truth, truth + Decimal("1e-6")]))
    workbook = (
        f"CREATE STREAM s KEY (k STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR {error} PERIOD 1;\n"
        f"CREATE QUERY q AS MONITOR a, b FROM s AS a, s AS b WHERE a.x <= {bound} AND a.k < b.k WITHIN 1 "
        f"SEMANTICS MAY THRESHOLD {min(threshold, Decimal(1)):.12f};"
    )
    run = run_of(MonitorRun(local_job(workbook, "q")), still_cars(x, x), data)
    assert bool(run.rows()) == (truth > 0 and truth >= min(threshold, Decimal(1)))


def still_cars(*positions: Decimal) -> list[dict[str, Any]]:
    """A report of each car; none of them moves."""
    return [{"k": f"k{number}", "t": 0.0, "x": float(x), "x_rate": 0.0} for number, x in enumerate(positions)]


# ---------------------------------------------------------------- windows


@pytest.mark.parametrize("semantics", ["MAY", "MUST"])
@examples(25)
@given(st.data(), st.sampled_from(ORIGINS), TENTHS, TENTHS)
def test_monitor_bounds(semantics: str, data: st.DataObject, x: Decimal, apart: Decimal, bound: Decimal) -> None:
    """Bounds of values include their ends as well."""
    workbook = (
        "CREATE STREAM s KEY (k STRING) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 1;\n"
        f"CREATE QUERY q AS MONITOR a, b FROM s AS a, s AS b WHERE ABS(a.x - b.x) <= {bound} AND a.k < b.k WITHIN 1 "
        f"SEMANTICS {semantics};"
    )
    run = run_of(MonitorRun(local_job(workbook, "q")), still_cars(x, x + apart), data)
    assert bool(run.rows()) == (apart <= bound)


@examples(40)
@given(st.data(), times(4), TENTHS)
def test_sequence_windows(data: st.DataObject, t: list[Decimal], within: Decimal) -> None:
    workbook = (
        "CREATE STREAM s KEY (k STRING) TIME t DOUBLE;\n"
        f"CREATE QUERY q AS SEQUENCE (u, v) FROM s WITHIN {max(within, Decimal('0.1'))};"
    )
    rows = [{"k": "a", "t": float(time)} for time in t]
    run = run_of(SequenceRun(local_job(workbook, "q")), rows, data)
    expected = [
        (float(one), float(other))
        for index, one in enumerate(t)
        for other in t[index + 1 :]
        if other - one <= max(within, Decimal("0.1"))
    ]
    assert sorted((answer["u"]["t"], answer["v"]["t"]) for answer in run.answers()) == sorted(expected)


@examples(25)
@given(st.data(), times(3), st.integers(1, 20))
def test_sequence_windows_that_expire(data: st.DataObject, t: list[Decimal], tenths: int) -> None:
    """Each event is the beginning of a match, or it expires; an event exactly at the close of a window is in time."""
    within = Decimal(tenths) / 10
    workbook = (
        "CREATE STREAM s KEY (k STRING) TIME t DOUBLE;\n"
        f"CREATE QUERY q AS SEQUENCE (u, v) FROM s WITHIN {within} EMIT ALL, EXPIRED;"
    )
    rows = [{"k": "a", "t": float(time)} for time in t]
    run = run_of(SequenceRun(local_job(workbook, "q")), rows, data)
    expired = [one for i, one in enumerate(t) if not any(other - one <= within for other in t[i + 1 :])]
    answers = [answer["u"]["t"] for answer in run.answers() if answer["status"] == "expired"]
    assert sorted(answers) == sorted(map(float, expired))


BOUNDS = {
    "v.t - u.t IN [{low}, {high}]": lambda apart, low, high: low <= apart <= high,
    "v.t - u.t > {low} AND v.t < u.t + {high}": lambda apart, low, high: low < apart < high,
    "v.t - {low} = u.t AND SPAN(u, v) <= {high}": lambda apart, low, high: apart == low and abs(apart) <= high,
    "v.t - u.t <> {low} AND ABS(v.t - u.t) <= {high}": lambda apart, low, high: apart != low and abs(apart) <= high,
    "(v.t - u.t <= {low} OR v.t - u.t >= {high}) AND SPAN(u, v) <= 9": lambda apart, low, high: (
        apart <= low or apart >= high
    ),
}


@pytest.mark.parametrize("kind", ["CONSTRAIN", "SEQUENCE"])
@examples(40)
@given(st.data(), times(4), TENTHS, TENTHS, st.sampled_from(sorted(BOUNDS)))
def test_bounds_on_times(
    kind: str, data: st.DataObject, t: list[Decimal], low: Decimal, high: Decimal, bound: str
) -> None:
    condition = bound.format(low=low, high=high)
    if kind == "SEQUENCE":
        if "SPAN" in condition:
            return
        query, run_class = f"SEQUENCE (u, v) FROM s WHERE {condition} WITHIN 9", SequenceRun
    else:
        query, run_class = f"CONSTRAIN u, v FROM s WHERE {condition}", ConstrainRun
    job = local_job(f"CREATE STREAM s KEY (k STRING) TIME t DOUBLE;\nCREATE QUERY q AS {query};", "q")
    run = run_of(run_class(job), [{"k": "a", "t": float(time)} for time in t], data)
    pairs = [(u, v) for u in t for v in t if (u < v if kind == "SEQUENCE" else u != v)]
    expected = [(float(u), float(v)) for u, v in pairs if BOUNDS[bound](v - u, low, high)]
    assert sorted((answer["u"]["t"], answer["v"]["t"]) for answer in run.answers()) == sorted(expected)


@examples(20)
@given(times(3), TENTHS, TENTHS)
def test_constrain_durations(t: list[Decimal], most: Decimal, gap: Decimal) -> None:
    """Bounds on the duration of one event, and between the end of one and the start of another."""
    workbook = (
        "CREATE STREAM s KEY (k STRING) TIME (t_from, t_to) DOUBLE;\n"
        f"CREATE QUERY q AS CONSTRAIN u, v FROM s WHERE v.t - v.t_from <= {most} AND v.t_from - u.t IN [0, {gap}];"
    )
    begin, middle, end = t
    rows = [
        {"k": "a", "t_from": float(begin), "t_to": float(begin)},
        {"k": "b", "t_from": float(middle), "t_to": float(end)},
    ]
    run = ConstrainRun(local_job(workbook, "q"))
    run.run([{"s": rows[:1]}, {"s": rows[1:]}])
    answers = {(answer["u"]["k"], answer["v"]["k"]) for answer in run.answers()}
    assert (("a", "b") in answers) == (end - middle <= most and middle - begin <= gap)


@pytest.mark.parametrize(
    ("bound", "microseconds", "holds"),
    [
        ("v.t - u.t <= 1.1", 1_100_000, True),
        ("v.t - u.t < 1.1", 1_100_000, False),
        ("v.t + 0.1 <= u.t + 0.3", 200_000, True),
        ("v.t - u.t <= 0.7 DAYS", 60_480_000_000, True),
        ("SPAN(u, v) <= 0.7 DAYS", 60_480_000_001, False),
    ],
)
def test_timestamps_are_compared_in_microseconds(bound: str, microseconds: int, holds: bool) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows = [{"k": "a", "t": start}, {"k": "b", "t": start + timedelta(microseconds=microseconds)}]
    workbook = (
        "CREATE STREAM s KEY (k STRING) TIME t TIMESTAMP;\n"
        f"CREATE QUERY q AS CONSTRAIN u, v FROM s WHERE u.k = 'a' AND v.k = 'b' AND {bound};"
    )
    assert bool(run_of(ConstrainRun(local_job(workbook, "q")), rows, None).answers()) == holds
