"""A plain loop in Python over a file that pandas reads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

import pandas as pd
from protocol import answer

Event = tuple[int, str, int]
Match = tuple[int, int, int]


def next_match(events: Iterable[Event], within: int) -> Iterator[Match]:
    """Yield for each A the next B, and the next C after it."""
    waiting_for_b, waiting_for_c = defaultdict(list), defaultdict(list)
    for key, kind, t in events:
        if kind == "A":
            waiting_for_b[key].append(t)
        elif kind == "B":
            waiting_for_c[key] += waiting_for_b.pop(key, [])
        elif kind == "C":
            for first in waiting_for_c.pop(key, []):
                if t - first < within:
                    yield key, first, t


def next_without(events: Iterable[Event], within: int) -> Iterator[Match]:
    """Yield for each A the next C, if there is no B before it."""
    waiting = defaultdict(list)
    for key, kind, t in events:
        if kind == "A":
            waiting[key].append(t)
        elif kind == "B":
            waiting.pop(key, None)
        elif kind == "C":
            for first in waiting.pop(key, []):
                if t - first < within:
                    yield key, first, t


def all_matches(events: Iterable[Event], within: int) -> Iterator[Match]:
    """Yield every A, B and C in order."""
    firsts, pairs = defaultdict(list), defaultdict(list)
    for key, kind, t in events:
        if kind == "A":
            firsts[key].append(t)
        elif kind == "B":
            firsts[key] = [first for first in firsts[key] if t - first <= within]
            pairs[key] += firsts[key]
        elif kind == "C":
            pairs[key] = [first for first in pairs[key] if t - first <= within]
            for first in pairs[key]:
                yield key, first, t


SOLUTIONS = {"next": next_match, "negated": next_without, "matches": all_matches}


def make(request: dict) -> Callable[[], list[float]]:
    """Return a function that solves the task of a request."""

    def run() -> list[float]:
        rows = pd.read_csv(request["path"])
        events = zip(rows["id"].tolist(), rows["kind"].tolist(), rows["t"].tolist(), strict=True)
        totals = [0, 0, 0, 0, 0]
        for key, first, last in SOLUTIONS[request["task"]](events, request["within"]):
            totals = [total + part for total, part in zip(totals, (1, key, first, last, key * last), strict=True)]
        return totals

    return run


answer(make)
