"""The three strategies of CONSTRAIN over the same events: rates, events kept, and whether the alerts are the same."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from anabranch.constrain.analysis import STRATEGIES, TIGHT
from anabranch.splitmix import mix_all
from anabranch.transport.limits import MAX_ANSWERS
from benchmarks.constrain.data import Measurements
from benchmarks.constrain.queries import Query
from benchmarks.constrain.run import InProcess

ROUNDS = 3
"""The best of these rounds counts: a disturbance makes a run slower, never faster."""

Alerts = list[tuple[int, np.ndarray]]
"""A query, and the events of its alerts, one row per alert; a query can occur more than once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one strategy: events per second, the maximum number of events kept, and the number of alerts."""

    rate: float
    peak: int
    alerts: int


def compare_strategies(
    measurements: Measurements, queries: Sequence[Query], one_by_one: bool = False
) -> dict[str, Outcome]:
    """Run every strategy over the same events; alerts must be equal, and TIGHT must not keep more than others.

    Parameters
    ----------
    one_by_one : compare each alert, instead of checksums
    """
    runs = {name: InProcess(measurements, queries, name) for name in STRATEGIES}
    expected: object = None
    counts, peaks = {}, {}
    for name, run in runs.items():
        alerts, peaks[name] = _alerts(run)
        counts[name] = sum(len(rows) for _, rows in alerts)
        summary = sorted_alerts(alerts) if one_by_one else checksum(alerts)
        if expected is not None and not _same(summary, expected):
            raise AssertionError(f"the alerts of {name} differ from those of {STRATEGIES[0]}")
        expected = summary
    if peaks[TIGHT] > min(peaks.values()):
        raise AssertionError(f"TIGHT keeps more events than another strategy: {peaks}")
    rates = _rates(measurements, runs)
    return {name: Outcome(rates[name], peaks[name], counts[name]) for name in runs}


def _alerts(run: InProcess) -> tuple[Alerts, int]:
    """Return all alerts, and the maximum number of events kept; this also compiles the kernel."""
    events = run.kernel_events(*run.roles())
    kernel = run.run(events)
    alerts = list(kernel.solutions(MAX_ANSWERS))
    return alerts, kernel.peak(np.ones(len(events.events), np.bool_))


def _rates(measurements: Measurements, runs: Mapping[str, InProcess]) -> dict[str, float]:
    """Return events per second of processor time; the strategies take turns."""
    best = dict.fromkeys(runs, np.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            best[name] = min(best[name], _seconds(run))
    return {name: len(measurements) / seconds for name, seconds in best.items()}


def _seconds(run: InProcess) -> float:
    """Return the processor time to find roles, to fill the store, and to find alerts."""
    start = time.process_time()
    roles = run.roles()
    seconds = time.process_time() - start
    # A run writes to its events, so each run has its own.
    events = run.kernel_events(*roles)
    start = time.process_time()
    for _ in run.run(events).solutions(MAX_ANSWERS):
        pass
    return seconds + time.process_time() - start


# ------------------------------------------------------------ whether alerts are the same


def checksum(alerts: Alerts) -> tuple[int, int]:
    """Return the number of alerts, and a sum over them that does not depend on their order."""
    total, count = np.uint64(0), 0
    for query, rows in alerts:
        mixed = np.full(len(rows), mix_all(np.array([query], np.uint64))[0])
        for column in range(rows.shape[1]):
            mixed = mix_all(mixed ^ rows[:, column].astype(np.uint64))
        with np.errstate(over="ignore"):
            total += mixed.sum(dtype=np.uint64)
        count += len(rows)
    return count, int(total)


def sorted_alerts(alerts: Alerts) -> dict[int, np.ndarray]:
    """Return the alerts of each query in order."""
    parts: dict[int, list[np.ndarray]] = {}
    for query, rows in alerts:
        parts.setdefault(query, []).append(rows)
    joined = {query: np.concatenate(rows) for query, rows in parts.items()}
    return {query: rows[np.lexsort(rows.T)] for query, rows in joined.items() if len(rows)}


def _same(one: object, other: object) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)
    return one == other
