"""The state of a stream whose keys are ever new stays level: whatever no later row can need is forgotten.

Each stream is 50 times as long as the window of its query. Twice as long a stream must not have more state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.local import LocalRun, local_job
from tests.relate.test_runs import run_job

from anabranch.transport.job import Job

#: The windows of a stream, the length of one, and the new keys in each.
WINDOWS, WINDOW, KEYS = 50, 10, 30

Row = dict[str, Any]
RowsOfKey = Callable[[int, int], list[Row]]


def walk(key: int, t: int) -> list[Row]:
    """The rows of a person who is seen three times in a window."""
    return [
        {"k": key, "v": value, "t": t + delay, "p": p}
        for delay, value, p in ((0, "a", 0.5), (3, "b", 0.4), (6, "c", 0.3))
    ]


def fresh_values(key: int, t: int) -> list[Row]:
    """A few rows of one key, each with a value that no other row has."""
    return [{"k": 1, "v": key, "t": t + key // 10 % 3 * 3, "p": 1.0}] if key % 10 == 0 else []


def markov(key: int, t: int) -> list[Row]:
    """A key that comes to a, goes to b, and leaves."""
    moves = ((0, None, "a"), (3, "a", "b"), (6, "b", None))
    return [{"k": key, "prev_v": before, "v": after, "t": t + delay, "p": 1.0} for delay, before, after in moves]


def readings(key: int, t: int) -> list[Row]:
    """An event of each of two kinds."""
    return [{"k": key, "v": value, "t": t + delay} for delay, value in ((0, "a"), (2, "b"))]


def segments(key: int, t: int) -> list[Row]:
    """An entity with two segments."""
    times = (t, t + 2, t + 3, t + 6)
    return [{"k": key, "n": number, "t": at, "l": 4} for number, at in enumerate(times, start=1)]


def measurements(key: int, t: int) -> list[Row]:
    """Measurements, some of which satisfy the condition of runs."""
    return [{"k": str(key), "v": value, "ok": True, "t": t + delay} for delay, value in enumerate((60, 10, 20, 60))]


def position(key: int, t: int) -> list[Row]:
    """A position that is near that of every other key."""
    return [{"k": key, "x": float(key % 3), "x_rate": 0.0, "t": float(t)}]


INDEPENDENT = "CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL INDEPENDENT;"
NUMBERS = "CREATE STREAM r KEY (k INTEGER) VALUE (v INTEGER) TIME t INTEGER MODEL INDEPENDENT;"
MARKOV = "CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER MODEL MARKOV;"
EVENTS = "CREATE STREAM r KEY (k INTEGER) VALUE (v STRING) TIME t INTEGER;"
INTERVALS = "CREATE STREAM r KEY (k INTEGER) TIME t INTEGER ORDER n LENGTH l MODEL INTERVALS;"
PREDICTED = "CREATE STREAM r KEY (k INTEGER) VALUE (x DOUBLE) TIME t DOUBLE MODEL PREDICTED ERROR 0 PERIOD 10;"
CHANGE = "r(k, v) THEN r(k, w) WHERE v <> w"
MEET = "RELATE SOME a INTERSECTS SOME b FROM r AS a, r AS b WHERE a.k < b.k"
AB = "r(k, 'a') THEN r(k, 'b')"

CASES: dict[str, tuple[str, str, RowsOfKey]] = {
    "PATTERN, keys without results": (INDEPENDENT, "PATTERN r(k, 'x') THEN r(k, 'y') GROUP BY k", walk),
    "PATTERN WITHIN": (INDEPENDENT, f"PATTERN {AB} WITHIN 10", walk),
    "PATTERN WITHIN, grouped": (INDEPENDENT, f"PATTERN {AB} GROUP BY k WITHIN 10", walk),
    "PATTERN WITHIN, no key": (INDEPENDENT, "PATTERN r(_, 'a') THEN r(_, 'b') WITHIN 10", walk),
    "PATTERN, keys that leave": (MARKOV, "PATTERN r(k, 'a') THEN r(k, 'c') WITHIN 10", markov),
    "PATTERN, ever new values": (NUMBERS, f"PATTERN {CHANGE} GROUP BY k", fresh_values),
    "PATTERN WITHIN, ever new values": (NUMBERS, f"PATTERN {CHANGE} WITHIN 10", fresh_values),
    "PATTERN, carried by key": (INDEPENDENT, "PATTERN r(k, v) THEN r(k, 'x') THEN r(k, v) GROUP BY k WITHIN 10", walk),
    "PATTERN, bindings": (INDEPENDENT, "PATTERN r(k, v) THEN r(k, 'c') GROUP BY k, v WITHIN 10", walk),
    "PATTERN, bindings of keys without results": (INDEPENDENT, "PATTERN r(k, 'x') THEN r(k, v) GROUP BY k, v", walk),
    "PATTERN PER d": (INDEPENDENT, f"PATTERN {AB} GROUP BY k WITHIN 10 PER 10", walk),
    "PATTERN PER EPISODE": (INDEPENDENT, f"PATTERN {AB} GROUP BY k WITHIN 10 PER EPISODE", walk),
    "SEQUENCE": (EVENTS, "SEQUENCE (x, y) FROM r WHERE x.v = 'a' AND y.v = 'b' AND x.k = y.k WITHIN 10", readings),
    "MONITOR": (PREDICTED, "MONITOR a, b FROM r AS a, r AS b WHERE ABS(a.x - b.x) <= 1 AND a.k < b.k", position),
    "CONSTRAIN": (EVENTS, "CONSTRAIN u, v FROM r WHERE u.k < v.k AND v.t - u.t IN [0, 10]", readings),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_state_stays_level(name: str) -> None:
    streams, query, rows_of_key = CASES[name]
    assert_level(local_job(f"{streams}\nCREATE QUERY q AS {query};", "q", live=True), rows_of_key)


#: What RELATE keeps of an entity that has ended: its key, with its hash, in pages; and of runs when they were.
BYTES_PER_KEY = 32
BYTES_PER_RUN = 48


@pytest.mark.parametrize("tail", ["", "TIMEOUT 10"])
def test_relate_keeps_only_the_key_of_an_ended_entity(tail: str) -> None:
    sizes = sizes_of(local_job(f"{INTERVALS}\nCREATE QUERY q AS {MEET} {tail};", "q", live=True), segments)
    assert growth_per_key(sizes) <= BYTES_PER_KEY


def test_relate_keeps_only_the_key_of_an_entity_of_runs() -> None:
    sizes = sizes_of(run_job("", live=True, tail="TIMEOUT 10"), measurements)
    assert growth_per_key(sizes) <= BYTES_PER_RUN


def growth_per_key(sizes: list[int]) -> float:
    """By how many bytes the state grows with a key, in the second half of a stream."""
    return (sizes[-1] - sizes[WINDOWS // 2]) / (KEYS * (WINDOWS - 1 - WINDOWS // 2))


def assert_level(job: Job, rows_of_key: RowsOfKey) -> None:
    """Twice as long a stream has no more state."""
    sizes = sizes_of(job, rows_of_key)
    assert max(sizes[WINDOWS // 2 :]) <= 1.1 * max(sizes[: WINDOWS // 2]), sizes


def sizes_of(job: Job, rows_of_key: RowsOfKey) -> list[int]:
    """The bytes of the state after each window."""
    run = LocalRun(job, 2)
    (stream,) = {layout.name for layout in run.job.layouts}
    sizes = []
    for window in range(WINDOWS):
        keys = range(window * KEYS, (window + 1) * KEYS)
        rows = [row for key in keys for row in rows_of_key(key, window * WINDOW + key % 4)]
        run.step({stream: sorted(rows, key=lambda row: row["t"])})
        kept = [*run.states, *(data for pages in run.pages for data in pages.values())]
        sizes.append(sum(len(state or b"") for state in kept))
    assert run.counts.late == run.counts.quarantined == 0
    return sizes
