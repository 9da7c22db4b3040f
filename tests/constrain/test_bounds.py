"""Implied bounds compared with an enumeration of all paths."""

from __future__ import annotations

from itertools import permutations
from math import inf

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from anabranch.constrain.bounds import Bound, close, tightest

SLOTS = 4
STATED = st.dictionaries(
    st.tuples(st.integers(0, SLOTS - 1), st.integers(0, SLOTS - 1)).filter(lambda pair: pair[0] != pair[1]),
    st.builds(Bound, st.integers(-3, 6).map(float), st.booleans()),
    max_size=8,
)


def path_bound(stated: dict, path: tuple[int, ...]) -> tuple[float, bool]:
    """The bound of a path on its ends: the sum, and whether it is not strict, so that tighter bounds compare less."""
    steps = [stated.get(pair, Bound(inf)) for pair in zip(path, path[1:], strict=False)]
    return sum(step.value for step in steps), not any(step.strict for step in steps)


def paths(start: int, end: int) -> list[tuple[int, ...]]:
    """Every path without a repeated slot; if `start` is `end`, every such cycle."""
    others = [slot for slot in range(SLOTS) if slot not in (start, end)]
    return [
        (start, *between, end)
        for size in range(len(others) + 1)
        for between in permutations(others, size)
        if start != end or between
    ]


@given(STATED)
def test_each_bound_is_that_of_the_tightest_path(stated: dict) -> None:
    closed = close(SLOTS, stated)
    cycles = [path_bound(stated, path) for start in range(SLOTS) for path in paths(start, start)]
    contradicts = any(value < 0 or (value == 0 and not loose) for value, loose in cycles)
    assert bool(closed.cycle) == contradicts
    if contradicts:
        value, loose = path_bound(stated, closed.cycle)
        assert closed.cycle[0] == closed.cycle[-1]
        assert value < 0 or (value == 0 and not loose)
        return
    for start in range(SLOTS):
        for end in range(SLOTS):
            if start != end:
                best = min(path_bound(stated, path) for path in paths(start, end))
                assert closed.value[start, end] == best[0]
                if best[0] < inf:
                    assert closed.bound(start, end) == Bound(best[0], not best[1])


def test_sums_of_decimal_fractions_make_no_contradiction() -> None:
    tenths = {(0, 1): Bound(0.1), (1, 2): Bound(0.2), (2, 0): Bound(-0.3)}
    assert np.isclose(sum(bound.value for bound in tenths.values()), 0)
    assert not close(3, tenths).cycle


def test_the_tighter_one_of_two_bounds_is_used() -> None:
    known = {(0, 1): Bound(5.0)}
    assert tightest(known, (0, 1), Bound(5.0, strict=True)) == Bound(5.0, strict=True)
    assert tightest(known, (0, 1), Bound(6.0)) == Bound(5.0)
    assert tightest(known, (1, 0), Bound(6.0)) == Bound(6.0)
